"""A second look at what a single test accuses: tests end the wrong way at times, and nobody is accused by one.

An accusation needs two failed tests of two hosts. A host fails with two partners; a pair fails twice, or once
where calls between the two were seen to get no answer. A host of several broken pairs is tried with others: it
may have worked by mistake once, and be what is broken.
"""

from __future__ import annotations

from collections.abc import Collection

from remedy.verify.isolate.evidence import Evidence
from remedy.verify.isolate.hunt import Question
from remedy.verify.isolate.model import Fault
from remedy.verify.isolate.steps import SideBySide

# Failed tests that an accusation needs.
ENOUGH = 2
# Tests more where the second one disagrees with the first: two of three decide.
LOOKS = 2


def settled(fault: Fault, evidence: Evidence) -> bool:
    """Say whether enough tests of two hosts speak for an accusation.

    Args:
        fault: the accusation. A host failed with several that are good; a pair several times, or with the
            direction in which nobody answered, which no test says by mistake.
        evidence: the tests so far.
    """
    if fault.is_host:
        return sum(map(evidence.good, failed_with(fault.hosts[0], evidence))) >= ENOUGH
    own = [result for result in evidence.failed if set(result.test.hosts) == set(fault.hosts)]
    return len(own) >= ENOUGH or any(
        result.test.purpose == "links" and result.unanswered for result in own
    )


def failed_with(host: str, evidence: Evidence) -> frozenset[str]:
    """Return the hosts with which one failed in a test of the two alone."""
    pairs = [result.test.hosts for result in evidence.failed if len(result.test.hosts) == 2]
    return frozenset(end for pair in pairs if host in pair for end in pair if end != host)


def again_broken(fault: Fault, evidence: Evidence, faults: Collection[Fault]) -> list[str]:
    """Return the hosts of a pair that are in another broken pair: it may be that host alone.

    Args:
        fault: the accusation.
        evidence: the tests so far.
        faults: those that were found before.
    """
    if fault.is_host or not any(map(evidence.good, set(evidence.hosts).difference(fault.hosts))):
        return []  # there is nobody to try a host with
    paired = {host for pair in faults if pair != fault for host in pair.hosts}
    return [host for host in fault.hosts if host in paired]


def review(
    fault: Fault, partners: Collection[str], doubtful: Collection[str], *, enough: bool
) -> SideBySide:
    """Test an accusation again.

    Args:
        fault: the accusation.
        partners: hosts with which the accused host failed before: another partner proves more.
        doubtful: hosts of the pair to try with others.
        enough: whether only these are in question.

    Returns:
        the fault, or the hosts that explain it better; nothing where it was a mistake.
    """
    looks = 0 if enough else LOOKS
    for look in range(looks):
        (reply,) = yield (_question(fault, partners),)
        if not reply.passed:
            break
        if look == looks - 1:
            return []
    broken: dict[str, frozenset[str]] = dict.fromkeys(doubtful, frozenset(fault.hosts))
    for _ in range(ENOUGH):
        asks = [
            Question((host,), "confirm", True, never=never, again=True)
            for host, never in broken.items()
        ]
        replies = (yield asks) if asks else ()
        broken = {
            host: never | {reply.partner}
            for (host, never), reply in zip(broken.items(), replies, strict=True)
            if not reply.passed and reply.partner is not None
        }
    return [Fault((host,)) for host in broken] or [fault]


def _question(fault: Fault, failed: Collection[str]) -> Question:
    """The test that is held again."""
    if not fault.is_host:
        return Question(fault.hosts, "links")
    return Question(
        fault.hosts, "confirm", True, never=frozenset((*fault.hosts, *failed)), again=True
    )
