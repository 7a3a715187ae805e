"""Who joins the tests of a hunt, which pairs are tried, and how many hunts there will be."""

from __future__ import annotations

import pytest

from benchmarks.simulated import fleet
from remedy.verify.isolate.company import joined, untried
from remedy.verify.isolate.evidence import Evidence
from remedy.verify.isolate.hunt import Question, Span
from remedy.verify.isolate.model import Purpose, Test, TestResult
from remedy.verify.isolate.planner import Isolation
from remedy.verify.isolate.steps import Active, going_on, portions

HOSTS = tuple("abcdefgh")


def result(hosts: str, passed: bool, purpose: Purpose = "cross") -> TestResult:
    return TestResult(Test(tuple(hosts), purpose), passed)


def asked(*groups: tuple[str, str]) -> dict[Test, Question]:
    """Questions about groups of which some hosts have still to be seen with others."""
    questions = [
        Question(tuple(hosts), "links" if len(hosts) == 2 else "cross", interest=tuple(interest))
        for hosts, interest in groups
    ]
    return {Test(question.hosts, question.purpose): question for question in questions}


def larger(tests: dict[Test, Question], free: str, *worked: str) -> dict[str, str]:
    evidence = Evidence(HOSTS)
    for hosts in worked:
        evidence.add(result(hosts, True))
    found = joined(tests, tuple(free), evidence)
    assert not {test.purpose for test in found.values()} - {"cross"}
    return {"".join(test.hosts): "".join(more.hosts) for test, more in found.items()}


def test_a_host_joins_where_it_has_most_to_prove() -> None:
    tests = asked(("abc", "ab"), ("de", "de"))
    assert larger(tests, "f", "fa") == {"de": "def"}
    assert larger(tests, "f", "fd", "fe") == {"abc": "abcf"}
    # Nothing to prove: it is free for other tests.
    assert larger(tests, "f", "fabde") == {}
    assert larger(tests, "") == {}


def test_hosts_with_the_same_to_prove_are_divided() -> None:
    assert larger(asked(("ab", "ab"), ("cd", "cd")), "efgh") == {"ab": "abeg", "cd": "cdfh"}


def test_tests_that_want_nobody_stay_as_they_are() -> None:
    assert larger(asked(("ab", "")), "efgh") == {}
    assert larger(asked(("ab", ""), ("cd", "c")), "ef") == {"cd": "cdef"}


def test_only_a_hunt_that_is_alone_is_joined() -> None:
    hosts = fleet(64, 0).hosts
    for failing, more in ((1, True), (2, False)):
        isolation = Isolation(hosts)
        isolation.take([TestResult(isolation.next_round()[0], False)])
        halves = isolation.next_round()
        isolation.take([TestResult(test, number >= failing) for number, test in enumerate(halves)])
        tests = isolation.next_round()
        half = set(halves[0].hosts)
        assert any(half & set(test.hosts) and set(test.hosts) - half for test in tests) is more


def test_pairs_are_tried_that_did_not_fail_together() -> None:
    assert untried("abcd", []) == [("a", "b"), ("c", "d")]
    assert untried("abcd", [result("ab", False)]) == [("a", "c"), ("b", "d")]
    assert untried("abc", [result("ab", False), result("ac", False)]) == [("b", "c")]
    # A larger group says nothing of two.
    assert untried("ab", [result("abc", False)]) == [("a", "b")]


def going(*groups: str) -> tuple[list[Active], dict[Test, tuple[Active, Question] | None]]:
    """Hunts that asked about one group each."""
    hunts, tests = [], {}
    for group in groups:
        active = Active(iter(()), Span(), True, False)  # type: ignore[arg-type]
        hunts.append(active)
        tests[Test(tuple(group), "cross")] = (active, Question(tuple(group), "cross"))
    return hunts, {**tests}


@pytest.mark.parametrize(
    ("results", "hunts"),
    [
        ([], 2),
        ([("abc", True), ("def", True)], 2),
        ([("abc", False), ("def", True)], 2),
        # One that nobody had asked for is another hunt.
        ([("abc", False), ("def", True), ("fgh", False)], 3),
        # A pair that failed is none.
        ([("abc", False), ("gh", False)], 2),
    ],
)
def test_each_group_that_failed_is_a_hunt_and_others_go_on(
    results: list[tuple[str, bool]], hunts: int
) -> None:
    active, by_test = going("abc", "def")
    given = [result(hosts, passed) for hosts, passed in results]
    assert going_on(given, by_test, active) == hunts


def test_a_hunt_that_ends_with_a_pair_leaves_its_tests_to_the_others() -> None:
    active, by_test = going("abc", "de")
    assert going_on([result("de", False)], by_test, active) == 1
    assert going_on([], {}, []) == 1


def test_hosts_are_split_into_parts_of_neighbours() -> None:
    assert portions("abcdefgh", 3) == [("a", "b"), ("c", "d", "e"), ("f", "g", "h")]
    assert portions("abc", 1) == [("a", "b", "c")]
    assert portions("ab", 3) == [(), ("a",), ("b",)]
