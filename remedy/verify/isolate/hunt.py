"""What a hunt asks, and its shortest ones: a suspect with good partners, and two hosts that are a pair.

A hunt is a generator: it yields a question and is sent the reply, so that many of them take
their steps in the same round.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, field

from remedy.verify.isolate.evidence import Evidence
from remedy.verify.isolate.model import Fault, Purpose, TestResult

# Tests of a round from which on a hunt takes wide steps: many that share a round take small ones.
WIDE = 8


@dataclass(frozen=True)
class Question:
    """A question of a hunt.

    Args:
        hosts: who takes part.
        purpose: of the test.
        partner: whether a host that is known to be good is added, one that no other test of the round has.
        avoid: hosts that should not be this partner while there are others.
        never: hosts that must not be it.
        again: whether it is asked though the host was seen to work with others.
        interest: hosts of it that are still to be seen with others: who nobody is after may join for them.
    """

    hosts: tuple[str, ...]
    purpose: Purpose
    partner: bool = False
    avoid: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    again: bool = False
    interest: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reply:
    """The reply to a question.

    Args:
        passed: whether the group works.
        result: of the test; None where it was known without one.
        partner: who was added; None where nobody could be.
    """

    passed: bool
    result: TestResult | None = None
    partner: str | None = None


Steps = Generator[Question, Reply, "Fault | None"]


@dataclass
class Span:
    """What the planner and a hunt know of each other.

    Args:
        hosts: the hosts that the hunt is still after; all others of its group are free for other tests.
        width: tests that it should not exceed in a round.
        joined: whether hosts that nobody is after join its tests: only where a single fault shows.
        evidence: of what is proven: where a hunt is not alone, pairs are sought among what is not.
    """

    hosts: frozenset[str] = field(default_factory=frozenset)
    width: int = 1
    joined: bool = False
    evidence: Evidence | None = None

    @property
    def alone(self) -> bool:
        """Whether no other hunt goes on, and there are good hosts enough to be partners."""
        return self.width >= WIDE


def confirmation(suspect: str, line: Collection[str]) -> Question:
    """Return the question whether a suspect works with a partner that is known to be good.

    Args:
        suspect: the host.
        line: hosts of which one may be the suspect's broken link; a partner from among them proves less.
    """
    never = frozenset((suspect,))
    return Question((suspect,), "confirm", partner=True, avoid=frozenset(line), never=never)


def confirm(suspect: str, line: Collection[str]) -> Steps:
    """Test a suspect with a partner that is known to be good.

    Args:
        suspect: the host.
        line: see ``confirmation``.

    Returns:
        what is broken; None where the two work, or where there is no partner.
    """
    reply = yield confirmation(suspect, line)
    return (yield from judged(suspect, line, reply))


def judged(suspect: str, line: Collection[str], reply: Reply) -> Steps:
    """Say what the reply to a confirmation shows; where that is not clear, ask once more."""
    if reply.passed or reply.partner is None:
        return None
    if reply.partner not in line:
        return Fault((suspect,))
    # The suspect, or the link between these two: another partner shows which.
    first = reply.partner
    reply = yield Question(
        (suspect,), "confirm", True, frozenset(line), frozenset((suspect, first))
    )
    if reply.partner is not None and not reply.passed:
        return Fault((suspect,))
    return (yield from links_between(suspect, first))


def accuse(suspect: str, hinted: Collection[str], everybody: Sequence[str]) -> Steps:
    """Decide about a host that a failed group named.

    Args:
        suspect: the host.
        hinted: hosts between which and the suspect nobody answered.
        everybody: each of them may be the other end of a broken link.
    """
    fault = yield from confirm(suspect, everybody)
    for candidate in hinted if fault is None else ():
        if (fault := (yield from links_between(suspect, candidate))) is not None:
            break
    return fault


def recheck(fault: Fault, doubts: Sequence[str]) -> Steps:
    """Test an accused host once more, with a partner that it was not seen to fail with.

    Args:
        fault: the accusation.
        doubts: hosts of which each may be the other end of a broken link; a single one is then tested for it.
    """
    never = frozenset((fault.hosts[0], *(doubts if len(doubts) == 1 else ())))
    reply = yield Question((fault.hosts[0],), "confirm", True, frozenset(doubts), never)
    if not reply.passed:
        return fault
    return (yield from links_between(fault.hosts[0], doubts[0])) if len(doubts) == 1 else None


def links_between(first: str, second: str) -> Steps:
    """Test two hosts alone, each direction apart."""
    reply = yield Question((first, second), "links")
    if reply.result is None or reply.passed:
        return None
    return fault_between((first, second), reply.result)


def fault_between(pair: Sequence[str], result: TestResult | None) -> Fault:
    """Say which direction of a pair is broken, from the test of its links."""
    first, second = pair
    dead = (result.unanswered if result else frozenset()) & {(first, second), (second, first)}
    source, target = next(iter(sorted(dead)), (first, second))
    return Fault((source, target), ("unknown", "one-way", "both")[len(dead)])
