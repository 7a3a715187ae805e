"""Writing files whole: a reader, and a crash, sees the old content or the new, never half of it."""

from __future__ import annotations

import errno
import io
import os
import secrets
import select
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

STANDARD = Path("-")
"""Standard input, where a file is read; standard output, where it is written."""
WAKES = 1.0
"""Seconds after which whoever waits for bytes wakes, to heed a signal that came before the wait."""
_SHARED = stat.S_ISGID | stat.S_IWGRP


def at_home(path: str | Path) -> Path:
    """Return a path with the folder of a user in place of ``~`` or ``~user``.

    One of a user who is not there stays as it is and leads nowhere, as in a shell; ``Path.expanduser`` raises
    an error that nobody expects.
    """
    return Path(os.path.expanduser(path))  # noqa: PTH111


def full_path(path: Path) -> str:
    """Return a path from the root, with links followed, as far as it can be: two files of one name have two."""
    try:
        return str(path.resolve())
    except (OSError, RuntimeError):  # the current folder is gone; links in a circle
        return str(path)


def write_whole(path: Path, content: str | bytes, *, mode: int | None = None) -> None:
    """Replace a file, or create it, and return once it is on disk.

    Args:
        path: the file; a link at this place is replaced, not followed.
        content: text is written as UTF-8.
        mode: its permissions; None keeps those of the file that is there, and leaves a new one to the umask.

    Raises:
        OSError: it cannot be written; what was there is as it was.
    """
    if mode is None:
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(path.lstat().st_mode) if not path.is_symlink() else None
    _write(path, content, mode, Path.replace)


def begins_with(path: Path, start: bytes) -> bool:
    """Say whether a file is empty, or begins so, blanks and case aside: whether it may be of that kind.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    content = read_regular(path, len(start) + 64).lstrip()
    return not content or content[: len(start)].lower() == start


def write_output(path: Path, text: str, *, mode: int | None = None) -> None:
    """Write what somebody asked for into a file: whole or not at all, unless it is a pipe or a device.

    Args:
        path: the file.
        text: what is written, as UTF-8.
        mode: its permissions, as of ``write_whole``.

    Raises:
        OSError: it cannot be written.
    """
    if path.exists() and not path.is_file():  # a pipe, /dev/stdout
        path.write_text(text, encoding="utf-8")
    else:
        write_whole(path, text, mode=mode)


def create_whole(path: Path, content: str | bytes, *, mode: int | None = None) -> None:
    """Create a file and return once it is on disk; of two writers at the same time, the first wins.

    Args:
        content: text is written as UTF-8.
        mode: its permissions; None leaves them to the umask.

    Raises:
        FileExistsError: it is there already.
        OSError: it cannot be written.
    """
    _write(path, content, mode, lambda part, target: target.hardlink_to(part))


def read_regular(path: Path, most: int) -> bytes:
    """Return the first bytes of a file that somebody else may have put there; a pipe keeps nobody waiting.

    Args:
        most: as many bytes as are read.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return file.read(most)


def read_standard(most: int) -> bytes:
    """Return the first bytes of standard input, for a file that is called ``-``.

    Raises:
        OSError: it cannot be read.
    """
    parts: list[bytes] = []
    stream = standard_input()
    while most > 0 and (part := stream.read(most)):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def standard_input() -> IO[bytes]:
    """Return standard input, for whoever reads it from its beginning; a signal ends each wait for bytes."""
    stream = sys.stdin.buffer
    try:
        return io.BufferedReader(Pipe(stream.fileno()))
    except OSError:  # a stand-in that is no file
        return stream


class Pipe(io.RawIOBase):
    """What bytes come from at some time, such as a pipe or a terminal; a signal ends each wait for them.

    A signal that comes just before a read does not end it: its handler runs when the read has ended, which it
    may never do. So no read is begun before there is something to read.

    Args:
        descriptor: of the file, which stays open.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor

    def readable(self) -> bool:
        """Return True: it can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read what there is into a buffer, and wait for the first of it."""
        while True:
            if select.select([self._descriptor], [], [], WAKES)[0]:
                with suppress(BlockingIOError):  # another reader was quicker
                    return os.readv(self._descriptor, [buffer])


def name_of(path: Path) -> str:
    """Return how messages name a file that is read."""
    return "standard input" if path == STANDARD else str(path)


def name_of_output(path: Path) -> str:
    """Return how messages name a file that is written."""
    return "standard output" if path == STANDARD else str(path)


def make_folder(folder: Path, *, mode: int = 0o700) -> None:
    """Create a folder, and those above it, where they are missing, and return once their names are on disk.

    Args:
        folder: where it is there already, nothing is done, whatever its permissions.
        mode: of each that is made; below a folder of a group it is the group's too, whatever the umask.

    Raises:
        OSError: it cannot be made.
    """
    if folder.is_dir():
        return
    make_folder(folder.parent, mode=mode)
    with suppress(FileExistsError):  # another process was quicker
        folder.mkdir(mode=mode)
        if is_shared(folder.parent):
            folder.chmod(0o2770)
    flush_folder(folder.parent)


def is_shared(folder: Path) -> bool:
    """Say whether a folder is a group's: the group can write, and what is made there is the group's (setgid).

    Raises:
        OSError: it is not there.
    """
    return folder.stat().st_mode & _SHARED == _SHARED


def kept_mode(folder: Path) -> int:
    """Return the permissions of a file that remedy keeps in a folder, whatever the umask.

    Raises:
        OSError: the folder is not there.
    """
    return 0o660 if is_shared(folder) else 0o600


def open_kept(path: Path) -> IO[bytes]:
    """Open a file that remedy keeps, to read it and to write at its end; made where it is missing.

    In a folder of a group no link is followed: whoever put it there has other rights than whoever writes here.

    Raises:
        OSError: it cannot be opened, or is a link.
    """
    if not is_shared(path.parent):
        return open(path, "a+b", opener=lambda name, flags: os.open(name, flags, 0o600))
    if not os.path.lexists(path):
        with suppress(FileExistsError):
            create_whole(path, b"", mode=0o660)
    return open(path, "a+b", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o660))


def flush_folder(folder: Path) -> None:
    """Have the names in a folder on disk, where its file system can do that."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems
            raise
    finally:
        os.close(descriptor)


def _write(
    path: Path, content: str | bytes, mode: int | None, publish: Callable[[Path, Path], object]
) -> None:
    # Nobody can guess the name and have a link ready there; O_EXCL refuses where somebody did.
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(part, flags, 0o666 if mode is None else 0o600), "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        publish(part, path)
    finally:
        # A rename has taken it away; a link, or an error, has not.
        part.unlink(missing_ok=True)
    flush_folder(path.parent)
