"""What a proof in parts leaves open: however long the reason of a verdict is, that is never cut."""

from __future__ import annotations

MARK = "not proved: "


def with_caveat(reason: str) -> tuple[str, str]:
    """Return the reason of a verdict, and what it leaves open, "" for nothing."""
    head, mark, caveat = reason.partition(f"; {MARK}")
    return head, f"{MARK}{caveat}" if mark else ""
