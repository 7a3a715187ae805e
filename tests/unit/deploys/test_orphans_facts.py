"""Orphans and shared memory: the script that ends trees of processes, and what findings say."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from remedy.deploys._leftovers import SERVICE_USERS, is_service, moment, shared_with
from remedy.deploys._sizes import ADVISED, GIB, MIB, derived, least, short
from remedy.deploys.dev_shm import DevShmSpec
from remedy.deploys.docker_shm import DAEMON, PODMAN, DockerShmSpec
from remedy.deploys.orphans import OrphansSpec
from remedy.deploys.shm_leftovers import ShmLeftoversSpec, candidates, maker
from remedy.plan import CommandAction, FindingKind
from remedy.probe import Identity, Listener, LoginSession, SharedMemory, ShmFile
from remedy.values import Unknown
from tests.unit.build import host_state, record
from tests.unit.deploys import test_orphans as orphans
from tests.unit.deploys import test_shared_memory as shm

# --- orphans -------------------------------------------------------------------------------------------------


def test_a_tree_is_named_by_what_all_of_it_holds() -> None:
    child = orphans.process(91, 90, uid=0, cgroup=orphans.LOGIN)
    state = orphans.host(orphans.ORPHAN, orphans.WORKER, child, gpu=91)
    listeners = (
        Listener("*", 29500, 0, (90,)),
        Listener("*", 29400, 0, (91,)),
        Listener("*", 22, 0, (41,)),
    )
    state = state.model_copy(update={"listeners": listeners})
    (finding,) = orphans.plan_of(state).findings
    assert "port 29400 and port 29500 and 1 GPU" in finding.title
    assert finding.label == "master-port-in-use"
    assert "below it: 90, 91" in finding.evidence
    assert "orphans.end" in finding.fix
    assert "kill 89" in finding.fix
    (change,) = orphans.plan_of(state, orphans.END).changes
    assert "3 orphaned processes" in change.title
    assert change.disrupts
    assert not change.reversible


def test_one_process_is_one_and_two_trees_are_ended_by_one_step() -> None:
    other = orphans.ORPHAN._replace(pid=95, group=95, session=95, started_ticks=9500)
    state = orphans.host(orphans.ORPHAN, other)
    listeners = (Listener("*", 29500, 0, (89,)), Listener("*", 29400, 0, (95,)))
    both = orphans.plan_of(state.model_copy(update={"listeners": listeners}), orphans.END)
    (change,) = both.changes
    assert isinstance(change.action, CommandAction)
    assert change.action.before == "orphans 89 95"
    assert "orphan 95 9500" in change.action.do
    assert len(both.findings) == 2
    (single,) = orphans.plan_of(orphans.host(orphans.ORPHAN), orphans.END).changes
    assert "1 orphaned process" in single.title
    assert "processes" not in single.title


def test_a_port_in_use_is_reported_with_who_uses_it_and_a_way_out() -> None:
    living = orphans.ORPHAN._replace(parent=41)
    (finding,) = orphans.plan_of(orphans.host(living)).findings
    assert finding.evidence[0].startswith("pid 89 (torchrun train.py), uid 0")
    assert "--master-port" in finding.fix
    assert finding.label == "master-port-in-use"


def test_a_long_command_is_quoted_in_short_and_one_without_words_by_its_name() -> None:
    long = orphans.ORPHAN._replace(arguments=("x" * 200,))
    line = orphans.plan_of(orphans.host(long)).findings[0].evidence[0]
    assert f"pid 89 ({'x' * 117}...)" in line
    fits = orphans.ORPHAN._replace(arguments=("x" * 120,))
    assert f"({'x' * 120})" in orphans.plan_of(orphans.host(fits)).findings[0].evidence[0]
    bare = orphans.ORPHAN._replace(arguments=None, started_at=0)
    line = orphans.plan_of(orphans.host(bare)).findings[0].evidence[0]
    assert "pid 89 (pt_elastic), uid 0, holds" in line


@pytest.mark.parametrize(("seconds", "pause"), [(0, "gone_within 0"), (10, "gone_within 10")])
def test_between_asking_and_killing_there_is_the_time_that_the_user_gives(
    seconds: int, pause: str
) -> None:
    (change,) = orphans.plan_of(
        orphans.host(orphans.ORPHAN), OrphansSpec(end=True, grace_seconds=seconds)
    ).changes
    assert isinstance(change.action, CommandAction)
    assert pause in change.action.do


def started_ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def test_the_script_leaves_a_process_alone_that_is_no_orphan() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        real = orphans.ORPHAN._replace(pid=child.pid, started_ticks=started_ticks(child.pid))
        (change,) = orphans.plan_of(orphans.host(real, holder=child.pid), orphans.END).changes
        assert isinstance(change.action, CommandAction)
        for text in (change.action.observe, change.action.do):
            subprocess.run(["sh", "-c", text], capture_output=True, check=False, timeout=60)
        time.sleep(0.1)
        assert child.poll() is None
        os.kill(child.pid, 0)
    finally:
        child.kill()
        child.wait()


# --- whose leftovers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uid", "service"),
    [
        (0, False),
        (1, True),
        (999, True),
        (1000, False),
        (61183, False),
        (61184, True),
        (65534, True),
        (65535, False),
    ],
)
def test_accounts_of_services_are_told_by_their_numbers(uid: int, service: bool) -> None:
    assert is_service(uid) is service
    assert (SERVICE_USERS.start, SERVICE_USERS.stop) == (61184, 65535)


@pytest.mark.parametrize(
    ("kind", "marks", "shared"),
    [
        ("docker", (), True), ("podman", (), True), ("rkt", (), True), ("pouch", (), True),
        ("container-other", (), True), ("kvm", (), False), ("lxc", (), False), ("", (), False),
        ("", ("/.dockerenv",), True), ("", ("/run/.containerenv",), True),
        ("docker", ("/run/systemd/system",), False), ("", ("/.dockerenv", "/run/systemd/system"), False),
    ],
)  # fmt: skip
def test_a_container_of_one_application_shares_its_memory_with_others(
    kind: str, marks: tuple[str, ...], shared: bool
) -> None:
    state = host_state("a", "10.0.0.1").model_copy(
        update={
            "identity": record(Identity, static_name="a", transient_name="a", virtualization=kind),
            "session": record(LoginSession, present=frozenset(marks)),
        }
    )
    assert bool(shared_with(state)) is shared
    blind = state.model_copy(
        update={"identity": Unknown(reason="x"), "session": Unknown(reason="x")}
    )
    assert shared_with(blind) == ""


def test_a_moment_is_told_in_utc() -> None:
    assert moment(0) == "1970-01-01 00:00:00Z"
    assert moment(86_399) == "1970-01-01 23:59:59Z"


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("nccl-AbC123", "NCCL"), ("nccl-AbC1234", ""), ("nccl-AbC12", ""), ("torch_1_2", "PyTorch"),
        ("torch_1_2_3", "PyTorch"), ("torch_1", ""), ("vader_segment.host.1", "Open MPI"),
        ("sm_segment.host.1", "Open MPI"), ("open_mpi.0000", "Open MPI"), ("psm3_shm.1", "PSM3"),
        ("sem.psm3_nic_affinity1", "PSM3"), ("psm3_nic_affinity1", "PSM3"), ("ucx_shm_posix_0af", "UCX"),
        ("ucx_shm_posix_xyz", ""), ("other", ""), ("nccl-Ab 123", ""),
        ("my-cache.1", "shm_leftovers.also my-*"),
    ],
)  # fmt: skip
def test_files_are_known_by_the_names_that_programs_give(name: str, program: str) -> None:
    assert maker(name, ("my-*",)) == program
    assert maker("my-a/b", ("my-*",)) == ""


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        ({}, True), ({"modified_at": 401}, False), ({"modified_at": 400}, True), ({"changed_at": 401}, False),
        ({"uid": 26}, False), ({"uid": 0}, True), ({"path": "/dev/shm/other"}, False),
    ],
)  # fmt: skip
def test_files_of_jobs_count_once_nothing_has_changed_them_for_long(
    given: dict[str, object], counts: bool
) -> None:
    fields = {
        "path": "/dev/shm/nccl-AbC123", "device": 1, "inode": 2, "size": 3, "allocated": 4096, "uid": 1000,
        "mode": 0o600, "modified_at": 300, "changed_at": 300, "links": 1,
    }  # fmt: skip
    file = ShmFile(**(fields | given))  # type: ignore[arg-type]
    memory = record(SharedMemory, files=(file,))
    found = list(candidates(memory, 1000, ShmLeftoversSpec(min_age_minutes=10)))
    assert [program for _, program in found] == (["NCCL"] if counts else [])


# --- sizes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "gpus", "size"),
    [
        (1024 * GIB, 8, ADVISED), (64 * GIB, 8, ADVISED), (64 * GIB - 2, 8, 32 * GIB - MIB), (0, 8, ADVISED),
        (GIB, 0, GIB), (GIB, 8, GIB + 512 * MIB), (10 * GIB + 3, 1, 5 * GIB),
    ],
)  # fmt: skip
def test_shared_memory_is_half_of_a_small_machine_and_never_less_than_jobs_need(
    memory: int, gpus: int, size: int
) -> None:
    state = shm.state(memory=memory, gpus=gpus)
    found, why = derived(state)
    assert found == size
    assert why
    assert least(state) == GIB + gpus * 64 * MIB


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (GIB, "1g"),
        (1536 * MIB, "1536m"),
        (1025 * 1024, "1025k"),
        (1, "1"),
        (1025, "1025"),
        (0, "0g"),
    ],
)
def test_a_size_is_written_in_the_largest_unit_without_loss(size: int, text: str) -> None:
    assert short(size) == text


def test_the_step_for_dev_shm_says_both_sizes_and_goes_back() -> None:
    _, plan = shm.plan_of(shm.state(shm=64 * MIB), DevShmSpec(size=4 * GIB))
    (finding,) = plan.findings
    assert "/dev/shm" in finding.title
    for fact in ("64.0 MiB", "4.0 GiB", "dev_shm.size"):
        assert fact in finding.evidence[0]
    live, stored = plan.changes
    assert isinstance(live.action, CommandAction)
    assert (live.action.before, live.action.after) == (str(64 * MIB), str(4 * GIB))
    assert live.action.do == f"mount -o remount,size={4 * GIB} /dev/shm"
    assert live.action.undo == f"mount -o remount,size={64 * MIB} /dev/shm"
    assert "4.0 GiB" in live.title
    assert "64.0 MiB" in live.title
    assert "size=4g" in stored.title
    assert "/etc/fstab" in stored.title


@pytest.mark.parametrize(
    ("size", "wrong"),
    [(GIB - 65536, False), (GIB - 65537, True), (GIB + 65536, False), (GIB + 65537, True)],
)
def test_a_size_that_was_asked_for_may_be_off_by_a_page(size: int, wrong: bool) -> None:
    _, plan = shm.plan_of(shm.state(shm=size), DevShmSpec(size=GIB))
    assert bool(plan.findings) is wrong


def test_docker_is_said_with_what_it_gives_and_what_is_needed() -> None:
    _, plan = shm.plan_of(
        shm.state(files={DAEMON: b'{"default-shm-size": "32m"}'}), DockerShmSpec()
    )
    (finding,) = plan.findings
    assert "32.0 MiB" in finding.title
    for fact in ("32.0 GiB", DAEMON, "'32m'"):
        assert fact in finding.evidence[0]
    (change,) = plan.changes
    assert "32g" in change.title
    assert DAEMON in change.title
    assert change.disrupts
    assert isinstance(change.action, CommandAction)
    assert f"reload {32 * GIB}" in change.action.do
    assert f"reload {32 * MIB}" in change.action.undo
    _, plain = shm.plan_of(shm.state(), DockerShmSpec())
    assert "64 MB" in plain.findings[0].evidence[0]


def test_an_argument_of_dockerd_is_said_with_its_place() -> None:
    _, plan = shm.plan_of(
        shm.state(arguments=("dockerd", "--default-shm-size=32m")), DockerShmSpec()
    )
    (finding,) = plan.findings
    assert "32m" in finding.title
    assert "pid 50" in finding.evidence[0]
    assert "--default-shm-size=32g" in finding.fix
    _, other = shm.plan_of(
        shm.state(arguments=("dockerd", "--config-file=/x.json")), DockerShmSpec()
    )
    assert DAEMON in other.findings[0].title
    assert "/x.json" in other.findings[0].evidence[0]
    assert "--config-file" in other.findings[0].fix
    same = shm.state(arguments=("dockerd", f"--config-file={DAEMON}"))
    assert shm.plan_of(same, DockerShmSpec())[1].changes
    comment = shm.state(files={"/etc/default/docker": b'#X="--default-shm-size=1m"\n'})
    assert shm.plan_of(comment, DockerShmSpec())[1].changes
    last = shm.state(arguments=("dockerd", "--default-shm-size"))
    assert shm.plan_of(last, DockerShmSpec())[1].changes


def test_podman_is_said_with_the_file_that_decides() -> None:
    later = "/etc/containers/containers.conf.d/99-x.conf"
    files = {later: b'[containers]\nshm_size = "32m"\n'}
    _, plan = shm.plan_of(shm.state(programs=("podman",), runs=False, files=files), DockerShmSpec())
    (finding,) = plan.blocked("gpu01")
    assert "30.5 MiB" in finding.title
    assert later in finding.evidence[0]
    assert "'32m'" in finding.evidence[0]
    assert later in finding.fix
    main = "/etc/containers/containers.conf"
    _, plan = shm.plan_of(
        shm.state(programs=("podman",), runs=False, files={main: files[later]}), DockerShmSpec()
    )
    (drift,) = plan.findings
    assert any(main in line for line in drift.evidence)
    assert any("32.0 GiB" in line for line in drift.evidence)
    (change,) = plan.changes
    assert PODMAN in change.title
    assert "32g" in change.title
    _, plain = shm.plan_of(shm.state(programs=("podman",), runs=False), DockerShmSpec())
    assert any("64 MB" in line for line in plain.findings[0].evidence)


def test_small_containers_are_counted_with_their_engine() -> None:
    state = shm.state(
        files={DAEMON: b'{"default-shm-size": "32g"}'},
        containers=(shm.SMALL, shm.SMALL._replace(name="b")),
    )
    (finding,) = shm.plan_of(state, DockerShmSpec())[1].findings
    assert "2 running containers of Docker" in finding.title
    assert finding.evidence == ("train (torch:2): 64.0 MiB", "b (torch:2): 64.0 MiB")
    assert finding.kind is FindingKind.REPORT
    none = shm.SMALL._replace(ipc_mode="none")
    large = shm.SMALL._replace(shm=64 * MIB + 1)
    quiet = shm.state(files={DAEMON: b'{"default-shm-size": "32g"}'}, containers=(none, large))
    assert shm.plan_of(quiet, DockerShmSpec())[1].findings == ()
