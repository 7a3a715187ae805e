"""What is said of System V objects and of orphaned processes."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.probe import Queue, Semaphores
from remedy.probe.processes import NO_READER
from remedy.values import Unknown
from tests.unit.deploys import orphans_bench as orphans
from tests.unit.deploys import sysv_bench as ipc
from tests.unit.deploys.words_bench import Said, planned, run, said

HOST = "gpu01"
SINCE = "untouched since 1970-01-11 10:00:01Z"
SETS = Semaphores(3, -2, 2, 1000, 1002, 900_000, 900_001)
QUEUE = Queue(8, 9, 0, 64, 12, 13, 1000, 1002, None, None, 900_000, 900_001, 899_000)
EMPTY = "empty, key 0x9, uid 1000, who has no process; sender 12 and receiver 13 dead"
OPEN = ipc.segment()
SEGMENT = "4.0 KiB, key 0x0, uid {}, nattch 0, creator 10 {}, untouched since {}"
LOST = "what is in them is lost and cannot be brought back"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"semaphores": (SETS,)}, Said(
            "report", "1 System V semaphore set left by dead processes",
            (f"semid 3: 2 semaphores, key 0xfffffffe, uid 1000, who has no process, {SINCE}",),
            "If nobody needs them: sysv_ipc.semaphores: remove in remedy.yaml, or ipcrm -s 3",
        )),
        ({"queues": (QUEUE, QUEUE._replace(id=9))}, Said(
            "report", "2 System V message queues left by dead processes",
            (f"msgid 8: {EMPTY}, {SINCE}", f"msgid 9: {EMPTY}, {SINCE}"),
            "If nobody needs them: sysv_ipc.queues: remove in remedy.yaml, or ipcrm -q 8",
        )),
    ],
)  # fmt: skip
def test_what_is_reported(given: dict[str, Any], expected: Said) -> None:
    assert said(planned("sysv_ipc", ipc.host(**given)), HOST) == [expected]


@pytest.mark.parametrize(
    ("given", "settings", "expected"),
    [
        ({}, {"remove": False}, Said(
            "report", "1 System V segment left by dead processes, 4.0 KiB",
            ("shmid 5: " + SEGMENT.format(1000, "and last user 11 dead", "1970-01-11 10:00:01Z"),),
            "If nobody needs them: sysv_ipc.remove: true in remedy.yaml, or ipcrm -m 5",
        )),
        ({"uid": 0}, {}, Said(
            "report", "1 System V segment of root left by dead processes, 4.0 KiB",
            ("shmid 5: " + SEGMENT.format(0, "and last user 11 dead", "1970-01-11 10:00:01Z"),),
            "If nobody needs them: sysv_ipc.root: true in remedy.yaml, or ipcrm -m 5",
        )),
        ({"last": 0, "attached_at": 0, "detached_at": 0, "size": 0}, {}, Said(
            "drift", "1 System V segment left by dead processes",
            ("shmid 5: " + SEGMENT.format(1000, "dead, never used", "1970-01-11 09:59:59Z").replace("4.0 KiB",
             "0 bytes"),
            ), "",
        )),
        ({"last_started_at": 950_000}, {}, Said(
            "drift", "1 System V segment left by dead processes, 4.0 KiB",
            ("shmid 5: " + SEGMENT.format(1000, "and last user 11 dead", "1970-01-11 10:00:01Z").replace(
                " dead,", " dead (the pid is another process now),"),), "",
        )),
    ],
)  # fmt: skip
def test_what_is_said_of_a_segment(
    given: dict[str, int], settings: dict[str, Any], expected: Said
) -> None:
    plan = planned("sysv_ipc", ipc.host(ipc.segment(**given)), **settings)
    assert said(plan, HOST) == [expected]
    assert len(plan.changes) == (expected.kind == "drift")


@pytest.mark.parametrize(
    ("given", "title", "word", "checks", "end"),
    [
        ({"segments": (OPEN, OPEN._replace(id=6))}, "remove 2 System V segments that nobody uses", "shm 5 6",
         ("same /proc/sysvipc/shm 5 '$1, $4, $5, $6, $7, $8, $12, $13, $14' "
         "'0 4096 10 11 0 1000 900000 900001 899999' && dead 10 899999 && dead 11 900001"), "ipcrm -m 5"),
        ({"semaphores": (SETS,)}, "remove 1 System V semaphore set that nobody uses", "sem 3",
         ("same /proc/sysvipc/sem 3 '$1, $4, $5, $9, $10' '-2 2 1000 900000 900001' && absent 1000 && absent "
         "1002"),
         "ipcrm -s 3"),
        ({"queues": (QUEUE,)}, "remove 1 System V message queue that nobody uses", "msg 8",
         ("same /proc/sysvipc/msg 8 '$1, $4, $5, $6, $7, $8, $12, $13, $14' "
         "'9 64 0 12 13 1000 900000 900001 899000' && dead 12 900001 && dead 13 900001 && absent 1000 && "
         "absent 1002"),
         "ipcrm -q 8"),
    ],
)  # fmt: skip
def test_what_is_removed(
    given: dict[str, Any], title: str, word: str, checks: str, end: str
) -> None:
    given = dict(given)
    state = ipc.host(*given.pop("segments", ()), **given)
    plan = planned("sysv_ipc", state, semaphores="remove", queues="remove")
    (step,) = run(plan, HOST)
    assert step[:4] == (title, "medium", False, LOST)
    assert (step.before, step.after, step.undo) == (word, "none", "")
    assert f"if {checks}; then {end}; fi" in step.do
    assert f"if {{ {checks}; }}" in step.observe
    assert step.observe.endswith(f"; then echo '{word}'; else echo none; fi")


@pytest.mark.parametrize(
    ("given", "is_named"),
    [
        ({}, True), ({"messages": 1}, False), ({"uid": 1001}, False), ({"creator_uid": 1001}, False),
        ({"uid": 0}, False), ({"sender_started_at": 900_003}, False), ({"sender_started_at": 900_004}, True),
        ({"receiver_started_at": 900_003}, False), ({"receiver_started_at": 900_004}, True),
        ({"uid": 33}, False), ({"changed_at": ipc.NOW - 599}, False), ({"changed_at": ipc.NOW - 600}, True),
    ],
)  # fmt: skip
def test_which_queues_are_left_over(given: dict[str, int], is_named: bool) -> None:
    state = ipc.host(queues=(QUEUE._replace(**given),))
    assert bool(said(planned("sysv_ipc", state), HOST)) is is_named


# ---- orphans

START = "started 1970-01-12 13:46:40Z"
ADOPTED = (
    f"adopted by PID 1; started from a login that is over ({orphans.LOGIN}); no terminal; its output "
    f"goes to "
)
PIPE = "a pipe that nobody reads"
PTY = "/dev/pts/3 (deleted)"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (orphans.host(orphans.ORPHAN), Said(
            "blocked", "an orphaned process holds port 29500",
            (f"pid 89 (torchrun train.py), uid 0, {START}, holds port 29500", ADOPTED + PIPE),
            "If nobody needs it: orphans.end: true in remedy.yaml, or kill 89",
        )),
        (orphans.host(orphans.ORPHAN, orphans.WORKER, orphans.WORKER._replace(pid=91), port=7, gpu=91), Said(
            "blocked", "an orphaned process holds 1 GPU",
            (f"pid 89 (torchrun train.py), uid 0, {START}, holds 1 GPU", "below it: 90, 91", ADOPTED + PIPE),
            "If nobody needs it: orphans.end: true in remedy.yaml, or kill 89",
        )),
        (orphans.host(orphans.ORPHAN._replace(outputs=(NO_READER, PTY), arguments=None, started_at=0)),
         Said(
            "blocked", "an orphaned process holds port 29500",
            ("pid 89 (pt_elastic), uid 0, holds port 29500", f"{ADOPTED}{PIPE} and {PTY}"),
            "If nobody needs it: orphans.end: true in remedy.yaml, or kill 89",
        )),
        (orphans.host(orphans.ORPHAN._replace(terminal=True)), Said(
            "report", "port 29500 in use",
            (f"pid 89 (torchrun train.py), uid 0, {START}: not an orphan, because it has a terminal",),
            "Wait for it to end, or give the next run another --master-port.",
        )),
        (orphans.host(orphans.ORPHAN._replace(outputs=("/root/x",)), port=7, gpu=89), Said(
            "report", "1 GPU in use",
            ((f"pid 89 (torchrun train.py), uid 0, {START}: not an orphan, because it writes to /root/x, so it "
             f"was "
             "detached on purpose"),),
            "Wait for it to end.",
        )),
    ],
)  # fmt: skip
def test_what_is_said_of_processes(state: Any, expected: Said) -> None:
    plan = planned("orphans", state)
    assert said(plan, HOST) == [expected]
    assert {f.label for f in plan.findings} == {
        "master-port-in-use" if "port" in expected.title else "stale-process"
    }


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"cgroup": None}, "a daemon started it"), ({"cgroup": ""}, "a daemon started it"),
        ({"cgroup": "/system.slice/x.service"}, "it belongs to /system.slice/x.service"),
        ({"outputs": ()}, "where its output goes is not known"),
        ({"outputs": None}, "where its output goes is not known"),
        ({"outputs": ("/dev/pts/3",)}, "it writes to /dev/pts/3, so it was detached on purpose"),
        ({"outputs": ("/tmp/x (deleted)",)}, "it writes to /tmp/x (deleted), so it was detached on purpose"),
    ],
)  # fmt: skip
def test_why_it_may_be_somebodys(given: dict[str, Any], why: str) -> None:
    (found,) = said(planned("orphans", orphans.host(orphans.ORPHAN._replace(**given))), HOST)
    assert found.evidence[0].endswith(f"not an orphan, because {why}")


@pytest.mark.parametrize(
    "cgroup",
    [
        "/user.slice/user-7.slice/session-c2.scope", "/system.slice/ssh.service", "/system.slice/sshd.service",
        "/system.slice/sshd@7.service",
    ],
)  # fmt: skip
def test_where_logins_are(cgroup: str) -> None:
    state = orphans.host(orphans.ORPHAN._replace(cgroup=cgroup))
    (found,) = said(planned("orphans", state), HOST)
    assert f"a login that is over ({cgroup})" in found.evidence[-1]


def test_a_long_command_is_cut() -> None:
    for words, shown in ((("x" * 120,), "x" * 120), (("x" * 121,), "x" * 117 + "...")):
        state = orphans.host(orphans.ORPHAN._replace(arguments=words))
        (found,) = said(planned("orphans", state), HOST)
        assert found.evidence[0].startswith(f"pid 89 ({shown}), uid 0")


def test_orphans_are_ended() -> None:
    plan = planned("orphans", orphans.host(orphans.ORPHAN), end=True, grace_seconds=7)
    (step,) = run(plan, HOST)
    assert step[:4] == (
        "end 1 orphaned process", "medium", False,
        "they are ended for good; what they have not saved is lost",
    )  # fmt: skip
    assert (step.before, step.after, step.undo) == ("orphans 89", "none", "")
    assert step.do.endswith(
        "\nmembers=\n"
        'if orphan 89 8900; then members="$members $(tree 89)"; kill -TERM 89; fi\n'
        "gone_within 7 || { all KILL; gone_within 5; }"
    )
    (found,) = said(plan, HOST)
    assert found.kind == "drift"
    assert len(found.evidence) == 2


@pytest.mark.parametrize(("port", "is_one"), [(0, False), (1, True), (65535, True), (65536, False)])
def test_ports_are_ports(port: int, is_one: bool) -> None:
    if is_one:
        planned("orphans", orphans.host(), ports=(29500, port))
        return
    with pytest.raises(ValueError, match="equal to 1" if port == 0 else "equal to 65535"):
        planned("orphans", orphans.host(), ports=(29500, port))


def test_what_proves_nothing() -> None:
    state = orphans.host(orphans.ORPHAN)
    init = orphans.INIT._replace(name="docker-init")
    assert not isinstance(state.processes, Unknown)
    others = tuple(init if p.pid == 1 else p for p in state.processes)
    for blind, why in (
        (state.model_copy(update={"root": False}), "unknown without root: whether anybody reads its output"),
        (state.model_copy(update={"processes": others}), "PID 1 is no init, so it may have started it itself"),
        (state.model_copy(update={"processes": others[1:]}),
         "PID 1 is no init, so it may have started it itself"),
    ):  # fmt: skip
        (found,) = said(planned("orphans", blind), HOST)
        assert found.evidence[0].endswith(f"not an orphan, because {why}")
    for fact, what in (
        ("processes", "the list of processes"),
        ("listeners", "the list of listening ports"),
    ):
        lost = state.model_copy(update={fact: Unknown(reason="no ps")})
        assert said(planned("orphans", lost), HOST) == [
            Said("unknown", f"could not read {what}", ("no ps",), "")
        ]
