"""Options and arguments that take one of several words: a misspelt word is refused with the nearest."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

# Older versions of click have no parameter of the type when they run.
if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    _Choice = click.Choice


class OneOf(_Choice):
    """One of several words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return a word that is among them, and name the nearest to one that is not."""
        try:
            return super().convert(value, param, ctx)
        except click.UsageError as error:
            if near := get_close_matches(str(value).lower(), self.choices, n=1):
                error.message += f" Did you mean {near[0]!r}?"  # type: ignore[misc]
            raise
