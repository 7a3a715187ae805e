"""When a line was printed: at its own time, or between those that lines before and after it name."""

from __future__ import annotations

from typing import NamedTuple

from remedy.diagnose import lines

# How far lines are looked at for a time, in bytes and in lines; a traceback stands between them.
BEFORE, LINES_BEFORE = 4000, 40
AFTER, LINES_AFTER = 8000, 120
WIDTH = 300  # bytes of a line in which its time stands


class Interval(NamedTuple):
    """When a line was printed, in seconds from the start of its year.

    Args:
        time: its own time, else the last one before it that is known.
        until: its own time, else the first one after it; None where none is near.
    """

    time: float | None
    until: float | None


def interval_of(text: str, buffer: bytes, begin: int, last: float | None) -> Interval:
    """Return when a line was printed.

    Args:
        text: the line.
        buffer: what is read of its log.
        begin: where the line begins there.
        last: the last time that was known before.
    """
    own = lines.time_of(text)
    if own is not None:
        return Interval(own, own)
    above = buffer[max(0, begin - BEFORE) : begin].split(b"\n")[-LINES_BEFORE:]
    below = buffer[begin : begin + AFTER].split(b"\n")[1 : LINES_AFTER + 1]
    before = lines.last_time(b"\n".join(row[:WIDTH] for row in above))
    time = last if before is None else before
    until = lines.first_time(b"\n".join(row[:WIDTH] for row in below))
    return Interval(time, until if until is None or time is None or until >= time else None)
