"""Orphaned training processes: what proves that nobody owns them, and what ending them promises."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys.orphans import OrphansSpec
from remedy.errors import SpecError
from remedy.plan import (
    CommandAction,
    FindingKind,
    Plan,
    inverse,
    make_plan,
    promised,
    section_models,
)
from remedy.probe import HostState, Listener, LoginSession
from remedy.probe.processes import NO_READER
from remedy.spec import load_spec
from remedy.values import Unknown
from tests.unit import probe_data
from tests.unit.build import WHEN, fleet, record, with_section
from tests.unit.deploys.orphans_bench import (
    CLOSED,
    INIT,
    LOGIN,
    ORPHAN,
    SSHD,
    WORKER,
    host,
    process,
)

NAME = "orphans"
END = OrphansSpec(end=True)


def plan_of(state: HostState, spec: OrphansSpec | None = None) -> Plan:
    settled = fleet(state, spec=with_section(NAME, spec or OrphansSpec()))
    return make_plan(settled, WHEN, only=NAME)


def test_an_orphan_is_found_and_ended_only_where_asked_for() -> None:
    state = host(ORPHAN, WORKER, gpu=90)
    (finding,) = plan_of(state).findings
    assert finding.kind is FindingKind.BLOCKED
    assert finding.title == "an orphaned process holds port 29500 and 1 GPU"
    assert finding.evidence[:2] == (
        "pid 89 (torchrun train.py), uid 0, started 1970-01-12 13:46:40Z, holds port 29500 and 1 GPU",
        "below it: 90",
    )
    assert finding.evidence[2] == (
        f"adopted by PID 1; started from a login that is over ({LOGIN}); no terminal; its output goes to "
        "a pipe that nobody reads"
    )
    assert "kill 89" in finding.fix
    assert plan_of(state).changes == ()

    plan = plan_of(state, END)
    assert [f.kind for f in plan.findings] == [FindingKind.DRIFT]
    (change,) = plan.changes
    assert change.title == "end 2 orphaned processes"
    assert isinstance(change.action, CommandAction)
    assert change.action.before == "orphans 89"
    assert "orphan 89 8900" in change.action.do
    assert inverse(plan.changes) == ()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"parent": 41}, "a daemon started it"),  # its ssh client lives
        ({"outputs": ("/root/train.log", "/root/train.log")}, "writes to /root/train.log"),
        ({"outputs": (NO_READER, "/dev/null")}, "writes to /dev/null"),
        ({"outputs": ("pipe:[77]", NO_READER)}, "writes to pipe:[77]"),
        ({"outputs": ("socket:[5]", "socket:[5]")}, "writes to socket:[5]"),
        ({"outputs": ("/dev/pts/3", "/dev/pts/3")}, "writes to /dev/pts/3"),
        ({"outputs": ()}, "where its output goes is not known"),
        ({"outputs": None}, "where its output goes is not known"),
        ({"terminal": True}, "it has a terminal"),
        ({"cgroup": "/system.slice/train.service"}, "belongs to /system.slice/train.service"),
        ({"cgroup": "/slurm/uid_1000/job_7/step_0"}, "belongs to /slurm"),
        ({"cgroup": "/docker/0123456789ab"}, "belongs to /docker"),
        ({"cgroup": f"/machine.slice/lxc{LOGIN}"}, "belongs to /machine.slice"),
        (
            {"cgroup": "/user.slice/user-1000.slice/user@1000.service/app.slice/x.service"},
            "belongs",
        ),
        ({"cgroup": "/"}, "belongs to /"),
        ({"cgroup": None}, "a daemon started it"),
    ],
)
def test_what_may_be_somebodys_is_left_alone(given: dict[str, object], why: str) -> None:
    plan = plan_of(host(ORPHAN._replace(**given)), END)  # type: ignore[arg-type]
    assert plan.changes == ()
    (finding,) = plan.findings
    assert (finding.kind, finding.title) == (FindingKind.REPORT, "port 29500 in use")
    assert why in finding.evidence[0]


@pytest.mark.parametrize(
    "outputs",
    [CLOSED, ("/dev/pts/3 (deleted)", NO_READER)],
)
def test_outputs_that_lead_nowhere(outputs: tuple[str, ...]) -> None:
    assert plan_of(host(ORPHAN._replace(outputs=outputs)), END).changes


def test_a_terminal_below_it_is_somebodys() -> None:
    """A detached tmux: its server is adopted and silent, the job in it has a terminal."""
    assert plan_of(host(ORPHAN, WORKER._replace(terminal=True)), END).changes == ()


def test_what_cannot_be_seen_proves_nothing() -> None:
    state = host(ORPHAN)
    for update in (
        {"root": False},
        {"session": record(LoginSession, present=frozenset({"/.dockerenv"}))},
        {"processes": (INIT._replace(name="bash"), SSHD, ORPHAN)},
        {"processes": (SSHD, ORPHAN)},
    ):
        assert plan_of(state.model_copy(update=update), END).changes == ()
    for group in ("processes", "listeners"):
        blind = state.model_copy(update={group: Unknown(reason="no answer")})
        assert [f.kind for f in plan_of(blind, END).findings] == [FindingKind.UNKNOWN]


def test_only_what_holds_something_is_looked_at() -> None:
    assert plan_of(host(ORPHAN, port=8080), END).findings == ()
    assert plan_of(host(ORPHAN, port=8080), OrphansSpec(end=True, ports=(8080,))).changes
    (finding,) = plan_of(host(ORPHAN, WORKER, port=8080, gpu=90), END).findings
    assert (finding.label, finding.title) == ("stale-process", "an orphaned process holds 1 GPU")
    # A job on the GPU that lives is not this remedy's business; another namespace's pid is nobody here.
    living = ORPHAN._replace(parent=41)
    assert plan_of(host(living, WORKER, port=8080, gpu=90), END).findings == ()
    assert plan_of(host(port=8080, gpu=4242), END).findings == ()


@pytest.mark.parametrize("port", [8118, 8090, 29513, 60000])
def test_an_orphan_is_found_on_the_port_of_any_launcher(port: int) -> None:
    (finding,) = plan_of(host(ORPHAN, port=port)).findings
    assert finding.title == f"an orphaned process holds port {port}"
    assert not plan_of(host(ORPHAN, port=port), OrphansSpec(ports=(4711,))).findings


def test_a_wrong_port_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "remedy.yaml"
    path.write_text("orphans: {ports: [70000]}\n")
    with pytest.raises(
        SpecError, match=r"orphans\.ports\.0 is 70000, needs a whole number from 1 to"
    ):
        load_spec(path, section_models())


def test_a_tree_is_named_by_what_all_of_it_holds() -> None:
    child = process(91, 90, uid=0, cgroup=LOGIN)
    state = host(ORPHAN, WORKER, child, gpu=91)
    listeners = (
        Listener("*", 29500, (90,)),
        Listener("*", 29400, (91,)),
        Listener("*", 22, (41,)),
    )
    state = state.model_copy(update={"listeners": listeners})
    (finding,) = plan_of(state).findings
    assert "port 29400 and port 29500 and 1 GPU" in finding.title
    assert finding.label == "master-port-in-use"
    assert "below it: 90, 91" in finding.evidence
    assert "orphans.end" in finding.fix
    assert "kill 89" in finding.fix
    (change,) = plan_of(state, END).changes
    assert "3 orphaned processes" in change.title
    assert change.disrupts
    assert not change.reversible


def test_one_process_is_one_and_two_trees_are_ended_by_one_step() -> None:
    other = ORPHAN._replace(pid=95, group=95, session=95, started_ticks=9500)
    state = host(ORPHAN, other)
    listeners = (Listener("*", 29500, (89,)), Listener("*", 29400, (95,)))
    both = plan_of(state.model_copy(update={"listeners": listeners}), END)
    (change,) = both.changes
    assert isinstance(change.action, CommandAction)
    assert change.action.before == "orphans 89 95"
    assert "orphan 95 9500" in change.action.do
    assert len(both.findings) == 2
    (single,) = plan_of(host(ORPHAN), END).changes
    assert "1 orphaned process" in single.title
    assert "processes" not in single.title


def test_a_port_in_use_is_reported_with_who_uses_it_and_a_way_out() -> None:
    living = ORPHAN._replace(parent=41)
    (finding,) = plan_of(host(living)).findings
    assert finding.evidence[0].startswith("pid 89 (torchrun train.py), uid 0")
    assert "--master-port" in finding.fix
    assert finding.label == "master-port-in-use"


@pytest.mark.parametrize(
    ("update", "who"),
    [
        ({}, "the kernel, or a process of another process namespace"),
        ({"root": False}, "a process of another user, and the login is not root's"),
        (
            {"processes": (INIT, ORPHAN._replace(parent=0))},
            "started 1970-01-12 13:46:40Z, which does not descend from PID 1",
        ),
    ],
)
def test_a_port_that_nobody_is_seen_to_hold_is_reported_all_the_same(
    update: dict[str, object], who: str
) -> None:
    held = host(ORPHAN)
    assert not isinstance(held.listeners, Unknown)
    holders = (ORPHAN.pid,) if "processes" in update else ()
    listeners = tuple(listener._replace(holders=holders) for listener in held.listeners)
    state = held.model_copy(update={"listeners": listeners, **update})
    plan = plan_of(state, END)
    assert plan.changes == ()
    (finding,) = plan.findings
    assert (finding.kind, finding.title) == (FindingKind.REPORT, "port 29500 in use")
    assert finding.label == "master-port-in-use"
    assert finding.evidence[0].endswith(who)
    assert "ss -ltnp 'sport = :29500'" in finding.fix


def test_a_long_command_is_quoted_in_short_and_one_without_words_by_its_name() -> None:
    long = ORPHAN._replace(arguments=("x" * 200,))
    line = plan_of(host(long)).findings[0].evidence[0]
    assert f"pid 89 ({'x' * 117}...)" in line
    fits = ORPHAN._replace(arguments=("x" * 120,))
    assert f"({'x' * 120})" in plan_of(host(fits)).findings[0].evidence[0]
    bare = ORPHAN._replace(arguments=None, started_at=0)
    line = plan_of(host(bare)).findings[0].evidence[0]
    assert "pid 89 (pt_elastic), uid 0, holds" in line


@pytest.mark.parametrize(("seconds", "pause"), [(0, "gone_within 0"), (10, "gone_within 10")])
def test_between_asking_and_killing_there_is_the_time_that_the_user_gives(
    seconds: int, pause: str
) -> None:
    (change,) = plan_of(host(ORPHAN), OrphansSpec(end=True, grace_seconds=seconds)).changes
    assert isinstance(change.action, CommandAction)
    assert pause in change.action.do


def started_ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def test_the_script_leaves_a_process_alone_that_is_no_orphan() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        real = ORPHAN._replace(pid=child.pid, started_ticks=started_ticks(child.pid))
        (change,) = plan_of(host(real, holder=child.pid), END).changes
        assert isinstance(change.action, CommandAction)
        for text in (change.action.observe, change.action.do):
            subprocess.run(["sh", "-c", text], capture_output=True, check=False, timeout=60)
        time.sleep(0.1)
        assert child.poll() is None
        os.kill(child.pid, 0)
    finally:
        child.kill()
        child.wait()


def test_the_probe_tells_where_adopted_processes_write() -> None:
    stats = "\n".join(
        f"/proc/{pid}/stat:{pid} (python) S 1 {pid} {pid} 0 -1 " + " ".join(["0"] * 13) + " 100 0"
        for pid in (89, 90, 91)
    )
    outputs = (
        "l-wx------ 1 root root 64 Nov 20 23:04 /proc/89/fd/1 -> pipe:[11]\n"
        "l-wx------ 1 root root 64 Nov 20 23:04 /proc/89/fd/2 -> pipe:[12]\n"
        "l-wx------ 1 root root 64 Nov 20 23:04 /proc/90/fd/1 -> /root/a b -> c.log\n"
        "reader pipe:[12]\n"
    )
    for end, told in (("end\n", (NO_READER, "pipe:[12]")), ("", None)):
        body = probe_data.recorded("lab-idle")
        body = probe_data.replaced(body, "processes", stats)
        body += probe_data.section("process-outputs", outputs + end)
        processes = probe_data.parse(body).processes
        assert not isinstance(processes, Unknown)
        by_pid = {one.pid: one for one in processes}
        assert by_pid[89].outputs == told
        assert by_pid[90].outputs == (("/root/a b -> c.log",) if told else None)
        assert by_pid[91].outputs is None


parents = st.sampled_from([1, 1, 41, 89, 90, 91])
groups = st.sampled_from([LOGIN, LOGIN, None, "/docker/1", "/system.slice/ssh.service"])
ways_out = st.sampled_from([CLOSED, CLOSED, None, ("/a", "/a")])
threads = st.tuples(parents, groups, ways_out, st.sampled_from([False, False, True]))


@given(
    st.lists(threads, min_size=1, max_size=4),
    st.sampled_from([89, 90, 91]),
    st.sampled_from([0, 90, 91]),
    st.booleans(),
)
def test_a_plan_ends_what_it_names(
    drawn: list[tuple[int, str | None, tuple[str, ...] | None, bool]],
    holder: int,
    gpu: int,
    end: bool,
) -> None:
    processes = [
        process(pid, parent, cgroup=group, outputs=outputs, terminal=terminal)
        for pid, (parent, group, outputs, terminal) in enumerate(drawn, 89)
    ]
    state = host(*processes, holder=holder, gpu=gpu)
    before = fleet(state, spec=with_section(NAME, OrphansSpec(end=end)))
    plan = make_plan(before, WHEN, only=NAME)
    drift = [f for f in plan.findings if f.kind is FindingKind.DRIFT]
    assert bool(plan.changes) is bool(drift)
    assert end or not drift
    after = promised(before, plan)
    again = make_plan(after, WHEN, only=NAME)
    assert again.changes == ()
    assert not end or [f for f in again.findings if f.kind is not FindingKind.REPORT] == []
    left = after.states["gpu01"].processes
    everything = state.processes
    assert not isinstance(left, Unknown)
    assert not isinstance(everything, Unknown)
    assert {1, 41} <= {one.pid for one in left}
    assert all(not one.terminal for one in set(everything) - set(left))
