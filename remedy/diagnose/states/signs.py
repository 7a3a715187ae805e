"""What a block of names and values shows of a card, a port or a rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from remedy.diagnose.catalogue import CLEAR, Role


@dataclass(frozen=True)
class BlockSign:
    """What a block shows.

    Args:
        line: its number.
        text: the card or port, and what is wrong there.
        label: the cause that it speaks for.
        weight: how much.
        details: of the card, port or rank, by their names in the catalogue.
        is_consequence: whether it says who is gone, and not why.
    """

    line: int
    text: str
    label: str
    weight: float
    details: Mapping[str, str]
    is_consequence: bool = False

    @property
    def role(self) -> Role:
        """What it counts as, beside the lines of logs."""
        if self.weight < CLEAR:
            return Role.SIGN
        return Role.CONSEQUENCE if self.is_consequence else Role.CAUSE


Row = tuple[int, str]
"""A line with its number in the file, without what a launcher put before it."""
