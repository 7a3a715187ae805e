"""Leftovers in /dev/shm: which files they are, and what removing them promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys._leftovers import SERVICE_USERS, is_service, moment, shared_with
from remedy.deploys.shm_leftovers import ShmLeftoversSpec, candidates, maker
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
from remedy.probe import Clock, HostState, Identity, LoginSession, SharedMemory, ShmFile
from remedy.spec import load_spec
from remedy.values import Fact, Unknown
from tests.unit.build import WHEN, fleet, host_state, record, with_section

NAME = "shm_leftovers"
NOW = 1_000_000


def file(name: str = "nccl-AbCd09", **given: int) -> ShmFile:
    """Return a file that is as stale as can be, but for what is given."""
    values = {
        "device": 25, "inode": 7, "size": 4096, "allocated": 4096, "uid": 1000,
        "mode": 0o600, "modified_at": 900_000, "changed_at": 900_000, "links": 1,
    }  # fmt: skip
    return ShmFile(path=f"/dev/shm/{name}", **(values | given))


def host(*files: ShmFile, holders: Fact[dict[int, tuple[int, ...]]] | None = None) -> HostState:
    return host_state("gpu01", "10.0.0.1").model_copy(
        update={
            "clock": Clock(epoch_ns=NOW * 10**9, uptime=1.0),
            "shared_memory": SharedMemory(
                size=1 << 30,
                used=sum(one.allocated for one in files),
                files=files,
                holders={} if holders is None else holders,
            ),
        }
    )


def plan_of(state: HostState, spec: ShmLeftoversSpec | None = None) -> Plan:
    settled = fleet(state, spec=with_section(NAME, spec or ShmLeftoversSpec()))
    return make_plan(settled, WHEN, only=NAME)


@pytest.mark.parametrize(
    ("name", "who"),
    [
        ("nccl-AbCd09", "NCCL"),
        ("nccl-AbCd0", ""),
        ("nccl-AbCd09x", ""),
        ("torch_4711_123456789_0", "PyTorch"),
        ("torch_4711_123456789", "PyTorch"),
        ("torch_model.bin", ""),
        ("vader_segment.gpu01.1000.5ee50001.3", "Open MPI"),
        ("sm_segment.gpu01.example.org.1000.5ee50001.3", "Open MPI"),
        ("open_mpi.0000", "Open MPI"),
        ("psm3_shm.100000000000000", "PSM3"),
        ("sem.psm3_nic_affinity_sem", "PSM3"),
        ("ucx_shm_posix_7f3a", "UCX"),
        ("psm_01234567", ""),  # Python's SharedMemory: may be meant to outlive its maker
        ("sem.mp-abc", ""),
        ("PostgreSQL.123456", ""),
        ("sub/nccl-AbCd09", ""),
        ("nccl-AbCd09\n", ""),
        ("vader_segment.$(id).1", ""),
        ("open_mpi.\udcff", ""),
    ],
)
def test_names_tell_whose_a_file_is(name: str, who: str) -> None:
    assert maker(name) == who


@pytest.mark.parametrize(
    ("given", "drift"),
    [
        ({}, True),
        ({"modified_at": NOW - 599}, False),
        ({"changed_at": NOW - 599}, False),
        ({"changed_at": NOW - 600}, True),
        ({"changed_at": NOW + 5}, False),
        ({"uid": 26}, False),
        ({"uid": 0}, True),
    ],
)
def test_age_and_owner_decide(given: dict[str, Any], drift: bool) -> None:
    plan = plan_of(host(file(**given)))
    assert bool(plan.findings) is bool(plan.changes) is drift


def test_a_held_file_stays() -> None:
    plan = plan_of(host(file(), file("nccl-AbCd10", inode=8), holders={7: (42,)}))
    (finding,) = plan.findings
    assert finding.title == "1 file left in /dev/shm by dead jobs, 4.0 KiB"
    (evidence,) = finding.evidence
    assert evidence == (
        "/dev/shm/nccl-AbCd10: 4.0 KiB, NCCL, uid 1000, inode 8, no process maps it or has it open, "
        "unchanged since 1970-01-11 10:00:00Z"
    )
    (change,) = plan.changes
    assert isinstance(change.action, CommandAction)
    assert change.action.before == "inodes 8"
    assert "nccl-AbCd09" not in change.action.do
    assert inverse(plan.changes) == ()


def test_holders_that_cannot_be_seen_are_needed_only_where_there_is_a_file_to_judge() -> None:
    blind = Unknown(reason="needs root")
    assert [f.kind for f in plan_of(host(file(), holders=blind)).findings] == [FindingKind.UNKNOWN]
    assert plan_of(host(file("mine"), holders=blind)).findings == ()


def test_the_user_can_name_more_or_less() -> None:
    state = host(file("psm_01234567"))
    assert plan_of(state).changes == ()
    assert len(plan_of(state, ShmLeftoversSpec(also=("psm_*",))).changes) == 1
    told = plan_of(host(file()), ShmLeftoversSpec(remove=False))
    assert ([f.kind for f in told.findings], told.changes) == ([FindingKind.REPORT], ())


def test_a_container_is_only_reported_on() -> None:
    inside = record(LoginSession, present=frozenset({"/run/.containerenv"}))
    plan = plan_of(host(file()).model_copy(update={"session": inside}))
    assert plan.changes == ()
    assert "cannot be seen" in plan.findings[0].fix


@pytest.mark.parametrize("pattern", ["*", "a*", "../etc/*", "abc/d", ""])
def test_a_pattern_that_is_too_wide_is_refused_with_its_place(tmp_path: Path, pattern: str) -> None:
    path = tmp_path / "remedy.yaml"
    path.write_text(f"shm_leftovers: {{also: [{pattern!r}]}}\n")
    with pytest.raises(SpecError, match=r"shm_leftovers\.also\.0: a pattern for names in"):
        load_spec(path, section_models())


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


names = st.sampled_from(
    ["nccl-AbCd09", "nccl-zzzzzz", "torch_1_2_3", "mine", "ucx_shm_posix_1", "d/x"]
)

times = st.sampled_from([0, 900_000, NOW - 700, NOW - 500, NOW, NOW + 50])

files = st.builds(
    file, names, inode=st.integers(1, 6), uid=st.sampled_from([0, 26, 1000]), modified_at=times,
    changed_at=times, allocated=st.integers(0, 2**30),
)  # fmt: skip


@given(
    st.lists(files, max_size=5, unique_by=lambda one: one.inode),
    st.dictionaries(st.integers(1, 6), st.just((42,)), max_size=3),
    st.builds(ShmLeftoversSpec, remove=st.booleans(), min_age_minutes=st.integers(0, 20)),
)
def test_a_plan_ends_what_it_names(
    found: list[ShmFile], holders: dict[int, tuple[int, ...]], spec: ShmLeftoversSpec
) -> None:
    before = fleet(host(*found, holders=holders), spec=with_section(NAME, spec))
    plan = make_plan(before, WHEN, only=NAME)
    assert len(plan.changes) == sum(f.kind is FindingKind.DRIFT for f in plan.findings)
    after = promised(before, plan)
    again = make_plan(after, WHEN, only=NAME)
    assert again.changes == ()
    assert [f for f in again.findings if f.kind is not FindingKind.REPORT] == []
    assert inverse(plan.changes) == ()
    memory = after.states["gpu01"].shared_memory
    assert isinstance(memory, SharedMemory)
    gone = set(found) - set(memory.files)
    assert not {one.inode for one in gone} & holders.keys()
    assert all(maker(one.path.removeprefix("/dev/shm/")) for one in gone)
