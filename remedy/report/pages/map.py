"""What the page of a run shows of the links: a map with a square for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from remedy.text import folded
from remedy.verify.verdict import Verdict

MOST_HOSTS = 160
"""A map of more hosts is drawn only for those with the most dead links."""
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
