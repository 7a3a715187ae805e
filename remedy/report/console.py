"""A console on which every character of what it is given shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

import rich.text
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from remedy.text import visible, visible_lines


def _one_line(text: str) -> str:
    """Return text as one line of which every character shows; tabs stay, as rich makes spaces of them."""
    return "\t".join(map(visible, text.split("\t")))


# A rich ``Text`` is one line, whatever is put into it. Not only when it is rendered: before that rich takes out
# some controls, which nobody would see, and makes lines of newlines.
getattr(rich.text, "strip_control_codes")  # noqa: B009 - an AttributeError, where rich has it no more
rich.text.strip_control_codes = _one_line  # type: ignore[assignment, attr-defined]


class VisibleConsole(Console):
    """A console that shows every character of what it is given, and sends no code but rich's own.

    Args:
        file: what it writes to; None for standard output.
        options: as rich's own has them.
    """

    def __init__(self, file: IO[str] | None = None, **options: Any) -> None:
        # No string is ever read as markup, or as the name of a symbol.
        plain = {"highlight": False, "markup": False, "emoji": False, "soft_wrap": True}
        super().__init__(file=file, **{**plain, **options})

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield what anything is made of, with text of which every character shows."""
        for segment in super().render(renderable, options):
            is_shown = segment.control or segment.text.isprintable()
            yield segment if is_shown else Segment(visible_lines(segment.text), segment.style)
