"""Mounts, and the room on those that remedies write to."""

from __future__ import annotations

import re
from collections.abc import Mapping

from remedy.probe.frames import Sections
from remedy.values import Record, shared

_OCTAL = re.compile(r"\\([0-7]{3})")


class Mount(Record):
    """One line of /proc/self/mountinfo (proc_pid_mountinfo(5)); ``device`` is the kernel's major:minor."""

    point: str
    device: str
    kind: str
    source: str
    read_only: bool
    options: str


class Space(Record):
    """The room of a file system (statfs(2)) in bytes, and its inodes; ``kind`` as stat(1) names it."""

    path: str
    kind: str
    size: int
    used: int
    available: int
    inodes: int
    inodes_free: int


_mount = shared(Mount)


def parse_mounts(sections: Sections) -> tuple[Mount, ...]:
    """Read /proc/self/mountinfo, in the order of mounting: a later mount hides an earlier one."""
    mounts = []
    for line in sections.lines("kernel")["/proc/self/mountinfo"]:
        head, _, right = line.partition(" - ")
        _, _, device, _, point, options, *_ = head.split(" ")
        kind, source, super_options = (*right.split(" "), "", "")[:3]
        mounts.append(
            _mount(
                point=_unescape(point),
                device=device,
                kind=kind,
                source=_unescape(source),
                read_only="ro" in options.split(",") or "ro" in super_options.split(","),
                options=f"{options},{super_options}",
            )
        )
    return tuple(mounts)


def mount_of(path: str, mounts: Mapping[str, Mount]) -> Mount | None:
    """Return the mount that holds ``path``: the one with the longest mount point.

    Args:
        path: an absolute path.
        mounts: by mount point; of several on one point, the last, which hides the others.
    """
    while path not in mounts and path.strip("/"):
        path = path.rpartition("/")[0] or "/"
    return mounts.get(path)


def parse_space(sections: Sections) -> Mapping[str, Space]:
    """Read section ``space``: ``stat -f``, one line a path."""
    spaces = {}
    for line in sections.text("space").splitlines():
        words = line.split(" ", 7)
        if len(words) != 8:
            continue
        kind, path = words[0], words[7]
        block, blocks, free, available, inodes, inodes_free = (int(word) for word in words[1:7])
        spaces[path] = Space(
            path=path,
            kind=kind,
            size=block * blocks,
            used=block * (blocks - free),
            available=block * available,
            inodes=inodes,
            inodes_free=inodes_free,
        )
    return spaces


def _unescape(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)
