"""/dev/shm of a host: when its size is changed, to what, and what stands in the way."""

from __future__ import annotations

import pytest

from remedy.deploys._sizes import ADVISED, GIB, MIB, short
from remedy.deploys.dev_shm import DevShmSpec
from remedy.plan import CommandAction, FileAction, FindingKind
from remedy.probe import LoginSession
from remedy.values import Unknown
from tests.unit.build import record
from tests.unit.deploys.memory_bench import FSTAB, memory_host, plan_of


@pytest.mark.parametrize(
    ("given", "spec", "size"),
    [
        ({"gpus": 0}, DevShmSpec(), None),  # nobody trains here, and nobody asked
        ({"gpus": 0}, DevShmSpec(size=4 * GIB), 4 * GIB),
        ({}, DevShmSpec(), ADVISED),
        ({"memory": 16 * GIB}, DevShmSpec(), 8 * GIB),
        ({"memory": 2 * GIB}, DevShmSpec(), GIB + 512 * MIB),  # what eight GPUs need at the least
        ({"shm": 2 * GIB}, DevShmSpec(), None),  # enough
        ({"shm": 2 * GIB}, DevShmSpec(size=GIB), GIB),  # asked for
        ({"shm": GIB + 4096}, DevShmSpec(size=GIB), None),  # rounded to pages
        ({"shm": 0}, DevShmSpec(), None),  # no limit
    ],
)
def test_dev_shm_is_changed_only_where_needed(
    given: dict[str, int], spec: DevShmSpec, size: int | None
) -> None:
    _, plan = plan_of(memory_host(**given), spec)  # type: ignore[arg-type]
    if size is None:
        assert (plan.findings, plan.changes) == ((), ())
        return
    live, stored = plan.changes
    assert isinstance(live.action, CommandAction)
    assert live.action.after == str(size)
    assert isinstance(stored.action, FileAction)
    assert stored.action.after is not None
    line = f"tmpfs /dev/shm tmpfs rw,nosuid,nodev,size={short(size)} 0 0\n".encode()
    assert plan.contents[stored.action.after] == b"# nothing\n" + line


def test_a_file_that_makes_it_small_at_boot_is_corrected() -> None:
    fstab = b"tmpfs /dev/shm tmpfs size=64m 0 0\n"
    _, plan = plan_of(memory_host(shm=4 * GIB, files={FSTAB: fstab}), DevShmSpec())
    (finding,) = plan.findings
    assert finding.title == "after the next boot, /dev/shm is too small, by /etc/fstab"
    assert "/etc/fstab:1: size=64m" in finding.evidence
    assert [type(change.action) for change in plan.changes] == [FileAction]
    # Half of the memory is enough.
    kept = memory_host(shm=4 * GIB, files={FSTAB: b"tmpfs /dev/shm tmpfs size=50% 0 0\n"})
    assert plan_of(kept, DevShmSpec())[1].findings == ()


def test_dev_shm_says_what_stands_in_the_way() -> None:
    inside = record(LoginSession, present=frozenset({"/.dockerenv"}))
    _, plan = plan_of(memory_host().model_copy(update={"session": inside}), DevShmSpec())
    assert [f.kind for f in plan.findings] == [FindingKind.BLOCKED]
    assert "--shm-size=32g" in plan.findings[0].fix
    _, plan = plan_of(memory_host(files={FSTAB: Unknown(reason="no answer")}), DevShmSpec())
    assert ([f.kind for f in plan.findings], plan.changes) == ([FindingKind.UNKNOWN], ())
    blind = memory_host().model_copy(
        update={"shared_memory": Unknown(reason="there is no /dev/shm")}
    )
    assert [f.kind for f in plan_of(blind, DevShmSpec())[1].findings] == [FindingKind.UNKNOWN]


def test_the_step_for_dev_shm_says_both_sizes_and_goes_back() -> None:
    _, plan = plan_of(memory_host(shm=64 * MIB), DevShmSpec(size=4 * GIB))
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
    _, plan = plan_of(memory_host(shm=size), DevShmSpec(size=GIB))
    assert bool(plan.findings) is wrong
