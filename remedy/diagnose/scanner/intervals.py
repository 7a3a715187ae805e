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
        nearest: that of the two whose line stands nearer.
    """

    time: float | None
    until: float | None
    nearest: float | None


def interval_of(text: str, buffer: bytes, begin: int, last: float | None) -> Interval:
    """Return when a line was printed.

    Args:
        text: the line.
        buffer: what is read of its log.
        begin: where the line begins there, or the traceback that it ends.
        last: the last time that was known before.
    """
    own = lines.time_of(text)
    if own is not None:
        return Interval(own, own, own)
    above = buffer[max(0, begin - BEFORE) : begin].split(b"\n")[-LINES_BEFORE:]
    below = buffer[begin : begin + AFTER].split(b"\n")[1 : LINES_AFTER + 1]
    before = lines.last_time(b"\n".join(row[:WIDTH] for row in above))
    time = last if before is None else before
    until = lines.first_time(b"\n".join(row[:WIDTH] for row in below))
    if until is None or (time is not None and until < time):
        return Interval(time, None, time)
    # The line right above has a time: the program wrote with times, and this is the last that it did.
    row = next((row for row in reversed(above) if row.strip()), b"")
    is_next = lines.time_of(lines.clean(row[:WIDTH])) is not None
    return Interval(time, until, time if is_next else until)
