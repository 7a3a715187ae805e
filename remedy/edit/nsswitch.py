"""Editing nsswitch.conf(5): the hosts file is asked first, and nothing else changes.

Works on bytes; lines of other databases come through byte for byte.
"""

from __future__ import annotations

import re

FILES = b"files"
_LINE = re.compile(
    rb"^(?P<head>[ \t]*hosts[ \t]*:[ \t]*)(?P<services>[^#\r\n]*)(?P<rest>.*)\Z", re.DOTALL
)
_WORD = re.compile(rb"\[[^\]]*\]|[^\s\[\]]+")


def files_first(content: bytes) -> bytes:
    """Return nsswitch.conf with ``files`` in front of all other services of the line ``hosts:``.

    An action that follows ``files`` (``[NOTFOUND=return]``) goes: in front, it would end what comes after it.
    Where there is no such line, or it is empty, the resolver's usual ``files dns`` is written.
    """
    lines = content.splitlines(keepends=True)
    changed = [_edited(line) for line in lines]
    if any(_LINE.match(line) for line in lines):
        return b"".join(changed)
    if lines and not lines[-1].endswith(b"\n"):
        changed.append(b"\n")
    return b"".join([*changed, b"hosts: files dns\n"])


def _edited(line: bytes) -> bytes:
    match = _LINE.match(line)
    if match is None:
        return line
    words = _WORD.findall(match["services"])
    others = [
        word
        for at, word in enumerate(words)
        if word != FILES and not (word.startswith(b"[") and words[at - 1 : at] in ([FILES], []))
    ]
    if words[:1] == [FILES]:
        return line
    blanks = match["services"][len(match["services"].rstrip()) :]
    services = [FILES, *(others or [b"dns"] * (not words))]
    return match["head"] + b" ".join(services) + blanks + match["rest"]
