"""Words that every room uses: lists of hosts, numbers and sizes, as people write them."""

from __future__ import annotations

from collections.abc import Iterable

_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def fold(names: Iterable[str]) -> str:
    """Return host names as one folded text, such as ``gpu[001-064],login1``."""
    # Where all hosts are as they should be there is nothing to fold.
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    return str(NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP))


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
