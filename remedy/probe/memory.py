"""Shared memory: the files of /dev/shm, and the segments, semaphores and queues of System V."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from remedy.probe.frames import NoAnswerError, Sections, fact
from remedy.probe.processes import Process
from remedy.probe.space import Space
from remedy.text import is_number
from remedy.values import Fact, Record, Unknown

_FILE = re.compile(r"(\d+) (\d+) (\d+) (\d+) (\d+) (\d+) ([0-9a-f]+) (-?\d+) (-?\d+) (\d+) (/.*)")
_MARKED = 0o1000  # SHM_DEST: goes by itself at the last detach


class ShmFile(NamedTuple):
    """A file of /dev/shm; ``allocated`` are the bytes it takes, times are epoch seconds."""

    path: str
    device: int
    inode: int
    size: int
    allocated: int
    uid: int
    mode: int
    modified_at: int
    changed_at: int
    links: int


class SharedMemory(Record):
    """What is in /dev/shm (shm_overview(7)): its size and use in bytes, its files, and who uses them.

    ``holders`` maps the inode of each file that is mapped or open to the pids; a file that is not in it is used
    by nobody. It is unknown when the probe was not root: other users' processes cannot be seen then.
    """

    size: int
    used: int
    files: tuple[ShmFile, ...]
    holders: Fact[Mapping[int, tuple[int, ...]]]


class Segment(NamedTuple):
    """A System V shared memory segment (proc(5), /proc/sysvipc/shm); times are epoch seconds, 0 for never.

    ``creator_started_at`` and ``last_started_at`` tell when the process that has the pid now was started:
    ``None`` when there is none, and later than ``changed_at`` when the pid has been used again.
    """

    id: int
    key: int
    mode: int
    size: int
    creator: int
    last: int
    attached: int
    uid: int
    creator_uid: int
    attached_at: int
    detached_at: int
    changed_at: int
    marked: bool
    creator_started_at: int | None
    last_started_at: int | None


class Semaphores(NamedTuple):
    """A set of System V semaphores (/proc/sysvipc/sem)."""

    id: int
    key: int
    size: int
    uid: int
    creator_uid: int
    operated_at: int
    changed_at: int


class Queue(NamedTuple):
    """A System V message queue (/proc/sysvipc/msg); times are epoch seconds, 0 for never."""

    id: int
    key: int
    messages: int
    bytes: int
    last_sender: int
    last_receiver: int
    uid: int
    creator_uid: int
    sender_started_at: int | None
    receiver_started_at: int | None
    sent_at: int = 0
    received_at: int = 0
    changed_at: int = 0


class SysvIpc(Record):
    """The System V objects of the host's IPC namespace; those of containers are in theirs."""

    segments: tuple[Segment, ...]
    semaphores: tuple[Semaphores, ...]
    queues: tuple[Queue, ...]


def parse_shared_memory(
    sections: Sections, spaces: Fact[Mapping[str, Space]], *, root: bool
) -> SharedMemory:
    """Read sections ``shm`` and ``shm-holders``."""
    if isinstance(spaces, Unknown):
        raise NoAnswerError(spaces.reason)
    if "/dev/shm" not in spaces:  # noqa: S108 - a fact about the host, nothing is made there
        raise NoAnswerError("there is no /dev/shm")
    space = spaces["/dev/shm"]  # noqa: S108
    files = []
    for line in sections.text("shm").splitlines():
        if match := _FILE.fullmatch(line):
            device, inode, size, blocks, uid = (int(match[at]) for at in range(1, 6))
            modified, changed, links = (int(match[at]) for at in (8, 9, 10))
            files.append(
                ShmFile(
                    match[11],
                    device,
                    inode,
                    size,
                    blocks * 512,
                    uid,
                    int(match[7], 16) & 0o7777,
                    modified,
                    changed,
                    links,
                )
            )
    return SharedMemory(
        size=space.size,
        used=space.used,
        files=tuple(files),
        holders=fact(lambda: _holders(sections, root=root)),
    )


def parse_sysv(sections: Sections, processes: Fact[tuple[Process, ...]]) -> SysvIpc:
    """Read /proc/sysvipc; whose creator lives is told from the processes, so without those nothing is told."""
    if isinstance(processes, Unknown):
        raise NoAnswerError(f"the processes are not known: {processes.reason}")
    started = {process.pid: process.started_at for process in processes}
    lines = sections.lines("kernel")
    return SysvIpc(
        segments=tuple(
            Segment(
                id=row["shmid"],
                key=row["key"],
                mode=row["perms"] & 0o777,
                size=row["size"],
                creator=row["cpid"],
                last=row["lpid"],
                attached=row["nattch"],
                uid=row["uid"],
                creator_uid=row["cuid"],
                attached_at=row["atime"],
                detached_at=row["dtime"],
                changed_at=row["ctime"],
                marked=bool(row["perms"] & _MARKED),
                creator_started_at=started.get(row["cpid"]),
                last_started_at=started.get(row["lpid"]),
            )
            for row in _table(lines["/proc/sysvipc/shm"])
        ),
        semaphores=tuple(
            Semaphores(
                row["semid"],
                row["key"],
                row["nsems"],
                row["uid"],
                row["cuid"],
                row["otime"],
                row["ctime"],
            )
            for row in _table(lines["/proc/sysvipc/sem"])
        ),
        queues=tuple(
            Queue(
                row["msqid"],
                row["key"],
                row["qnum"],
                row["cbytes"],
                row["lspid"],
                row["lrpid"],
                row["uid"],
                row["cuid"],
                started.get(row["lspid"]),
                started.get(row["lrpid"]),
                row["stime"],
                row["rtime"],
                row["ctime"],
            )
            for row in _table(lines["/proc/sysvipc/msg"])
        ),
    )


def _holders(sections: Sections, *, root: bool) -> Mapping[int, tuple[int, ...]]:
    if sections.absent("shm"):
        return {}
    if not root:
        raise NoAnswerError("seeing what other users' processes hold needs root")
    lines = sections.text("shm-holders").split("\n")
    if "end" not in lines:
        raise NoAnswerError("it did not answer in time")
    holders: dict[int, set[int]] = {}
    for line in lines:
        pid, _, inode = line.partition(" ")
        if is_number(pid) and is_number(inode):
            holders.setdefault(int(inode), set()).add(int(pid))
    return {inode: tuple(sorted(pids)) for inode, pids in holders.items()}


def _table(lines: list[str]) -> Iterable[Mapping[str, int]]:
    """Yield the rows of a table of /proc/sysvipc by column; the permissions are in octal."""
    columns = lines[0].split()
    for line in lines[1:]:
        row = dict(zip(columns, line.split(), strict=False))
        yield {name: int(value, 8 if name == "perms" else 10) for name, value in row.items()}
