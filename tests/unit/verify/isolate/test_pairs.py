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
from remedy.verify.isolate.pairs import MOST, Cross, across, between
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
    """

    def __init__(self, begin: Begin, *faults: Fault) -> None:
        simulated = SimulatedFleet(HOSTS, faults)
        self.found: set[Fault] = set()
        self.rounds = self.most = 0
        waiting = [begin]
        running: list[tuple[SideBySide, Sequence[Question]]] = []
        while waiting or running:
            steps = [begin(Span()) for begin in waiting]
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


@given(st.integers(1, 32), st.integers(1, 32), st.data())
def test_a_pair_across_two_groups_is_found_by_halving_both(
    left: int, right: int, data: st.DataObject
) -> None:
    cross = Cross(HOSTS[:left], HOSTS[32 : 32 + right])
    broken = pair(data.draw(st.sampled_from(cross.near)), data.draw(st.sampled_from(cross.far)))
    held = Held(lambda span: across([cross], span), broken)
    assert held.found == {broken}
    assert held.most <= 2 * MOST
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
    direct, crosswise = cross.halved()
    covered = [p for part in (*direct, *crosswise) for p in product(part.near, part.far)]
    assert sorted(covered) == sorted(product(cross.near, cross.far))
    for group in (direct, crosswise):
        taken = [host for part in group for host in part.hosts]
        assert len(taken) == len(set(taken))


def isolated(nodes: int, pairs: int, seed: int) -> Isolation:
    simulated = fleet(232, nodes, pairs, seed=seed)
    isolation = Isolation(simulated.hosts)
    while tests := isolation.next_round():
        isolation.take([simulated.run(test) for test in tests])
    assert set(isolation.faults) == set(simulated.faults)
    return isolation


@pytest.mark.parametrize(("nodes", "pairs", "usual", "most"), [(0, 1, 12, 15), (3, 2, 24, 34)])
def test_pairs_of_232_hosts_are_found_in_few_rounds(
    nodes: int, pairs: int, usual: int, most: int
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
