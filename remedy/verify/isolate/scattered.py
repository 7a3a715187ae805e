"""Broken pairs beside other hunts: in a group of good hosts that fails, the pairs that are not proven yet.

What is broken is one of these pairs. They fall into clusters that have no host in common. Each round tests
both halves of every cluster, cut so that as many pairs as possible lie within a half. Whatever other tests
have proven meanwhile is no longer among them, so a group that is mostly proven is searched in few rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain

from remedy.verify.isolate.evidence import Evidence
from remedy.verify.isolate.hunt import Question, Span, fault_between
from remedy.verify.isolate.steps import End, SideBySide

# Tests of one hunt in a round; twice as many where each is of two hosts, since these end the hunt.
MOST = 4
PAIRS = 2 * MOST
# In so many steps a half of a cluster grows: host by host would be slow in large ones.
STEPS = 24
# From so few hosts on, those that are in no test of the round are free for others.
FEW = 16


def scattered(group: Sequence[str], evidence: Evidence, span: Span) -> SideBySide:
    """Find a broken pair in a group of good hosts that fails.

    Args:
        group: the hosts.
        evidence: of what is proven, kept up to date by all tests.
        span: is kept up to date with the hosts that the hunt is after.
    """
    while clusters := evidence.clusters(group):
        tests = merged([half for cluster in clusters for half in halved(cluster, evidence)])
        after = frozenset(chain.from_iterable(clusters))
        span.hosts = after if len(after) > FEW else frozenset(chain.from_iterable(tests))
        replies = yield [Question(test, "links" if len(test) == 2 else "cross") for test in tests]
        ends: list[End] = []
        failed = []
        for test, reply in zip(tests, replies, strict=True):
            if not reply.passed and len(test) == 2:
                ends.append(fault_between(test, reply.result))
            elif not reply.passed:
                failed.append(test)
        if ends or len(failed) > 1:
            return [*ends, *(partial(scattered, test, evidence) for test in failed)]
        group = failed[0] if failed else group
    return []


def halved(cluster: Sequence[str], evidence: Evidence) -> list[tuple[str, ...]]:
    """Cut a cluster in two, so that the tests of both halves tell most.

    One half grows by the hosts that have the largest share of their pairs with it. It is cut where the pairs
    fall as evenly as can be into those within either half and those between them.
    """
    if len(cluster) == 2:
        return [tuple(cluster)]
    mask = evidence.mask(cluster)
    pairs = {host: mask & ~evidence.fine[evidence.place[host]] for host in cluster}
    degree = {host: mates.bit_count() for host, mates in pairs.items()}
    begin = max(cluster, key=degree.__getitem__)
    order, within, own, ends = [begin], 1 << evidence.place[begin], 0, degree[begin]
    total = sum(degree.values()) // 2
    rest = [host for host in cluster if host != begin]
    step = max(1, len(cluster) // STEPS)
    most, middle = 0, 0
    while len(rest) > 1 and ends <= 1.5 * total:
        rest.sort(key=lambda host: -(pairs[host] & within).bit_count() / degree[host])
        for host in rest[:step]:
            own += (pairs[host] & within).bit_count()
            ends += degree[host]
            within |= 1 << evidence.place[host]
        order += rest[:step]
        rest = rest[step:]
        other, between = total - ends + own, ends - 2 * own
        if (score := own * other + own * between + other * between) > most:
            most, middle = score, len(order)
    order += rest
    return [part for part in (tuple(order[:middle]), tuple(order[middle:])) if evidence.gaps(part)]


def merged(halves: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Put halves together where they are too many for a round."""
    pairs = all(len(half) == 2 for half in halves)
    if len(halves) <= (PAIRS if pairs else MOST):
        return list(halves)
    return [tuple(chain.from_iterable(halves[at::MOST])) for at in range(MOST)]
