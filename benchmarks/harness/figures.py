"""Figures: what one run took, the median of several, and the goals that they are compared with."""

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
    """The median of the rounds, and the lowest and highest of them.

    Args:
        median: of the rounds.
        low: of the rounds; never above the median.
        high: of the rounds; never below the median.
        count: the number of rounds. One round has no range.

    Raises:
        ValueError: the median is outside of its own range, or there was no round.
    """

    median: float
    low: float
    high: float
    count: int

    def __post_init__(self) -> None:
        if self.count < 1 or not self.low <= self.median <= self.high:
            raise ValueError(f"{self.median} is not the median of {self.count} rounds")

    @classmethod
    def of(cls, rounds: Sequence[float]) -> Spread:
        """Return the spread of the rounds, of which there is at least one."""
        return cls(statistics.median(rounds), min(rounds), max(rounds), len(rounds))

    def text(self, digits: int = 2, unit: str = "") -> str:
        """Return it as ``MEDIAN (LOW-HIGH)``, of one round as ``VALUE (one round)``."""
        bracket = f"{self.low:.{digits}f}-{self.high:.{digits}f}" if self.count > 1 else "one round"
        return f"{self.median:.{digits}f}{unit} ({bracket})"


def ratio(over: Sequence[float], under: Sequence[float]) -> Spread:
    """Return how many times ``under`` goes into ``over``, round by round.

    Only runs of the same round are compared: they were made one after the other, under the same load of the
    machine. Rounds that only one of the two has do not count.
    """
    return Spread.of([a / b for a, b in zip(over, under, strict=False)])


@dataclass(frozen=True)
class Goal:
    """A figure that has to stay at or below a limit.

    Args:
        title: what is measured.
        limit: None for a figure that is shown for comparison only.
        unit: of the limit and the figure.
        result: None where it was not measured.
        digits: after the point.
        worst: whether the highest round counts, and not the median.
    """

    title: str
    limit: float | None
    unit: str
    result: Spread | None
    digits: int = 2
    worst: bool = False

    @property
    def verdict(self) -> str:
        """``reached`` or ``missed``, judged before rounding; ``for comparison`` or ``not measured``."""
        if self.result is None:
            return "not measured"
        if self.limit is None:
            return "for comparison"
        value = self.result.high if self.worst else self.result.median
        return "reached" if value <= self.limit else "missed"
