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


def make_finder(literals: Sequence[bytes]) -> Find:
    """Return what finds the literals in a block.

    Args:
        literals: the texts; their numbers are their places here.
    """
    automaton = ahocorasick_rs.BytesAhoCorasick(
        list(literals), implementation=ahocorasick_rs.Implementation.DFA
    )
    return lambda block: (
        (number, start) for number, start, _ in automaton.find_matches_as_indexes(block)
    )
