"""What the page of a run shows of bandwidth: a plot over the size, and the pace of the hosts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from remedy.text import counted
from remedy.verify.verdict import Bandwidth, Verdict

MOST_HOSTS = 160
"""A table of more hosts has only the slowest."""


@dataclass(frozen=True)
class Tick:
    """A place on an axis, and its name."""

    at: float
    name: str


@dataclass(frozen=True)
class Mark:
    """A level across the plot: its place, its name and where that stands, and its class."""

    at: float
    name: str
    look: str
    label_at: float


@dataclass(frozen=True)
class Dot:
    """One size: its place, and its figures."""

    x: float
    y: float
    name: str


@dataclass(frozen=True)
class Plot:
    """Bus bandwidth over size, in the units of the picture."""

    rows: tuple[Tick, ...]
    columns: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    dots: tuple[Dot, ...]
    width: int = 640
    height: int = 320
    x_low: int = 56
    x_high: int = 624
    y_top: int = 40
    y_bottom: int = 270

    @property
    def curve(self) -> str:
        """The points of the curve, as SVG has them."""
        return " ".join(f"{dot.x},{dot.y}" for dot in self.dots)


APART = 90
"""The least distance between two names on the axis of sizes."""


def plot_of(verdict: Verdict) -> Plot | None:
    """Return the plot; None where no size was measured."""
    sizes = sorted(verdict.bandwidth, key=lambda row: row.bytes)
    if not sizes:
        return None
    box = Plot((), (), (), ())
    levels = {
        f"needs {verdict.min_busbw_gbps or 0:.3g} GB/s": ("needs", verdict.min_busbw_gbps),
        f"the links can carry {verdict.limit_gbps or 0:.3g} GB/s": ("limit", verdict.limit_gbps),
    }
    known = {name: (look, level) for name, (look, level) in levels.items() if level}
    most = max([row.busbw for row in sizes] + [level for _, level in known.values()]) or 1.0
    step = _step(most)
    most = math.ceil(most / step) * step

    def height(gbps: float) -> float:
        return round(box.y_bottom - (box.y_bottom - box.y_top) * gbps / most, 1)

    marks: list[Mark] = []
    for name, (look, level) in sorted(known.items(), key=lambda item: item[1][1], reverse=True):
        at = height(level)
        # A name stands above its line, and below it where another name is in the way.
        near = any(abs(at - mark.at) < 18 for mark in marks)
        marks.append(Mark(at, name, look, at + 14 if near else at - 5))
    count = round(most / step)
    return Plot(
        rows=tuple(Tick(height(step * n), f"{step * n:.4g}") for n in range(count + 1)),
        columns=tuple(_columns(sizes, box)),
        marks=tuple(marks),
        dots=tuple(
            Dot(_across(row.bytes, sizes, box), height(row.busbw), _figures(row)) for row in sizes
        ),
    )


def _step(most: float) -> float:
    """Return the distance between two levels, so that there are three to six of them."""
    power = 10.0 ** math.floor(math.log10(most))
    return next(power * part for part in (0.2, 0.5, 1.0, 2.0) if most / (power * part) <= 6)


def _across(size: int, sizes: Sequence[Bandwidth], box: Plot) -> float:
    """Return where a size stands: each factor of two is equally wide."""
    least, most = math.log2(sizes[0].bytes or 1), math.log2(sizes[-1].bytes or 1)
    share = (math.log2(size or 1) - least) / (most - least) if most > least else 0.5
    inside = box.x_high - box.x_low - 60
    return round(box.x_low + 30 + inside * share, 1)


def _columns(sizes: Sequence[Bandwidth], box: Plot) -> Iterator[Tick]:
    """Yield the names of the sizes, the largest in any case, as many as have room."""
    last = math.inf
    for row in reversed(sizes):
        at = _across(row.bytes, sizes, box)
        if last - at >= APART:
            last = at
            yield Tick(at, _size(row.bytes))


def _size(count: int) -> str:
    """Return a number of bytes with the unit in which nccl-tests takes it: binary where it is whole."""
    for unit, base in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if count >= base and count % base == 0:
            return f"{count // base}{unit}"
    return f"{count:,}"


def _figures(row: Bandwidth) -> str:
    return f"{row.bytes:,} bytes: {row.busbw:.3g} GB/s, {row.seconds * 1e6:,.0f} us"


@dataclass(frozen=True)
class Runner:
    """What a host exchanges, in GB/s, as a share of the median, and how wide its bar is (rem)."""

    host: str
    gbps: float
    share: float
    width: float
    is_slow: bool


@dataclass(frozen=True)
class Pace:
    """The pace of the hosts, the slowest first, and how many are left out, in words."""

    rows: tuple[Runner, ...]
    more: str


def pace_of(verdict: Verdict) -> Pace | None:
    """Return the pace of the hosts; None where it was not measured."""
    if not verdict.pace:
        return None
    slow = {host.host: host.share for host in verdict.slow}
    middle = median(verdict.pace.values()) or 1.0
    most = max(verdict.pace.values()) or 1.0
    order = sorted(verdict.pace.items(), key=lambda item: item[1])
    rows = tuple(
        Runner(host, rate, slow.get(host, rate / middle), 10 * rate / most, host in slow)
        for host, rate in order[:MOST_HOSTS]
    )
    left_out = len(order) - len(rows)
    more = f"; {counted(left_out, 'quicker host')} not listed" if left_out else ""
    return Pace(rows, more)
