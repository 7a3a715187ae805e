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


def make_finder(literals: Sequence[bytes]) -> tuple[Find, Held]:
    """Return what finds the literals in a block, and what names all that a line holds.

    Args:
        literals: the texts; their numbers are their places here.
    """
    automaton = ahocorasick_rs.BytesAhoCorasick(
        list(literals), implementation=ahocorasick_rs.Implementation.DFA
    )

    def find(block: bytes) -> Iterable[tuple[int, int]]:
        return ((number, start) for number, start, _ in automaton.find_matches_as_indexes(block))

    def held(line: bytes) -> frozenset[int]:
        matches = automaton.find_matches_as_indexes(line, overlapping=True)
        return frozenset(number for number, *_ in matches)

    return find, held
