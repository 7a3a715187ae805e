"""What survives a boot, told from the journal and a look."""

from __future__ import annotations

import pytest

from remedy.audit import Story
from remedy.audit.survival import Boot, survival
from remedy.plan import Plan, make_plan, promised
from remedy.probe import HostState, Identity
from tests.unit.build import WHEN, fleet, host_state, record


def booted(boot: str, *, right: bool) -> tuple[HostState, Plan]:
    """Return gpu01 in this boot, in order or as it was before anything was applied, and its plan."""
    state = host_state("gpu01", "10.0.0.1", peers={"gpu01": ("10.0.0.1",), "gpu02": ("10.0.0.2",)})
    whole = fleet(state, host_state("gpu02", "10.0.0.2"))
    if right:
        whole = promised(whole, make_plan(whole, WHEN))
    plan = make_plan(whole, WHEN)
    found = whole.states["gpu01"]
    assert isinstance(found.identity, Identity)
    identity = found.identity.model_copy(update={"boot_id": boot})
    return found.model_copy(update={"identity": identity}), plan


def run(boot: str) -> Story:
    story = Story("r1", "apply", "2026-01-01T00:00:00+00:00", boots={"gpu01": boot})
    story.results["gpu01"] = {"01-hosts_file": "done"}
    return story


@pytest.mark.parametrize(
    ("then", "now", "right", "expected"),
    [
        ("a", "a", True, Boot.NOT_BOOTED),
        ("a", "b", True, Boot.SURVIVED),
        ("a", "b", False, Boot.LOST),
        ("a", "", True, Boot.UNKNOWN),
        ("", "b", True, Boot.NO_RUN),
    ],
)
def test_what_became_of_a_host(then: str, now: str, right: bool, expected: Boot) -> None:
    state, plan = booted(now, right=right)
    assert survival([run(then)], {"gpu01": state}, plan, ["gpu01"])["gpu01"].boot is expected


def test_what_is_lost_is_named_and_what_nobody_applied_is_not() -> None:
    state, plan = booted("b", right=False)
    found = survival([run("a")], {"gpu01": state}, plan, ["gpu01"])["gpu01"]
    titles = {c.title for c in plan.for_host("gpu01") if c.remedy == "hosts_file"}
    assert set(found.changes) == titles != set()
    other = run("a")
    other.results["gpu01"] = {"01-hosts_file": "already"}
    assert survival([other], {"gpu01": state}, plan, ["gpu01"])["gpu01"].boot is Boot.SURVIVED


def test_a_host_that_could_not_be_read_is_unknown() -> None:
    _, plan = booted("b", right=True)
    assert survival([run("a")], {}, plan, ["gpu01"])["gpu01"].boot is Boot.UNKNOWN
    silent = record(HostState, host="gpu01")
    found = survival([run("a")], {"gpu01": silent}, plan, ["gpu01"])
    assert found["gpu01"].boot is Boot.UNKNOWN


def test_the_last_run_that_saw_the_host_counts_and_all_runs_say_what_was_applied() -> None:
    state, plan = booted("b", right=False)
    later = Story("r2", "check", "2026-01-02T00:00:00+00:00", boots={"gpu01": "b"})
    found = survival([run("a"), later], {"gpu01": state}, plan, ["gpu01"])["gpu01"]
    assert (found.boot, found.run) == (Boot.NOT_BOOTED, "r2")
    later.boots = {"gpu02": "b"}
    found = survival([run("a"), later], {"gpu01": state}, plan, ["gpu01"])["gpu01"]
    assert (found.boot, found.run) == (Boot.LOST, "r1")
    later.boots = {"gpu01": "a"}
    found = survival([run("x"), later], {"gpu01": state}, plan, ["gpu01"])["gpu01"]
    assert (found.boot, found.run) == (Boot.LOST, "r2")
    rolled_back = run("a")
    rolled_back.mode = "rollback"
    found = survival([rolled_back], {"gpu01": state}, plan, ["gpu01"])["gpu01"]
    assert (found.boot, found.changes) == (Boot.SURVIVED, ())
