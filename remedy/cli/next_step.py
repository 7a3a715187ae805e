"""What a user is to do next: commands with the inventory as it was typed, so that they can be copied."""

from __future__ import annotations

from pathlib import Path

from remedy.text import quoted, to_paste

_inventory: list[Path] = []


def note_inventory(path: Path | None) -> None:
    """Note the inventory of the command; None where it has none, or none yet."""
    _inventory[:] = [] if path is None else [path]


def to_copy(text: str) -> str:
    """Return what a user is to do next, with the inventory of the command where its text only names one."""
    return to_paste(text, quoted(_inventory[0]) if _inventory else "")
