"""What results prove of hosts and pairs, and which hosts explain what a failed group said."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.verify.isolate.evidence import Evidence, suspects_of
from remedy.verify.isolate.model import Fault, Test, TestResult

HOSTS = tuple("abcdef")


def result(
    hosts: str, passed: bool, missing: str = "", unanswered: tuple[str, ...] = ()
) -> TestResult:
    links = frozenset((link[0], link[1]) for link in unanswered)
    return TestResult(Test(tuple(hosts), "half"), passed, frozenset(missing), links)


def evidence(*results: TestResult) -> Evidence:
    found = Evidence(HOSTS)
    for one in results:
        found.add(one)
    return found


def test_a_host_is_good_once_it_worked_with_another_one() -> None:
    found = evidence(result("ab", True), result("cd", False))
    assert [host for host in HOSTS if found.good(host)] == ["a", "b"]
    assert [r.test.hosts for r in found.passed] == [("a", "b")]
    assert [r.test.hosts for r in found.failed] == [("c", "d")]


def test_the_largest_part_that_worked_together_keeps_the_order_that_is_asked_for() -> None:
    found = evidence(result("ab", True), result("cde", True), result("abcdef", False))
    assert found.largest_fine("fedcba") == ["e", "d", "c"]
    assert found.largest_fine("abc") == ["a", "b"]
    assert found.largest_fine("ac") in (["a"], ["c"])
    assert found.largest_fine("f") == []
    assert evidence().largest_fine("ab") == []


def pairs(groups: list[list[str]]) -> set[frozenset[str]]:
    return {frozenset(pair) for group in groups for pair in combinations(group, 2)}


def test_groups_are_made_of_pairs_that_are_not_proven_yet() -> None:
    assert evidence().unproven(HOSTS, []) == [list(HOSTS)]
    assert evidence(result("abcdef", True)).unproven(HOSTS, []) == []
    found = evidence(result("abc", True), result("def", True))
    (group,) = found.unproven(HOSTS, [])
    assert set(group) == set(HOSTS)
    assert evidence(result("abcdef", True)).unproven("a", []) == []


def test_pairs_that_must_not_meet_are_in_different_groups() -> None:
    groups = evidence().unproven(HOSTS, [frozenset("ab"), frozenset("ac")])
    assert not pairs(groups) & {frozenset("ab"), frozenset("ac")}
    assert all(len(group) > 1 for group in groups)
    assert evidence().unproven("abc", [frozenset("ad"), frozenset("ab")])
    # Nothing is left to prove of two that must not meet.
    assert evidence().unproven("ab", [frozenset("ab")]) == []


@given(
    st.lists(st.sets(st.sampled_from(HOSTS), min_size=2), max_size=4),
    st.lists(st.sets(st.sampled_from(HOSTS), min_size=2, max_size=2), max_size=3),
)
def test_round_by_round_every_pair_that_may_meet_is_proven(
    worked: list[set[str]], apart: list[set[str]]
) -> None:
    found = evidence(*(result("".join(sorted(group)), True) for group in worked))
    banned = [frozenset(pair) for pair in apart]
    proven = {frozenset(p) for group in worked for p in combinations(sorted(group), 2)}
    for _ in range(40):
        groups = found.unproven(HOSTS, banned)
        if not groups:
            break
        members = [host for group in groups for host in group]
        assert len(members) == len(set(members))
        fresh = pairs(groups)
        assert not fresh & set(banned)
        assert fresh - proven
        proven |= fresh
        for group in groups:
            found.add(result("".join(group), True))
    every = {frozenset(pair) for pair in combinations(HOSTS, 2)}
    assert every - proven <= set(banned)


# --- what speaks against an accusation ----------------------------------------------------------------------


def test_an_accusation_stands_when_groups_without_a_common_host_failed() -> None:
    found = evidence(result("abc", False), result("ade", False))
    assert found.doubts(Fault(("a",)), []) is None


def test_hosts_that_were_in_every_failed_group_may_be_the_other_end() -> None:
    found = evidence(
        result("abcd", False), result("dacb", False), result("abd", False), result("bc", False)
    )
    assert found.doubts(Fault(("a",)), []) == ["b", "d"]


def test_what_another_fault_explains_speaks_for_nothing() -> None:
    accused, other = Fault(("a",)), Fault(("c",))
    found = evidence(result("ab", False), result("acd", False))
    assert found.doubts(accused, [accused, other]) == ["b"]
    assert found.doubts(accused, [accused]) is None
    explained = evidence(result("acd", False))
    assert explained.doubts(accused, [accused, other]) == list(HOSTS)


# --- what a failed group says of itself ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("missing", "unanswered", "suspects"),
    [
        ("", (), {}),
        ("b", (), {"b": ""}),
        ("bd", (), {"b": "", "d": ""}),
        ("b", ("ab", "cb"), {"b": "ac"}),
        ("", ("ab", "cb", "bd"), {"b": "acd"}),
        ("", ("ab", "ba"), {"a": "b"}),
        ("", ("ab", "cd"), {"a": "b", "c": "d"}),
        ("a", ("ab", "cd", "ed"), {"a": "b", "d": "ce"}),
        ("", ("ab", "ac", "de", "df"), {"a": "bc", "d": "ef"}),
    ],
)
def test_the_fewest_hosts_explain_what_was_not_answered(
    missing: str, unanswered: tuple[str, ...], suspects: dict[str, str]
) -> None:
    found = suspects_of(result("abcdef", False, missing, unanswered))
    assert found == {host: frozenset(partners) for host, partners in suspects.items()}
    assert list(found) == sorted(found)


# --- faults in words -----------------------------------------------------------------------------------------


def test_a_fault_breaks_the_groups_that_hold_all_of_it() -> None:
    host, link = Fault(("a",)), Fault(("a", "b"), "one-way")
    assert (host.is_host, link.is_host) == (True, False)
    assert [host.breaks(group) for group in ("ab", "bc", "")] == [True, False, False]
    assert [link.breaks(group) for group in ("abc", "ac", "b")] == [True, False, False]


def test_a_fault_shows_its_direction() -> None:
    assert str(Fault(("a",))) == "a"
    assert str(Fault(("b", "a"), "one-way")) == "b -> a"
    assert str(Fault(("a", "b"), "both")) == str(Fault(("a", "b"))) == "a <-> b"
