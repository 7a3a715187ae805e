"""Lines that a terminal or a pager folded at its width, put together again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from remedy.diagnose.scanner.reader import whole

NARROW, WIDE = 40, 250  # columns of a terminal
LARGEST = 1 << 20  # bytes; what is copied from a terminal is no longer
FOLDED = 4  # lines of the full width at least
USUAL, FEW = frozenset((80, 100, 120, 132, 160, 200)), 2  # fewer where terminals have that width
SHARE = 0.08  # of all lines
_RULES = frozenset(b"-=+| ")  # what the line below the head of a table is made of
ALIKE = 8  # bytes with which a line begins, or most of them end, like another: lines of their own


@dataclass
class Unwrapped:
    """The text of a log with its folded lines joined.

    Args:
        blocks: its bytes.
        joins: numbers of the lines of ``blocks`` that were folded, each with how many more the log has for it.
    """

    blocks: Iterator[bytes]
    joins: list[tuple[int, int]] = field(default_factory=list)

    def number(self, line: int) -> int:
        """Return the number that a line of ``blocks`` has in the log itself."""
        return line + sum(count for at, count in self.joins if at < line)


def unwrapped(blocks: Iterator[bytes]) -> Unwrapped:
    """Return a log with its folded lines joined; any other log stays as it is.

    Args:
        blocks: of the log.
    """
    data, all_ = whole(blocks, LARGEST)
    rows = [] if data is None else [row.removesuffix(b"\r") for row in data.split(b"\n")]
    width = _width(rows) if rows else 0
    if not width:
        return Unwrapped(all_)
    joined, joins = _joined(rows, width)
    return Unwrapped(iter([b"\n".join(joined)]), joins)


def _width(rows: list[bytes]) -> int:
    """Return the width at which lines were folded, 0 where they were not."""
    lengths = Counter(len(row) for row in rows)
    width = max(lengths)
    least = FEW if width in USUAL else FOLDED
    if not NARROW <= width <= WIDE or lengths[width] < max(least, SHARE * len(rows)):
        return 0
    if any(len(row) == width and _divides(row) for row in rows):
        return 0  # the rows of a table, which are all as wide
    pairs = [(row, after) for row, after in pairwise(rows) if _is_folded(row, width)]
    ends = Counter(row[-ALIKE:] for row, _ in pairs)
    if max(ends.values(), default=0) > len(pairs) // 2:
        return 0  # what is folded is cut anywhere
    within = [row for row, after in pairs if after[:1].strip() and after[:ALIKE] != row[:ALIKE]]
    return width if len(within) >= max(least, len(pairs) * 2 // 3) else 0


def _divides(row: bytes) -> bool:
    """Return whether a line is one between the rows of a table: one of a sort alone may stand anywhere."""
    return _RULES.issuperset(row) and (b" " in row or row[:1] in (b"+", b"|"))


def _is_folded(row: bytes, width: int) -> bool:
    """Return whether a line fills the width, and is not a ruler."""
    return len(row) == width and len(set(row)) > 1


def _joined(rows: list[bytes], width: int) -> tuple[list[bytes], list[tuple[int, int]]]:
    joined: list[bytes] = []
    joins: list[tuple[int, int]] = []
    parts: list[bytes] = []
    for row in rows:
        parts.append(row)
        if _is_folded(row, width):
            continue
        joined.append(b"".join(parts))
        if len(parts) > 1:
            joins.append((len(joined), len(parts) - 1))
        parts = []
    if parts:
        joined.append(b"".join(parts))
    return joined, joins
