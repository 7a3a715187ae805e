"""What a user is to do next: commands with the inventory as it was typed, so that they can be copied."""

from __future__ import annotations

from pathlib import Path

from remedy.text import quoted, to_paste

HERE = Path(".remedy")

_inventory: list[Path] = []
_home: list[Path] = [HERE]


def note_inventory(path: Path | None, home: Path = HERE) -> None:
    """Note the inventory of the command; None where it has none, or none yet.

    Args:
        path: the inventory.
        home: the folder of the journal that the command is about, where no inventory is typed.
    """
    _inventory[:] = [] if path is None else [path]
    _home[:] = [home]


def typed() -> str:
    """Return the inventory as it is typed: of the command, else of its folder; "" where neither is known."""
    if _inventory:
        return quoted(_inventory[0])
    from remedy.cli.names import inventory_of

    known = inventory_of(_home[0])
    return "" if known is None else quoted(known)


def to_copy(text: str, inventory: str = "") -> str:
    """Return what a user is to do next, with the inventory of the command where its text only names one.

    Args:
        text: with ``INVENTORY`` for it.
        inventory: what to type where the command has none, such as the inventory that a plan names.
    """
    if "INVENTORY" not in text:
        return text
    return to_paste(text, quoted(_inventory[0]) if _inventory else inventory or typed())
