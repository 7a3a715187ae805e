"""Words that every room uses: lists of hosts, numbers and sizes, as people write them."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable

_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


# More names than any cluster has: a text that means more is a typing error, and would fill the memory.
MOST_NAMES = 1_000_000
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?:/(\d+))?)?")


# str.isdigit takes digits that int() does not, such as a superscript, and int() takes no 5,000 digits.
_NUMBER = re.compile(r"[0-9]{1,20}")


class BracketError(ValueError):
    """A text with brackets is no list of names; the message says why."""


def is_number(text: str) -> bool:
    """Say whether ``int`` may be called on text from elsewhere: up to 20 digits of ASCII, as of 64 bits."""
    return _NUMBER.fullmatch(text) is not None


def fold(names: Iterable[str]) -> str:
    """Return host names as one folded text, such as ``gpu[001-064],login1``."""
    # Where all hosts are as they should be there is nothing to fold.
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    return str(NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP))


def expand(text: str) -> list[str]:
    """Return the names that one folded name stands for: ``gpu[01-03]`` for three.

    Raises:
        BracketError: it stands for none.
    """
    if "[" not in text and "]" not in text:
        return [text]
    sizes = [_size(bracket) for bracket in re.findall(r"\[([^\[\]]*)\]", text)]
    if math.prod(sizes) > MOST_NAMES:
        raise BracketError(f"{text} stands for more than {MOST_NAMES} names")
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    try:
        return list(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise BracketError(f"{text} is no list of names: {error}") from error


def _size(bracket: str) -> int:
    """Return how many numbers a bracket holds at most; 1 for what cannot be read, which is refused later."""
    count = 0
    for part in bracket.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            return 1
        first, last, step = (
            int(number) for number in (match[1], match[2] or match[1], match[3] or 1)
        )
        count += max(0, last - first) // max(1, step) + 1
    return count


def limited(names: Iterable[str]) -> str:
    """Return host names as they are typed behind ``--limit``, quoted for a shell."""
    return shlex.quote(fold(names))


def listed(names: Iterable[str], most: int = 8) -> str:
    """Return names as a list in a sentence, each once: "gpu01, gpu07 and 3 more".

    Args:
        most: how many are named; the others are counted.
    """
    known = list(dict.fromkeys(names))
    head = ", ".join(known[:most])
    return head if len(known) <= most else f"{head} and {len(known) - most} more"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 host", "2 hosts"."""
    return f"{number} {noun}{'s' * (number != 1)}"


def amount(size: int) -> str:
    """Return a number of bytes in the largest unit that fits: "8.0 MiB"."""
    for unit, factor in _UNITS:
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"
