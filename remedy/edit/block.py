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
