"""Runs that are crashed on lab hosts: each time the next command reaches its state, and nothing is left."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from tests.crashes.bench import Outcome
from tests.crashes.hosts import Site, Sweep

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def sweep(new_site: Callable[[int], Site]) -> Sweep:
    return Sweep(new_site(2))


def assert_good(outcomes: Iterable[Outcome], *, at_least: int) -> None:
    """See that all outcomes are good, and that there are so many: a run may end before it is struck."""
    tried = list(outcomes)
    assert [outcome for outcome in tried if not outcome.good] == []
    assert len(tried) >= at_least


def test_a_controller_that_is_killed(sweep: Sweep) -> None:
    assert_good(sweep.controllers(1), at_least=1)


@pytest.mark.full
def test_a_connection_that_is_cut(sweep: Sweep) -> None:
    assert_good(sweep.cuts((8, 18)), at_least=1)


def test_a_host_whose_power_goes(sweep: Sweep) -> None:
    assert_good(sweep.powers((10,)), at_least=1)


@pytest.mark.full
def test_a_controller_that_is_killed_anywhere(sweep: Sweep) -> None:
    assert_good(sweep.controllers(None), at_least=40)


@pytest.mark.full
def test_a_connection_that_is_cut_anywhere(sweep: Sweep) -> None:
    assert_good(sweep.cuts(range(30)), at_least=20)


@pytest.mark.full
def test_a_host_whose_power_goes_anywhere(sweep: Sweep) -> None:
    assert_good(sweep.powers(range(0, 32, 2)), at_least=12)
