"""Replies to the questions of a hunt, as a simulated fleet would give them."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.simulated import SimulatedFleet
from remedy.verify.isolate.hunt import Question, Reply, Span, Steps
from remedy.verify.isolate.model import Fault, Test
from remedy.verify.isolate.steps import Begin, SideBySide

LINE = tuple("abcdefgh")
GOOD = ("x", "y", *(f"good{number}" for number in range(8)))
"""Hosts outside the line that work with everybody who is sound."""


def pair(one: str, other: str) -> Fault:
    """A pair of which the first does not reach the other."""
    return Fault((one, other), "one-way")


class Asked:
    """Replies to the questions of a hunt as a fleet with these faults would.

    Args:
        faults: what is broken.
        partners: good hosts, in the order in which they are given to a suspect.
        telling: whether failed groups name the fault.
        width: tests that a hunt may hold in a round.
        joined: whether a single fault shows.
    """

    def __init__(
        self,
        *faults: Fault,
        partners: Sequence[str] = GOOD,
        telling: bool = False,
        width: int = 1,
        joined: bool = False,
    ) -> None:
        ends = (host for fault in faults for host in fault.hosts)
        hosts = tuple(dict.fromkeys((*LINE, *GOOD, *partners, *ends)))
        self.fleet = SimulatedFleet(hosts, faults, telling=float(telling))
        self.partners = partners
        self.width = width
        self.joined = joined
        self.questions: list[Question] = []
        self.groups: list[tuple[str, ...]] = []
        self.rounds: list[list[tuple[str, ...]]] = []

    def reply(self, question: Question, taken: set[str] | None = None) -> Reply:
        """Return the reply to one question, with a partner that nobody of the round has."""
        self.questions.append(question)
        hosts, partner = question.hosts, None
        if question.partner:
            able = [h for h in self.partners if h not in question.never and h not in (taken or ())]
            if not able:
                return Reply(passed=False)
            partner = next((host for host in able if host not in question.avoid), able[0])
            hosts = (*hosts, partner)
        self.groups.append(hosts)
        result = self.fleet.run(Test(hosts, question.purpose))
        return Reply(result.passed, result, partner)

    def end(self, steps: Steps) -> Fault | None:
        """Carry a hunt that asks one question at a time to its end; return what it found."""
        try:
            question = next(steps)
            while True:
                question = steps.send(self.reply(question))
        except StopIteration as end:
            fault: Fault | None = end.value
            return fault

    def ends(self, begin: Begin) -> list[Fault]:
        """Carry a hunt, and then each that goes on from it, to its end; return what they found."""
        span = Span(width=self.width, joined=self.joined)
        steps: SideBySide = begin(span)
        replies: list[Reply] | None = None
        try:
            while True:
                asked = next(steps) if replies is None else steps.send(replies)
                taken: set[str] = {host for question in asked for host in question.hosts}
                began = len(self.groups)
                replies = []
                for question in asked:
                    replies.append(self.reply(question, taken))
                    taken.update(filter(None, [replies[-1].partner]))
                self.rounds.append(self.groups[began:])
        except StopIteration as end:
            faults = [one for one in end.value if isinstance(one, Fault)]
            further = [one for one in end.value if not isinstance(one, Fault)]
            return [*faults, *(fault for begin in further for fault in self.ends(begin))]

    @property
    def purposes(self) -> list[str]:
        """Of all questions."""
        return [question.purpose for question in self.questions]
