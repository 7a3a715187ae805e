"""Stale System V IPC: which objects are leftovers, and what removing them promises."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remedy.deploys.sysv_ipc import SysvIpcSpec, _owner
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
from remedy.probe import (
    HostState,
    LoginSession,
    Queue,
    Segment,
    Semaphores,
    SysvIpc,
)
from remedy.spec import load_spec
from remedy.values import Unknown
from tests.unit.build import WHEN, fleet, record, with_section
from tests.unit.deploys.sysv_bench import LIVING, NOW, USER, host, segment

NAME = "sysv_ipc"


def plan_of(state: HostState, spec: SysvIpcSpec | None = None) -> Plan:
    settled = fleet(state, spec=with_section(NAME, spec or SysvIpcSpec()))
    return make_plan(settled, WHEN, only=NAME)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({}, FindingKind.DRIFT),
        ({"last": 0, "attached_at": 0, "detached_at": 0}, FindingKind.DRIFT),  # never used
        ({"attached": 1}, None),
        ({"marked": True}, None),  # goes by itself
        ({"creator_started_at": 899_000}, None),  # the creator lives
        ({"last_started_at": 899_000}, None),  # the last user lives, and may come back
        ({"creator_started_at": 950_000}, FindingKind.DRIFT),  # another process has the pid
        ({"last_started_at": 950_000}, FindingKind.DRIFT),
        ({"last_started_at": 900_002}, None),  # within what clock ticks may be off
        ({"creator_started_at": 0}, None),  # its start is not known
        ({"creator": 0}, None),  # of another PID namespace
        ({"last": 0}, None),
        ({"changed_at": NOW - 599}, None),  # too young
        ({"detached_at": NOW - 600}, FindingKind.DRIFT),
        ({"detached_at": NOW + 60}, None),  # the clock was set back
        # The clock was wrong at boot: times tell nothing, so any process of that pid may be the creator.
        ({"changed_at": 100, "creator_started_at": 950_000}, None),
        ({"changed_at": 100, "attached_at": 101, "detached_at": 102}, FindingKind.DRIFT),
        ({"uid": 101}, None),  # a service's
        ({"creator_uid": 26}, None),
        ({"uid": 61_200}, None),
        ({"uid": 0}, FindingKind.REPORT),
        ({"uid": 0, "creator_uid": 0}, FindingKind.REPORT),
    ],
)
def test_only_what_nobody_uses_goes(given: dict[str, int], kind: FindingKind | None) -> None:
    plan = plan_of(host(segment(**given)))
    assert [f.kind for f in plan.findings] == ([] if kind is None else [kind])
    assert len(plan.changes) == (kind is FindingKind.DRIFT)


def test_every_id_is_told_with_its_evidence() -> None:
    plan = plan_of(host(segment(), segment(id=9, size=3 << 20, last_started_at=950_000)))
    (finding,) = plan.findings
    assert finding.title == "2 System V segments left by dead processes, 3.0 MiB"
    same = "key 0x0, uid 1000, nattch 0, creator 10 and last user 11 dead"
    since = "untouched since 1970-01-11 10:00:01Z"
    assert finding.evidence == (
        f"shmid 5: 4.0 KiB, {same}, {since}",
        f"shmid 9: 3.0 MiB, {same} (the pid is another process now), {since}",
    )
    (change,) = plan.changes
    assert isinstance(change.action, CommandAction)
    assert (change.action.before, change.action.after) == ("shm 5 9", "none")
    assert "ipcrm -m 5; fi" in change.action.do
    assert not change.reversible
    assert inverse(plan.changes) == ()


def test_root_is_removed_only_where_asked_for() -> None:
    state = host(segment(uid=0, creator_uid=0))
    (finding,) = plan_of(state).findings
    assert "sysv_ipc.root: true" in finding.fix
    assert len(plan_of(state, SysvIpcSpec(root=True)).changes) == 1


def test_semaphores_and_queues_are_reported_unless_asked_for() -> None:
    semaphores = Semaphores(3, 7, 2, USER, USER, 900_000, 899_000)
    busy = semaphores._replace(id=4, uid=1001)  # whose owner has a process
    queue = Queue(8, 9, 0, 0, 12, 13, USER, USER, None, None, 900_000, 900_001, 899_000)
    full = queue._replace(id=10, messages=1)
    state = host(semaphores=(semaphores, busy), queues=(queue, full))
    plan = plan_of(state)
    assert [f.kind for f in plan.findings] == [FindingKind.REPORT] * 2
    assert plan.changes == ()
    asked = plan_of(state, SysvIpcSpec(semaphores="remove", queues="remove"))
    assert [c.action.before for c in asked.changes if isinstance(c.action, CommandAction)] == [
        "sem 3",
        "msg 8",
    ]


def test_a_container_is_only_reported_on() -> None:
    inside = record(LoginSession, present=frozenset({"/.dockerenv"}))
    plan = plan_of(host(segment()).model_copy(update={"session": inside}))
    assert plan.changes == ()
    assert "cannot be seen" in plan.findings[0].fix
    booted = record(LoginSession, present=frozenset({"/.dockerenv", "/run/systemd/system"}))
    assert plan_of(host(segment()).model_copy(update={"session": booted})).changes


def test_what_could_not_be_read_is_unknown() -> None:
    blind = host().model_copy(update={"ipc": Unknown(reason="no answer")})
    assert [f.kind for f in plan_of(blind).findings] == [FindingKind.UNKNOWN]
    # Without the host's time no age is known.
    timeless = host(segment()).model_copy(update={"clock": Unknown(reason="no answer")})
    assert plan_of(timeless).changes == ()


def test_a_wrong_age_is_refused_with_its_place(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("spec") / "remedy.yaml"
    path.write_text("sysv_ipc: {min_age_minutes: -1}\n")
    with pytest.raises(SpecError, match=r"sysv_ipc\.min_age_minutes"):
        load_spec(path, section_models())


times = st.sampled_from([0, 100, 499_999, 899_000, 900_000, 950_000, NOW - 10, NOW])
starts = st.one_of(st.none(), times)
pids = st.sampled_from([0, 10, LIVING])
uids = st.sampled_from([0, 26, USER, 1001, 65_534])
any_segments = st.builds(
    Segment,
    id=st.integers(0, 2**31 - 1), key=st.integers(-(2**31), 2**31 - 1), mode=st.just(0o600),
    size=st.integers(0, 2**40), creator=pids, last=pids, attached=st.integers(0, 2), uid=uids,
    creator_uid=uids, attached_at=times, detached_at=times, changed_at=times, marked=st.booleans(),
    creator_started_at=starts, last_started_at=starts,
)  # fmt: skip
# Of segments that are drawn in all fields hardly one is a leftover.
stale_segments = st.builds(segment, id=st.integers(0, 99), size=st.integers(0, 2**40), uid=uids)
segments = st.one_of(stale_segments, any_segments)
semaphore_sets = st.builds(
    Semaphores, st.integers(0, 99), st.integers(), st.integers(1, 9), uids, uids, times, times
)
queues = st.builds(
    Queue, st.integers(0, 99), st.integers(), st.integers(0, 1), st.just(0), pids, pids, uids, uids,
    starts, starts, times, times, times,
)  # fmt: skip
wishes = st.sampled_from(["report", "remove"])
specs = st.builds(
    SysvIpcSpec, remove=st.booleans(), min_age_minutes=st.integers(0, 60), root=st.booleans(),
    semaphores=wishes, queues=wishes,
)  # fmt: skip


def by_id(things: st.SearchStrategy[tuple]) -> st.SearchStrategy[list[tuple]]:  # type: ignore[type-arg]
    return st.lists(things, max_size=4, unique_by=lambda one: one[0])


@example([segment(), segment(id=6, attached=1)], [], [], SysvIpcSpec(remove=True))
@given(by_id(segments), by_id(semaphore_sets), by_id(queues), specs)
def test_a_plan_ends_what_it_names(
    shm: list[Segment], sem: list[Semaphores], msg: list[Queue], spec: SysvIpcSpec
) -> None:
    before = fleet(
        host(*shm, semaphores=tuple(sem), queues=tuple(msg)), spec=with_section(NAME, spec)
    )
    plan = make_plan(before, WHEN, only=NAME)
    drift = [f for f in plan.findings if f.kind is FindingKind.DRIFT]
    assert len(drift) == len(plan.changes)
    after = promised(before, plan)
    again = make_plan(after, WHEN, only=NAME)
    assert again.changes == ()
    assert [f for f in again.findings if f.kind is not FindingKind.REPORT] == []
    assert inverse(plan.changes) == ()
    ipc = after.states["gpu01"].ipc
    assert isinstance(ipc, SysvIpc)
    gone = set(shm) - set(ipc.segments)
    assert all(not s.attached and s.uid not in (26, 65_534) for s in gone)
    assert spec.remove or not gone
    assert spec.root or all(s.uid and s.creator_uid for s in gone)


def test_a_promise_takes_away_the_leftover_and_nothing_else() -> None:
    held = segment(id=6, attached=1)
    spec = with_section(NAME, SysvIpcSpec(remove=True))
    before = fleet(host(segment(), held), spec=spec)
    plan = make_plan(before, WHEN, only=NAME)
    assert len(plan.changes) == 1
    ipc = promised(before, plan).states["gpu01"].ipc
    assert isinstance(ipc, SysvIpc)
    assert ipc.segments == (held,)


@pytest.mark.parametrize(
    ("uid", "creator", "owner"),
    [
        (1001, 1002, 1001), (1002, 1001, 1002), (0, 1001, 0), (1001, 0, 0), (0, 0, 0), (33, 0, 33), (0, 33, 33),
        (33, 1001, 33), (1001, 33, 33), (33, 34, 33), (34, 33, 34), (1, 1001, 1), (1001, 1, 1),
    ],
)  # fmt: skip
def test_a_service_decides_before_root_and_root_before_others(
    uid: int, creator: int, owner: int
) -> None:
    assert _owner(uid, creator) == owner
