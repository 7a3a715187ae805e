"""Signals: Ctrl-C, SIGTERM and a closed terminal end a command in words and with a code, in every phase."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

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


_received: list[int] = []
# How an error comes to what waits, where several things go on side by side; each returns whether it took it.
deliveries: list[Callable[[BaseException], bool]] = []


@contextmanager
def interruptible() -> Iterator[None]:
    """Have the signals raise ``Interrupted`` in the block; one that is ignored (nohup) stays ignored."""
    _received.clear()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in signals}
    for number in signals:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in signals:
            signal.signal(number, before[number])


def _interrupt(number: int, _: FrameType | None) -> None:
    """End the command. A second Ctrl-C ends it at once; a terminal that closes sends its signal twice."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _received.append(number)
    error = Interrupted(number)
    if not any(deliver(error) for deliver in deliveries):
        raise error


def received() -> int | None:
    """Return the signal that ended the command; None where none has."""
    return _received[0] if _received else None


def number_of(stop: BaseException) -> int | None:
    """Return the signal that an exception stands for; None where it is no end by a signal."""
    if isinstance(stop, Interrupted):
        return stop.number
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
