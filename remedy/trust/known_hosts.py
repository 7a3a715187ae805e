"""known_hosts files, read as OpenSSH reads them.

The format is that of sshd(8), SSH_KNOWN_HOSTS FILE FORMAT; where that page leaves something open, this follows
OpenSSH's hostfile.c and match.c: a line that cannot be read is passed over, whatever else the file holds.
"""

from __future__ import annotations

import base64
import binascii
import enum
import hmac
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

# The longest pattern that OpenSSH's match_pattern_list compares.
_LONGEST_PATTERN = 1022
_HASHED = "|1|"
_SALT_BYTES = 20


NOTHING: tuple[Entry, ...] = ()


class Marker(str, enum.Enum):
    """What a line says of its key."""

    HOST = ""
    AUTHORITY = "@cert-authority"
    REVOKED = "@revoked"


@dataclass(frozen=True)
class Entry:
    """A line of a file.

    Args:
        marker: what it says of the key.
        names: of whom, as it is written there.
        kind: the key's type.
        blob: the key.
        path: the file.
        line: its number there.
    """

    marker: Marker
    names: str
    kind: str
    blob: bytes = field(repr=False)
    path: Path
    line: int

    @property
    def place(self) -> str:
        """Where it is written."""
        return f"{self.path}:{self.line}"


class KnownHosts:
    """The entries of several files.

    Args:
        entries: in the files' order.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._plain: dict[str, list[Entry]] = {}
        self._hashed: list[tuple[bytes, Entry]] = []
        self._patterns: list[Entry] = []
        for entry in entries:
            salt = _salt(entry.names)
            if salt is not None:
                self._hashed.append((salt, entry))
            elif any(letter in entry.names for letter in "*?!"):
                self._patterns.append(entry)
            else:
                for name in entry.names.lower().split(","):
                    self._plain.setdefault(name, []).append(entry)

    def of(self, name: str) -> tuple[Entry, ...]:
        """Return the entries of a host, named in lower case, ``[name]:port`` where the port is not 22."""
        hashed = [entry for salt, entry in self._hashed if entry.names == _hash(salt, name)]
        patterns = [entry for entry in self._patterns if fits_list(name, entry.names)]
        return (*dict.fromkeys(self._plain.get(name.lower(), ())), *patterns, *hashed)


def read_known_hosts(paths: Sequence[Path]) -> KnownHosts:
    """Return what several files say; one that is not there, or cannot be read, says nothing."""
    files = tuple(_entries(path) for path in paths)
    key = tuple(paths)
    if key not in _indexes or any(a is not b for a, b in zip(_indexes[key][0], files, strict=True)):
        _indexes[key] = (files, KnownHosts(chain.from_iterable(files)))
    return _indexes[key][1]


def parse_line(text: str, path: Path, line: int) -> Entry | None:
    """Return the entry of a line; None for a comment and for what cannot be read."""
    words = text.split()
    marker = Marker.HOST
    if words and words[0] in (Marker.AUTHORITY.value, Marker.REVOKED.value):
        marker = Marker(words.pop(0))
    if len(words) < 3 or words[0].startswith(("#", "@")):
        return None
    names, kind, key = words[:3]
    try:
        blob = base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        return None
    if blob[:4] != len(kind).to_bytes(4, "big") or blob[4 : 4 + len(kind)] != os.fsencode(kind):
        return None
    return Entry(marker, names, kind, blob, path, line)


def fits_list(name: str, patterns: str) -> bool:
    """Say whether a name fits a list of patterns: one at least, and none with an exclamation mark."""
    name = name.lower()
    fits = False
    for pattern in patterns.lower().split(","):
        negated, pattern = pattern.startswith("!"), pattern.removeprefix("!")
        if len(pattern) > _LONGEST_PATTERN:
            return False
        if fits_pattern(name, pattern):
            if negated:
                return False
            fits = True
    return fits


def fits_pattern(name: str, pattern: str) -> bool:
    """Say whether a name fits a pattern, in which ``*`` is any text and ``?`` any letter.

    Brackets stand for themselves. A ``*`` that fitted too little is tried again from its own place alone: the
    time is at most the product of the lengths.
    """
    at = here = 0
    star = back = -1
    while here < len(name):
        if at < len(pattern) and pattern[at] == "*":
            star, back = at, here
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", name[here]):
            at, here = at + 1, here + 1
        elif star >= 0:
            back += 1
            at, here = star + 1, back
        else:
            return False
    return not pattern[at:].strip("*")


# What the files held when their index was made: a fleet asks once for each of its hosts.
_indexes: dict[tuple[Path, ...], tuple[tuple[tuple[Entry, ...], ...], KnownHosts]] = {}
_read: dict[Path, tuple[tuple[int, ...], tuple[Entry, ...]]] = {}


def _entries(path: Path) -> tuple[Entry, ...]:
    """Return the entries of a file, which is read again where it has changed."""
    try:
        status = path.stat()
        sign = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if path not in _read or _read[path][0] != sign:
            text = path.read_bytes().decode("ascii", "surrogateescape")
            lines = (
                parse_line(line, path, number) for number, line in enumerate(text.split("\n"), 1)
            )
            _read[path] = (sign, tuple(entry for entry in lines if entry is not None))
    except OSError:
        return NOTHING
    return _read[path][1]


def _salt(names: str) -> bytes | None:
    """Return the salt of a hashed name; None where it is none."""
    if not names.startswith(_HASHED):
        return None
    try:
        salt = base64.b64decode(names.removeprefix(_HASHED).partition("|")[0], validate=True)
    except (binascii.Error, ValueError):
        return b""
    return salt if len(salt) == _SALT_BYTES else b""


def _hash(salt: bytes, name: str) -> str:
    digest = hmac.digest(salt, name.encode("utf-8", "surrogateescape"), "sha1")
    return f"{_HASHED}{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"
