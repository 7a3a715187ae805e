"""How hunts go on in the same round: each asks its questions, and goes on once it has all replies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from remedy.verify.isolate.hunt import Question, Reply, Span, Steps
from remedy.verify.isolate.model import Fault, Test, TestResult

Begin = Callable[[Span], "SideBySide"]
"""Begins a hunt."""
End = Fault | Begin
SideBySide = Generator[Sequence[Question], Sequence[Reply], "list[End]"]
"""A hunt that asks several questions a round, and ends with faults and with hunts that go on by themselves."""


def in_turn(steps: Steps) -> SideBySide:
    """Turn a hunt that asks one question at a time into one that may ask several."""
    try:
        question = next(steps)
        while True:
            (reply,) = yield (question,)
            question = steps.send(reply)
    except StopIteration as end:
        return [] if end.value is None else [end.value]


@dataclass
class Active:
    """A hunt that is under way, with its questions and the replies so far.

    Args:
        steps: the hunt.
        span: the hosts that it is after.
        sure: whether there is a fault to be found; a host that was only named may well be sound.
        last: whether what it ends with needs no second look.
        asks: the questions of this step.
        replies: to these.
    """

    steps: SideBySide
    span: Span
    sure: bool
    last: bool
    asks: Sequence[Question] = ()
    replies: dict[Question, Reply] = field(default_factory=dict)

    @property
    def open(self) -> list[Question]:
        """The questions that have no reply yet."""
        return [ask for ask in self.asks if ask not in self.replies]


def going_on(
    results: Collection[TestResult],
    questions: Mapping[Test, tuple[Active, Question] | None],
    hunts: Sequence[Active],
) -> int:
    """Return how many hunts there will be in the next round, one at least.

    Args:
        results: of this round. Each larger group that failed is a hunt in the next one.
        questions: which hunt asked for which test.
        hunts: all that go on; those of which nothing failed go on as they are.
    """
    failed = [result for result in results if not result.passed]
    ended = {id(hunt[0]) for result in failed if (hunt := questions.get(result.test))}
    count = sum(len(result.test.hosts) > 2 for result in failed)
    return max(1, count + sum(id(hunt) not in ended for hunt in hunts))


def portions(hosts: Sequence[str], count: int) -> list[tuple[str, ...]]:
    """Split hosts into so many parts of neighbours, all about as large."""
    edges = [len(hosts) * number // count for number in range(count + 1)]
    return [tuple(hosts[begin:end]) for begin, end in pairwise(edges)]
