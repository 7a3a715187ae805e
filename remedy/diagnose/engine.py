"""Finding many literals in one pass over bytes.

Measured in benchmarks/diagnose.py: Aho-Corasick from Rust (``ahocorasick_rs``) is as quick as `grep -F -f`;
the standard library alone is many times slower and gives the same answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

Find: TypeAlias = Callable[[bytes], Iterable[tuple[int, int]]]
"""Takes a block of bytes; gives the number of a literal and where it begins, in the order of places.

A hit that overlaps another may be left out.
"""


def make_finder(literals: Sequence[bytes], *, plain: bool = False) -> Find:
    """Return what finds the literals in a block, with the quickest engine that is installed.

    Args:
        literals: the texts; their numbers are their places here.
        plain: use the standard library even where there is something quicker.
    """
    texts = list(literals)
    if not plain:
        try:
            import ahocorasick_rs
        except ImportError:
            pass
        else:
            automaton = ahocorasick_rs.BytesAhoCorasick(
                texts, implementation=ahocorasick_rs.Implementation.DFA
            )
            return lambda block: (
                (number, start) for number, start, _ in automaton.find_matches_as_indexes(block)
            )
    return lambda block: _find_plainly(texts, block)


def _find_plainly(texts: list[bytes], block: bytes) -> list[tuple[int, int]]:
    found = []
    for number, text in enumerate(texts):
        at = block.find(text)
        while at >= 0:
            found.append((number, at))
            at = block.find(text, at + 1)
    return sorted(found, key=lambda hit: hit[1])
