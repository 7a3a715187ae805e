"""The events of a lab while it works; only the command line decides how they look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class LabEvent:
    """One step of a lab command.

    Args:
        stage: which part of the work it belongs to (``root``, ``network``, ``host``, ``fault``,
            ...).
        text: the step in words.
        host: the host it is about, if it is about one.
    """

    stage: str
    text: str
    host: str | None = None


Listener: TypeAlias = Callable[[LabEvent], None]


def emit(listener: Listener | None, stage: str, text: str, host: str | None = None) -> None:
    """Call the listener, if there is one."""
    if listener is not None:
        listener(LabEvent(stage, text, host))
