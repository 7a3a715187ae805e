"""Figures: what one run took, many of them together, and the goals that they are held against."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """What one run of a command took.

    Args:
        seconds: from its start to its end.
        cpu_seconds: of the command and its children on the controller, user and system.
        peak_mib: the most memory that one of its processes held.
    """

    seconds: float
    cpu_seconds: float
    peak_mib: float


@dataclass(frozen=True)
class Spread:
    """Several values of one thing: the one in the middle, and how far they go."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of ``values``, of which there is at least one."""
        return cls(statistics.median(values), min(values), max(values), len(values))

    def text(self, digits: int = 2) -> str:
        """Return it as ``MEDIAN (LOW-HIGH)``."""
        return f"{self.median:.{digits}f} ({self.low:.{digits}f}-{self.high:.{digits}f})"


def ratio(over: Sequence[float], under: Sequence[float]) -> Spread:
    """Return how many times ``under`` goes into ``over``.

    The value is the ratio of the two medians; its spread is that of the ratios of those runs that were made
    in the same round, one after the other, under the same load of the machine.
    """
    rounds = [a / b for a, b in zip(over, under, strict=False)]
    middle = statistics.median(over) / statistics.median(under)
    return Spread(middle, min(rounds), max(rounds), len(rounds))


@dataclass(frozen=True)
class Goal:
    """A figure that has to stay at or below a limit.

    ``limit`` is None for a figure that is told for comparison only; ``found`` when it was not measured.
    """

    title: str
    limit: float | None
    unit: str
    found: Spread | None
    digits: int = 2

    @property
    def verdict(self) -> str:
        """``reached`` or ``missed``, judged by the median before rounding; ``not measured``; or nothing."""
        if self.found is None:
            return "not measured"
        if self.limit is None:
            return "for comparison"
        return "reached" if self.found.median <= self.limit else "missed"
