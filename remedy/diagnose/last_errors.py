"""NCCL's last warning, as torch and others repeat it under "Last error:", where NCCL itself prints nothing."""

from __future__ import annotations

import re

from remedy.diagnose import lines

_HEAD = re.compile(rb"Last error: ?\r?\n\Z")
_REACH = 64  # bytes before a line in which its head ends
WARNS = "NCCL WARN "


def as_warning(text: str, buffer: bytes, begin: int) -> str:
    """Return a line as NCCL prints it itself: what stands under "Last error:" is its warning, without its mark.

    Args:
        text: the line.
        buffer: what it stands in.
        begin: where it begins there.
    """
    if not _HEAD.search(buffer[max(0, begin - _REACH) : begin]):
        return text
    message = lines.split(text).text
    return f"{text[: len(text) - len(message)]}{WARNS}{message}"
