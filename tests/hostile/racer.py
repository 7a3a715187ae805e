"""A user who owns a folder, and changes what its names are at the very moment when root works there."""

from __future__ import annotations

import ctypes
import hashlib
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

USER = 65534
"""nobody: an account that every host has, and that owns nothing here."""
SECRET = b"root:$6$what-no-user-may-read\n"
NAME = "nccl.conf"
IN_ALL_EVENTS = 0xFFF  # inotify(7)

Play = Callable[[str], None]
"""What the user does when something happened to a name in the folder; "" where nothing is waited for."""


class Ground:
    """A folder that plays a host: a home of a user's, and files that are root's alone.

    Args:
        folder: empty; everybody can go through the folders above it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.homes, self.home = folder / "homes", folder / "homes" / "user"
        self.sub = self.home / "sub"
        self.logs, self.roots, self.state = folder / "logs", folder / "roots", folder / "state"
        for mine in (self.homes, self.home, self.sub, self.logs, self.roots):
            mine.mkdir(mode=0o755)
        for theirs in (self.home, self.sub):
            os.chown(theirs, USER, USER)
        os.chown(self.logs, 0, USER)
        self.logs.chmod(0o775)
        for name in (NAME, ".remedy.left.1"):
            (self.roots / name).write_bytes(SECRET)
            (self.roots / name).chmod(0o600)
        self.before = self.what_is_roots()

    def theirs(self, path: Path, content: bytes) -> Path:
        """Return a file that was made the user's."""
        path.write_bytes(content)
        os.chown(path, USER, USER)
        return path

    def harm(self, report: str = "") -> str:
        """Return what the user reached that is root's, "" for nothing; ``report``: what the run printed."""
        if self.what_is_roots() != self.before:
            return f"root's files changed: {self.what_is_roots()}"
        secret = (self.roots / NAME).stat().st_ino
        for path in self.folder.rglob("*"):
            foreign = path.is_symlink() or not path.is_file() or path.stat().st_ino == secret
            if not foreign and path.parent != self.roots and SECRET in path.read_bytes():
                return f"{path} holds what only root may read"
        if hashlib.sha256(SECRET).hexdigest() in report:
            return f"the run looked at what only root may read: {report}"
        return ""

    def what_is_roots(self) -> dict[str, tuple[object, ...]]:
        return {path.name: _identity(path) for path in sorted(self.roots.iterdir())}


def _identity(path: Path) -> tuple[object, ...]:
    stat = path.lstat()
    content = path.read_bytes() if path.is_file() else b""
    return content, stat.st_uid, stat.st_gid, oct(stat.st_mode), stat.st_nlink, stat.st_mtime_ns


def temporary_name(ground: Ground) -> Play:
    """Return the play that makes each temporary file of the folder a link to root's file."""
    return lambda name: (
        _put_link(ground.home / name, ground.roots / NAME) if name.startswith(".remedy") else None
    )


def own_name(ground: Ground) -> Play:
    """Return the play that makes the file itself a link to root's, as soon as somebody looks at it."""
    return lambda name: _put_link(ground.home / NAME, ground.roots / NAME) if name == NAME else None


def new_name(ground: Ground) -> Play:
    """Return the play that puts a link to a place of root's where a file is about to be made."""
    return lambda _: _put_link(ground.home / NAME, ground.roots / "new")


def folder_name(ground: Ground) -> Play:
    """Return the play that makes a folder of the user's, and a link to root's, of one name in turns."""
    aside = ground.home / "aside"

    def flip(_: str) -> None:
        ground.sub.rename(aside)
        ground.sub.symlink_to(ground.roots)
        for _again in range(50):  # a while, so that a whole step falls into it
            ground.sub.lstat()
        ground.sub.unlink()
        aside.rename(ground.sub)

    return flip


def log_name(ground: Ground) -> Play:
    """Return the play of a member of the log folder's group: its log becomes a link to a place of root's."""
    return lambda _: _put_link(ground.logs / "log", ground.roots / "new")


def stops_all(ground: Ground) -> Play:
    """Return the play that stops each process that acts as this user in this folder."""

    def stop(_: str) -> None:
        for process in Path("/proc").iterdir():
            with suppress(OSError):
                words = (process / "cmdline").read_bytes().split(b"\0")
                if b"theirs" in words and os.fsencode(ground.home / NAME) in words:
                    os.kill(int(process.name), signal.SIGSTOP)

    return stop


def _put_link(path: Path, target: Path) -> None:
    beside = path.with_name("~")
    beside.symlink_to(target)
    beside.rename(path)


@contextmanager
def racing(play: Play, watched: Path | None) -> Iterator[None]:
    """Let the user play while the block runs: at each event of the folder, or all the time where it is None."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.setgroups([])
            os.setgid(USER)
            os.setuid(USER)
            _play(play, watched, writing)
        finally:
            os._exit(0)
    os.close(writing)
    assert os.read(reading, 1) == b"x"
    os.close(reading)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _play(play: Play, watched: Path | None, ready: int) -> None:
    events = -1
    if watched is not None:
        libc = ctypes.CDLL(None)
        events = libc.inotify_init()
        libc.inotify_add_watch(events, os.fsencode(watched), IN_ALL_EVENTS)
    os.write(ready, b"x")
    while True:
        data = os.read(events, 65536) if watched is not None else b""
        for name in _names(data) if data else [""]:
            with suppress(OSError):
                play(name)


def _names(data: bytes) -> Iterator[str]:
    """Yield the names in events of inotify(7): each has a head of 16 bytes, the last four the name's length."""
    while data:
        end = 16 + int.from_bytes(data[12:16], "little")
        yield os.fsdecode(data[16:end].rstrip(b"\0"))
        data = data[end:]
