"""What the files of systemd say of the units that jobs run in. Not a remedy: one of them needs it.

Lines of units and of their drop-ins, as they add up (systemd.unit(5)): the first main file that is found, then
the drop-ins in the order of their names; of two with one name, that in the earlier directory counts. A key
without a value takes back what was said before. Files below /run are gone after a boot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from remedy.probe import Mention

DIRECTORIES = (
    *("/etc/systemd/system.control", "/run/systemd/system.control"),
    *("/etc/systemd/system", "/run/systemd/system"),
    *("/usr/local/lib/systemd/system", "/usr/lib/systemd/system"),
)
"""Where units are looked for; the first wins."""

ROOT = "-.slice"


@dataclass(frozen=True)
class UnitLine:
    """A line of a unit's file: a key, its value, and where it stands."""

    unit: str
    key: str
    value: str
    path: str
    number: int

    @property
    def text(self) -> str:
        """The file and the setting: what is accepted in the spec."""
        return f"{self.path}: {self.key}={self.value}"

    @property
    def shown(self) -> str:
        """The place and the setting, for evidence."""
        return f"{self.path}:{self.number}: {self.key}={self.value}"


def lines_of(mentions: Iterable[Mention], unit: str) -> tuple[UnitLine, ...]:
    """Return the lines that hold for a unit, in the order in which they count.

    Args:
        mentions: lines of files that the probe searched.
        unit: such as "slurmd.service", "user.slice", "user-1000.slice", "session-3.scope".
    """
    files: dict[tuple[int, str], tuple[int, str]] = {}
    lines: dict[str, list[UnitLine]] = {}
    for mention in mentions:
        place = _place(mention.path, unit)
        key, equals, value = mention.text.strip().partition("=")
        if place is None or not equals:
            continue
        kind, rank, name = place
        files[kind, name] = min(files.get((kind, name), (rank, mention.path)), (rank, mention.path))
        line = UnitLine(unit, key.strip(), value.strip(), mention.path, mention.line)
        lines.setdefault(mention.path, []).append(line)
    return tuple(line for _, (_, path) in sorted(files.items()) for line in lines[path])


def _place(path: str, unit: str) -> tuple[int, int, str] | None:
    """Return whether a file is a unit's own (0) or a drop-in of it (1), its directory's rank, and its name."""
    for rank, directory in enumerate(DIRECTORIES):
        inside = path.removeprefix(f"{directory}/")
        if inside == path:
            continue
        folder, slash, name = inside.rpartition("/")
        if not slash:
            return (0, rank, "") if name in (unit, _template(unit)) else None
        if folder in {f"{each}.d" for each in _names(unit)}:
            return 1, rank, name
    return None


def _names(unit: str) -> Iterator[str]:
    """Yield the names under which a unit has drop-ins: its own, shorter ones, its type's (systemd.unit(5))."""
    stem, _, kind = unit.rpartition(".")
    yield unit
    yield _template(unit)
    yield kind
    while "-" in stem.rstrip("-"):
        stem = f"{stem.rstrip('-').rpartition('-')[0]}-"
        yield f"{stem}.{kind}"


def _template(unit: str) -> str:
    """Return the unit of which one with an ``@`` is made; itself for any other."""
    stem, _, kind = unit.rpartition(".")
    return f"{stem.partition('@')[0]}@.{kind}" if "@" in stem else unit


def values_of(lines: Sequence[UnitLine], *keys: str) -> tuple[UnitLine, ...]:
    """Return the lines of some keys that count: those after the last one that takes back what was before."""
    matches: list[UnitLine] = []
    for line in lines:
        if line.key in keys and line.value:
            matches.append(line)
        elif line.key in keys:
            matches = [other for other in matches if other.key != line.key]
    return tuple(matches)


def above(unit: str, mentions: Sequence[Mention]) -> tuple[str, ...]:
    """Return a unit and the slices that it is in, from the inside out."""
    known = [unit]
    if not unit.endswith(".slice"):
        chosen = values_of(lines_of(mentions, unit), "Slice")
        known.append(chosen[-1].value if chosen else "system.slice")
    stem = known[-1].removesuffix(".slice")
    while "-" in stem.strip("-"):
        stem = stem.rpartition("-")[0]
        known.append(f"{stem}.slice")
    return (*known, ROOT)
