"""How fast each host is by itself: exchanges between two hosts, many pairs at once.

An all-reduce goes at the pace of its slowest member and does not say which that is. Here each host exchanges
data with a few others, one after the other, while all others do the same with theirs.
"""

from __future__ import annotations

import time
from typing import Any

# Partners of each host: it counts by the best of them, since a slow partner is no fault of its own.
PARTNERS = 3
CPU_BYTES = 4_194_304
GPU_BYTES = 67_108_864
WARM_BYTES = 65_536
# How often a pair exchanges, of which the quickest counts, since noise only ever slows it down: as often as the
# slowest pair can in so many seconds, within these bounds.
TAKES, SECONDS = (2, 20), 0.2


def partners(count: int, me: int) -> list[int | None]:
    """List whom one of ``count`` meets, round by round; None is nobody, where the number is odd.

    The circle method: one stands, all others move on by a place. The rounds that are taken lie far apart.
    """
    seats = count + count % 2
    rounds = seats - 1
    met: list[int | None] = []
    for number in range(min(PARTNERS, rounds)):
        turn = number * rounds // min(PARTNERS, rounds)
        if me == seats - 1:
            partner = (turn * seats // 2) % rounds
        else:
            partner = (turn - me) % rounds
            partner = seats - 1 if partner == me else partner
        met.append(partner if partner < count else None)
    return met


def exchange(group: Any, members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Send to, and at the same time receive from, the like rank of a few other hosts.

    Args:
        members: of the group, in rank order; those with one boot-id are one host.

    Returns:
        as ``Group.pairs``.
    """
    torch = group.torch
    size = GPU_BYTES if group.on_gpu else CPU_BYTES
    outgoing = torch.zeros(size, dtype=torch.uint8, device=group.place)
    incoming = torch.empty_like(outgoing)
    rows = []
    for peer in peers(members, group.rank):

        def take(length: int, peer: int | None = peer) -> float:
            group.meet()
            return 0.0 if peer is None else swap(group, peer, outgoing[:length], incoming[:length])

        take(WARM_BYTES)
        quickest = take(size)
        for _ in range(takes(group.largest(quickest)) - 1):
            quickest = min(quickest, take(size))
        if peer is not None:
            rows.append({"rank": peer, "bytes": size, "seconds": quickest})
    return rows


def peers(members: list[dict[str, Any]], me: int) -> list[int | None]:
    """List the ranks that a rank exchanges with on other hosts, round by round; None where it has no like."""
    hosts: dict[str, list[int]] = {}
    for member in members:
        hosts.setdefault(member["boot_id"], []).append(member["rank"])
    ranks_by_host = list(hosts.values())
    place = next(number for number, ranks in enumerate(ranks_by_host) if me in ranks)
    local = ranks_by_host[place].index(me)
    met: list[int | None] = []
    for host in partners(len(ranks_by_host), place):
        ranks = [] if host is None else ranks_by_host[host]
        met.append(ranks[local] if local < len(ranks) else None)
    return met


def takes(seconds: float) -> int:
    """Return how often to exchange where the slowest pair needs so many seconds; the same on every rank."""
    return min(TAKES[1], max(TAKES[0], int(SECONDS / max(seconds, 1e-6))))


def swap(group: Any, peer: int, outgoing: Any, incoming: Any) -> float:
    """Exchange with one rank; returns the seconds that it took."""
    dist = group.dist
    start = time.perf_counter()
    both = [dist.P2POp(dist.isend, outgoing, peer), dist.P2POp(dist.irecv, incoming, peer)]
    for request in dist.batch_isend_irecv(both):
        request.wait()
    group.ready()
    return time.perf_counter() - start
