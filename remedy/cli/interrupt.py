"""Signals: Ctrl-C, SIGTERM and a closed terminal end a command in words and with a code, in every phase."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from remedy.cli.next_step import to_copy
from remedy.cli.progress import is_ready
from remedy.text import visible

# What a shell reports of a process that a signal ended: 128 and the signal's number.
NAMES: Mapping[int, str] = {
    signal.SIGINT: "Ctrl-C (SIGINT)",
    signal.SIGTERM: "SIGTERM",
    signal.SIGHUP: "a closed terminal (SIGHUP)",
    signal.SIGPIPE: "a closed pipe (SIGPIPE)",
}


class Interrupted(KeyboardInterrupt):
    """A signal that ends the command.

    A ``KeyboardInterrupt``, because whatever runs side by side here hands only that on to whoever waits.

    Args:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


# Ctrl-C is pressed twice, and a terminal that closes sends its signal twice, within this many seconds.
PATIENCE = 2.0
# A live table hides the cursor (xterm's control sequences, DECTCEM).
SHOWN = b"\x1b[?25h"
# Seconds until a signal is raised again that the command has not come to.
AGAIN = 1.0

_received: list[int] = []
_since: list[float] = []
_reporting: list[int] = []
# How an error comes to what waits, where several things go on side by side; each returns whether it took it.
deliveries: list[Callable[[BaseException], bool]] = []


@contextmanager
def interruptible() -> Iterator[None]:
    """Have the signals raise ``Interrupted`` in the block; one that is ignored (nohup) stays ignored."""
    _received.clear()
    _reporting.clear()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in signals}
    for number in signals:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, _end_again)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def heeded() -> Iterator[None]:
    """Have signals heeded while the block waits for the terminal.

    One that comes between the question and the read of its answer does not end the read, which nobody may ever
    answer. So it is woken each second, and looks whether a signal came.
    """
    if signal.getsignal(signal.SIGALRM) is not _end_again:
        yield  # the signals are not ours
        return
    signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
    try:
        yield
    finally:
        if not _received:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _interrupt(number: int, _: FrameType | None) -> None:
    """End the command; a second signal soon after says nothing new, and a later one ends it at once."""
    now = time.monotonic()
    if _received:
        if now - _since[0] > PATIENCE:
            _leave_at_once(number)
        return
    _received.append(number)
    _since[:] = [now]
    signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
    _end(number)


def _end_again(_: int, __: FrameType | None) -> None:
    """End the command where it goes on although a signal came: libraries may drop what is raised in them."""
    if _received and not _reporting:
        _end(_received[0])


def _end(number: int) -> None:
    error = Interrupted(number)
    if not any(deliver(error) for deliver in deliveries):
        raise error


def _leave_at_once(number: int) -> NoReturn:
    """Exit without what is known of hosts: the command does not come to that, or nobody reads it."""
    with suppress(OSError):
        if is_ready(2):  # a terminal that was stopped, or a full pipe, would keep it
            words = "ended at once; the runs and what is known of them: remedy history INVENTORY"
            cursor = SHOWN if os.isatty(2) else b""
            os.write(2, cursor + f"\n{visible(to_copy(words))}\n".encode())
    os._exit(128 + number)


def received() -> int | None:
    """Return the signal that ended the command; None where none has."""
    return _received[0] if _received else None


def number_of(stop: BaseException) -> int | None:
    """Return the signal that an exception stands for; None where it is no end by a signal."""
    if isinstance(stop, SystemExit):
        return None
    if _received:
        # Whatever it is: libraries make errors of their own of what is raised in them.
        _reporting[:] = _received
        signal.setitimer(signal.ITIMER_REAL, 0)
        return _received[0]
    if isinstance(stop, KeyboardInterrupt):
        return received() or signal.SIGINT
    if isinstance(stop, OSError) and stop.errno == errno.EPIPE:
        return signal.SIGPIPE
    if isinstance(stop, OSError) and stop.errno == errno.EIO and _is_gone():
        return signal.SIGHUP
    return None


def _is_gone() -> bool:
    """Whether the terminal of standard output has been closed."""
    try:
        os.ttyname(sys.stdout.fileno())
        os.tcgetpgrp(sys.stdout.fileno())
    except (OSError, ValueError):
        return True
    return False


def leave(number: int) -> NoReturn:
    """Exit at once as a shell reports this signal; connections that still wait are not waited for."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(128 + number)
