"""Isolation against simulated fleets: every fault is named, and nothing else is accused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulated import Fleet, fleet
from remedy.verify.isolate.model import Fault, Test, TestResult
from remedy.verify.isolate.planner import Isolation

# More rounds than any fleet of these tests needs: a planner that goes in circles fails.
ENOUGH = 400


def isolate(simulated: Fleet) -> Isolation:
    isolation = Isolation(simulated.hosts)
    while tests := isolation.next_round():
        taken = [host for test in tests for host in test.hosts]
        assert len(taken) == len(set(taken)), "the tests of a round share a host"
        assert all(len(set(test.hosts)) == len(test.hosts) >= 2 for test in tests)
        isolation.take([simulated.run(test) for test in tests])
        assert isolation.rounds < ENOUGH
    return isolation


@st.composite
def fleets(draw: st.DrawFn, largest: int = 48) -> Fleet:
    size = draw(st.integers(3, largest))
    nodes = draw(st.integers(0, min(8, (size - 1) // 2)))
    pairs = draw(st.integers(0, max(0, min(8 - nodes, (size - 2 - nodes) // 2))))
    telling = draw(st.sampled_from((0.0, 0.0, 0.3, 0.7, 1.0)))
    simulated = fleet(size, nodes, pairs, seed=draw(st.integers(0, 10**6)), telling=telling)
    simulated.lying = draw(st.sampled_from((0.0, 0.0, 0.3)))
    return simulated


@given(fleets())
def test_every_fault_is_named_and_nothing_else(simulated: Fleet) -> None:
    isolation = isolate(simulated)
    assert set(isolation.faults) == set(simulated.faults)
    assert not isolation.unexplained
    assert not isolation.untested


@pytest.mark.parametrize(("nodes", "pairs"), [(8, 0), (5, 3), (0, 8)])
@pytest.mark.parametrize("telling", [0.0, 1.0])
def test_a_large_fleet(nodes: int, pairs: int, telling: float) -> None:
    simulated = fleet(2048, nodes, pairs, seed=nodes, telling=telling)
    assert set(isolate(simulated).faults) == set(simulated.faults)


@pytest.mark.parametrize("size", [2, 3, 16, 232, 2048])
def test_a_healthy_fleet_is_one_test(size: int) -> None:
    isolation = isolate(fleet(size, 0))
    assert (len(isolation.results), isolation.rounds, isolation.faults) == (1, 1, [])


def test_five_of_232_are_found_with_few_tests() -> None:
    runs = [isolate(fleet(232, 5, seed=seed)) for seed in range(60)]
    tests = sorted(len(run.results) for run in runs)
    rounds = sorted(run.rounds for run in runs)
    assert tests[len(tests) // 2] <= 45
    assert rounds[len(rounds) // 2] <= 8


@given(st.integers(6, 40), st.integers(0, 10**6), st.data())
def test_broken_pairs_that_share_a_host_accuse_no_sound_one(
    size: int, seed: int, data: st.DataObject
) -> None:
    """Two broken links of one host may be reported as that host: it is the shorter explanation."""
    hosts = fleet(size, 0, seed=seed).hosts
    drawn = data.draw(st.lists(st.sampled_from(hosts), min_size=3, max_size=3, unique=True))
    hub, *others = drawn
    faults: tuple[Fault, ...] = tuple(Fault((min(hub, o), max(hub, o)), "both") for o in others)
    found = isolate(Fleet(hosts, faults)).faults
    accused = {host for fault in found for host in fault.hosts}
    assert accused <= set(drawn)
    assert all(any(set(f.hosts) & set(one.hosts) for one in found) for f in faults)


def test_two_hosts_that_do_not_work_together_are_a_pair() -> None:
    a, b = hosts = ("a", "b")
    assert isolate(Fleet(hosts, (Fault((b, a), "one-way"),))).faults == [Fault((b, a), "one-way")]
    # With two hosts nobody can say which of them it is.
    assert isolate(Fleet(hosts, (Fault((a,)),))).faults == [Fault((a, b), "both")]


@pytest.mark.parametrize("size", [3, 4, 9, 40])
def test_a_fleet_in_which_nothing_works_comes_to_an_end(size: int) -> None:
    hosts = fleet(size, 0).hosts
    isolation = isolate(Fleet(hosts, tuple(Fault((host,)) for host in hosts)))
    accused = {host for fault in isolation.faults for host in fault.hosts}
    assert isolation.unexplained or accused | set(isolation.untested) == set(hosts)


@given(st.integers(3, 40), st.randoms(use_true_random=False), st.floats(0.05, 0.9))
def test_faults_that_come_and_go_do_not_keep_it_busy_for_ever(
    size: int, random: object, likely: float
) -> None:
    isolation = Isolation(fleet(size, 0).hosts)
    draw = random.random  # type: ignore[attr-defined]
    while tests := isolation.next_round():
        isolation.take([TestResult(test, passed=draw() > likely) for test in tests])
        assert isolation.rounds < ENOUGH


def test_what_a_test_says_of_itself_is_used() -> None:
    silent = isolate(fleet(232, 5, seed=1))
    telling = isolate(fleet(232, 5, seed=1, telling=1.0))
    assert len(telling.results) < len(silent.results) / 2
    assert telling.rounds <= 4


def test_a_cross_boundary_pair_is_found_though_all_groups_pass() -> None:
    hosts = fleet(64, 0).hosts
    pair = Fault((hosts[3], hosts[60]), "one-way")
    isolation = isolate(Fleet(hosts, (pair,)))
    screens = [r for r in isolation.results if r.test.purpose == "screen"]
    assert screens
    assert all(result.passed for result in screens)
    assert isolation.faults == [pair]


def test_each_accused_host_failed_with_a_good_partner_of_its_own() -> None:
    isolation = isolate(fleet(232, 5, seed=3))
    confirmed = [r.test for r in isolation.results if r.test.purpose == "confirm" and not r.passed]
    accused = {fault.hosts[0] for fault in isolation.faults}
    assert {test.hosts[0] for test in confirmed} == accused
    assert all(set(test.hosts) & accused == {test.hosts[0]} for test in confirmed)


def test_a_test_of_isolation_is_not_collected_as_one_of_pytest() -> None:
    assert Test.__test__ is False
