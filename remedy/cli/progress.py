"""Standard error for progress: what nobody takes is dropped, so that no reader can hold up a run.

A run waits for hosts whose timers tick. A pipe that is full, or a terminal that was stopped with Ctrl-S, would
hold it in the middle of a write; a line of progress is worth less than that. What is printed outside of a stage
(a plan, an error, the outcome) is written whole: nothing is under way then.
"""

from __future__ import annotations

import os
import select
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOBase
from typing import IO

# What a pipe that is ready takes without waiting (pipe(7), PIPE_BUF).
PIECE = 4096
# The system's own, before gevent replaces it: that lets other hosts' lines in amid one, and a signal's handler
# cannot give way.
_poll = select.poll


class StandardError(TextIOBase):
    """Standard error, whichever file that is at the moment; that nobody reads it any more stops nothing."""

    def __init__(self) -> None:
        self._hurried = False

    @contextmanager
    def hurried(self) -> Iterator[None]:
        """Drop what cannot be written at once, while the block runs."""
        self._hurried = True
        try:
            yield
        finally:
            self._hurried = False

    def write(self, text: str) -> int:
        """Write text, or drop it."""
        with suppress(OSError, ValueError):
            self._write(text)
        return len(text)

    def flush(self) -> None:
        """Do nothing: each write is whole."""

    def isatty(self) -> bool:
        """Say whether it is a terminal."""
        return self._file().isatty()

    def fileno(self) -> int:
        """Return its descriptor."""
        return self._file().fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Its encoding, by which rich chooses the characters of a table."""
        return getattr(self._file(), "encoding", None) or "utf-8"

    def _write(self, text: str) -> None:
        file, number = self._file(), self._number()
        if not self._hurried or number is None:
            file.write(text)
            file.flush()
            return
        file.flush()
        data = text.encode(errors="backslashreplace")
        for start in range(0, len(data), PIECE):
            if not is_ready(number):
                return
            os.write(number, data[start : start + PIECE])

    def _file(self) -> IO[str]:
        # While a live table is shown, rich has a proxy there that writes to the table's own console.
        file: IO[str] = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
        return file

    def _number(self) -> int | None:
        try:
            return self._file().fileno()
        except (OSError, ValueError, AttributeError):
            return None


@contextmanager
def terminal_kept() -> Iterator[None]:
    """Leave the terminal as it was: a program that asks there without echo, and is ended, leaves it so."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    before = termios.tcgetattr(terminal)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSANOW, before)
        os.close(terminal)


def is_ready(number: int) -> bool:
    """Say whether a descriptor takes a piece without waiting."""
    poll = _poll()
    poll.register(number, select.POLLOUT)
    return any(events & select.POLLOUT for _, events in poll.poll(0))
