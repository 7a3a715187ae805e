"""Which remedies decide: ``--only`` and ``--skip``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from remedy.errors import UsageError, raise_together
from remedy.text import quoted


@dataclass(frozen=True)
class Choice:
    """The remedies that decide; without any name all of them do.

    Args:
        only: no others; empty for all.
        skip: all but these.
    """

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Say whether any remedy is left out."""
        return bool(self.only or self.skip)

    def __contains__(self, name: str) -> bool:
        """Say whether the remedy of this name decides."""
        return (not self.only or name in self.only) and name not in self.skip

    @property
    def words(self) -> str:
        """The options that make the same choice; "" where none is needed."""
        options = (("--only", self.only), ("--skip", self.skip))
        return " ".join(f"{option} {','.join(names)}" for option, names in options if names)

    @property
    def record(self) -> dict[str, list[str]]:
        """The choice as the journal has it; nothing where all remedies decide."""
        names = {"only": list(self.only), "skip": list(self.skip)}
        return {option: chosen for option, chosen in names.items() if chosen}


EVERY = Choice()
"""All remedies decide."""


def choose(only: Sequence[str], skip: Sequence[str], remedies: Sequence[str]) -> Choice:
    """Return the choice that ``--only`` and ``--skip`` make.

    Args:
        only: names of remedies, or several with commas between them.
        skip: the same.
        remedies: the names of all remedies.

    Raises:
        UsageError: there is no such remedy (the nearest is named), or none is left.
    """
    chosen, left_out = _names(only), _names(skip)
    raise_together(
        _unknown(option, name, remedies)
        for option, names in (("--only", chosen), ("--skip", left_out))
        for name in names
        if name not in remedies
    )
    choice = Choice(chosen, left_out)
    if not any(name in choice for name in remedies):
        raise UsageError(f"{choice.words}: no remedy is left", next_step="Leave --skip out.")
    return choice


def _names(texts: Iterable[str]) -> tuple[str, ...]:
    """Return each name of an option once."""
    return tuple(dict.fromkeys(word.strip() for text in texts for word in text.split(",")))


def _unknown(option: str, name: str, known: Sequence[str]) -> UsageError:
    near = get_close_matches(name.replace("-", "_"), known, n=1)
    return UsageError(
        f"{option} {quoted(name)}: there is no remedy {name!r}",
        next_step=f"Did you mean {near[0]}? All of them: remedy explain"
        if near
        else f"Remedies: {', '.join(known)}.",
    )
