"""What a program says that could not be run on a gateway. Pure."""

from __future__ import annotations

from remedy.text import clipped, visible

SHOWN = 200
"""Characters of what was printed."""
# What ssh prints around the reason.
ORNAMENTS = ("@@@", "Warning: Permanently", "Connection closed by", "debug1:")


def last_words(text: str) -> str:
    """Return the line of a program, or of ssh, that most likely has the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(ORNAMENTS)] or lines
    return clipped(visible(telling[-1]), SHOWN) if telling else "it printed nothing"


def lacking(text: str, code: int | None, python: str) -> str:
    """Return what a gateway lacks for ClusterShell to run there; "" where that is not what ended it.

    Args:
        text: what was printed as errors.
        code: the exit code.
        python: the interpreter that was to run.
    """
    if "No module named" in text and "ClusterShell" in text:
        return f"it has no ClusterShell for {python}"
    return f"it has no {python}: {last_words(text)}" if code in (126, 127) else ""


def other_release(release: str, here: str) -> str:
    """Return that a gateway has a different ClusterShell than this machine."""
    return f"it has ClusterShell {release}, and here is {here}"
