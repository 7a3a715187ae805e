"""Files: exact content and attributes of those read whole, single lines of those only searched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from pydantic import ConfigDict

from remedy.probe import blocks as expected
from remedy.probe.frames import NoAnswerError, Sections, as_text, fact
from remedy.probe.sources import DEVICES, FOLDERS
from remedy.probe.space import Mount, mount_of
from remedy.values import Fact, Record, Unknown, once_alike, shared

LARGEST = 4 * 1024 * 1024
"""Bytes of the largest file that is sent whole; ``host/files.sh`` knows the same number."""

KERNEL_FILES = (b"/proc/", b"/sys/")
"""Where sizes say nothing: 0 in /proc, a page in /sys, whatever the kernel then prints (proc(5), sysfs(5))."""

_HOSTS = expected.PATH.encode()

MOST_PATHS = 1_000
"""Paths of which is remembered whether they are read-only, for hosts with the same mounts."""

# stat -c "%f %u %g %s": a number of a real file has no more digits, and int() takes 4,300 at most.
_FACTS = re.compile(rb"([0-9a-f]{1,8}) (\d{1,10}) (\d{1,10}) (\d{1,20}) \d+ \d+ -?\d+ (/.*)")
# Of GNU and busybox, and of uutils, which names the error's number too.
_REFUSAL = re.compile(rb"stat: .*?'(/[^']*)': (.+?)(?: \(os error \d+\))?")
_REGULAR = 0o100000
_DIRECTORY = 0o040000
_DEVICE = 0o020000
_KIND = 0o170000
_KINDS = {
    0o010000: "a named pipe (FIFO)",
    0o020000: "a character device",
    0o040000: "a directory",
    0o060000: "a block device",
    0o140000: "a socket",
}


class File(Record):
    """A file that a remedy may want to change, or that decides what the host does.

    ``path`` is the name it is known by; ``real_path`` is where it really is after following links
    (equal where there is no link). ``content`` is the exact bytes. A file that does not exist has
    ``exists=False`` and empty content. ``immutable`` is chattr(1)'s ``i`` or ``a`` on the file or its
    directory; ``read_only`` that it is on a file system mounted so. ``sources.FOLDERS`` are directories, whose
    content is empty. ``kind`` says what those of ``sources.DEVICES`` are that are none; their content is empty.
    Content may hold secrets: it is for comparing and rewriting, not for showing.
    """

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    path: str
    real_path: str
    exists: bool
    content: bytes = b""
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    immutable: bool = False
    read_only: bool = False
    kind: str = ""


# Most files are the same on all hosts of a fleet.
_file = shared(File)
_unknown = shared(Unknown)


class Mention(Record):
    """One line of a file that was only searched, such as ``export NCCL_DEBUG=INFO``, and where it stands."""

    path: str
    line: int
    text: str


def parse_mentions(sections: Sections) -> tuple[Mention, ...]:
    """Read section ``mentions``: lines of ``grep -Hn``."""
    return tuple(
        Mention(path=path, line=int(number), text=text)
        for path, number, text in _mention_lines(sections)
        if number
    )


def parse_unsearched(sections: Sections) -> Mapping[str, Unknown]:
    """Read which files, or homes, could not be searched: lines of section ``mentions`` without a number."""
    return {
        path: Unknown(reason=text) for path, number, text in _mention_lines(sections) if not number
    }


def _mention_lines(sections: Sections) -> Iterator[tuple[str, str, str]]:
    for path, lines in sections.lines("mentions").items():
        for line in lines:
            number, _, text = line.partition(":")
            yield path, number, text


def parse_files(
    sections: Sections,
    mounts: tuple[Mount, ...],
    patterns: Iterable[str],
    homes: Iterable[str],
    blocks: tuple[bytes, ...] = (),
    *,
    root: bool,
) -> dict[str, Fact[File]]:
    """Read the sections about files.

    Args:
        sections: the probe's.
        mounts: the host's mounts, to tell what is read-only.
        patterns: paths and patterns that were asked for.
        homes: paths below home directories that were asked for.
        blocks: of the hosts file, that were asked for by their digests.
        root: whether the probe ran as root, for the reason where a file could not be read.

    Returns:
        A fact for each path asked for, and for each that a pattern found.
    """
    paths = (*_plain(tuple(patterns)), *_plain(tuple(homes)))
    try:
        listing, links, stuck = sections.body("file-facts"), _links(sections), _immutable(sections)
    except NoAnswerError as error:
        return {path: Unknown(reason=str(error)) for path in paths}
    read_only = _read_only(mounts)
    contents = _AllContents(sections, blocks, root=root)
    files: dict[str, Fact[File]] = {}
    for line in listing.split(b"\n"):
        if match := _FACTS.fullmatch(line):
            path = as_text(match[5])
            if path not in files:
                real = links.get(path, path)
                files[path] = _present(
                    match, path, real, contents, stuck, read_only=read_only(real)
                )
        elif match := _REFUSAL.fullmatch(line):
            path, words = as_text(match[1]), as_text(match[2])
            if not _is_pattern(path) and path not in files:
                real = links.get(path, path)
                files[path] = _refused(path, real, words, read_only=read_only(real))
    detail = sections.by_name["file-facts"].detail
    for path in paths:
        if path not in files:
            files[path] = _unknown(reason=detail or f"{path} is missing in the answer of the host")
    return files


@once_alike
def _read_only(mounts: tuple[Mount, ...]) -> Callable[[str], bool]:
    """Return what says whether a path is on a file system that is mounted read-only."""
    # Of several mounts on one point the last hides the others.
    by_point = {mount.point: mount for mount in mounts}

    @lru_cache(maxsize=MOST_PATHS)
    def is_read_only(path: str) -> bool:
        mount = mount_of(path, by_point)
        return mount is not None and mount.read_only

    return is_read_only


def _present(
    match: re.Match[bytes],
    path: str,
    real: str,
    contents: _AllContents,
    stuck: set[str],
    *,
    read_only: bool,
) -> Fact[File]:
    """Return a file that stat(1) showed, with its content.

    Args:
        match: of ``_FACTS``.
        path: of the file.
        real: where the file is after following links.
        contents: what was read of all files.
        stuck: paths that are immutable or append-only.
        read_only: whether its file system is mounted so.
    """
    mode, size = int(match[1], 16), int(match[4])
    is_device = path in DEVICES
    kind = (
        _KINDS.get(mode & _KIND, "a regular file") if is_device and mode & _KIND != _DEVICE else ""
    )
    content = _content(contents, match[5], path, mode, size, real)
    if isinstance(content, Unknown):
        return content
    return _file(
        path=path,
        real_path=real,
        exists=True,
        content=content,
        mode=mode & 0o7777,
        uid=int(match[2]),
        gid=int(match[3]),
        immutable=bool(stuck and {path, real, _directory(path), _directory(real)} & stuck),
        read_only=read_only,
        kind=kind,
    )


def _refused(path: str, real: str, words: str, *, read_only: bool) -> Fact[File]:
    """Return a file that stat(1) could not show: one that does not exist, or unknown with its words."""
    if words not in ("No such file or directory", "Not a directory"):
        return Unknown(reason=f"{path} could not be read: {words}")
    if not real:
        return Unknown(reason=f"{path} is a link that leads nowhere")
    return _file(path=path, real_path=real, exists=False, read_only=read_only)


class _Last(NamedTuple):
    """A file as it was printed last: its lines, their content, and that without the end of the last line."""

    lines: bytes = b""
    content: bytes = b""
    cut: bytes = b""


# Files that all hosts may have, such as the hosts file.
_last: dict[bytes, _Last] = {}
_NOTHING = _Last()
SHORT, MOST_LAST = 4 << 10, 64
"""Bytes of a file of which many are remembered, and how many."""
LONG, MOST_LONG = 1 << 20, 16
"""Bytes of a file that is too long for it, and how many are remembered that are not short."""


def _keep(path: bytes, new: _Last) -> None:
    size = len(new.lines)
    if size >= LONG:
        return
    if path not in _last or size > SHORT >= len(_last[path].lines):
        long = sum(len(known.lines) > SHORT for known in _last.values())
        if len(_last) >= MOST_LAST or (size > SHORT and long >= MOST_LONG):
            return
    _last[path] = new


class _Contents:
    """The bytes of section ``file-contents``, read file after file in the order in which they were printed."""

    def __init__(self, body: bytes, reason: str) -> None:
        self.body, self.reason = body + b"\n", reason
        self.position = 0

    def read(self, path: bytes, size: int | None) -> bytes | None:
        """Return the content of the file at ``path``, ``None`` when it is not what its size says.

        Every line has the path in front, so nothing in a file can pass for another file. grep ends the last
        line also where the file does not: the size tells. Without a size, any line that was printed counts.
        """
        prefix = path + b":"
        begin = end = self.position
        last = _last.get(path, _NOTHING)
        if last.lines and self.body.startswith(last.lines, begin):  # as on the host before
            end += len(last.lines)
        else:
            last = _NOTHING
        while self.body.startswith(prefix, end):
            end = self.body.index(b"\n", end) + 1
        if end == begin:
            return b"" if size == 0 else None
        self.position = end
        if not last.content or end != begin + len(last.lines):
            content = self.body[begin + len(prefix) : end].replace(b"\n" + prefix, b"\n")
            last = _Last(self.body[begin:end], content, content[:-1])
            _keep(path, last)
        # The same object for all hosts, whose hash is known.
        if size is not None and len(last.content) == size + 1:
            return last.cut
        return last.content if size in (None, len(last.content)) else None


class _AllContents:
    """What was read by the probe itself, and what was read in homes with the rights of their users alone.

    A user can say what is in the own home, and of no other file.
    """

    def __init__(self, sections: Sections, blocks: tuple[bytes, ...], *, root: bool) -> None:
        self._hosts = fact(lambda: expected.whole_file(sections, blocks))
        # As root a file of the right kind and size is always read, unless it changed in between.
        reason = "it changed meanwhile" if root else "that needs root"
        self._homes: tuple[bytes, ...] = ()
        try:
            self._own = _Contents(sections.body("file-contents"), reason)
        except NoAnswerError as error:
            self._own = _Contents(b"", str(error))
        try:
            head, _, body = sections.body("guest-contents").partition(b"\n\n")
            self._homes = tuple(home + b"/" for home in head.split(b"\n") if home)
        except NoAnswerError:
            body = b""
        self._guests = _Contents(body, "its user may not read it, or it changed meanwhile")

    def of(self, path: bytes) -> _Contents:
        """Return where the content of the file at ``path`` is."""
        return self._guests if path.startswith(self._homes) else self._own

    def read(self, path: bytes, size: int | None) -> bytes | Unknown:
        """Return the content of the file at ``path``, whose size is known for files on disks."""
        if path == _HOSTS and self._hosts is not None:
            if isinstance(self._hosts, bytes) and len(self._hosts) != size:
                return Unknown(reason="it changed meanwhile")
            return self._hosts
        source = self.of(path)
        content = source.read(path, size)
        return Unknown(reason=source.reason) if content is None else content


def _content(
    contents: _AllContents, path: bytes, name: str, mode: int, size: int, real: str
) -> bytes | Unknown:
    # How sysctl.d(5) and systemd switch a file off.
    if real == "/dev/null" or name in DEVICES:
        if mode & _KIND == _REGULAR and size <= LARGEST:
            contents.of(path).read(path, size)  # a file in its place is printed with all others
        return b""
    if mode & _KIND != _REGULAR:
        if mode & _KIND == _DIRECTORY and name in FOLDERS:
            return b""
        kind = _KINDS.get(mode & _KIND, "something else")
        return Unknown(reason=f"{name} is {kind}, and not a regular file")
    if size > LARGEST:
        return Unknown(reason=f"{name} has {size:,} bytes, and is larger than {LARGEST >> 20} MiB")
    if b":" in path or b"'" in path:
        return Unknown(reason=f"{name} has a name that the probe does not read")
    if path.startswith(KERNEL_FILES):
        content = contents.of(path).read(path, None)
        return Unknown(reason=f"{name} is empty, or not to be read") if content is None else content
    known = contents.read(path, size)
    if isinstance(known, Unknown):
        return Unknown(reason=f"{name} could not be read: {known.reason}")
    return known


def _links(sections: Sections) -> Mapping[str, str]:
    pairs = (line.rpartition("\t") for line in sections.text("file-links").splitlines())
    return {path: target for target, tab, path in pairs if tab}


def _immutable(sections: Sections) -> set[str]:
    """Return the paths that chattr(1) has made immutable or append-only."""
    rows = (line.partition(" ") for line in sections.text("file-attributes").splitlines())
    return {path for flags, _, path in rows if "i" in flags or "a" in flags}


def _directory(path: str) -> str:
    return path.rpartition("/")[0]


@lru_cache(maxsize=16)
def _plain(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return those that are paths: each host is asked for the same."""
    return tuple(path for path in patterns if not _is_pattern(path))


def _is_pattern(path: str) -> bool:
    return any(letter in path for letter in "*?[")
