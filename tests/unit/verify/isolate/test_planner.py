"""Isolation against simulated fleets: every fault is named, and nothing else is accused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulated import SimulatedFleet, fleet
from remedy.verify.isolate.model import Fault, Test, TestResult
from remedy.verify.isolate.planner import Isolation

# More rounds than any fleet of these tests needs: a planner that goes in circles fails.
ENOUGH = 400


def isolate(simulated: SimulatedFleet) -> Isolation:
    isolation = Isolation(simulated.hosts)
    while tests := isolation.next_round():
        taken = [host for test in tests for host in test.hosts]
        assert len(taken) == len(set(taken)), "the tests of a round share a host"
        assert all(len(set(test.hosts)) == len(test.hosts) >= 2 for test in tests)
        isolation.take([simulated.run(test) for test in tests])
        assert isolation.rounds < ENOUGH
    return isolation


@st.composite
def fleets(draw: st.DrawFn, largest: int = 48) -> SimulatedFleet:
    size = draw(st.integers(3, largest))
    nodes = draw(st.integers(0, min(8, (size - 1) // 2)))
    pairs = draw(st.integers(0, max(0, min(8 - nodes, (size - 2 - nodes) // 2))))
    telling = draw(st.sampled_from((0.0, 0.0, 0.3, 0.7, 1.0)))
    simulated = fleet(size, nodes, pairs, seed=draw(st.integers(0, 10**6)), telling=telling)
    simulated.lying = draw(st.sampled_from((0.0, 0.0, 0.3)))
    return simulated


@given(fleets())
def test_every_fault_is_named_and_nothing_else(simulated: SimulatedFleet) -> None:
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
    # One more test for each, and a round for all: nobody is accused by a single test.
    assert tests[len(tests) // 2] <= 57
    assert rounds[len(rounds) // 2] <= 9
    assert rounds[-1] <= 13


@given(st.integers(6, 40), st.integers(0, 10**6), st.data())
def test_broken_pairs_that_share_a_host_accuse_no_sound_one(
    size: int, seed: int, data: st.DataObject
) -> None:
    """Two broken links of one host may be reported as that host: it is the shorter explanation."""
    hosts = fleet(size, 0, seed=seed).hosts
    drawn = data.draw(st.lists(st.sampled_from(hosts), min_size=3, max_size=3, unique=True))
    hub, *others = drawn
    faults: tuple[Fault, ...] = tuple(Fault((min(hub, o), max(hub, o)), "both") for o in others)
    found = isolate(SimulatedFleet(hosts, faults)).faults
    accused = {host for fault in found for host in fault.hosts}
    assert accused <= set(drawn)
    assert all(any(set(f.hosts) & set(one.hosts) for one in found) for f in faults)


def test_two_hosts_that_do_not_work_together_are_a_pair() -> None:
    a, b = hosts = ("a", "b")
    assert isolate(SimulatedFleet(hosts, (Fault((b, a), "one-way"),))).faults == [
        Fault((b, a), "one-way")
    ]
    # With two hosts nobody can say which of them it is.
    assert isolate(SimulatedFleet(hosts, (Fault((a,)),))).faults == [Fault((a, b), "both")]


@pytest.mark.parametrize("size", [3, 4, 9, 40])
def test_a_fleet_in_which_nothing_works_comes_to_an_end(size: int) -> None:
    hosts = fleet(size, 0).hosts
    isolation = isolate(SimulatedFleet(hosts, tuple(Fault((host,)) for host in hosts)))
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


@pytest.mark.parametrize(("nodes", "pairs", "most"), [(1, 0, 4), (5, 0, 4), (0, 1, 5), (3, 2, 6)])
def test_where_tests_say_who_is_missing_few_rounds_are_enough(
    nodes: int, pairs: int, most: int
) -> None:
    for seed in range(10):
        simulated = fleet(232, nodes, pairs, seed=seed, telling=1.0)
        isolation = isolate(simulated)
        assert set(isolation.faults) == set(simulated.faults)
        assert isolation.rounds <= most


def test_a_cross_boundary_pair_is_found_though_all_groups_pass() -> None:
    hosts = fleet(64, 0).hosts
    pair = Fault((hosts[3], hosts[60]), "one-way")
    isolation = isolate(SimulatedFleet(hosts, (pair,)))
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


# --- fleets in which most is broken ---------------------------------------------------------------------------


@pytest.mark.parametrize("size", [6, 8, 12, 20])
@pytest.mark.parametrize("sound", [2, 3, 4])
def test_hosts_that_work_with_each_other_are_found_among_broken_ones(size: int, sound: int) -> None:
    hosts = fleet(size, 0).hosts
    broken = {Fault((host,)) for n, host in enumerate(hosts) if n % (size // sound)}
    isolation = isolate(SimulatedFleet(hosts, tuple(broken)))
    fine = set(hosts) - {host for fault in broken for host in fault.hosts}
    assert fine
    assert set(isolation.faults) == broken
    assert not isolation.untested


def test_pairs_are_tried_where_no_two_hosts_were_seen_to_work_together() -> None:
    hosts = fleet(12, 0).hosts
    isolation = isolate(SimulatedFleet(hosts, tuple(Fault((host,)) for host in hosts[1:-1])))
    seeks = [result.test.hosts for result in isolation.results if result.test.purpose == "seek"]
    assert seeks
    assert all(len(pair) == 2 for pair in seeks)
    assert len({frozenset(pair) for pair in seeks}) == len(seeks)


# --- how the rounds go ----------------------------------------------------------------------------------------


def rounds_of(
    simulated: SimulatedFleet, screen: int = 16
) -> tuple[Isolation, list[tuple[Test, ...]]]:
    isolation = Isolation(simulated.hosts, screen)
    rounds = []
    while tests := isolation.next_round():
        rounds.append(tests)
        isolation.take([simulated.run(test) for test in tests])
    return isolation, rounds


def test_the_fleet_comes_first_then_halves_and_then_groups_of_neighbours() -> None:
    hosts = fleet(32, 0).hosts
    faults = (Fault((hosts[9],)), Fault((hosts[20],)))
    _, rounds = rounds_of(SimulatedFleet(hosts, faults), screen=4)
    assert rounds[0] == (Test(hosts, "fleet"),)
    for tests, size in ((rounds[1], 16), (rounds[2], 8)):
        assert [test.hosts for test in tests] == [hosts[n : n + size] for n in range(0, 32, size)]
        assert {test.purpose for test in tests} == {"screen"}
    # While hunts go on in two groups, all others are tested together but for their partners.
    rest = [host for test in rounds[3] if test.purpose == "rest" for host in test.hosts]
    assert rest
    assert not set(rest) & {*hosts[8:16], *hosts[16:24]}


def test_small_groups_are_not_made_smaller_than_is_worth_a_test() -> None:
    hosts = fleet(12, 0).hosts
    _, rounds = rounds_of(SimulatedFleet(hosts, (Fault((hosts[0],)), Fault((hosts[11],)))))
    assert [len(test.hosts) for test in rounds[1]] == [6, 6]
    assert [len(test.hosts) for test in rounds[2]] == [4, 4, 4]


def test_a_small_fleet_is_hunted_in_at_once() -> None:
    hosts = fleet(7, 0).hosts
    _, rounds = rounds_of(SimulatedFleet(hosts, (Fault((hosts[0],)),)))
    assert all(test.purpose != "screen" for tests in rounds for test in tests)


def test_who_is_named_is_left_out_and_the_rest_is_tested_first() -> None:
    hosts = fleet(16, 0).hosts
    _, rounds = rounds_of(SimulatedFleet(hosts, (Fault((hosts[3],)),), telling=1.0))
    (rest,) = rounds[1]
    assert rest == Test((*hosts[:3], *hosts[4:]), "rest")
    (confirmed,) = [test for test in rounds[2] if test.purpose == "confirm"]
    assert confirmed.hosts[0] == hosts[3]
    # Before it is accused for good, it fails with another partner.
    (again,) = rounds[3]
    assert again.hosts[0] == hosts[3]
    assert again != confirmed
    assert len(rounds) == 4


def test_two_hosts_are_looked_at_as_a_link() -> None:
    _, rounds = rounds_of(SimulatedFleet(("a", "b"), (Fault(("a", "b"), "both"),)))
    assert rounds == [(Test(("a", "b"), "fleet"),), (Test(("a", "b"), "links"),)]


def test_groups_keep_the_order_of_the_fleet() -> None:
    for seed in range(10):
        simulated = fleet(24, 2, 2, seed=seed)
        _, rounds = rounds_of(simulated)
        place = {host: n for n, host in enumerate(simulated.hosts)}
        for test in (
            test for tests in rounds for test in tests if test.purpose in ("rest", "screen")
        ):
            numbers = [place[host] for host in test.hosts]
            assert numbers == sorted(numbers)


def test_a_broken_host_takes_the_place_of_its_links() -> None:
    """With two hosts beside it, what looked like two dead links is that one host."""
    hosts = fleet(16, 0).hosts
    for seed in range(20):
        simulated = SimulatedFleet(hosts, (Fault((hosts[seed % 16],)),), telling=0.5)
        simulated.lying = 0.5
        assert isolate(simulated).faults == [Fault((hosts[seed % 16],))]


def test_trouble_that_is_gone_when_it_is_looked_at_is_called_that() -> None:
    isolation = Isolation(fleet(16, 0).hosts)
    while tests := isolation.next_round():
        groups = ("fleet", "rest", "screen")
        isolation.take([TestResult(test, test.purpose not in groups) for test in tests])
    assert "comes and goes" in isolation.unexplained
    assert isolation.faults == []


def test_hosts_that_never_worked_and_are_not_accused_are_untested() -> None:
    isolation = Isolation(("a", "b", "c"))
    assert isolation.untested == ("a", "b", "c")
    (whole,) = isolation.next_round()
    isolation.take([TestResult(whole, passed=True)])
    assert not isolation.untested
    assert isolation.next_round() == ()
    assert isolation.rounds == 1
