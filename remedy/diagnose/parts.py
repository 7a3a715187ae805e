"""Logs of several files in one, as ``tail`` and ``head`` print them: each under a line with its name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from remedy.diagnose.reader import Source, from_text, whole

LARGEST = 8 << 20  # bytes of a log that is taken apart
MOST = 64  # files in one
_NAME = re.compile(rb"==> (?P<name>[^\n\r]{1,200}) <==\s*")
_ANY = re.compile(rb"^==> [^\n\r]{1,200} <==", re.MULTILINE)


def parts_of(
    source: Source, first: bytes, blocks: Iterator[bytes]
) -> tuple[tuple[Source, ...], Iterator[bytes]]:
    """Return the files that a log holds, each as a log of its own, and the blocks of the log.

    Lines keep their numbers: those of other files are empty.

    Args:
        source: the log.
        first: its first block.
        blocks: all of them.

    Returns:
        No files where the log names fewer than two.
    """
    if not _ANY.search(first):
        return (), blocks
    data, blocks = whole(blocks, LARGEST)
    files = {} if data is None else _files(data)
    own = files.pop(b"", b"")
    if len(files) < 2:
        return (), blocks
    parts = [from_text(f"{source.name}/{_shown(name)}", text) for name, text in files.items()]
    if own.strip():
        parts.append(from_text(source.name, own))
    parts[0].trouble = source.trouble
    return tuple(parts), blocks


def _files(data: bytes) -> dict[bytes, bytes]:
    """Return the text of each file by its name; what stands before the first has none."""
    lines = data.split(b"\n")
    owners: list[bytes] = []
    owner = b""
    for line in lines:
        match = _NAME.fullmatch(line)
        owner = match["name"] if match else owner
        owners.append(b"\n" if match else owner)
    names = dict.fromkeys((b"", *(name for name in owners if name != b"\n")))
    if len(names) > MOST:
        return {}
    return {
        name: b"\n".join(
            line if of == name else b"" for line, of in zip(lines, owners, strict=True)
        ).rstrip(b"\n")
        for name in names
    }


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "replace")
