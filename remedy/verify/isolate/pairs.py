"""Broken pairs: from groups each of which works, and not together, to the two hosts that do not.

Where two halves of a group work, what is broken has one end in each. Both halves are halved, and the first
quarters are tested together, and at the same time the second ones. If both tests pass, what is broken lies
crosswise, in one of two places that have no host in common: both are searched side by side. So every round
halves each side, whichever way it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from remedy.verify.isolate.hunt import Question, Span, fault_between
from remedy.verify.isolate.steps import End, SideBySide

# Tests of one hunt in a round; twice as many where each is of two hosts, since these end the hunt.
MOST = 4

Side = tuple[str, ...]


@dataclass(frozen=True)
class Cross:
    """Two groups, each of which works: what is broken may have one end in each."""

    near: Side
    far: Side

    @property
    def hosts(self) -> Side:
        """The hosts of both."""
        return (*self.near, *self.far)

    def halved(self) -> tuple[list[Cross], list[Cross]]:
        """Both sides in halves: what can be tested now, and what is left if that works."""
        first, *second = _portions(self.near)
        one, *other = _portions(self.far)
        direct = [Cross(first, one), *(Cross(a, b) for a in second for b in other)]
        crosswise = [Cross(first, b) for b in other] + [Cross(a, one) for a in second]
        return direct, crosswise


def between(parts: Sequence[Sequence[str]], span: Span) -> SideBySide:
    """Find a broken pair in groups each of which works, and not together."""
    known = [tuple(part) for part in parts if part]
    span.hosts = frozenset(chain.from_iterable(known))
    if len(known) < 2:
        return []
    middle = len(known) // 2
    sides = (known[:middle], known[middle:])
    asked = [side for side in sides if len(side) > 1]
    replies = (yield [Question(_union(side), "cross") for side in asked]) if asked else ()
    failed = [side for side, reply in zip(asked, replies, strict=True) if not reply.passed]
    if not failed:
        return (yield from across([Cross(*map(_union, sides))], span))
    if len(failed) == 1:
        return (yield from between(failed[0], span))
    return [partial(between, side) for side in failed]


def across(crosses: Sequence[Cross], span: Span) -> SideBySide:
    """Find a broken pair in crosses that have no host in common."""
    while crosses:
        span.hosts = frozenset(chain.from_iterable(cross.hosts for cross in crosses))
        halved = [cross.halved() for cross in crosses]
        groups = _merged([cross for direct, _ in halved for cross in direct])
        replies = yield [_question(group) for group in groups]
        ends: list[End] = []
        failed = []
        for group, reply in zip(groups, replies, strict=True):
            if not reply.passed and len(_hosts(group)) == 2:
                ends.append(fault_between(_hosts(group), reply.result))
            elif not reply.passed:
                failed.append(group)
        if ends or len(failed) > 1:
            return [*ends, *(partial(across, group) for group in failed)]
        crosses = failed[0] if failed else [c for _, crosswise in halved for c in crosswise]
    return []


def _portions(side: Side) -> list[Side]:
    """Two halves, or the one host that there is."""
    middle = (len(side) + 1) // 2
    return [half for half in (side[:middle], side[middle:]) if half]


def _union(sides: Sequence[Side]) -> Side:
    return tuple(chain.from_iterable(sides))


def _hosts(group: Sequence[Cross]) -> Side:
    return tuple(chain.from_iterable(cross.hosts for cross in group))


def _question(group: Sequence[Cross]) -> Question:
    hosts = _hosts(group)
    return Question(hosts, "links" if len(hosts) == 2 else "cross")


def _merged(crosses: Sequence[Cross]) -> list[list[Cross]]:
    """Crosses in the groups that are tested: each by itself, or several together where they are many."""
    pairs = all(len(cross.hosts) == 2 for cross in crosses)
    if len(crosses) <= (2 * MOST if pairs else MOST):
        return [[cross] for cross in crosses]
    return [list(crosses[at::MOST]) for at in range(MOST)]
