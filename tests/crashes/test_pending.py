"""A controller killed during a guarded change, then the next command: nothing unsettled is called good."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import pytest

from tests.crashes.hosts import APPLY, CONFIRM_SECONDS, AtOnce, Site, Sweep

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def sweep(new_site: Callable[[int], Site]) -> Sweep:
    return Sweep(new_site(2))


def assert_told(outcomes: Iterable[AtOnce]) -> list[AtOnce]:
    """See that no host was called good on which something waited, and that nothing waits any more."""
    seen = list(outcomes)
    for outcome in seen:
        for name in outcome.waiting:
            assert outcome.checked[name] == "unsettled", outcome
            assert outcome.check_code == 4, outcome
        assert outcome.left == [], outcome
    return seen


def assert_applied(sweep: Sweep, outcomes: Iterable[AtOnce]) -> list[AtOnce]:
    """See that the state that apply ended with is the one that stays."""
    seen = assert_told(outcomes)
    for outcome in seen:
        assert outcome.code == 0, outcome
        assert outcome.states == sweep.after, outcome
    time.sleep(CONFIRM_SECONDS + 1)
    assert sweep.site.states() == sweep.after
    return seen


def test_apply_confirms_what_a_run_that_was_cut_off_left(sweep: Sweep) -> None:
    (outcome,) = assert_applied(sweep, sweep.at_once(["confirming"], *APPLY))
    assert outcome.waiting, "nothing waited: the run holds no guarded change"
    assert outcome.answer["plan"]["changes"] == []


@pytest.mark.full
def test_a_plan_waits_until_the_host_has_taken_back(sweep: Sweep) -> None:
    (outcome,) = assert_told(sweep.at_once(["confirming"], "plan", "inventory.py"))
    assert outcome.code == 0
    assert outcome.answer["plan"]["changes"]
    assert any(
        "the host took the guarded changes back" in text for text in outcome.answer["warnings"]
    )


@pytest.mark.full
def test_rollback_has_taken_back_what_waits(sweep: Sweep) -> None:
    words = ("rollback", "RUN", "inventory.py", "--yes")
    (outcome,) = assert_told(sweep.at_once(["confirming"], *words))
    assert (outcome.code, outcome.states) == (0, sweep.before)


@pytest.mark.full
def test_resume_confirms_what_is_of_its_own_plan(sweep: Sweep) -> None:
    words = ("apply", "inventory.py", "--resume", "RUN", "--yes", "--no-verify")
    assert_applied(sweep, sweep.at_once(["confirming"], *words))


@pytest.mark.full
def test_apply_at_once_after_a_kill_anywhere(sweep: Sweep) -> None:
    points = [str(number) for number in range(1, sweep.boundaries() + 1)]
    seen = assert_applied(sweep, sweep.at_once(points, *APPLY))
    assert len(seen) >= 40
    assert sum(bool(outcome.waiting) for outcome in seen) >= 2
