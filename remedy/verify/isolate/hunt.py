"""One hunt: from a group that fails to the one host, or the one pair of hosts, that makes it fail.

A fault is a host or a pair, so each smallest group that fails has one host or two. The hunt puts the group
in a line whose beginning is known to work and finds, by halving, the first host with which it no longer does.
The part that worked stays in the next test: a fault that lies between two halves, each of which works by
itself, is found at the same cost as one inside a half.

A hunt is a generator: it yields a question and is sent the reply, so that many of them take
their steps in the same round.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, field

from remedy.verify.isolate.model import Fault, Purpose, TestResult


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
    """

    hosts: tuple[str, ...]
    purpose: Purpose
    partner: bool = False
    avoid: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    again: bool = False


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
    """Which hosts a hunt is still after; all others of its group are free for other tests."""

    hosts: frozenset[str] = field(default_factory=frozenset)


def hunt(line: Sequence[str], sound: int, span: Span) -> Steps:
    """Find one fault of a group.

    Args:
        line: a group that failed.
        sound: how many hosts at its beginning are known to work together; 0 where nothing is known.
        span: is kept up to date with the hosts that the hunt is after.

    Returns:
        the fault; None where none was found after all, because it comes and goes.
    """
    low, high = sound, len(line)
    span.hosts = frozenset(line)
    while high - low > 2:
        middle = max((low + high) // 2, 2)  # a host alone has nobody to fail with
        reply = yield Question(tuple(line[:middle]), "half")
        if reply.passed:
            low = middle
            continue
        high = middle
        span.hosts = frozenset(line[:high])
        for suspect in _hinted(reply.result, line[low:high]):
            if (fault := (yield from confirm(suspect, line[:high]))) is not None:
                return fault
    for suspect in line[low:high]:
        if (fault := (yield from confirm(suspect, line[:high]))) is not None:
            return fault
    # Each of them works with a good partner: what is broken is a link between two hosts of the line.
    last = high - 1
    if high - low == 2 and low > 0:
        reply = yield Question(tuple(line[:last]), "half")
        last -= not reply.passed
    return (yield from partner_of(line[last], line[:last]))


def confirm(suspect: str, line: Sequence[str]) -> Steps:
    """Test a suspect with a partner that is known to be good.

    Args:
        suspect: the host.
        line: hosts of which one may be the suspect's broken link; a partner from among them proves less.

    Returns:
        what is broken; None where the two work, or where there is no partner.
    """
    never = frozenset((suspect,))
    reply = yield Question((suspect,), "confirm", partner=True, avoid=frozenset(line), never=never)
    if reply.passed or reply.partner is None:
        return None
    if reply.partner not in line:
        return Fault((suspect,))
    # The suspect, or the link between these two: another partner shows which.
    first = reply.partner
    reply = yield Question((suspect,), "confirm", True, frozenset(line), never | {first})
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


def partner_of(host: str, group: Sequence[str]) -> Steps:
    """Find the host with which another does not work.

    Args:
        host: works with a good partner, and not with all of ``group``.
        group: they work together.
    """
    group = list(group)
    while len(group) > 1:
        half = group[: (len(group) + 1) // 2]
        reply = yield Question((host, *half), "cross")
        if reply.passed:
            group = group[len(half) :]
            continue
        for candidate in [
            candidate for candidate in _hinted_partners(reply.result, host) if candidate in half
        ]:
            if (fault := (yield from links_between(host, candidate))) is not None:
                return fault
        group = half
    return (yield from links_between(host, group[0])) if group else None


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


def _hinted(result: TestResult | None, among: Sequence[str]) -> list[str]:
    """The hosts that a failed group reported as absent."""
    return [host for host in among if result is not None and host in result.missing]


def _hinted_partners(result: TestResult | None, host: str) -> list[str]:
    """The hosts between which and ``host`` a failed group got no answer."""
    links = result.unanswered if result else frozenset()
    return sorted({end for link in links if host in link for end in link} - {host})
