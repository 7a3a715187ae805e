"""Broken pairs among good hosts: both sides are halved in every round, and several are sought side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from math import ceil, log2
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulated import SimulatedFleet, fleet
from remedy.verify.isolate.evidence import Evidence
from remedy.verify.isolate.hunt import Question, Reply, Span
from remedy.verify.isolate.model import Fault, Test, TestResult
from remedy.verify.isolate.pairs import LAST, MOST, Cross, across, between
from remedy.verify.isolate.planner import Isolation
from remedy.verify.isolate.steps import Begin, SideBySide

HOSTS = fleet(64, 0).hosts


def pair(one: str, other: str) -> Fault:
    return Fault((min(one, other), max(one, other)), "both")


class Held:
    """Holds hunts and what goes on from them, all in the same rounds.

    Attributes:
        found: the faults that they ended with.
        rounds: how many rounds were held.
        most: tests of a single hunt in a round, at most.

    Args:
        joined: whether others join its tests.
    """

    def __init__(self, begin: Begin, *faults: Fault, joined: bool = False) -> None:
        simulated = SimulatedFleet(HOSTS, faults)
        self.found: set[Fault] = set()
        self.rounds = self.most = 0
        waiting = [begin]
        running: list[tuple[SideBySide, Sequence[Question]]] = []
        while waiting or running:
            steps = [begin(Span(joined=joined)) for begin in waiting]
            replies: list[Sequence[Reply] | None] = [None] * len(steps)
            for hunt, asked in running:
                steps.append(hunt)
                replies.append([self.reply(simulated, question) for question in asked])
            waiting, running = [], []
            for hunt, answer in zip(steps, replies, strict=True):
                try:
                    asked = next(hunt) if answer is None else hunt.send(answer)
                    running.append((hunt, asked))
                    self.most = max(self.most, len(asked))
                except StopIteration as end:
                    self.found |= {e for e in end.value if isinstance(e, Fault)}
                    waiting += [e for e in end.value if not isinstance(e, Fault)]
            taken = [host for _, asked in running for question in asked for host in question.hosts]
            assert len(taken) == len(set(taken)), "tests of a round share a host"
            self.rounds += bool(running)

    @staticmethod
    def reply(simulated: SimulatedFleet, question: Question) -> Reply:
        result = simulated.run(Test(question.hosts, question.purpose))
        return Reply(result.passed, result)


@given(st.integers(1, 32), st.integers(1, 32), st.booleans(), st.data())
def test_a_pair_across_two_groups_is_found_by_halving_both(
    left: int, right: int, joined: bool, data: st.DataObject
) -> None:
    cross = Cross(HOSTS[:left], HOSTS[32 : 32 + right])
    broken = pair(data.draw(st.sampled_from(cross.near)), data.draw(st.sampled_from(cross.far)))
    held = Held(lambda span: across([cross], span), broken, joined=joined)
    assert held.found == {broken}
    assert held.most <= (LAST + 2 if joined else 2 * MOST)
    # One more where tests of several places are put together.
    assert held.rounds <= ceil(log2(max(left, right))) + 4


@given(st.integers(2, 16), st.data())
def test_a_pair_is_found_between_any_two_parts(count: int, data: st.DataObject) -> None:
    parts = [HOSTS[at : at + 4] for at in range(0, 4 * count, 4)]
    one, other = data.draw(st.lists(st.sampled_from(parts), min_size=2, max_size=2, unique=True))
    broken = pair(data.draw(st.sampled_from(one)), data.draw(st.sampled_from(other)))
    assert Held(lambda span: between(parts, span), broken).found == {broken}


def test_pairs_in_two_groups_that_fail_are_sought_side_by_side() -> None:
    parts = [HOSTS[at : at + 16] for at in range(0, 64, 16)]
    one, other = pair(HOSTS[3], HOSTS[20]), pair(HOSTS[33], HOSTS[60])
    alone = Held(lambda span: between(parts, span), one)
    both = Held(lambda span: between(parts, span), one, other)
    assert both.found == {one, other}
    assert both.rounds <= alone.rounds + 1


def test_groups_that_work_together_after_all_hold_no_pair() -> None:
    assert not Held(lambda span: between([HOSTS[:8], HOSTS[8:16]], span)).found
    assert not Held(lambda span: between([HOSTS[:8]], span)).found


@given(st.integers(1, 9), st.integers(1, 9))
def test_halves_are_tested_now_or_left_and_never_both(left: int, right: int) -> None:
    cross = Cross(HOSTS[:left], HOSTS[32 : 32 + right])
    first, second, left_over = cross.halved(joined=False)
    covered = [p for part in (*first, *second, *left_over) for p in product(part.near, part.far)]
    assert sorted(covered) == sorted(product(cross.near, cross.far))
    for group in ([*first, *second], left_over):
        taken = [host for part in group for host in part.hosts]
        assert len(taken) == len(set(taken))


def asked_in_turn(cross: Cross, *passed: bool, joined: bool = True) -> list[Sequence[Question]]:
    """The questions of each round where the groups of a round pass or fail together."""
    steps = across([cross], Span(joined=joined))
    rounds = [next(steps)]
    for works in passed:
        replies = [
            Reply(works, TestResult(Test(question.hosts, question.purpose), works))
            for question in rounds[-1]
        ]
        rounds.append(steps.send(replies))
    return rounds


def test_those_who_join_are_seen_with_both_sides_of_the_first_place_that_is_left() -> None:
    near, far = HOSTS[:4], HOSTS[32:36]
    few, last, crosswise = asked_in_turn(Cross(near, far), True, True)
    assert [(q.hosts, q.interest) for q in few] == [
        ((*near[:2], *far[:2]), near[:2]),
        ((*near[2:], *far[2:]), far[2:]),
    ]
    # The first place has nothing to prove; of the second one half is tested with those who join.
    alone = [question.hosts for question in last if not question.interest]
    assert alone == [(near[0], far[2]), (near[2], far[0]), (near[1], far[3])]
    (joined,) = [question for question in last if question.interest]
    assert joined.hosts == joined.interest == (near[3], far[1])
    # What nobody else has to be seen with is tested alone, and the others together.
    alone = [question.hosts for question in crosswise if not question.interest]
    assert alone == [(near[0], far[3]), (near[1], far[2])]
    (joined,) = [question for question in crosswise if question.interest]
    assert joined.hosts == joined.interest == (near[2], far[1], near[3], far[0])


def test_beside_other_hunts_nobody_is_wanted() -> None:
    for asked in asked_in_turn(Cross(HOSTS[:4], HOSTS[32:36]), True, True, joined=False):
        assert not any(question.interest for question in asked)


def test_a_pair_that_failed_together_with_others_is_tested_alone() -> None:
    one, other = HOSTS[0], HOSTS[32]
    steps = across([Cross(HOSTS[:2], HOSTS[32:34])], Span(joined=True))
    first, joined = next(steps)
    assert (first.interest, joined.interest) == ((), (HOSTS[1], HOSTS[33]))
    passed = Reply(True, TestResult(Test(first.hosts, "links"), True))
    larger = Test((*joined.hosts, one), "cross")
    (alone,) = steps.send([passed, Reply(False, TestResult(larger, False))])
    assert (alone.hosts, alone.purpose) == (joined.hosts, "links")
    with pytest.raises(StopIteration) as end:
        steps.send([Reply(False, TestResult(Test(alone.hosts, "links"), False))])
    assert end.value.value == [Fault((HOSTS[1], HOSTS[33]))]
    assert other in first.hosts


def isolated(nodes: int, pairs: int, seed: int) -> Isolation:
    simulated = fleet(232, nodes, pairs, seed=seed)
    isolation = Isolation(simulated.hosts)
    while tests := isolation.next_round():
        isolation.take([simulated.run(test) for test in tests])
    assert set(isolation.faults) == set(simulated.faults)
    return isolation


@pytest.mark.parametrize(("nodes", "pairs", "usual", "most"), [(0, 1, 10.5, 12), (3, 2, 18, 25)])
def test_pairs_of_232_hosts_are_found_in_few_rounds(
    nodes: int, pairs: int, usual: float, most: int
) -> None:
    rounds = [isolated(nodes, pairs, seed).rounds for seed in range(20)]
    assert median(rounds) <= usual
    assert max(rounds) <= most


@given(st.lists(st.sets(st.sampled_from(HOSTS[:12]), min_size=2), max_size=5))
def test_parts_are_known_to_work_and_hold_every_host_once(worked: list[set[str]]) -> None:
    evidence = Evidence(HOSTS[:12])
    for group in worked:
        evidence.add(TestResult(Test(tuple(sorted(group)), "half"), passed=True))
    parts = evidence.parts(HOSTS[:12])
    assert sorted(host for part in parts for host in part) == sorted(HOSTS[:12])
    for one, other in (p for part in parts for p in combinations(part, 2)):
        assert any({one, other} <= group for group in worked)


def test_groups_that_may_meet_are_one_test() -> None:
    evidence = Evidence(HOSTS[:4])
    for one, other in ((0, 2), (0, 3), (1, 2), (1, 3)):
        evidence.add(TestResult(Test((HOSTS[one], HOSTS[other]), "half"), passed=True))
    assert [set(group) for group in evidence.unproven(HOSTS[:4], [])] == [set(HOSTS[:4])]
    apart = [frozenset((HOSTS[0], HOSTS[2]))]
    assert len(evidence.unproven(HOSTS[:4], apart)) == 2
