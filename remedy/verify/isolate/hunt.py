"""One hunt: from a group that fails to the one host, or the one pair of hosts, that makes it fail.

A fault is a host or a pair, so each smallest group that fails has one host or two. The hunt puts the group
in a line whose beginning is known to work and finds, by halving, the first host with which it no longer does.
The part that worked stays in the next test: a fault that lies between two halves, each of which works by
itself, is found at the same cost as one inside a half.

A hunt is a generator: it yields what it wants to know and is sent the answer, so that many of them take
their steps in the same round.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, field

from remedy.verify.isolate.model import Fault, NodeFault, PairFault, Purpose, Result


@dataclass(frozen=True)
class Ask:
    """A question of a hunt.

    Args:
        hosts: who takes part.
        purpose: of the test.
        partner: whether a host that is known to be good is added, one that no other test of the round has.
        avoid: hosts that should not be this partner while there are others.
        never: hosts that must not be it.
    """

    hosts: tuple[str, ...]
    purpose: Purpose
    partner: bool = False
    avoid: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Answer:
    """What came of a question.

    Args:
        passed: whether the group works.
        result: of the test; None where it was known without one.
        partner: who was added; None where nobody could be.
    """

    passed: bool
    result: Result | None = None
    partner: str | None = None


Steps = Generator[Ask, Answer, "Fault | None"]


@dataclass
class Span:
    """Which hosts a hunt is still after; all others of its group are free for other tests."""

    hosts: frozenset[str] = field(default_factory=frozenset)


def hunt(line: Sequence[str], known: int, span: Span) -> Steps:
    """Find one fault of a group.

    Args:
        line: a group that failed.
        known: how many hosts at its beginning are known to work together; 0 where nothing is known.
        span: is kept up to date with the hosts that the hunt is after.

    Returns:
        the fault; None where none was found after all, because it comes and goes.
    """
    low, high = known, len(line)
    span.hosts = frozenset(line)
    while high - low > 2:
        middle = max((low + high) // 2, 2)  # a host alone has nobody to fail with
        answer = yield Ask(tuple(line[:middle]), "half")
        if answer.passed:
            low = middle
            continue
        high = middle
        span.hosts = frozenset(line[:high])
        for suspect in _hinted(answer.result, line[low:high]):
            if (found := (yield from confirm(suspect, line[:high]))) is not None:
                return found
    for suspect in line[low:high]:
        if (found := (yield from confirm(suspect, line[:high]))) is not None:
            return found
    # Each of them works with a good partner: what is broken is a way between two hosts of the line.
    last = high - 1
    if high - low == 2 and low > 0:
        answer = yield Ask(tuple(line[:last]), "half")
        last -= not answer.passed
    return (yield from partner_of(line[last], line[:last]))


def confirm(suspect: str, line: Sequence[str]) -> Steps:
    """Test a suspect with a partner that is known to be good.

    Args:
        suspect: the host.
        line: hosts of which one may be the suspect's broken way; a partner from among them proves less.

    Returns:
        what is broken; None where the two work, or where there is no partner.
    """
    never = frozenset((suspect,))
    answer = yield Ask((suspect,), "confirm", partner=True, avoid=frozenset(line), never=never)
    if answer.passed or answer.partner is None:
        return None
    if answer.partner not in line:
        return NodeFault(suspect)
    # The suspect, or the way between these two: another partner tells.
    first = answer.partner
    answer = yield Ask((suspect,), "confirm", True, frozenset(line), never | {first})
    if answer.partner is not None and not answer.passed:
        return NodeFault(suspect)
    return (yield from ways_of(suspect, first))


def accuse(suspect: str, hinted: Collection[str], everybody: Sequence[str]) -> Steps:
    """Decide about a host that a failed group named.

    Args:
        suspect: the host.
        hinted: hosts between which and the suspect nobody answered.
        everybody: each of them may be the other end of a broken way.
    """
    found = yield from confirm(suspect, everybody)
    for other in hinted if found is None else ():
        if (found := (yield from ways_of(suspect, other))) is not None:
            break
    return found


def recheck(fault: NodeFault, doubts: Sequence[str]) -> Steps:
    """Test an accused host once more, with a partner that it was not seen to fail with.

    Args:
        fault: the accusation.
        doubts: hosts of which each may be the other end of a broken way; a single one is then tested for it.
    """
    never = frozenset((fault.host, *(doubts if len(doubts) == 1 else ())))
    answer = yield Ask((fault.host,), "confirm", True, frozenset(doubts), never)
    if not answer.passed:
        return fault
    return (yield from ways_of(fault.host, doubts[0])) if len(doubts) == 1 else None


def partner_of(host: str, others: Sequence[str]) -> Steps:
    """Find the one with whom a host does not work.

    Args:
        host: works with a good partner, and not with all of ``others``.
        others: they work together.
    """
    others = list(others)
    while len(others) > 1:
        half = others[: (len(others) + 1) // 2]
        answer = yield Ask((host, *half), "cross")
        if answer.passed:
            others = others[len(half) :]
            continue
        for other in [other for other in _hinted_partners(answer.result, host) if other in half]:
            if (found := (yield from ways_of(host, other))) is not None:
                return found
        others = half
    return (yield from ways_of(host, others[0])) if others else None


def ways_of(one: str, other: str) -> Steps:
    """Test two hosts alone, and tell the directions apart."""
    answer = yield Ask((one, other), "ways")
    if answer.result is None or answer.passed:
        return None
    dead = answer.result.unanswered & {(one, other), (other, one)}
    source, target = next(iter(sorted(dead)), (one, other))
    return PairFault(source, target, ("unknown", "one-way", "both")[len(dead)])


def _hinted(result: Result | None, among: Sequence[str]) -> list[str]:
    """The hosts that a failed group said were not there."""
    return [host for host in among if result is not None and host in result.missing]


def _hinted_partners(result: Result | None, host: str) -> list[str]:
    """The hosts between which and ``host`` a failed group said that nobody answered."""
    ways = result.unanswered if result else frozenset()
    return sorted({other for way in ways if host in way for other in way} - {host})
