"""The block of the hosts file that is expected on a host: asked for by its digest, and put back.

The block has a line for each host of the fleet. A host that has an expected one sends the rest of its file, and
the digest of the whole; any other sends the file as it is. A claim is compared here: the file that is put
together has that digest, or the file is unknown.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache

from remedy.probe.frames import NoAnswerError, Sections

PATH = "/etc/hosts"
SECTION = "hosts-block"

LEAST = 4 << 10
"""Bytes of a block from which on it is asked for by its digest: that takes a host some processes more."""

_HEAD = re.compile(rb"([1-9][0-9]{0,6}) ([0-9a-f]{64}) ([0-9a-f]{64})")


def worth_asking(block: bytes) -> bool:
    """Say whether a digest of the block costs less than the block."""
    return len(block) >= LEAST


def marks_of(blocks: tuple[bytes, ...]) -> tuple[str, str]:
    """Return the first and the last line of the blocks, which all of them share.

    Raises:
        ValueError: they do not, or one of them is no whole lines.
    """
    marks = set()
    for block in blocks:
        lines = block.split(b"\n", 1)[:1] + block.rsplit(b"\n", 2)[1:]
        if len(lines) != 3 or lines[2] or not lines[0]:
            raise ValueError("a block that does not consist of whole lines")
        marks.add((lines[0].decode(), lines[1].decode()))
    if len(marks) != 1:
        raise ValueError("blocks with different first or last lines")
    return marks.pop()


@lru_cache(maxsize=4)
def by_digest(blocks: tuple[bytes, ...]) -> Mapping[str, bytes]:
    """Return the blocks by their SHA-256, in hexadecimal."""
    return {hashlib.sha256(block).hexdigest(): block for block in blocks}


def whole_file(sections: Sections, blocks: tuple[bytes, ...]) -> bytes | None:
    """Return the hosts file of a host that left its block out; None where it sent the file as it is.

    Args:
        sections: of the probe.
        blocks: those that were asked for.

    Raises:
        NoAnswerError: what the host sent does not fit together.
    """
    if not blocks or sections.absent(SECTION):
        return None
    head, _, rest = sections.body(SECTION).partition(b"\n")
    match = _HEAD.fullmatch(head)
    block = by_digest(blocks).get(match[2].decode()) if match else None
    content = _joined(rest, int(match[1]), block, match[3].decode()) if match and block else None
    if content is None:
        raise NoAnswerError("it changed meanwhile")
    return content


# Of a fleet that is right most hosts have the same file: then it is one object.
@lru_cache(maxsize=16)
def _joined(rest: bytes, first: int, block: bytes, digest: str) -> bytes | None:
    """Return the file whose block begins at a line; None where it does not have the digest."""
    at = 0
    for _ in range(first - 1):
        at = rest.find(b"\n", at) + 1
        if not at:
            return None
    content = b"".join((rest[:at], block, rest[at:]))
    return content if hashlib.sha256(content).hexdigest() == digest else None
