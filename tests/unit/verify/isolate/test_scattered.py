"""Broken pairs among those that are not proven yet, beside other hunts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulated import SimulatedFleet, fleet
from remedy.verify.isolate.evidence import Evidence
from remedy.verify.isolate.hunt import Reply, Span
from remedy.verify.isolate.model import Fault, Test, TestResult
from remedy.verify.isolate.scattered import MOST, PAIRS, halved, merged, scattered

HOSTS = fleet(40, 0).hosts
GROUPS = st.lists(st.sets(st.sampled_from(HOSTS), min_size=2), max_size=8)


def proven(worked: Sequence[set[str]]) -> Evidence:
    evidence = Evidence(HOSTS)
    for group in worked:
        evidence.add(TestResult(Test(tuple(sorted(group)), "rest"), passed=True))
    return evidence


def unproven(worked: Sequence[set[str]]) -> set[frozenset[str]]:
    fine = {frozenset(pair) for group in worked for pair in combinations(group, 2)}
    return {frozenset(pair) for pair in combinations(HOSTS, 2)} - fine


@given(GROUPS)
def test_clusters_hold_each_pair_that_is_not_proven_and_have_no_host_in_common(
    worked: list[set[str]],
) -> None:
    evidence, open_pairs = proven(worked), unproven(worked)
    clusters = evidence.clusters(HOSTS)
    members = [host for cluster in clusters for host in cluster]
    assert len(members) == len(set(members))
    assert set(members) == {host for pair in open_pairs for host in pair}
    assert all(any(pair <= set(cluster) for cluster in clusters) for pair in open_pairs)
    assert evidence.gaps(HOSTS) == len(open_pairs)


@given(GROUPS)
def test_halves_are_apart_and_at_least_one_has_something_to_tell(worked: list[set[str]]) -> None:
    evidence = proven(worked)
    for cluster in evidence.clusters(HOSTS):
        halves = halved(cluster, evidence)
        taken = [host for half in halves for host in half]
        assert halves
        assert len(taken) == len(set(taken))
        assert set(taken) <= set(cluster)
        assert all(evidence.gaps(half) for half in halves)
        # Only a cluster of two is tested whole: what fails has become smaller.
        assert len(cluster) == 2 or all(len(half) < len(cluster) for half in halves)


@given(GROUPS, st.data())
def test_the_pair_is_found_among_what_is_not_proven(
    worked: list[set[str]], data: st.DataObject
) -> None:
    candidates = sorted(map(sorted, unproven(worked)))
    if not candidates:
        return
    broken = Fault(tuple(data.draw(st.sampled_from(candidates))), "both")
    simulated, evidence = SimulatedFleet(HOSTS, (broken,)), proven(worked)
    steps = scattered(HOSTS, evidence, span := Span())
    asked = next(steps)
    for _ in range(20):
        taken = [host for question in asked for host in question.hosts]
        assert len(taken) == len(set(taken))
        assert set(taken) <= span.hosts
        assert len(asked) <= PAIRS
        results = [simulated.run(Test(question.hosts, question.purpose)) for question in asked]
        for result in results:
            evidence.add(result)
        replies = [Reply(result.passed, result) for result in results]
        ended = False
        try:
            asked = steps.send(replies)
        except StopIteration as end:
            found, ended = end.value, True
        if ended:
            break
    assert ended
    assert found == [broken]


def test_two_pairs_in_halves_that_both_fail_are_hunts_of_their_own() -> None:
    evidence = proven([set(HOSTS[:20]), set(HOSTS[20:])])
    steps = scattered(HOSTS, evidence, Span())
    asked = next(steps)
    assert [len(question.hosts) for question in asked] == [20, 20]
    failed = [TestResult(Test(question.hosts, "cross"), False) for question in asked]
    with pytest.raises(StopIteration) as end:
        steps.send([Reply(False, result) for result in failed])
    assert len(end.value.value) == 2
    assert not any(isinstance(one, Fault) for one in end.value.value)


def test_nothing_is_asked_of_a_group_that_is_proven() -> None:
    assert [*scattered(HOSTS, proven([set(HOSTS)]), Span())] == []


def test_many_halves_are_put_together_and_single_pairs_are_tested_apart_longer() -> None:
    pairs = [HOSTS[at : at + 2] for at in range(0, 40, 2)]
    assert merged(pairs[:PAIRS]) == pairs[:PAIRS]
    assert len(merged(pairs[: PAIRS + 1])) == MOST
    assert len(merged([HOSTS[at : at + 3] for at in range(0, 15, 3)])) == MOST
    assert sum(map(len, merged(pairs))) == len(HOSTS)
