"""Who holds the memory of a GPU, by torch's own words about an allocation that failed.

``Process N has ... memory in use`` is said of each process that the driver names, and ``this process has ...``
of the one whose number is the own one (pytorch/pytorch:c10/cuda/CUDACachingAllocator.cpp). In a container the
driver counts processes otherwise than the program does: there the own process is a ``Process N``, too.
"""

from __future__ import annotations

import re

_SIZE = r"(\d{1,12}(?:\.\d{1,3})?) ?(bytes|[KMG]iB)"
_UNITS = {"bytes": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_TRIED = re.compile(f"Tried to allocate {_SIZE}")
_CAPACITY = re.compile(f"total capacity of {_SIZE}")
_FREE = re.compile(f"of which {_SIZE} is free")
_OWN = re.compile(f"this process has {_SIZE} memory in use")
_PROCESS = re.compile(rf"Process \d+ has {_SIZE} memory in use")
_BY_TORCH = re.compile(f"{_SIZE} is (?:allocated|reserved) by PyTorch")

# Before 2.1 torch named no process: what it has reserved, and what is free, are not all of the card.
_BEFORE = re.compile(
    f"{_SIZE} total capacity; {_SIZE} already allocated; {_SIZE} free; {_SIZE} (?:reserved in total|cached)"
)

LARGE = 0.25
"""Of the GPU's memory; a desktop, or the context of another rank, has less."""

UNNAMED = 0.05
"""Of the GPU's memory: so much beside what is free and what is named belongs to a process that is not named."""


def held_by_others(line: str) -> bool:
    """Return whether other processes hold so much of a GPU that the allocation fails for that.

    Args:
        line: of the error; where its end was cut off, what it says up to there counts.
    """
    if match := _BEFORE.search(line):
        words = match.groups()
        capacity, _, free, reserved = (
            float(number) * _UNITS[unit]
            for number, unit in zip(words[::2], words[1::2], strict=True)
        )
        others = capacity - free - reserved
        return others > LARGE * capacity and others + free >= _bytes(_TRIED, line)
    capacity, free = _bytes(_CAPACITY, line), _bytes(_FREE, line)
    # The driver may not know the use of a process: then a number stands there that no GPU has.
    named = [size for size in _all(_PROCESS, line) if not capacity or size <= capacity]
    if not named:
        return False
    torch = sum(_all(_BY_TORCH, line))
    nearest = min(abs(size - torch) for size in named)
    is_own_named = (
        not _OWN.search(line)
        and capacity - free - sum(named) < UNNAMED * capacity
        and (not torch or nearest <= LARGE * capacity)
    )
    if is_own_named:
        named.remove(min(named, key=lambda size: abs(size - torch)) if torch else max(named))
    others = sum(named)
    return others > LARGE * capacity and others + free >= _bytes(_TRIED, line)


def _bytes(pattern: re.Pattern[str], line: str) -> float:
    return next(iter(_all(pattern, line)), 0.0)


def _all(pattern: re.Pattern[str], line: str) -> list[float]:
    return [float(number) * _UNITS[unit] for number, unit in pattern.findall(line)]
