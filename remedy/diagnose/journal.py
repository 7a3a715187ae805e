"""Logs as ``journalctl -o json`` writes them: each record is made into the line that it stands for.

A record is some kilobytes long, and a traceback is one record a line: patterns, which see a part of a long line
only, would see neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from remedy.diagnose.lines import of_journal

MARK = b'"__REALTIME_TIMESTAMP"'
FIRST = 64 << 10  # bytes in which the first record has to end
LONGEST = 256 << 10  # bytes of a record; a longer line stays as it is


def as_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a log with the lines that its records stand for; any other log stays as it is.

    Args:
        blocks: of the log.
    """
    first = next(blocks, b"")
    data = chain((first,) if first else (), blocks)
    is_journal = first.startswith(b"{") and MARK in first[:FIRST].split(b"\n", 1)[0]
    return _lines(data) if is_journal else data


def _lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        rows = (rest + block).split(b"\n")
        rest = rows.pop()
        if rows:
            yield b"".join(_line(row) + b"\n" for row in rows)
        if len(rest) > LONGEST:
            yield rest
            rest = b""
    if rest:
        yield _line(rest)


def _line(row: bytes) -> bytes:
    """Return one line for a record, whatever its message holds: so lines keep their numbers."""
    if len(row) > LONGEST or MARK not in row:
        return row
    text = of_journal(row.decode("utf-8", "replace"))
    return text.replace("\n", "\r").encode("utf-8", "replace")
