"""Names in the order that they have, with runs of numbers as ranges: short for any size of a fleet. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_DIGITS = re.compile(r"([0-9]+)")
MOST_DIGITS = 9
"""Of a number that counts up: what any awk takes as a whole number."""


class _Run(NamedTuple):
    """Names that differ in one number, which counts up by one."""

    form: str
    first: int
    length: int


def ranges(names: Sequence[str]) -> Iterator[str]:
    """Yield lines that stand for names: one name, or a form of printf(1) and its first and last number.

    >>> list(ranges(["gpu08", "gpu09", "gpu10", "login"]))
    ['gpu%02d 8 10', 'login']
    """
    at = 0
    while at < len(names):
        run = _run(names, at)
        if run.length > 1:
            yield f"{run.form} {run.first} {run.first + run.length - 1}"
        else:
            yield names[at]
        at += run.length


def _run(names: Sequence[str], at: int) -> _Run:
    """Return the run that begins at a place."""
    form, first = _form(names[at], names[at + 1]) if at + 1 < len(names) else ("", 0)
    count = 1
    while form and at + count < len(names) and names[at + count] == form % (first + count):
        count += 1
    return _Run(form, first, count)


def _form(name: str, follower: str) -> tuple[str, int]:
    """Return what a name and the one behind it have in common, and the name's number; "" for nothing."""
    parts, others = _DIGITS.split(name), _DIGITS.split(follower)
    if len(parts) != len(others):
        return "", 0
    unequal = [at for at, part in enumerate(parts) if part != others[at]]
    if len(unequal) != 1 or not unequal[0] % 2:
        return "", 0
    number = parts[unequal[0]]
    if len(number) > MOST_DIGITS:
        return "", 0
    parts[unequal[0]] = f"%0{len(number)}d" if number.startswith("0") else "%d"
    form = "".join(parts)
    # Numbers of equal length count up with zeros in front, or without any.
    if form % int(number) != name or form % (int(number) + 1) != follower:
        return "", 0
    return form, int(number)
