"""The managed block of a file: where it begins and ends."""

from __future__ import annotations

from collections.abc import Sequence

END = b"# END remedy"


def block_span(lines: Sequence[bytes], begin: bytes) -> tuple[int, int] | None:
    """Return the indices of the managed block's first and last line, None when there is none.

    The block is an END and the nearest BEGIN before it, so that a torn block can never swallow the lines
    that follow it.

    Args:
        lines: the file's.
        begin: the text of a first line.
    """
    first = None
    for index, line in enumerate(lines):
        if line.strip() == begin:
            first = index
        elif line.strip() == END and first is not None:
            return first, index
    return None


def block_bytes(content: bytes, begin: bytes) -> tuple[int, int] | None:
    """Return where the managed block starts and stops in a whole file, its first and last line included.

    The same as ``block_span`` finds in the file's lines, by searches for the two marks alone: a hosts file has
    a line for each host of the cluster, and there are as many files as hosts.
    """
    stop = 0
    while (end := _next_line(content, END, stop)) is not None:
        first = None
        at = stop
        while (line := _next_line(content, begin, at, end[0])) is not None:
            first, at = line[0], line[1]
        if first is not None:
            return first, end[1]
        # An END without a BEGIN before it begins no block; nor does a BEGIN before it end one.
        stop = end[1]
    return None


def _next_line(
    content: bytes, text: bytes, start: int, limit: int | None = None
) -> tuple[int, int] | None:
    """Return where the next line that holds a text and white space starts and stops, if any."""
    limit = len(content) if limit is None else limit
    while (at := content.find(text, start, limit)) >= 0:
        first = content.rfind(b"\n", 0, at) + 1
        newline = content.find(b"\n", at)
        last = len(content) if newline < 0 else newline + 1
        if content[first:last].strip() == text:
            return first, last
        start = last
    return None
