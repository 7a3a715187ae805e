"""Which literal texts a regular expression cannot match without.

The scanner looks for these first, with an engine that takes them all in one pass; a regular expression is only
tried on a line that holds one of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as constants
    from re import _parser as parser
else:
    import sre_constants as constants
    import sre_parse as parser

# Texts that ordinary output is full of: anything else is a better thing to look for.
_COMMON = frozenset(
    (
        *(
            "NCCL INFO ",
            "NCCL INFO",
            "NCCL ",
            "nccl",
            "INFO",
            "error",
            "Error",
            "failed",
            "rank",
            "Rank",
        ),
        *(
            "time",
            "Time",
            "not ",
            "port ",
            "Port ",
            "world",
            "alloc",
            "exit ",
            "table",
            "network",
            "loss",
        ),
        *(
            "step",
            "with ",
            "memory",
            "device",
            "Call to ",
            "torch",
            "Address",
            "returned ",
            "connect",
        ),
        *("Connect",),
    )
)

# More ways to write one literal than this are not worth telling apart.
_MOST = 8


def literals_of(pattern: str) -> frozenset[str]:
    """Return texts of which every match holds at least one.

    Args:
        pattern: a regular expression.

    Raises:
        ValueError: it can match without any literal of three characters.
    """
    found = _best(parser.parse(pattern).data)
    if not found or min(map(len, found)) < 3:
        raise ValueError(f"no literal can be told from {pattern!r}")
    # A text that holds another one of the set is found by it.
    return frozenset(a for a in found if not any(b in a for b in found if b != a))


def _best(items: Sequence[Any]) -> frozenset[str]:
    """Return the most telling set that a sequence of items requires: the one whose shortest text is longest."""
    candidates: list[frozenset[str]] = []
    runs: frozenset[str] = frozenset([""])

    def close() -> None:
        nonlocal runs
        candidates.append(runs)
        runs = frozenset([""])

    for operation, value in items:
        chars = _chars(operation, value)
        if chars:
            longer = frozenset(run + char for run in runs for char in chars)
            if len(longer) <= _MOST:
                runs = longer
                continue
            close()
            runs = frozenset(chars)
            continue
        inner = _inner(operation, value)
        close()
        if inner:
            candidates.append(inner)
    close()
    return max(candidates, key=lambda one: (min(map(_telling, one)), -len(one)))


def _telling(text: str) -> int:
    """Return how rare a text is: its length, and next to nothing for a common one."""
    return min(len(text), 2) if text in _COMMON else len(text)


def _chars(operation: Any, value: Any) -> list[str]:
    """Return the few characters that an item stands for, none where they are many."""
    if operation is constants.LITERAL:
        return [chr(value)]
    if operation is constants.IN and all(kind is constants.LITERAL for kind, _ in value):
        return [chr(code) for _, code in value] if len(value) <= 2 else []
    return []


def _inner(operation: Any, value: Any) -> frozenset[str]:
    """Return what a group, a branch or a repetition requires, nothing where it may be left out."""
    if operation is constants.SUBPATTERN:
        return _best(list(value[3]))
    if operation is constants.BRANCH:
        sets = [_best(list(branch)) for branch in value[1]]
        return frozenset().union(*sets) if all(min(map(len, one)) for one in sets) else frozenset()
    if operation in (constants.MAX_REPEAT, constants.MIN_REPEAT) and value[0] >= 1:
        return _best(list(value[2]))
    return frozenset()
