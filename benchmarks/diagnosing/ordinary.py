"""Ordinary training output, made up line by line: the text of a log while nothing is wrong."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

BLOCK_LINES = 60_000
BLOCKS = 8
"""Different blocks in a log: together more text than any cache of a processor holds. They take turns."""


def write(path: Path, megabytes: int) -> int:
    """Write a log.

    Args:
        path: the file.
        megabytes: its size.

    Returns:
        How many megabytes of it are different text; the rest repeats them.
    """
    blocks = [_block(number) for number in range(BLOCKS)]
    remaining = megabytes * 1_000_000
    with path.open("wb") as file:
        for block in itertools.cycle(blocks):
            if remaining <= 0:
                break
            file.write(block[:remaining])
            remaining -= len(block)
    return min(megabytes, round(sum(map(len, blocks)) / 1e6))


def _block(number: int) -> bytes:
    first = number * BLOCK_LINES
    lines = (line(n, random.Random(n)) for n in range(first, first + BLOCK_LINES))  # noqa: S311
    return "".join(lines).encode()


def line(n: int, r: random.Random) -> str:
    """Return line number ``n``, with what varies drawn from ``r``."""
    rank, second = n % 16, f"{n // 60 % 60:02d}:{n % 60:02d}"
    clock = f"2026-03-01 {n // 3600 % 24:02d}:{second},{n % 1000:03d}"
    loss, rate = r.random() * 5, r.random() / 1e4
    kinds = (
        f"[rank{rank}]:{clock} INFO train step={n} loss={loss:.5f} lr={rate:.3e} tokens/s={n * 7919 % 99991}",
        f"[default{rank}]:[{clock}] [INFO] [logging.py:96:log_dist] [Rank 0] step={n}, lr=[{rate:.6f}]",
        (
            f" iteration {n:8d}/  500000 | consumed samples: {n * 512:12d} | elapsed time per iteration (ms): "
            f"{loss * 2000:.1f} | learning rate: {rate:.6E} | lm loss: {loss:.6E} | grad norm: {loss / 5:.3f} |"
        ),
        "\r".join(
            f"Epoch {n // 1000}: {p:3d}%|{'█' * (p // 10):10}| {p * 13}/1300 [00:{p // 2:02d}, loss={loss:.2f}]"
            for p in range(0, 100, 30)
        ),
        f'{{"step": {n}, "train_loss": {loss:.6f}, "lr": {rate:.3e}, "epoch": {n / 1000:.2f}}}',
        (
            f"gpu{rank}:{20000 + n % 999}:{30000 + n % 99} [{rank % 8}] NCCL INFO Channel {n % 32:02d}/1 : "
            f"{rank}[{rank % 8}] -> {(rank + 1) % 16}[{(rank + 1) % 8}] [send] via NET/IB/{rank % 8}/GDRDMA"
        ),
        f"checkpoint.py:{n % 999}: UserWarning: the use_reentrant parameter should be passed.",
        f"I0720 12:{second}.{n % 999999:06d} 14071 loader.py:{n % 400}] worker {n % 64} got a shard",
    )
    return kinds[(0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 0)[n % 12]] + "\n"
