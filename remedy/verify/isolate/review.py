"""A second look at what a single test accuses: tests end the wrong way at times, and nobody is accused by one.

An accusation needs two failed tests of two hosts. A host fails with two partners; a pair fails twice, or once
where calls between the two were seen to get no answer. Where one of a pair was hardly ever seen to work, it is
tried with somebody else, since then it may be that host alone.
"""

from __future__ import annotations

from collections.abc import Collection

from remedy.verify.isolate.evidence import Evidence
from remedy.verify.isolate.hunt import Question
from remedy.verify.isolate.model import Fault
from remedy.verify.isolate.steps import SideBySide

# Failed tests that an accusation needs, and passed ones that make it sure that a host works.
ENOUGH = 2
# Tests more where the second one disagrees with the first: two of three decide.
LOOKS = 2


def settled(fault: Fault, evidence: Evidence) -> bool:
    """Say whether enough tests of two hosts speak for an accusation.

    Args:
        fault: the accusation. A host failed with several partners; a pair several times, or with the direction
            in which nobody answered, which no test says by mistake.
        evidence: the tests so far.
    """
    if fault.is_host:
        return len(failed_with(fault.hosts[0], evidence)) >= ENOUGH
    own = [result for result in evidence.failed if set(result.test.hosts) == set(fault.hosts)]
    return len(own) >= ENOUGH or any(
        result.test.purpose == "links" and result.unanswered for result in own
    )


def failed_with(host: str, evidence: Evidence) -> frozenset[str]:
    """Return the hosts with which one failed in a test of the two alone."""
    pairs = [result.test.hosts for result in evidence.failed if len(result.test.hosts) == 2]
    return frozenset(end for pair in pairs if host in pair for end in pair if end != host)


def weak_ends(fault: Fault, evidence: Evidence, known: Collection[Fault]) -> list[str]:
    """Return the hosts of a pair that may be broken as a whole.

    Args:
        fault: the accusation.
        evidence: the tests so far; a single one in which a host worked may have been wrong.
        known: what was found before; a host with several broken pairs is looked at.
    """
    if fault.is_host or not any(map(evidence.good, set(evidence.hosts).difference(fault.hosts))):
        return []  # there is nobody to try a host with
    paired = {host for pair in known if pair != fault for host in pair.hosts}
    return [h for h in fault.hosts if h in paired or evidence.times_good(h) < ENOUGH]


def review(
    fault: Fault, failed: Collection[str], weak: Collection[str], *, enough: bool
) -> SideBySide:
    """Test an accusation again.

    Args:
        fault: the accusation.
        failed: hosts with which the accused host failed before: another partner proves more.
        weak: hosts of the pair to try with somebody else.
        enough: whether only these are in question.

    Returns:
        the fault, or the hosts that explain it better; nothing where it was a mistake.
    """
    looks = 0 if enough else LOOKS
    for look in range(looks):
        (reply,) = yield (_question(fault, failed),)
        if not reply.passed:
            break
        if look == looks - 1:
            return []
    broken: dict[str, frozenset[str]] = dict.fromkeys(weak, frozenset(fault.hosts))
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
