"""Measuring: the all-reduce of rising sizes, timed and checked.

It travels to the hosts: standard library only, Python >= 3.8.
"""

from __future__ import annotations

import time
from typing import Any, Callable  # noqa: UP035  (Python 3.8)

from remedy.verify.onhost.rank.group import Buffer, Group

WARM_UP = 2
# How long one size is measured, and within which counts of rounds.
SECONDS_PER_SIZE = 0.5
ROUNDS = (2, 20)
# The rounds are timed in so many parts, of which the median counts.
PARTS = 5
NO_ROOM = float("inf")


def sweep(config: dict[str, Any], group: Group) -> list[dict[str, Any]]:
    """Measure the sizes in rising order while time and memory last; all ranks stop at the same one."""
    start = time.monotonic()
    rows: list[dict[str, Any]] = []
    for size in config["sizes"][group.backend]:
        # One decision for all: the longest time spent, and whether the size fits everywhere.
        spent = group.largest(time.monotonic() - start if group.fits(size) else NO_ROOM)
        if spent == NO_ROOM or (rows and spent > config["sweep_seconds"]):
            break
        group.meet()
        rows.append(measure(group, size))
    return rows


def measure(group: Group, size: int) -> dict[str, Any]:
    """Time the all-reduce of one size.

    The timed rounds run on zeros, which stay exact however often they are summed in place; a checked round
    before and one after prove that the data path is right.

    Args:
        size: bytes a rank contributes; a multiple of four.

    Returns:
        ``bytes``, ``rounds``, ``seconds`` a round on the slowest rank (in place; the median of a few parts),
        ``spread`` (largest less smallest part, as a share of the median), ``out_of_place`` (seconds, where
        the data is copied first), ``exact``.
    """
    buffer = group.buffer(size // 4)
    exact = checked(group, buffer)
    buffer.fill(0, 0)
    guess = max(timed(group, buffer, WARM_UP, buffer.all_reduce), 1e-6)
    rounds = max(ROUNDS[0], min(ROUNDS[1], int(SECONDS_PER_SIZE / guess)))
    parts = min(PARTS, rounds)
    share = max(1, rounds // parts)
    times = sorted(timed(group, buffer, share, buffer.all_reduce) for _ in range(parts))
    copied = timed(group, buffer, share, buffer.all_reduce_copy)
    exact = exact and not buffer.wrong(0, 0)
    exact = checked(group, buffer) and exact
    middle = times[len(times) // 2]
    return {
        "bytes": size,
        "rounds": rounds,
        "seconds": middle,
        "spread": (times[-1] - times[0]) / middle if middle > 0 else 0.0,
        "out_of_place": copied,
        "exact": exact,
    }


def checked(group: Group, buffer: Buffer) -> bool:
    """Run one all-reduce of known values over the whole buffer: is every element right?

    float32 counts exactly up to 2**24; the sum of (rank % 1024 + 0..7) stays below that for 16,000 ranks.
    """
    buffer.fill(group.rank % 1024, 1)
    buffer.all_reduce()
    return not buffer.wrong(sum(n % 1024 for n in range(group.world)), group.world)


def timed(group: Group, buffer: Buffer, rounds: int, once: Callable[[], None]) -> float:
    """Measure seconds a round on the slowest rank."""
    group.ready()
    start = time.perf_counter()
    for _ in range(rounds):
        once()
    buffer.settle()
    return group.largest(time.perf_counter() - start) / rounds
