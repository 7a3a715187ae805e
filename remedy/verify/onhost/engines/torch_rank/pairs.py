"""How fast each host is by itself: exchanges between two hosts, many pairs at once.

An all-reduce goes at the pace of its slowest member and does not say which that is. Here each host exchanges
data with a few others, one after the other, while all others do the same with theirs.
"""

from __future__ import annotations

import time
from typing import Any

from remedy.verify.onhost.engines.torch_rank.meet import slowest, together
from remedy.verify.onhost.engines.torch_rank.rank import Rank

# Partners of each host: it counts by the best of them, since a slow partner is no fault of its own.
PARTNERS = 3
CPU_BYTES = 4_194_304
GPU_BYTES = 67_108_864
WARM_BYTES = 65_536
# How often a pair exchanges, of which the quickest counts, since noise only ever slows it down: as often as the
# slowest pair can in so many seconds, within these bounds.
TAKES, SECONDS = (2, 20), 0.2


def partners(count: int, me: int) -> list[int | None]:
    """Whom one of ``count`` meets, round by round; None is nobody, where the number is odd.

    The circle method: one stands, all others move on by a place. The rounds that are taken lie far apart.
    """
    seats = count + count % 2
    rounds = seats - 1
    met: list[int | None] = []
    for one in range(min(PARTNERS, rounds)):
        turn = one * rounds // min(PARTNERS, rounds)
        if me == seats - 1:
            other = (turn * seats // 2) % rounds
        else:
            other = (turn - me) % rounds
            other = seats - 1 if other == me else other
        met.append(other if other < count else None)
    return met


def exchange(
    torch: Any, rank: Rank, members: list[dict[str, Any]], device: Any
) -> list[dict[str, Any]]:
    """Send to, and at the same time receive from, the like rank of a few other hosts.

    Args:
        members: of the group, in rank order; those with one boot-id are one host.

    Returns:
        of each partner ``rank``, ``bytes`` in either direction, and ``seconds`` for both.
    """
    hosts: dict[str, list[int]] = {}
    for member in members:
        hosts.setdefault(member["boot_id"], []).append(member["rank"])
    groups = list(hosts.values())
    place = next(number for number, ranks in enumerate(groups) if rank.rank in ranks)
    mine = groups[place].index(rank.rank)
    size = GPU_BYTES if device.type == "cuda" else CPU_BYTES
    outgoing = torch.zeros(size, dtype=torch.uint8, device=device)
    incoming = torch.empty_like(outgoing)
    rows = []
    for other in partners(len(groups), place):
        there = () if other is None else groups[other]
        peer = there[mine] if mine < len(there) else None

        def take(length: int, peer: int | None = peer) -> float:
            together(torch, rank, device)
            return 0.0 if peer is None else swap(torch, peer, outgoing[:length], incoming[:length])

        take(WARM_BYTES)
        quickest = take(size)
        for _ in range(takes(slowest(torch, quickest, device)) - 1):
            quickest = min(quickest, take(size))
        if peer is not None:
            rows.append({"rank": peer, "bytes": size, "seconds": quickest})
    return rows


def takes(seconds: float) -> int:
    """How often to exchange where the slowest pair needs so many seconds; the same on every rank."""
    return min(TAKES[1], max(TAKES[0], int(SECONDS / max(seconds, 1e-6))))


def swap(torch: Any, peer: int, outgoing: Any, incoming: Any) -> float:
    """Exchange with one rank; returns the seconds that it took."""
    dist = torch.distributed
    start = time.perf_counter()
    both = [dist.P2POp(dist.isend, outgoing, peer), dist.P2POp(dist.irecv, incoming, peer)]
    for request in dist.batch_isend_irecv(both):
        request.wait()
    if outgoing.device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start
