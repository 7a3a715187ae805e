"""Options that take a whole number: what is none, or too small, is refused in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

# Older versions of click have no parameter of the type when they run.
if TYPE_CHECKING:
    _Type = click.ParamType[int]
else:
    _Type = click.ParamType


class Number(_Type):
    """A whole number.

    Args:
        least: the smallest that makes sense.
        most: the largest; None for no limit.
    """

    name = "n"

    def __init__(self, least: int, most: int | None = None) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number that a word is."""
        try:
            number = int(value)
        except (TypeError, ValueError):
            number = None
        if number is None or not self.least <= number <= (
            number if self.most is None else self.most
        ):
            self.fail(f"{value!r} is not a whole number {self.range}.", param, ctx)
        return number

    @property
    def range(self) -> str:
        """The numbers that are taken, in words."""
        if self.most is None:
            return f"of {self.least} or more"
        return f"from {self.least} to {self.most}"
