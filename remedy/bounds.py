"""What text from elsewhere may cost: the depth and size of JSON, the seconds of work, and patterns of names.

Whoever wrote the text may mean harm. What is too much ends in an error that the reader of the text handles.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

DEPTH = 64
"""Levels of JSON; nft(8) nests an expression in a rule about ten deep."""

LARGEST = 4 << 20
"""Characters of a JSON text: ten thousand rules of nft(8)."""

MOST = 400_000
"""Objects, lists and elements in a JSON text; each is some hundred bytes in memory."""

AGAIN = 0.1
"""Seconds of work after which a reader that goes on with its next part is ended once more."""


class TooMuchError(ValueError):
    """Text from elsewhere is more than anybody needs; the message says of what."""


def read_json(text: str | bytes, largest: int = LARGEST) -> Any:
    """Return the value of a JSON text from elsewhere.

    Args:
        largest: characters of the text; as many parts more are allowed as it is larger than ``LARGEST``.

    Raises:
        ValueError: it is no JSON, or holds text that is none (an unpaired surrogate).
        TooMuchError: it is too long, has too many parts or is nested too deeply.
    """
    if isinstance(text, bytes):
        text = text.decode()
    if len(text) > largest:
        raise TooMuchError(f"it is longer than {largest >> 20} MiB")
    most = MOST * max(1, largest // LARGEST)
    nested = text.count("{") + text.count("[")
    if nested + text.count(",") > most:
        raise TooMuchError(f"it has more than {most} parts")
    try:
        value = json.loads(text)
    except RecursionError:
        raise TooMuchError("it is nested too deeply") from None
    if "\\ud" in text or "\\uD" in text:
        json.dumps(value, ensure_ascii=False).encode()  # a UnicodeEncodeError is a ValueError
    if nested >= DEPTH:
        _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEPTH):
        nested = [item for item in level if isinstance(item, (dict, list))]
        level = [
            part for item in nested for part in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise TooMuchError(f"it is nested more than {DEPTH} deep")


@contextmanager
def work(seconds: float) -> Iterator[None]:
    """End the block with ``TooMuchError`` after so many seconds of work, and what goes on again and again.

    The time in which this process waits, or others work, does not count. Also a regular expression is ended.
    Works where signals come, in the main thread; elsewhere nothing is limited. No such block is in another.
    """
    is_on = [True]

    def late(*_: object) -> None:
        if is_on:
            _give_up(seconds)

    try:
        before = signal.signal(signal.SIGVTALRM, late)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds, AGAIN)
        try:
            yield
        finally:
            is_on.clear()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _give_up(seconds: float) -> NoReturn:
    raise TooMuchError(f"it takes more than {seconds:g} s to read")


class Allowance:
    """Seconds of work for many small pieces, where a large reader of text cannot be ended in the middle.

    Works in every thread, and within ``work``: nothing is interrupted, so a piece has to be bounded by itself.

    Args:
        seconds: of this thread's own work, for all pieces together.
    """

    def __init__(self, seconds: float) -> None:
        self.left = seconds
        self._began = 0.0

    @property
    def is_spent(self) -> bool:
        """Whether no piece may be begun any more."""
        return self.left <= 0

    def __enter__(self) -> None:
        self._began = time.thread_time()

    def __exit__(self, *_: object) -> None:
        self.left -= time.thread_time() - self._began


def fits(path: str, pattern: str) -> bool:
    """Say whether a path fits a pattern of glob(7), in time that grows with their lengths only.

    ``*`` and ``?`` stand for what is in one folder, ``[...]`` for one character. No pattern of others becomes a
    regular expression: one with several ``*`` would be tried for ever.
    """
    names, parts = path.split("/"), pattern.split("/")
    return len(names) == len(parts) and all(
        fits_name(name, part) and (part.startswith(".") or not name.startswith("."))
        for name, part in zip(names, parts, strict=True)
    )


def fits_name(name: str, pattern: str) -> bool:
    """Say whether a name fits a pattern whose ``*`` stands for any characters."""
    # Where a comparison fails, the last star takes one character more: no other star has to be tried again.
    at = taken = 0  # in the name: what is compared next, and how far the last star reaches
    here, star = 0, -1
    while at < len(name):
        if pattern[here : here + 1] == "*":
            here, star, taken = here + 1, here, at
            continue
        length = _one(pattern, here, name[at])
        if length:
            at, here = at + 1, here + length
        elif star >= 0:
            taken += 1
            at, here = taken, star + 1
        else:
            return False
    return not pattern[here:].strip("*")


def _one(pattern: str, here: int, character: str) -> int:
    """Return how long the part of a pattern is that stands for a character; 0 where it stands for another."""
    sign = pattern[here : here + 1]
    if sign == "?":
        return 1
    if sign == "\\" and here + 1 < len(pattern):
        return 2 * (pattern[here + 1] == character)
    end = pattern.find("]", here + 3 if pattern[here + 1 : here + 2] in ("!", "^") else here + 2)
    if sign != "[" or end < 0:
        return sign == character
    body = pattern[here + 1 : end]
    negated = body[:1] in ("!", "^")
    return (end + 1 - here) * (_in_set(body[negated:], character) != negated)


def _in_set(body: str, character: str) -> bool:
    at = 0
    while at < len(body):
        if body[at + 1 : at + 2] == "-" and at + 2 < len(body):
            if body[at] <= character <= body[at + 2]:
                return True
            at += 3
        elif body[at] == character:
            return True
        else:
            at += 1
    return False
