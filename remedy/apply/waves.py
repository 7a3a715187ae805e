"""Waves: a few hosts first, then more, so that a bad change meets few hosts."""

from __future__ import annotations

from collections.abc import Sequence

from remedy.errors import UsageError
from remedy.text import is_number

# Whoever agrees to a plan agrees to this as well.
TAKEN_BACK = (
    "a wave whose proof fails is taken back by itself, and the run stops; that is part of this plan"
)


def waves(hosts: Sequence[str], sizes: str) -> tuple[tuple[str, ...], ...]:
    """Cut the hosts of a plan into waves.

    Args:
        hosts: in order.
        sizes: the size of each wave, as numbers or percentages of all hosts, such as ``1,10%,100%``; the
            last one repeats until all hosts are in a wave. A wave has at least one host.

    Raises:
        UsageError: a size is neither a number above 0 nor a percentage.

    >>> waves(["a", "b", "c", "d", "e"], "1,40%,100%")
    (('a',), ('b', 'c'), ('d', 'e'))
    """
    steps = [_size(text.strip(), len(hosts)) for text in sizes.split(",")]
    cut: list[tuple[str, ...]] = []
    rest = tuple(hosts)
    while rest:
        size = steps[min(len(cut), len(steps) - 1)]
        cut.append(rest[:size])
        rest = rest[size:]
    return tuple(cut)


def _size(text: str, count: int) -> int:
    number = text.removesuffix("%")
    if not is_number(number) or int(number) == 0:
        raise UsageError(
            f"{text!r} is no size of a wave",
            next_step="Give numbers or percentages above 0, such as 1,10%,100%.",
        )
    return max(1, count * int(number) // 100) if text.endswith("%") else int(number)
