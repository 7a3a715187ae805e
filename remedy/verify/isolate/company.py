"""Who joins the tests of a hunt: hosts that nobody is after, where they have something to prove.

A test that works proves all pairs of its hosts. Who joins has still to be seen with hosts that the hunt is
after, and can be while these are tested anyway. Only where a single fault shows: where more is broken, a test
that fails because of somebody who joined would mislead the hunt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remedy.verify.isolate.evidence import Evidence
from remedy.verify.isolate.hunt import Question
from remedy.verify.isolate.model import Test, TestResult


def joined(
    tests: Mapping[Test, Question], free: Sequence[str], evidence: Evidence
) -> dict[Test, Test]:
    """Let hosts join the tests in which they have most to prove.

    Args:
        tests: the tests of a hunt, with its questions.
        free: good hosts that nobody is after.
        evidence: of whom each was seen with.

    Returns:
        for each test that somebody joins the larger one.
    """
    interests = {test: evidence.mask(ask.interest) for test, ask in tests.items() if ask.interest}
    company: dict[Test, list[str]] = {test: [] for test in interests}
    for host in free if interests else ():
        known = evidence.fine[evidence.place[host]]
        unseen = {test: (mask & ~known).bit_count() for test, mask in interests.items()}
        best = max(interests, key=lambda test: (unseen[test], -len(company[test])))
        if unseen[best]:
            company[best].append(host)
    return {
        test: Test((*test.hosts, *more), "cross" if test.purpose == "links" else test.purpose)
        for test, more in company.items()
        if more
    }


def untried(hosts: Sequence[str], failures: Sequence[TestResult]) -> list[tuple[str, str]]:
    """Form disjoint pairs of hosts that did not fail together yet."""
    tried = {frozenset(result.test.hosts) for result in failures if len(result.test.hosts) == 2}
    free = list(hosts)
    pairs = []
    while free:
        first = free.pop(0)
        second = next((host for host in free if frozenset((first, host)) not in tried), None)
        if second is not None:
            free.remove(second)
            pairs.append((first, second))
    return pairs
