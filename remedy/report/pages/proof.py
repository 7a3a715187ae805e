"""What the page of a run shows of its verdict: a plot, the pace of the hosts, and a map of the links."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from remedy.report.culprits import Fact, accused_of, facts_of
from remedy.sentences import Sentence, as_one, host_names, in_groups
from remedy.text import counted, fold, folded
from remedy.verify.verdict import Bandwidth, Verdict

MOST_HOSTS = 160
"""A map of more hosts is drawn only for those with the most dead links, and a table only of the slowest."""
# How a link can end, the worst last: a class of the style sheet and a letter, as not everybody sees colours.
KINDS = {
    "ok": ("ok", ""),
    "not tested": ("blank", "?"),
    "no name": ("doubt", "N"),
    "no listener": ("doubt", "L"),
    "foreign": ("doubt", "F"),
    "stalled": ("worse", "S"),
    "mute": ("worse", "M"),
    "rejected": ("worst", "J"),
    "refused": ("worst", "R"),
    "dropped": ("worst", "D"),
}


@dataclass(frozen=True)
class SquareKind:
    """What a square stands for: a class of the style sheet, a letter, and words."""

    outcome: str
    look: str
    letter: str


def ground(verdict: Verdict) -> Iterator[str]:
    """Yield what was tested, as far as it is known."""
    if verdict.backend:
        yield f"{verdict.world_size} of {counted(verdict.expected_world_size, 'rank')}"
        yield f"{verdict.hosts} of {counted(verdict.expected_hosts, 'host')}"
        yield verdict.backend
    else:
        yield f"{counted(verdict.expected_hosts, 'host')}, no all-reduce"
    yield from (f"torch {version}" for version in verdict.torch)
    yield from (f"NCCL {version}" for version in verdict.nccl)
    yield from verdict.software
    if verdict.seconds:
        yield f"{verdict.seconds:.1f} s"


# ---- bandwidth


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
    y_top: int = 28
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


# ---- pace


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


# ---- map


@dataclass(frozen=True)
class Square:
    """A link: how it ended, and for a dead one what was seen."""

    kind: SquareKind
    tip: str = ""


@dataclass(frozen=True)
class Map:
    """A square for each link: a row opens connections, a column accepts them.

    Args:
        words: what is to be known of it.
        hosts: of the columns.
        rows: of each host the squares, None for itself; empty where the map cannot be drawn.
        kinds: those that it has.
    """

    words: str
    hosts: tuple[str, ...] = ()
    rows: tuple[tuple[str, tuple[Square | None, ...]], ...] = ()
    kinds: tuple[SquareKind, ...] = ()


def map_of(verdict: Verdict) -> Map | None:
    """Return the map, or words alone where it would show one colour; None where no link was tried by itself."""
    if verdict.dead_count > len(verdict.dead_links):
        # A square that is unknown would be drawn as a good link.
        count = f"{verdict.dead_count:,} links are dead: too many for a map."
        return Map(f"{count} The culprits are the hosts that they have in common.")
    every = [entry.host for entry in verdict.outcomes]
    if not verdict.dead_links:
        return _sound(verdict, every) if _tried(verdict) and len(every) > 1 else None
    hosts = _shown(verdict, every)
    words = "Rows open connections, columns accept them."
    if len(hosts) < len(every):
        which = "the most dead links" if len(hosts) == MOST_HOSTS else "a dead link"
        words += (
            f" Shown are {len(hosts)} of {len(every)} hosts: those with {which}, the worst first."
        )
    return _drawn(verdict, hosts, words)


def _tried(verdict: Verdict) -> bool:
    return any(rung.name == "reachability" and rung.passed is not None for rung in verdict.rungs)


def _sound(verdict: Verdict, hosts: Sequence[str]) -> Map:
    """Return what is to be said where no link is dead: a map only where some were not tried."""
    if verdict.links_sampled:
        return Map("Not every link was tried; none of those that were is dead.")
    if not verdict.absent:
        count = len(hosts) * (len(hosts) - 1)
        return Map(f"Every pair of hosts was tried both ways: all {count:,} links work.")
    words = f"No link is dead; those of {folded(verdict.absent)} were not tested."
    return _drawn(verdict, hosts, words) if len(hosts) <= MOST_HOSTS else Map(words)


def _shown(verdict: Verdict, hosts: Sequence[str]) -> Sequence[str]:
    """Return the hosts of the map: all in their order, or those with the most dead links, the worst first."""
    if len(hosts) <= MOST_HOSTS:
        return hosts
    ends = Counter(name for link in verdict.dead_links for name in (link.source, link.target))
    return [name for name, _ in ends.most_common(MOST_HOSTS)]


def _drawn(verdict: Verdict, hosts: Sequence[str], words: str) -> Map:
    """Return the map of these hosts."""
    squares = _squares(verdict, hosts)
    rows = tuple((source, tuple(squares.get((source, to)) for to in hosts)) for source in hosts)
    present = {square.kind.outcome: square.kind for square in squares.values()}
    kinds = tuple(present[outcome] for outcome in KINDS if outcome in present)
    return Map(words, tuple(hosts), rows, kinds)


def _squares(verdict: Verdict, hosts: Sequence[str]) -> Mapping[tuple[str, str], Square]:
    """Return the square of each link between hosts; what nobody tried is not good."""
    tried = not verdict.links_sampled and _tried(verdict)
    absent = set(verdict.absent)
    kinds = {outcome: SquareKind(outcome, *shown) for outcome, shown in KINDS.items()}
    order = list(KINDS)
    worst: dict[tuple[str, str], str] = {}
    endings: dict[tuple[str, str], list[str]] = {}
    for dead in verdict.dead_links:
        link = (dead.source, dead.target)
        worst[link] = max(worst.get(link, "ok"), dead.outcome, key=order.index)
        port = dead.port or "any"
        endings.setdefault(link, []).append(f"port {port}: {dead.outcome} {dead.detail}".rstrip())
    squares = {}
    for source in hosts:
        for target in hosts:
            if source == target:
                continue
            link = (source, target)
            usual = "ok" if tried and not absent & {source, target} else "not tested"
            seen = "; ".join((f"{source} -> {target}", *endings[link])) if link in worst else ""
            squares[link] = Square(kinds[worst.get(link, usual)], seen)
    return squares


# ---- culprits, tests and hosts


@dataclass(frozen=True)
class CulpritBlock:
    """Hosts or links that are named for one reason.

    Args:
        names: whom; "" where nobody can be named.
        reason: what follows the names in the sentence.
        also: further reasons of some of the hosts, and what was seen, a line each.
        each: every culprit by itself, where these are several.
    """

    names: str
    reason: str
    also: tuple[str, ...]
    seen: tuple[str, ...]
    each: tuple[str, ...]


def culprits_of(verdict: Verdict) -> tuple[CulpritBlock, ...]:
    """Return whom the verdict names, those with one reason together, and nothing left out."""
    return tuple(
        CulpritBlock(
            group.name,
            group.sentence.removeprefix(group.name) if group.name else f": {group.sentence}",
            tuple(f"{fold(reason.hosts)}: {reason.text}" for reason in group.also.values()),
            tuple(_of_hosts(fact, group.hosts) for fact in facts_of(group)),
            tuple(culprit.reason for culprit in group.culprits) if group.culprits[1:] else (),
        )
        for group in accused_of(verdict)
    )


def _of_hosts(fact: Fact, of: Sequence[str]) -> str:
    """Return what was seen, with the hosts where these are not all of them."""
    is_of_all = not fact.hosts or set(fact.hosts) == set(of)
    return fact.text if is_of_all else f"{fold(fact.hosts)}: {fact.text}"


@dataclass(frozen=True)
class GroupRow:
    """A group that was tested, its hosts folded."""

    round: int
    purpose: str
    hosts: str
    passed: bool


def tests_of(verdict: Verdict) -> tuple[GroupRow, ...]:
    """Return what the search for culprits tested."""
    return tuple(
        GroupRow(test.round, test.purpose, fold(test.hosts), test.passed) for test in verdict.tests
    )


@dataclass(frozen=True)
class HostRow:
    """Hosts that ended alike, folded."""

    names: str
    outcome: str
    reason: str
    look: str


def hosts_of(verdict: Verdict) -> tuple[HostRow, ...]:
    """Return how the hosts ended, those that ended alike together."""
    names = host_names(entry.host for entry in verdict.outcomes)
    ended: dict[str, list[Sentence]] = {}
    for entry in verdict.outcomes:
        reason = entry.reason.removeprefix(f"{entry.host}: ")
        ended.setdefault(entry.outcome, []).append(Sentence.of(entry.host, reason, names))
    looks = {"pass": "good", "fail": "bad"}
    return tuple(
        HostRow(fold(s.host for s in group), outcome, as_one(group), looks.get(outcome, "dim"))
        for outcome, sentences in ended.items()
        for group in in_groups(sentences)
    )
