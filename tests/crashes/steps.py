"""Crash points on one host: its shell killed around every program that it starts, and disks that are full."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.crashes.bench import Bench, Outcome

# Sizes of the disk, in KiB, from one that holds nothing to one that is nearly enough.
SIZES = range(4, 84, 4)


def killed(folder: Path, every: int) -> Iterator[Outcome]:
    """Yield what follows from killing the script before and after the programs that it starts.

    Args:
        folder: plays the host.
        every: takes one boundary of so many, and for each both commands in turn.
    """
    bench = Bench(folder)
    for number, at in enumerate(range(1, bench.boundaries() + 1, every)):
        bench.fresh()
        report = bench.apply("r1", at=at)
        point = f"{'after' if at % 2 == 0 else 'before'} program {(at + 1) // 2}"
        if report.finished:
            point += " (of the clean-up)"
        back = number % 4 in (0, 3) if every == 1 else number % 2 == 0
        yield bench.judge("the step's shell, kill -9", point, back=back)


def full_disks(folder: Path, sizes: Iterable[int]) -> Iterator[Outcome]:
    """Yield what follows from a disk that is full: under the receipts, and under the files themselves.

    Args:
        folder: plays the host.
        sizes: of the disk, in KiB.
    """
    bench = Bench(folder)
    for place in (bench.var, bench.etc):
        for number, size in enumerate(sizes):
            bench.fresh()
            kept = {
                p: p.read_bytes() for p in bench.etc.iterdir() if p.name not in ("link", "twin")
            }
            place.mkdir(exist_ok=True)
            _mount(place, "1m")
            if place == bench.etc:
                _fill(bench, kept)
            if not _mount(place, f"{size}k", again=True):
                continue  # the files as they are need more
            bench.apply("r1")
            _mount(place, "1m", again=True)  # somebody makes room
            point = f"{place.name} of {size} KiB"
            yield bench.judge("the host's disk is full", point, back=number % 2 == 0)
    bench.fresh()


def _mount(place: Path, size: str, *, again: bool = False) -> bool:
    # Without a mode everybody may write there, as in /tmp, and root works in no such folder.
    options = f"{'remount,' if again else ''}size={size},mode=755"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    done = subprocess.run(command, capture_output=True, check=False)
    return done.returncode == 0


def _fill(bench: Bench, kept: dict[Path, bytes]) -> None:
    """Put the files of a fresh host onto the small disk."""
    for path, content in kept.items():
        path.write_bytes(content)
    (bench.etc / "link").symlink_to("real")
    (bench.etc / "twin").hardlink_to(bench.etc / "hard")
