"""Finding many literals in one pass over bytes.

Chosen by measurement (benchmarks/diagnose.py --engines, benchmarks/results/diagnose-engines.md): Aho-Corasick
from Rust (``ahocorasick_rs``) takes a fifth of the time of `grep -F -f` and a hundredth of what the standard
library needs. Hyperscan is twice as quick again, which the scanner around it would hide; it is a C++ library
ten times the size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import ahocorasick_rs

Find: TypeAlias = Callable[[bytes], Iterable[tuple[int, int]]]
"""Takes a block of bytes; gives the number of a literal and where it begins, in the order of places.

A hit that overlaps another may be left out.
"""


Held: TypeAlias = Callable[[bytes], frozenset[int]]
"""Takes a line; gives the numbers of all literals in it, also of those that overlap."""

Across: TypeAlias = Callable[[bytes, int], list[tuple[int, int]]]
"""Takes the end of one block with the beginning of the next, and where that is.

Gives what ``Find`` gives, of the literals that are in both.
"""


def make_finder(literals: Sequence[bytes]) -> tuple[Find, Held, Across]:
    """Return what finds the literals in a block, what names all of a line, and what finds across blocks.

    Args:
        literals: the texts; their numbers are their places here.
    """
    automaton = ahocorasick_rs.BytesAhoCorasick(
        list(literals), implementation=ahocorasick_rs.Implementation.DFA
    )

    def find(block: bytes) -> Iterable[tuple[int, int]]:
        return [(number, start) for number, start, _ in automaton.find_matches_as_indexes(block)]

    def held(line: bytes) -> frozenset[int]:
        matches = automaton.find_matches_as_indexes(line, overlapping=True)
        return frozenset(number for number, *_ in matches)

    def across(seam: bytes, at: int) -> list[tuple[int, int]]:
        matches = automaton.find_matches_as_indexes(seam, overlapping=True)
        return sorted(
            ((number, start) for number, start, end in matches if start < at < end),
            key=lambda match: match[1],
        )

    return find, held, across
