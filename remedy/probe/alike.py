"""Facts of hosts that printed the same: read once, and one object for all of them.

What a reader looks at is noted while it reads. Of a host that printed just the same there the fact is the same,
whatever else it printed. So thousands of hosts with one image take the memory, and the work, of a few.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from remedy.probe.frames import NoAnswerError, Sections, fact
from remedy.values import Unknown

T = TypeVar("T")

MOST = 4
"""Answers of hosts that are kept for each fact: those that came last."""

_WHOLE, _STATUS, _ENDING = "", " ", "*"
"""In place of a path: all lines of a section by path, whether it has an answer, and what paths end in."""

_Notes = dict[tuple[str, str] | str, Any]


class _Known(NamedTuple):
    notes: _Notes
    more: tuple[object, ...]
    value: Any


_kept: defaultdict[str, deque[_Known]] = defaultdict(lambda: deque(maxlen=MOST))


def alike(
    name: str, reader: Callable[[Sections], T], sections: Sections, *more: object
) -> T | Unknown:
    """Return a fact of one host, which may be the very object of another that printed the same.

    Args:
        name: of the fact.
        reader: reads it; looks at nothing but what it is given, and ``more``.
        sections: what the host printed.
        more: what else it is read from.
    """
    kept = _kept[name]
    for known in kept:
        if known.more == more and _same(known.notes, sections):
            return known.value  # type: ignore[no-any-return]
    notes: _Notes = {}
    value = fact(lambda: reader(_Noting(sections, notes)))
    if isinstance(value, Unknown):
        return value  # it may come of how busy this machine is
    for known in kept:
        if type(known.value) is type(value) and known.value == value:
            value = known.value
            break
    kept.appendleft(_Known(notes, more, value))
    return value


class _Noting(Sections):
    """Sections of which is noted what is looked at.

    Args:
        sections: of a host.
        notes: takes what its reader sees.
    """

    def __init__(self, sections: Sections, notes: _Notes) -> None:
        super().__init__(sections.by_name, complete=sections.complete)
        self._sections = sections
        self._notes = notes

    def absent(self, name: str) -> bool:
        self._note(name)
        return super().absent(name)

    def detail(self, name: str) -> str:
        self._note(name)
        return super().detail(name)

    def body(self, name: str) -> bytes:
        self._note(name)
        return super().body(name)

    def lines(self, name: str) -> Mapping[str, list[str]]:
        try:
            lines = self._sections.lines(name)
        except NoAnswerError:
            self._note(name)
            raise
        self._notes[name, _STATUS] = _seen((name, _STATUS), self._sections)
        return _NotingLines(name, lines, self._notes)

    def ending(self, name: str, end: str) -> Mapping[str, list[str]]:
        self.lines(name)
        lines = self._notes[name, _ENDING + end] = self._sections.ending(name, end)
        return lines

    def _note(self, name: str) -> None:
        self._notes[name] = _seen(name, self._sections)


class _NotingLines(Mapping[str, list[str]]):
    """Lines by path, of which is noted which are looked at."""

    def __init__(self, section: str, lines: Mapping[str, list[str]], notes: _Notes) -> None:
        self._section = section
        self._lines = lines
        self._notes = notes

    def __getitem__(self, path: str) -> list[str]:
        self._notes[self._section, path] = self._lines.get(path)
        return self._lines[path]

    def __iter__(self) -> Iterator[str]:
        self._notes[self._section, _WHOLE] = self._lines
        return iter(self._lines)

    def __len__(self) -> int:
        self._notes[self._section, _WHOLE] = self._lines
        return len(self._lines)


def _same(notes: _Notes, sections: Sections) -> bool:
    """Say whether a reader would see the same."""
    try:
        return all(_seen(place, sections) == value for place, value in notes.items())
    except NoAnswerError:
        return False


def _seen(place: tuple[str, str] | str, sections: Sections) -> Any:
    """Return what is at a place: a section, or a path in one.

    Raises:
        NoAnswerError: the section has no lines.
    """
    if isinstance(place, str):
        section = sections.by_name.get(place)
        return None if section is None else (section.body, section.status, section.detail)
    name, path = place
    if path == _STATUS:
        section = sections.by_name.get(name)
        return None if section is None else (section.status, section.detail)
    if path.startswith(_ENDING):
        return sections.ending(name, path.removeprefix(_ENDING))
    lines = sections.lines(name)
    return lines if path == _WHOLE else lines.get(path)
