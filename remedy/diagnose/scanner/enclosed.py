"""Tracebacks that stand in something else: a record in JSON, a list of lines, or the box that rich draws."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

TRACEBACK = "Traceback (most recent call last)"
_ON_ONE_LINE = f"{TRACEBACK}:\\n"
# The rest of the string that it stands in, with its lines kept apart by "\n".
_STRING = re.compile(r'[^"\\\n]*(?:\\.[^"\\\n]*)*(?=")')
# What separates the lines of one that Python printed as a list.
_SEAM = re.compile(r"""\\n(?:', '|', "|", '|", ")""")
_TOP, _BOTTOM = "\u256d", "\u2570"
_FRAME = re.compile(r"\u2502 (?P<file>[^\u2502\s]{1,200}):\d{1,7} in ")
LONGEST = 128 << 10
"""Bytes of a box that are read: it shows lines around each frame, and what its names stood for."""
MOST_OF_A_MESSAGE = 12
"""Lines over which rich folds the message of an exception, at most."""


class Boxed(NamedTuple):
    """The exception below a box: its text, lines after the top, and the file of the innermost frame."""

    text: str
    after: int
    file: str


def of_record(line: str) -> str:
    """Return the traceback in a record of JSON, or in a list of Python, as its own lines; "" where none is.

    Args:
        line: the whole line of the log.
    """
    begin = line.find(_ON_ONE_LINE)
    if begin >= 0 and _SEAM.match(line, begin + len(_ON_ONE_LINE) - 2):
        return _SEAM.sub("\n", line[begin:]).replace("\\n", "\n")
    match = _STRING.match(line, begin) if begin >= 0 else None
    if match is None:
        return ""
    try:
        return str(json.loads(f'"{match[0]}"', strict=False))
    except ValueError:
        return ""


def is_boxed(opening: str) -> bool:
    """Say whether the first line of a traceback is the top of a box."""
    return _TOP in opening


def below_box(opening: str, following: Sequence[str]) -> Boxed | None:
    """Return the exception of a traceback that rich drew; None where it is none, or the end is not there.

    Args:
        opening: the line with the top of the box.
        following: the lines after it.
    """
    column = opening.find(_TOP)
    if column < 0 or TRACEBACK not in opening[column:]:
        return None
    file = ""
    for number, line in enumerate(following, 1):
        if frame := _FRAME.match(line[column:]):
            file = frame["file"]
        if line[column : column + 1] == _BOTTOM:
            message = _message(following[number:], column, len(opening.rstrip()))
            return Boxed(message, number + 1, file) if message else None
    return None


def _message(rows: Sequence[str], column: int, width: int) -> str:
    """Return what stands below a box, put together where rich folded it: in a column of its own."""
    message, is_full = "", False
    for row in rows[:MOST_OF_A_MESSAGE]:
        if row[:column].strip() or not row[column : column + 1].strip():
            break
        text = row[column:].strip()
        word = len(message.rpartition(" ")[2]) + len(text.partition(" ")[0])
        # A word is cut only at the full width, where it is longer than that.
        is_cut = is_full and word > width - column
        message += text if is_cut or not message else f" {text}"
        is_full = len(text) >= width - column
        if not column:  # nothing tells the next line of the message from one of the log
            break
    return message
