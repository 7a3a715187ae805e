"""The host's clock, beside that of the controller."""

from __future__ import annotations

from remedy.probe.frames import Sections
from remedy.text import is_number
from remedy.values import Record


class Clock(Record):
    """The host's wall clock (``date``) and uptime, read at the same moment at the start of the probe.

    By the controller's clock that moment was after ``asked_at`` and before ``heard_at`` (epoch nanoseconds);
    both are 0 when the controller did not note the time.
    """

    epoch_ns: int
    uptime: float
    asked_at: int = 0
    heard_at: int = 0


def parse_clock(sections: Sections, asked_at: int = 0, heard_at: int = 0) -> Clock:
    """Read section ``clock``: ``date +%s.%N``; busybox has whole seconds only.

    Args:
        sections: of the probe.
        asked_at: when the controller asked, by its clock (epoch nanoseconds); 0 for not noted.
        heard_at: when it had the whole answer, by the same clock; 0 for not noted.
    """
    seconds, _, fraction = sections.text("clock").strip().partition(".")
    nanoseconds = int(fraction) if len(fraction) == 9 and is_number(fraction) else 0
    began = sections.by_name["clock"].began
    # The host has worked since then, by its own uptime: the moment is at least that long ago.
    elapsed = max(section.ended for section in sections.by_name.values()) - began
    return Clock(
        epoch_ns=int(seconds) * 10**9 + nanoseconds,
        uptime=began,
        asked_at=asked_at if heard_at else 0,
        heard_at=heard_at - int(elapsed * 1e9) if asked_at and heard_at else 0,
    )
