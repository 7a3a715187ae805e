"""Broken pairs: from groups each of which works, and not together, to the two hosts that do not.

Where two halves of a group work, what is broken has one end in each. Both halves are halved, and the first
quarters are tested together, and at the same time the second ones. If both tests pass, what is broken lies
crosswise, in one of two places that have no host in common: both are searched side by side. So every round
halves each side, whichever way it ends.

How few rounds can it be? One of n hosts has n - 1 pairs, and in a round it is in one test, so of r rounds the
last of which tests single pairs, 2 ** (r - 1) pairs of a host can be told apart: for 232 hosts that is 9
rounds, 10 with that of the whole fleet. Halving takes no more, and finds half of the pairs a round earlier. A
first screen in 16 groups would tell next to nothing of a pair, and cost a round.

The rest are rounds of proof: each of the two has to be seen with everybody but the other. A test that fails
proves nothing of its hosts, so those that a hunt let go, on either side, have still to be seen with those it is
after. Where a single fault shows they join its tests: in the halves of a group, and from sixteen suspects a
side on, those of one side in one test and those of the other in the other one. Where both tests work, the
first of the two places that are left has then nothing to prove, and two rounds more are enough for it. In each
other place one pair is tested, and the second one together with all that is to be proven. So half of all
searches are over with the tenth round, and the others with the next one or two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from remedy.verify.isolate.hunt import Question, Reply, Span, fault_between
from remedy.verify.isolate.model import TestResult
from remedy.verify.isolate.scattered import scattered
from remedy.verify.isolate.steps import End, SideBySide

# Tests of one hunt in a round; twice as many where each is of two hosts, since these end the hunt.
MOST = 4
# Places whose pairs are tested one by one, where the others of a side are down to two.
LAST = 32
# From so many suspects a side on others join the tests.
FEW = 16

Side = tuple[str, ...]


@dataclass(frozen=True)
class Cross:
    """Two groups, each of which works: what is broken may have one end in each.

    Args:
        near: one side.
        far: the other.
        proof: whether all who joined have been seen with both sides.
    """

    near: Side
    far: Side
    proof: bool = False

    @property
    def hosts(self) -> Side:
        """The hosts of both."""
        return (*self.near, *self.far)

    @property
    def longest(self) -> int:
        """Hosts of the longer side."""
        return max(len(self.near), len(self.far))

    def halved(self, *, joined: bool) -> tuple[list[Cross], list[Cross], list[Cross]]:
        """Both sides in halves.

        The near side has its longer half first and the far side last, so that the longer ones meet in the
        first place that is left.

        Args:
            joined: whether hosts join the tests that are to be seen with the near side, or with the far one.

        Returns:
            two parts that can be tested at once, and what is left if both work.
        """
        first, *second = _portions(self.near, (len(self.near) + 1) // 2)
        first_half, *rest = _portions(self.far, max(1, len(self.far) // 2))
        remaining = [replace(self, near=first, far=b, proof=joined or self.proof) for b in rest]
        remaining += [replace(self, near=a, far=first_half) for a in second]
        crossed = [replace(self, near=a, far=b) for a in second for b in rest]
        return [replace(self, near=first, far=first_half)], crossed, remaining

    def opened(self) -> Cross:
        """Return the cross once hosts were let go: others than who joined are to be seen with it now."""
        return replace(self, proof=False)


@dataclass(frozen=True)
class _Group:
    """Crosses that are tested together.

    Args:
        crosses: these.
        interest: their hosts that are still to be seen with others.
    """

    crosses: Sequence[Cross]
    interest: Side = ()

    @property
    def hosts(self) -> Side:
        return tuple(chain.from_iterable(cross.hosts for cross in self.crosses))

    @property
    def question(self) -> Question:
        pair = len(self.hosts) == 2
        return Question(self.hosts, "links" if pair else "cross", interest=self.interest)

    def named(self, result: TestResult | None) -> bool:
        """Say whether a failed test was of two hosts alone."""
        return len(self.hosts) == 2 and (result is None or len(result.test.hosts) == 2)


def between(parts: Sequence[Sequence[str]], span: Span, *, whole: bool = False) -> SideBySide:
    """Find a broken pair in groups each of which works, and not together.

    Args:
        parts: the groups.
        span: is kept up to date with the hosts that the hunt is after.
        whole: whether these are all hosts, so that nobody else has to be seen with them.
    """
    known = [tuple(part) for part in parts if part]
    span.hosts = frozenset(chain.from_iterable(known))
    if len(known) < 2:
        return []
    if span.evidence is not None and not span.joined:
        return (yield from scattered(_union(known), span.evidence, span))
    middle = len(known) // 2
    sides = (known[:middle], known[middle:])
    asked = [side for side in sides if len(side) > 1]
    questions = [Question(_union(side), "cross", interest=_union(side)) for side in asked]
    replies = (yield questions) if asked else ()
    failed = [side for side, reply in zip(asked, replies, strict=True) if not reply.passed]
    if not failed:
        return (yield from across([Cross(_union(sides[0]), _union(sides[1]), proof=whole)], span))
    if len(failed) == 1:
        return (yield from between(failed[0], span))
    return [partial(between, side) for side in failed]


def across(crosses: Sequence[Cross], span: Span) -> SideBySide:
    """Find a broken pair in crosses that have no host in common."""
    while crosses:
        longest = max(cross.longest for cross in crosses)
        joined = span.joined and 2 < longest <= FEW
        halved = [cross.halved(joined=joined) for cross in crosses]
        first, second, remaining = (
            [*chain.from_iterable(part)] for part in zip(*halved, strict=True)
        )
        if joined:
            groups = _joined(halved)
        elif span.joined and longest <= 2 and len(first) <= LAST:
            groups = _last(first, second)
        else:
            groups = _merged([part for near, two, _ in halved for part in (*near, *two)])
        span.hosts = frozenset(chain.from_iterable(group.hosts for group in groups))
        replies = yield [group.question for group in groups]
        ends, failed = _outcome(groups, replies)
        if ends or len(failed) > 1:
            return [*ends, *(partial(across, group.crosses) for group in failed)]
        crosses = failed[0].crosses if failed else remaining
    return []


def _outcome(groups: Sequence[_Group], replies: Sequence[Reply]) -> tuple[list[End], list[_Group]]:
    """The pairs that are broken, and the groups in which one is."""
    ends: list[End] = []
    failed = []
    for group, reply in zip(groups, replies, strict=True):
        if not reply.passed and group.named(reply.result):
            ends.append(fault_between(group.hosts, reply.result))
        elif not reply.passed:
            failed.append(replace(group, crosses=[cross.opened() for cross in group.crosses]))
    return ends, failed


def _portions(side: Side, middle: int) -> list[Side]:
    """Two halves, or the one host that there is."""
    return [half for half in (side[:middle], side[middle:]) if half]


def _union(sides: Iterable[Side]) -> Side:
    return tuple(chain.from_iterable(sides))


def _joined(halved: Sequence[tuple[list[Cross], list[Cross], list[Cross]]]) -> list[_Group]:
    """Two tests for who joins, to be seen with the near sides or the far ones; others where nobody has to."""
    first = [cross for crosses, _, _ in halved for cross in crosses if not cross.proof]
    second = [cross for _, two, _ in halved for cross in two if not cross.proof]
    sides = (_union(cross.near for cross in first), _union(cross.far for cross in second))
    groups = [_Group(c, side) for c, side in zip((first, second), sides, strict=True) if c]
    seen = [part for crosses, two, _ in halved for part in (*crosses, *two) if part.proof]
    return [*groups, *_merged(seen)]


def _last(first: Sequence[Cross], second: Sequence[Cross]) -> list[_Group]:
    """Single pairs; where others have still to be seen with them, every second one together with these."""
    crosses = [*first, *second]
    # Where no place has a second pair, those that have nothing to prove come first.
    alone = [
        c
        for c in crosses
        if c.proof or (c in first and (second or not any(o.proof for o in crosses)))
    ]
    unseen = [cross for cross in crosses if cross not in alone]
    groups = [_Group([cross]) for cross in alone]
    return [*groups, _Group(unseen, _union(cross.hosts for cross in unseen))] if unseen else groups


def _merged(crosses: Sequence[Cross]) -> list[_Group]:
    """Crosses in the groups that are tested: each by itself, or several together where they are many."""
    pairs = all(len(cross.hosts) == 2 for cross in crosses)
    if len(crosses) <= (2 * MOST if pairs else MOST):
        return [_Group([cross]) for cross in crosses]
    return [_Group(crosses[at::MOST]) for at in range(MOST)]
