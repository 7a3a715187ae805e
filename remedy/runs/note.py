"""Records of commands that change no host; one that cannot be written is a warning, no error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from remedy import __version__
from remedy.apply.start import origin
from remedy.audit import Journal
from remedy.errors import RemedyError
from remedy.runs.session import Session


def note(session: Session, mode: str, event: str, *, run: str, **data: Any) -> tuple[str, ...]:
    """Record a command that changes no host.

    Args:
        session: the inventory.
        mode: what the command does.
        event: what happened.
        run: its id.
        data: what the record holds.

    Returns:
        why it could not be recorded; empty where it was.
    """
    common = {
        "by": origin().author,
        "inventory_digest": session.inventory.digest,
        "spec_digest": session.spec.digest,
        "tool_version": __version__,
    }
    warnings: list[str] = []
    with unrecorded(warnings):
        journal = Journal(session.home, run=run, mode=mode)
        journal.write(event, **{**common, **data})
    return tuple(warnings)


@contextmanager
def unrecorded(warnings: list[str]) -> Iterator[None]:
    """Add a warning where the block cannot record something, and go on: that changes no host."""
    try:
        yield
    except RemedyError as error:
        warnings.append(
            f"not recorded: {error.message}; this changed no host, only the record is missing"
        )
