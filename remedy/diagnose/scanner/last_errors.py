"""NCCL's last warning, as torch, Paddle, XLA and nccl-tests repeat it where NCCL itself prints nothing."""

from __future__ import annotations

import re

from remedy.diagnose import lines

_HEAD = re.compile(rb"Last error: ?\r?\n\Z")
_REACH = 64  # bytes before a line in which its head ends
# Before it on its own line: XLA, and the macro of nccl-tests (common.h).
_BESIDE = re.compile(
    r"(?P<head>Last NCCL warning\(error\) log entry \(may be unrelated\)[: ]{1,2}['\"]?"
    r"|Test NCCL failure [^'\n]{1,160}'[^'/\n]{1,120} / )(?P<message>\S)"
)
WARNS = "NCCL WARN "


def as_warning(text: str, buffer: bytes, begin: int) -> str:
    """Return a line as NCCL prints it itself: what stands under "Last error:" is its warning, without its mark.

    Args:
        text: the line.
        buffer: what it stands in.
        begin: where it begins there.
    """
    if "NCCL" in text and (beside := _BESIDE.search(text)):
        at = beside.start("message")
        return f"{text[:at]}{WARNS}{text[at:]}"
    if not _HEAD.search(buffer[max(0, begin - _REACH) : begin]):
        return text
    message = lines.split(text).text
    return f"{text[: len(text) - len(message)]}{WARNS}{message}"
