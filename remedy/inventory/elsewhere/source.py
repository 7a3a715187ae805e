"""The text that hosts are read from: a file or standard input, and what is no text."""

from __future__ import annotations

import codecs
import re
import sys
from pathlib import Path

from remedy.errors import UsageError
from remedy.files import read_standard
from remedy.inventory.elsewhere.listing import LARGEST

STDIN = "-"

# No text has these; others, such as the sequences of a terminal, show in what is said of their line.
_NO_TEXT = re.compile(r"[\x00-\x06\x0e-\x19\x1c-\x1f]")
# Windows writes what a program prints in UTF-16, with one of these in front.
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def shown_source(path: Path | None) -> str:
    """Return what a message calls the place of a text."""
    return "standard input" if path is None else str(path)


def read_text(path: Path | None) -> str:
    """Return the text of a file, or of standard input (None); bytes that are no UTF-8 show as such.

    Raises:
        UsageError: it cannot be read, is too long, or is no text.
    """
    if path is None and sys.stdin is None:
        raise UsageError(
            "standard input is closed", next_step="Give a path, or pipe a list into it."
        )
    try:
        if path is None:
            content = read_standard(LARGEST + 1)
        else:
            with path.open("rb") as file:
                content = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no path"
        raise UsageError(
            f"{shown_source(path)}: {reason}", next_step="Give a text file that can be read."
        ) from error
    if len(content) > LARGEST:
        raise UsageError(
            f"{shown_source(path)}: more than {LARGEST >> 20} MiB",
            next_step="Give the list of hosts alone.",
        )
    if content.startswith(_WIDE):
        return content.decode("utf-16", errors="replace")
    text = content.decode("utf-8-sig", errors="replace")
    if match := _NO_TEXT.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise UsageError(
            f"{shown_source(path)}: no text: line {line} has the byte 0x{ord(match[0]):02x}",
            next_step="Give a text file; one that is packed has to be unpacked first.",
        )
    return text
