"""Measuring: the all-reduce of rising sizes, timed and checked."""

from __future__ import annotations

import time
from typing import Any

from remedy.verify.onhost.engines.torch_rank.meet import slowest, together
from remedy.verify.onhost.engines.torch_rank.rank import Rank

WARM_UP = 2
# How long one size is measured, and within which counts of rounds.
SECONDS_PER_SIZE = 0.5
ROUNDS = (2, 20)
# The rounds are timed in so many parts, of which the median counts.
PARTS = 5


def checked(torch: Any, rank: Rank, buffer: Any) -> bool:
    """One all-reduce of known float32 values over the whole buffer: is every element right?

    float32 counts exactly up to 2**24; the sum of (rank % 1024 + 0..7) stays below that for 16,000 ranks.
    """
    wave = torch.arange(buffer.numel(), device=buffer.device, dtype=torch.int32).remainder_(8)
    buffer.copy_(wave).add_(rank.rank % 1024)
    torch.distributed.all_reduce(buffer)
    ranks_sum = sum(number % 1024 for number in range(rank.world))
    wrong = (buffer != (wave * rank.world + ranks_sum)).any()
    return not bool(wrong.item())


def measure(torch: Any, rank: Rank, size: int, device: Any) -> dict[str, Any]:
    """Time the all-reduce of one size.

    The timed rounds run on zeros, which stay exact however often they are summed in place; a checked
    round before and one after say that the data path is right.

    Args:
        size: bytes a rank contributes; a multiple of four.

    Returns:
        ``bytes``, ``rounds``, ``seconds`` a round on the slowest rank (in place; the median of a few parts),
        ``spread`` (largest less smallest part, as a share of the median), ``out_of_place`` (seconds, where
        the data is copied first), ``exact``.
    """
    dist = torch.distributed

    def settle() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    def timed(rounds: int, source: Any = None) -> float:
        settle()
        start = time.perf_counter()
        for _ in range(rounds):
            if source is not None:
                buffer.copy_(source)
            dist.all_reduce(buffer)
        settle()
        return slowest(torch, time.perf_counter() - start, device) / rounds

    buffer = torch.zeros(size // 4, dtype=torch.float32, device=device)
    exact = checked(torch, rank, buffer)
    buffer.zero_()
    guess = max(timed(WARM_UP), 1e-6)
    rounds = max(ROUNDS[0], min(ROUNDS[1], int(SECONDS_PER_SIZE / guess)))
    parts = min(PARTS, rounds)
    times = sorted(timed(max(1, rounds // parts)) for _ in range(parts))
    copied = timed(max(1, rounds // parts), torch.zeros_like(buffer))
    exact = exact and not bool(buffer.any().item()) and checked(torch, rank, buffer)
    middle = times[len(times) // 2]
    return {
        "bytes": buffer.numel() * 4,
        "rounds": rounds,
        "seconds": middle,
        "spread": (times[-1] - times[0]) / middle if middle > 0 else 0.0,
        "out_of_place": copied,
        "exact": exact,
    }


def sweep(torch: Any, rank: Rank, device: Any) -> list[dict[str, Any]]:
    """Measure the sizes in rising order while time and GPU memory last; all ranks stop at the same one."""
    sizes = rank.config["sizes"]["nccl" if device.type == "cuda" else "gloo"]
    dist = torch.distributed
    start = time.monotonic()
    rows: list[dict[str, Any]] = []
    for size in sizes:
        free = torch.cuda.mem_get_info()[0] if device.type == "cuda" else 2**62
        # One decision for all: the longest time spent, and whether the size fits everywhere
        # (the buffer, its expected values and the comparison).
        spent = time.monotonic() - start
        state = torch.tensor([spent, float(size * 5 > free)], dtype=torch.float64, device=device)
        dist.all_reduce(state, op=dist.ReduceOp.MAX)
        used, too_big = state.cpu().tolist()
        if too_big or (rows and used > rank.config["sweep_seconds"]):
            break
        together(torch, rank, device)
        rows.append(measure(torch, rank, size, device))
    return rows
