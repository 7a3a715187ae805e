"""Tests that end the wrong way: they accuse nobody, and what is broken is named all the same."""

from __future__ import annotations

import random

import pytest

from benchmarks.simulated import SimulatedFleet, fleet
from remedy.verify.isolate.evidence import Evidence
from remedy.verify.isolate.model import Fault, Test, TestResult
from remedy.verify.isolate.planner import COMES_AND_GOES, Isolation
from remedy.verify.isolate.review import again_broken, failed_with, settled

HOSTS = tuple("abcdefgh")


def isolate(simulated: SimulatedFleet, wrong: frozenset[int] = frozenset()) -> Isolation:
    """Hold all rounds; the tests with these numbers end the wrong way."""
    isolation = Isolation(simulated.hosts)
    number = 0
    while tests := isolation.next_round():
        results = []
        for test in tests:
            result = simulated.run(test)
            if number in wrong:
                result = TestResult(test, not result.passed)
            number += 1
            results.append(result)
        isolation.take(results)
        assert isolation.rounds < 120
    return isolation


KINDS = ((1, 0), (0, 1), (2, 0), (2, 1), (0, 2))


def test_one_wrong_test_accuses_hardly_anybody_and_hides_hardly_anything() -> None:
    """A group that passes by mistake cannot be told from a good one, so a few fleets of many hide theirs."""
    drawn = random.Random(20261124)  # noqa: S311 (no secret)
    false = hidden = 0
    for _ in range(200):
        simulated = fleet(drawn.randint(24, 80), *drawn.choice(KINDS), seed=drawn.randrange(10**6))
        isolation = isolate(simulated, frozenset((drawn.randint(1, 60),)))
        named = {frozenset(fault.hosts) for fault in isolation.faults}
        true = {frozenset(fault.hosts) for fault in simulated.faults}
        false += not named <= true
        hidden += not (true <= named or isolation.unexplained)
    assert (false <= 2, hidden <= 2) == (True, True), (false, hidden)


@pytest.mark.parametrize(("nodes", "pairs"), [(1, 0), (5, 0), (0, 1), (3, 2)])
def test_where_one_test_of_a_hundred_is_wrong_nearly_all_is_named(nodes: int, pairs: int) -> None:
    named = false = seen = 0
    for seed in range(20):
        simulated = fleet(232, nodes, pairs, seed=seed)
        isolation = Isolation(simulated.hosts)
        (whole,) = isolation.next_round()
        isolation.take([simulated.run(whole)])
        simulated.wrong = 0.01
        while tests := isolation.next_round():
            isolation.take([simulated.run(test) for test in tests])
        true = {frozenset(fault.hosts) for fault in simulated.faults}
        accused = {frozenset(fault.hosts) for fault in isolation.faults}
        seen += len(true)
        named += len(true & accused)
        false += len(accused - true)
    assert named >= 0.95 * seen
    assert false == 0


def test_a_host_that_works_by_mistake_once_is_no_broken_pair() -> None:
    """Its first group works though it is broken, so that each way to it looks like the broken one."""
    hosts = fleet(64, 0).hosts
    simulated = SimulatedFleet(hosts, (Fault((hosts[5],)),))
    # The whole fleet is test 0; its half is test 1.
    isolation = isolate(simulated, frozenset((1,)))
    assert isolation.faults == [Fault((hosts[5],))]
    assert not isolation.unexplained


def test_a_fleet_that_fails_once_and_works_then_comes_and_goes() -> None:
    isolation = isolate(fleet(32, 0), frozenset((0,)))
    assert (isolation.faults, isolation.unexplained) == ([], COMES_AND_GOES)
    assert not isolation.untested


# --- what an accusation needs ---------------------------------------------------------------------------------


def evidence(*results: tuple[str, bool]) -> Evidence:
    """The results of groups of hosts with names of a letter."""
    known = Evidence(HOSTS)
    for hosts, passed in results:
        known.add(TestResult(Test(tuple(hosts), "confirm"), passed))
    return known


@pytest.mark.parametrize(
    ("results", "enough"),
    [
        ([("ab", False)], False),
        ([("ab", False), ("ab", False)], False),
        ([("ab", False), ("ac", False), ("bcd", True)], True),
        # Of these c is not known to be good: it may be what is broken.
        ([("ab", False), ("ac", False), ("bd", True)], False),
        ([("ab", False), ("abc", False), ("bcd", True)], False),
        ([("ab", False), ("cd", False), ("bcd", True)], False),
    ],
)
def test_a_host_is_accused_by_two_partners(results: list[tuple[str, bool]], enough: bool) -> None:
    assert settled(Fault(("a",)), evidence(*results)) == enough


@pytest.mark.parametrize(
    ("results", "enough"),
    [
        ([("ab", False)], False),
        ([("ab", False), ("ba", False)], True),
        ([("ab", False), ("abc", False)], False),
        ([("ab", False), ("ac", False)], False),
    ],
)
def test_a_pair_is_accused_by_two_tests_of_it(
    results: list[tuple[str, bool]], enough: bool
) -> None:
    assert settled(Fault(("a", "b")), evidence(*results)) == enough


def test_a_direction_in_which_nobody_answered_is_enough() -> None:
    known = Evidence(HOSTS)
    links = Test(("a", "b"), "links")
    known.add(TestResult(links, False, unanswered=frozenset({("a", "b")})))
    assert settled(Fault(("a", "b"), "one-way"), known)
    group = Evidence(HOSTS)
    group.add(TestResult(Test(("a", "b"), "half"), False, unanswered=frozenset({("a", "b")})))
    assert not settled(Fault(("a", "b"), "one-way"), group)


def test_who_failed_with_whom_counts_tests_of_two_alone() -> None:
    known = evidence(("ab", False), ("ca", False), ("abd", False), ("ae", True))
    assert failed_with("a", known) == {"b", "c"}


def test_a_host_of_several_broken_pairs_may_be_what_is_broken() -> None:
    pair = Fault(("a", "b"))
    known = evidence(("acd", True))
    assert again_broken(pair, known, []) == []
    assert again_broken(pair, known, [pair]) == []
    assert again_broken(pair, known, [pair, Fault(("b", "h"))]) == ["b"]
    assert again_broken(pair, known, [Fault(("h", "a")), Fault(("b", "h"))]) == ["a", "b"]
    assert again_broken(Fault(("b",)), known, [Fault(("b", "h"))]) == []
    # Nobody is left to try them with.
    assert again_broken(pair, evidence(("ab", True)), [Fault(("b", "h"))]) == []
