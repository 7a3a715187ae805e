"""What is read of a log about one place in it: its line, and the lines before and after it."""

from __future__ import annotations

from remedy.diagnose import lines

AROUND = 16 << 10  # bytes before and after a hit that are searched
REACH = lines.WIDEST // 2  # characters of a very long line that are read on either side of a hit


def bounds(buffer: bytes, hit: int) -> tuple[int, int]:
    """Return where the line of a hit begins and ends; a progress bar's carriage return ends a line as well."""
    low = max(0, hit - REACH)
    begin = max(buffer.rfind(b"\n", low, hit), buffer.rfind(b"\r", low, hit), low - 1) + 1
    high = min(len(buffer), hit + REACH)
    ends = [at for mark in (b"\n", b"\r") if (at := buffer.find(mark, hit, high)) >= 0]
    return begin, min(ends, default=high)


def whole(buffer: bytes, begin: int, most: int) -> bytes:
    """Return a line from a place in it to its end, but no more bytes of it than ``most``."""
    newline = buffer.find(b"\n", begin, begin + most)
    return buffer[begin : newline if newline >= 0 else begin + most]


def is_cut(buffer: bytes, begin: int, end: int) -> bool:
    """Return whether a line goes on before or after what is read of it."""
    before, after = buffer[max(0, begin - 1) : begin], buffer[end : end + 1]
    return before not in (b"", b"\n", b"\r") or after not in (b"", b"\n", b"\r")


def around(buffer: bytes, begin: int, end: int, count: int) -> str:
    """Return the line of a hit with as many lines before and after it, cleaned, and again without prefixes."""
    before = buffer[max(0, begin - AROUND) : begin].split(b"\n")[-count - 1 :]
    after = buffer[end : end + AROUND].split(b"\n")[: count + 1]
    rows = [lines.clean(raw[:REACH]) for raw in (*before, buffer[begin:end], *after)]
    bare = [lines.beginnings(row)[-1] for row in rows]
    return "\n".join(rows if bare == rows else (*rows, *bare))
