"""Numbers with their word, as people write them."""

from __future__ import annotations


def counted(number: int, word: str) -> str:
    """Return "1 host" or "2 hosts"."""
    return f"{number} {word}{'s' * (number != 1)}"
