"""What every page has: its head, and text as a terminal shows it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from itertools import groupby

from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style

from remedy import __version__
from remedy.report.console import VisibleConsole

WIDTH = 100
"""Columns of text; a narrower screen breaks its lines."""
_LOOKS = {
    "red": "bad",
    "green": "good",
    "yellow": "part",
    "cyan": "note",
    "blue": "note",
    "magenta": "unknown",
}


@dataclass(frozen=True)
class Sheet:
    """The head of a page.

    Args:
        name: of the fleet.
        state: what the page says of it, in a few words.
        look: good, part (neither) or bad.
        reason: a sentence; "" for none.
        rows: who, when, which run, of what: a name and a value each.
        version: of remedy.
    """

    name: str
    state: str
    look: str
    reason: str = ""
    rows: tuple[tuple[str, str], ...] = ()
    version: str = __version__


@dataclass(frozen=True)
class TextSpan:
    """A piece of a line, and the classes of the style sheet that it has."""

    text: str
    look: str


Lines = tuple[tuple[TextSpan, ...], ...]


def lines_of(renderable: RenderableType) -> Lines:
    """Return what a terminal would show, line by line, without empty lines at the ends."""
    console = VisibleConsole(
        io.StringIO(), width=WIDTH, force_terminal=True, color_system="standard", soft_wrap=False
    )
    options = console.options.update(no_wrap=True, overflow="ignore")
    lines = [_line(line) for line in Segment.split_lines(console.render(renderable, options))]
    full = [at for at, line in enumerate(lines) if any(span.text for span in line)]
    return tuple(lines[full[0] : full[-1] + 1]) if full else ()


def _line(segments: list[Segment]) -> tuple[TextSpan, ...]:
    pieces = [(segment.text, _look(segment.style)) for segment in segments if not segment.control]
    joined = [
        TextSpan("".join(text for text, _ in group), look)
        for look, group in groupby(pieces, key=lambda piece: piece[1])
    ]
    if joined:
        joined[-1] = TextSpan(joined[-1].text.rstrip(), joined[-1].look)
    return tuple(joined)


def _look(style: Style | None) -> str:
    if style is None:
        return ""
    colour = _LOOKS.get(style.color.name, "") if style.color else ""
    return " ".join(
        filter(None, [colour or ("dim" if style.dim else ""), "strong" * bool(style.bold)])
    )
