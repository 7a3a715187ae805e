"""Writing host keys into files of known hosts, and taking those of a replaced machine out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from remedy.errors import RefusedError, RemedyError
from remedy.files import write_whole
from remedy.trust.certificate import ShownKey
from remedy.trust.judge import SshServer
from remedy.trust.known_hosts import Entry, Marker, fits_list

# What has a meaning of its own among the names of a line.
_SPECIAL = frozenset("*?!,|#@\"' \t\r\n")


def add_key(server: SshServer, keys: Sequence[ShownKey]) -> None:
    """Record keys that a server has proved to have, in the first file of the user's.

    Raises:
        RefusedError: its name would stand for other hosts, too.
        RemedyError: there is no such file, or it cannot be written.
    """
    if _SPECIAL & set(server.place) or not server.place.isascii():
        raise RefusedError(
            f"{server.place!r} would be no plain name in a file of known hosts",
            next_step="Give the host's address: ssh_hostname in the inventory.",
        )
    if not server.user_files:
        raise RemedyError(
            f"there is no file to record the key of {server.place} in",
            next_step="ssh_config says `UserKnownHostsFile none`: name a file, or set ssh_known_hosts_file of "
            "the inventory.",
        )
    path = server.user_files[0]
    if path.exists() and not path.is_file():
        raise RemedyError(
            f"{path} keeps no keys, and ssh_config names it for {server.place}",
            next_step="Name a file in its place: UserKnownHostsFile.",
        )
    lines = "".join(f"{server.place} {key.line}\n" for key in keys)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            whole = file.read(1) in (b"", b"\n")
            file.write((lines if whole else f"\n{lines}").encode("ascii"))
    except OSError as error:
        raise _unwritable(path, error) from error


def replace_keys(server: SshServer, keys: Sequence[ShownKey]) -> None:
    """Record keys in place of those that are known of a server.

    Raises:
        RefusedError: an old key is known by a line that stands for other hosts too, or is in a file of this
            machine; or as in ``add_key``.
        RemedyError: a file cannot be written.
    """
    old = [entry for entry in server.entries if entry.marker is Marker.HOST]
    kept = [entry for entry in old if not _is_own(entry, server)]
    if kept:
        places = ", ".join(dict.fromkeys(entry.place for entry in kept))
        raise RefusedError(
            f"the old key of {server.place} would still be accepted: {places} holds for other hosts, too",
            next_step="Correct that line by hand, then run the command again.",
        )
    for path in dict.fromkeys(entry.path for entry in old):
        _remove(path, server.place, {entry.line for entry in old if entry.path == path})
    add_key(server, keys)


def _is_own(entry: Entry, server: SshServer) -> bool:
    """Say whether a server's name can be taken out of a line, so that it is no longer meant."""
    if entry.path not in server.user_files:
        return False
    rest = _without(entry.names, server.place)
    return not rest or not fits_list(server.place, rest)


def _without(names: str, place: str) -> str:
    if names.startswith("|"):
        return ""
    return ",".join(name for name in names.split(",") if name.lower() != place.lower())


def _remove(path: Path, place: str, numbers: set[int]) -> None:
    """Take a host's name out of lines, and lines out of the file that hold for nobody then."""
    try:
        lines = path.read_bytes().decode("ascii", "surrogateescape").split("\n")
        for number in numbers:
            names = lines[number - 1].split()[0]
            rest = _without(names, place)
            lines[number - 1] = lines[number - 1].replace(names, rest, 1) if rest else ""
        kept = [line for number, line in enumerate(lines, 1) if line or number not in numbers]
        # A link stays one: whoever keeps the file elsewhere reads it there.
        write_whole(path.resolve(), "\n".join(kept).encode("ascii", "surrogateescape"))
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> RemedyError:
    return RemedyError(
        f"{path} cannot be written: {error.strerror}",
        next_step="Run the command as the user who owns the file.",
    )
