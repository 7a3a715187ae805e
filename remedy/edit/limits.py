"""Reading limits.conf(5): what pam_limits gives to a session of root, and of any other user."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from remedy.text import is_number

UNLIMITED = -1
KIB_ITEMS = frozenset(("memlock", "stack", "as", "core", "data", "fsize", "rss"))
"""Items that the file gives in KiB."""

_LINE = re.compile(r"(\S+)\s+(soft|hard|-)\s+(\S+)\s+(\S+)")


@dataclass(frozen=True)
class LimitLine:
    """A line that counts: domain, "soft", "hard" or "-" for both, item, and value (-1: no limit)."""

    path: str
    line: int
    domain: str
    kind: str
    item: str
    value: int

    def concerns(self, item: str, kind: str) -> bool:
        """Return whether it sets that limit."""
        return self.item == item and self.kind in ("-", kind)


# Most hosts of a fleet have the same files.
@lru_cache(maxsize=64)
def parse_limits_file(path: str, content: bytes) -> tuple[LimitLine, ...]:
    """Return the entries of one file; sizes in bytes. Lines that pam_limits ignores are left out."""
    entries = []
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        match = _LINE.fullmatch(line.split("#", 1)[0].strip())
        if match is None:
            continue
        domain, kind, item, text = match.groups()
        if text in ("unlimited", "infinity", "-1"):
            value = UNLIMITED
        elif is_number(text):
            value = int(text) * (1024 if item in KIB_ITEMS else 1)
        else:
            continue
        entries.append(LimitLine(path, number, domain, kind, item, value))
    return tuple(entries)


def decides(entries: Iterable[LimitLine], domain: str, item: str, kind: str) -> LimitLine | None:
    """Return the entry that decides a limit for ``domain`` ("*" or "root"): the last one; None without any.

    ``*`` does not cover root (limits.conf(5)), and entries for users and groups are not considered here.
    """
    hits = [e for e in entries if e.domain == domain and e.concerns(item, kind)]
    return hits[-1] if hits else None


def at_least(value: int, least: int) -> bool:
    """Return whether a limit is no lower than another."""
    return value == UNLIMITED or (least != UNLIMITED and value >= least)
