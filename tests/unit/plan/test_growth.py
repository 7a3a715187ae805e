"""What a fleet costs is in proportion to its hosts: calls and objects that are kept are counted, no seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from remedy.plan import Origin, make_plan
from remedy.probe import HostState, Names, Resolved, fingerprint
from remedy.probe.files import File
from tests.unit.growth import FEW, MANY, fleet, states

WHEN = Origin(created="2026-11-23T00:00:00+00:00", author="me@here")


def calls(work: Callable[[], object]) -> int:
    """Return how many functions are called, and how often a generator goes on."""
    number = 0

    def count(_frame: Any, event: str, _value: object) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return number


def each(count: int, broken: float) -> float:
    """Return the calls for a host when a plan is made for so many."""
    whole = fleet(count, broken)
    make_plan(whole, WHEN)  # what is imported and kept for all fleets
    return calls(lambda: make_plan(fleet(count, broken), WHEN)) / count


@pytest.mark.parametrize(
    "broken", [0.5, *(pytest.param(share, marks=pytest.mark.full) for share in (0.0, 1.0))]
)
def test_a_host_is_judged_by_as_many_calls_in_a_larger_fleet(broken: float) -> None:
    assert each(MANY, broken) < 1.1 * each(FEW, broken)


@pytest.mark.parametrize("broken", [0.0, 1.0])
def test_what_hosts_have_alike_is_kept_once(broken: float) -> None:
    def objects(found: dict[str, HostState]) -> int:
        files = {id(file) for state in found.values() for file in state.files.values()}
        mounts = {id(mount) for state in found.values() for mount in known(state.mounts)}
        return len(files | mounts)

    def known(value: Any) -> tuple[Any, ...]:
        assert isinstance(value, tuple)
        return value

    own = [f for f in states(FEW, broken)["gpu00000"].files.values() if isinstance(f, File)]
    named = [
        file for file in own if b"gpu00000" in file.content and not file.path.endswith("/hosts")
    ]
    more = objects(states(MANY, broken)) - objects(states(FEW, broken))
    # A host has its name and its machine-id for itself.
    assert more == (MANY - FEW) * (len(named) + 1)


@pytest.mark.parametrize("broken", [0.0, 1.0])
def test_the_answers_about_names_are_one_table_for_hosts_that_answer_alike(broken: float) -> None:
    found = [state.names for state in states(MANY, broken).values()]
    assert len(found) == MANY
    tables = set()
    for names in found:
        assert isinstance(names, Names)
        peers = names.peers
        assert len(peers) == MANY
        tables.add(id(peers.alike if isinstance(peers, Resolved) else peers))
        assert not isinstance(peers, Resolved) or len(peers.otherwise) <= 1
    assert len(tables) == 1


@pytest.mark.parametrize("broken", [0.0, 1.0])
def test_the_fingerprint_of_a_host_takes_as_many_calls_in_a_larger_fleet(broken: float) -> None:
    def once(count: int) -> int:
        one, other = list(states(count, broken).values())[:2]
        fingerprint(other)
        return calls(lambda: fingerprint(one))

    assert once(MANY) == once(FEW)
