"""What the planner asks in turn: who is named wrongly, what works after all, and where nothing does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from benchmarks.simulated import SimulatedFleet, fleet
from remedy.verify.isolate import planner
from remedy.verify.isolate.evidence import suspects_of
from remedy.verify.isolate.model import Fault, Purpose, Test, TestResult
from remedy.verify.isolate.planner import COMES_AND_GOES, Isolation

LETTERS = tuple("abcdefgh")
Result = Callable[[Test], TestResult]


def play(hosts: Sequence[str], result: Result, screen: int = 16) -> tuple[Isolation, list[Test]]:
    """Hold all rounds; return the isolation and its tests in order."""
    isolation = Isolation(hosts, screen)
    tests: list[Test] = []
    while asked := isolation.next_round():
        tests += asked
        isolation.take([result(test) for test in asked])
        assert isolation.rounds < 60
    return isolation, tests


def naming(simulated: SimulatedFleet, purpose: Purpose, *missing: str) -> Result:
    """Return the results of a fleet whose failed tests with this purpose name these hosts."""

    def result(test: Test) -> TestResult:
        true = simulated.run(test)
        if true.passed or test.purpose != purpose:
            return true
        return TestResult(test, False, frozenset(missing) & set(test.hosts), true.unanswered)

    return result


def groups(tests: Sequence[Test], *purposes: Purpose) -> list[tuple[str, ...]]:
    return [test.hosts for test in tests if test.purpose in purposes]


# --- hosts that are named wrongly -----------------------------------------------------------------------------


def test_a_named_host_whose_first_partner_is_the_other_end_of_its_link_is_not_accused() -> None:
    simulated = SimulatedFleet(LETTERS, (Fault(("a", "e"), "both"),))
    isolation, tests = play(LETTERS, naming(simulated, "fleet", "a"))
    assert isolation.faults == [Fault(("a", "e"), "both")]
    # The partner farthest away, the next one, and then the pair itself.
    assert groups(tests, "confirm", "links") == [("a", "e"), ("a", "f"), ("a", "e")]
    assert not isolation.untested


def test_a_host_that_fails_once_and_works_then_is_not_accused() -> None:
    confirmed: list[Test] = []

    def result(test: Test) -> TestResult:
        if test.purpose == "confirm":
            confirmed.append(test)
            return TestResult(test, len(confirmed) > 1)
        return TestResult(test, test.purpose != "fleet", frozenset("a"))

    isolation, _ = play(LETTERS, result)
    assert len(confirmed) == 2
    assert (isolation.faults, isolation.untested) == ([], ())


def test_an_accusation_that_another_fault_explains_better_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planner, "SHARED", 1)  # as beside many other hunts
    hosts = fleet(16, 0).hosts
    simulated = SimulatedFleet(
        hosts, (Fault((hosts[1], hosts[2]), "both"), Fault((hosts[0], hosts[9]), "both"))
    )
    isolation, tests = play(hosts, naming(simulated, "half", hosts[0]), screen=2)
    confirmed = [group for group in groups(tests, "confirm") if group[0] == hosts[0]]
    # It failed with the first; the second proves that the link between the two is what is broken.
    assert confirmed[0] == (hosts[0], hosts[9])
    assert len(confirmed) > 1
    assert all(hosts[9] not in group for group in confirmed[1:])
    assert {frozenset(fault.hosts) for fault in isolation.faults} == {
        frozenset(hosts[1:3]),
        frozenset((hosts[0], hosts[9])),
    }
    assert not isolation.untested


def test_an_accusation_is_looked_at_again_once_and_stands_where_it_fails_again() -> None:
    hosts = fleet(16, 0).hosts
    simulated = SimulatedFleet(hosts, (Fault((hosts[1], hosts[2]), "both"), Fault((hosts[0],))))
    isolation, tests = play(hosts, naming(simulated, "half", hosts[0]), screen=2)
    confirmed = [group for group in groups(tests, "confirm") if group[0] == hosts[0]]
    assert len(confirmed) == len(set(confirmed)) == 2
    assert {fault.hosts for fault in isolation.faults} == {(hosts[0],), (hosts[1], hosts[2])}


def test_hosts_that_are_named_by_half_of_a_fleet_or_more_are_not_left_out() -> None:
    for count, purpose in ((7, "rest"), (8, "screen"), (9, "screen")):
        hosts = fleet(16, 0).hosts
        isolation = Isolation(hosts)
        (whole,) = isolation.next_round()
        isolation.take([TestResult(whole, False, frozenset(hosts[:count]))])
        asked = isolation.next_round()
        assert {test.purpose for test in asked} == {purpose}
        if purpose == "rest":
            assert groups(asked, "rest") == [hosts[count:]]


def test_who_is_named_a_second_time_in_a_rest_counts_with_the_others() -> None:
    hosts = fleet(16, 0).hosts
    isolation = Isolation(hosts)
    (whole,) = isolation.next_round()
    isolation.take([TestResult(whole, False, frozenset(hosts[:4]))])
    (rest,) = isolation.next_round()
    assert rest.hosts == hosts[4:]
    # Eight of sixteen are half of them: no longer few.
    isolation.take([TestResult(rest, False, frozenset(hosts[4:8]))])
    assert {test.purpose for test in isolation.next_round()} == {"screen"}


# --- where little works ---------------------------------------------------------------------------------------


def test_a_named_host_without_a_good_partner_is_tried_with_the_others_in_the_end() -> None:
    hosts = ("a", "b", "c")
    simulated = SimulatedFleet(hosts, (Fault(("b", "c"), "both"),))
    isolation, tests = play(hosts, naming(simulated, "fleet", "a"))
    assert {frozenset(fault.hosts) for fault in isolation.faults} == {frozenset("bc")}
    assert tests[:2] == [Test(hosts, "fleet"), Test(("b", "c"), "rest")]
    assert not isolation.untested
    assert groups(tests, "fleet", "rest", "screen").count(hosts) == 1


def test_two_hosts_that_nobody_works_with_do_not_stop_the_tests_of_who_was_named() -> None:
    """The rest is one broken pair and nothing else: the named host is then no worse than they."""
    hosts = ("a", "b", "c")

    def result(test: Test) -> TestResult:
        if test.purpose == "links":
            first, second = test.hosts
            return TestResult(test, False, unanswered=frozenset({(first, second), (second, first)}))
        return TestResult(test, False, frozenset("a") if test.purpose == "fleet" else frozenset())

    isolation, tests = play(hosts, result)
    assert any("a" in group for group in groups(tests, "rest", "half", "seek", "links"))
    accused = {host for fault in isolation.faults for host in fault.hosts}
    assert accused | set(isolation.untested) == set(hosts)


def test_where_nothing_works_a_few_rounds_of_pairs_are_tried_and_then_each_link() -> None:
    isolation, tests = play(LETTERS, lambda test: TestResult(test, False))
    seeks = groups(tests, "seek")
    assert 4 * len(LETTERS) // 2 <= len(seeks) <= 5 * len(LETTERS) // 2
    assert len({frozenset(pair) for pair in seeks}) == len(seeks)
    # All of a round's pairs are apart, so that each host is tried with another in it.
    assert {host for pair in seeks[:4] for host in pair} == set(LETTERS)
    accused = {host for fault in isolation.faults for host in fault.hosts}
    assert accused == set(LETTERS)


@pytest.mark.parametrize(("first", "second"), [(0, 5), (1, 4), (2, 7), (3, 6)])
def test_suspects_wait_for_the_only_good_hosts_that_there_are(first: int, second: int) -> None:
    """Two hosts found late are all the partners: nobody is taken for one that has none meanwhile."""
    sound = {LETTERS[first], LETTERS[second]}
    simulated = SimulatedFleet(
        LETTERS, tuple(Fault((host,)) for host in LETTERS if host not in sound)
    )
    isolation, tests = play(LETTERS, simulated.run)
    assert set(isolation.faults) == set(simulated.faults)
    assert len(tests) <= 34


# --- trouble that comes and goes ------------------------------------------------------------------------------


def test_a_few_hunts_in_vain_are_enough_to_call_it_trouble_that_comes_and_goes() -> None:
    hosts = fleet(64, 0).hosts
    isolation, tests = play(
        hosts, lambda test: TestResult(test, test.purpose not in ("fleet", "screen"))
    )
    assert isolation.unexplained == COMES_AND_GOES
    # Two halves, and 16 groups that failed once and work now: five are enough.
    assert len(groups(tests, "screen")) == 2 + 16
    assert isolation.rounds < 10


@pytest.mark.parametrize("failing", [1, 2, 4, 7])
def test_five_hunts_end_without_a_fault_side_by_side_or_one_after_the_other(failing: int) -> None:
    hosts = fleet(64, 0).hosts
    screens: list[Test] = []

    def result(test: Test) -> TestResult:
        if test.purpose == "screen":
            screens.append(test)
            return TestResult(test, len(screens) > failing)
        return TestResult(test, test.purpose != "fleet")

    isolation, tests = play(hosts, result)
    assert (isolation.unexplained, isolation.faults) == (COMES_AND_GOES, [])
    assert len(groups(tests, "screen")) >= (2 if failing == 1 else 2 + 16)
    # Both halves and five groups at once end it. Fewer contradict what works now, and all begins anew.
    assert isolation.rounds <= (9 if failing == 7 else 24)


def test_it_ends_after_so_many_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "ROUNDS", 3)
    simulated = fleet(64, 3, 3)
    isolation = Isolation(simulated.hosts)
    while tests := isolation.next_round():
        assert not isolation.unexplained
        isolation.take([simulated.run(test) for test in tests])
    assert (isolation.rounds, isolation.unexplained) == (3, COMES_AND_GOES)


# --- sizes of groups ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "count"), [(8, 0), (11, 0), (12, 3), (63, 15), (64, 16), (232, 16)]
)
def test_halves_are_tested_first_and_groups_of_four_at_least_where_both_fail(
    size: int, count: int
) -> None:
    hosts = fleet(size, 0).hosts
    isolation = Isolation(hosts)
    (whole,) = isolation.next_round()
    isolation.take([TestResult(whole, False)])
    for parts in filter(None, (2, count)):
        asked = isolation.next_round()
        assert {test.purpose for test in asked} == {"screen"}
        assert len(asked) == parts
        assert [host for test in asked for host in test.hosts] == list(hosts)
        sizes = [len(test.hosts) for test in asked]
        assert max(sizes) - min(sizes) <= 1
        isolation.take([TestResult(test, False) for test in asked])
    assert all(test.purpose != "screen" for test in isolation.next_round())


def test_while_hunts_go_on_good_hosts_are_kept_for_them() -> None:
    hosts = fleet(32, 0).hosts
    simulated = SimulatedFleet(hosts, (Fault((hosts[9],)), Fault((hosts[26],))))
    isolation = Isolation(hosts, 4)
    seen = 0
    while tests := isolation.next_round():
        good = {
            host
            for host in hosts
            if any(host in r.test.hosts for r in isolation.results if r.passed)
        }
        hunts = [test for test in tests if test.purpose in ("half", "cross", "confirm", "links")]
        taken = {host for test in tests for host in test.hosts}
        # Those that are tested with a partner have one.
        without = [test for test in hunts if test.purpose != "confirm"]
        if len(without) > 1 and groups(tests, "rest"):
            seen += 1
            assert len(good - taken) >= len(without)
        isolation.take([simulated.run(test) for test in tests])
    assert seen
    assert set(isolation.faults) == set(simulated.faults)


def test_sound_hosts_that_a_group_named_are_not_hunts_in_vain() -> None:
    hosts = fleet(16, 0).hosts

    def result(test: Test) -> TestResult:
        return TestResult(test, test.purpose != "fleet", frozenset(hosts[:6]))

    isolation, tests = play(hosts, result)
    assert {group[0] for group in groups(tests, "confirm")} == set(hosts[:6])
    assert (isolation.faults, isolation.untested) == ([], ())
    # That the fleet failed and everything works now is said, and what a hunt in vain is was not counted.
    assert isolation.unexplained == COMES_AND_GOES
    assert isolation.rounds < 8


@pytest.mark.parametrize("hub", [0, 5, 11])
def test_a_host_that_works_with_some_is_named_by_its_links_alone(hub: int) -> None:
    """Two broken links of one host are that host only where it was never seen to work."""
    hosts = fleet(12, 0).hosts
    for others in ((1, 7), (2, 9), (3, 4), (6, 10)):
        faults = tuple(Fault((hosts[hub], hosts[other]), "both") for other in others)
        isolation, _ = play(hosts, SimulatedFleet(hosts, faults).run)
        worked = {
            host for result in isolation.results if result.passed for host in result.test.hosts
        }
        assert isolation.faults
        assert not any(fault.is_host and fault.hosts[0] in worked for fault in isolation.faults)


def test_a_host_that_worked_with_others_needs_no_partner_to_be_known_as_good() -> None:
    simulated = SimulatedFleet(LETTERS, (Fault(("a", "b"), "both"),))
    isolation, tests = play(LETTERS, naming(simulated, "fleet", "a", "b"))
    assert isolation.faults == [Fault(("a", "b"), "both")]
    for suspect in "ab":
        assert len([group for group in groups(tests, "confirm") if group[0] == suspect]) == 1


def test_links_that_a_group_named_are_looked_at_in_the_order_of_their_names() -> None:
    hinted = frozenset(("a", other) for other in "bcdfg")

    def result(test: Test) -> TestResult:
        return TestResult(test, test.purpose != "fleet", unanswered=hinted)

    isolation, tests = play(LETTERS, result)
    assert groups(tests, "links") == [("a", other) for other in "bcdfg"]
    assert isolation.faults == []


@pytest.mark.parametrize(
    ("missing", "unanswered", "suspects"),
    [
        ("z", [("b", "z")], {"z": "b"}),
        ("z", [("b", "z"), ("z", "c")], {"z": "bc"}),
        ("", [("b", "z"), ("c", "z")], {"z": "bc"}),
        ("", [("b", "z")], {"b": "z"}),
        ("z", [("b", "z"), ("c", "d")], {"c": "d", "z": "b"}),
        ("z", [], {"z": ""}),
    ],
)
def test_the_fewest_hosts_that_explain_what_a_group_said_are_suspected(
    missing: str, unanswered: list[tuple[str, str]], suspects: dict[str, str]
) -> None:
    result = TestResult(
        Test(("b", "c", "d", "z"), "fleet"), False, frozenset(missing), frozenset(unanswered)
    )
    assert suspects_of(result) == {h: frozenset(ends) for h, ends in suspects.items()}
