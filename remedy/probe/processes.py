"""Processes, and the sockets that listen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address
from typing import NamedTuple

from remedy.probe.clock import Clock
from remedy.probe.frames import NoAnswerError, Sections, as_text
from remedy.text import is_number
from remedy.values import Fact

TICKS = 100
"""Clock ticks a second in /proc/PID/stat: USER_HZ, which is 100 on every Linux that runs GPUs."""

NO_READER = "a pipe that nobody reads"
"""Where an output leads whose other end is closed."""

_STAT = re.compile(r"/proc/(\d+)/stat:\d+ \((.*)\) (\S) (.*)")
_OUTPUT = re.compile(r"l\S+ .* /proc/(\d+)/fd/[12] -> (.*)")
_HOLDER = re.compile(r"/proc/(\d+)/fd:(socket:\[\d+\])")
_USER = re.compile(r'\("(.*?)",pid=(\d+),fd=\d+\)')
_FOLDER = re.compile(r"/proc/(\d+)/fd:")


ANY = "::"
"""What the kernel's table has for any address of IPv6, and maybe of IPv4."""


class Process(NamedTuple):
    """A process that is no kernel thread (proc_pid_stat(5)).

    ``started_ticks`` is the exact start in clock ticks since boot: with ``pid`` it names this process and no
    later one. ``started_at`` is that as an epoch second, give or take one, 0 when the host's clock is not
    known. ``uid``, ``cgroup`` and ``arguments`` are ``None`` for the usual daemons and for what could not be
    read. ``outputs`` are where standard output and error lead (a path, "socket:[...]", ``NO_READER``), told
    only of what PID 1 has adopted from somebody's login.
    """

    pid: int
    parent: int
    group: int
    session: int
    terminal: bool
    state: str
    name: str
    started_ticks: int
    started_at: int
    uid: int | None = None
    cgroup: str | None = None
    arguments: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None


class Listener(NamedTuple):
    """A TCP socket that listens; ``address`` "*" for any address of either family.

    The kernel's table does not say of "::" whether it takes IPv4 as well: from there it is "::" where somebody
    listens on the port for IPv4 besides, and "*" otherwise. ``holders`` are the processes that have it open;
    empty when the probe was not root.
    """

    address: str
    port: int
    holders: tuple[int, ...]


def parse_processes(sections: Sections, clock: Fact[Clock]) -> tuple[Process, ...]:
    """Read sections ``processes`` and ``process-details``; the probe's own processes are left out."""
    booted = clock.epoch_ns / 1e9 - clock.uptime if isinstance(clock, Clock) else None
    owners, details = _details(sections)
    outputs = _outputs(sections)
    rows: dict[int, Process] = {}
    for line in sections.text("processes").splitlines():
        match = _STAT.fullmatch(line)
        if match is None:
            continue
        path, rest = f"/proc/{match[1]}", match[4].split()
        ticks = int(rest[18])
        arguments = details.get(f"{path}/cmdline")
        rows[int(match[1])] = Process(
            pid=int(match[1]),
            parent=int(rest[0]),
            group=int(rest[1]),
            session=int(rest[2]),
            terminal=rest[3] != "0",
            state=match[3],
            name=match[2],
            started_ticks=ticks,
            started_at=round(booted + ticks / TICKS) if booted is not None else 0,
            uid=owners.get(path),
            cgroup=_cgroup(details.get(f"{path}/cgroup")),
            arguments=tuple("\n".join(arguments).rstrip("\t").split("\t")) if arguments else None,
            outputs=outputs.get(int(match[1])),
        )
    probe_pids = _descendants(rows, _probe_pid(sections))
    return tuple(process for pid, process in rows.items() if pid not in probe_pids)


def parse_listeners(sections: Sections, names: Mapping[int, str]) -> tuple[Listener, ...]:
    """Read section ``listeners``: ``ss -H -ltnp``, or a table of sockets and who has them open.

    Args:
        sections: the probe's.
        names: process names by pid. ss prints a process's name unescaped, and a process may name itself
            anything: a holder counts only when the process of that pid really has that name.
    """
    rows: list[tuple[Listener, str]] = []
    holders: dict[str, set[int]] = {}
    pid = 0
    for line in sections.text("listeners").splitlines():
        if row := _socket(line) or _raw_socket(line):
            listener, socket = row
            known = {
                int(user) for name, user in _USER.findall(line) if names.get(int(user)) == name
            }
            rows.append((listener._replace(holders=tuple(known)), socket))
        elif match := _HOLDER.fullmatch(line):
            holders.setdefault(match[2], set()).add(int(match[1]))
        elif match := _FOLDER.fullmatch(line):  # of ls
            pid = int(match[1])
        elif pid and line.startswith("socket:["):
            holders.setdefault(line, set()).add(pid)
    ipv4 = {listener.port for listener, _ in rows if "." in listener.address}
    return tuple(
        listener._replace(
            address="*"
            if listener.address == ANY and listener.port not in ipv4
            else listener.address.strip("[]"),
            holders=tuple(sorted({*listener.holders, *holders.get(socket, ())})),
        )
        for listener, socket in rows
    )


def _socket(line: str) -> tuple[Listener, str] | None:
    """Read a line of ss (ss(8)); return its socket's name, too."""
    words = line.split()
    if len(words) < 5 or words[0] != "LISTEN":
        return None
    address, _, port = words[3].rpartition(":")
    inode = re.search(r" ino:(\d+) ", f"{line} ")
    return Listener(address, int(port), ()), f"socket:[{inode[1] if inode else ''}]"


def _raw_socket(line: str) -> tuple[Listener, str] | None:
    """Read a line of /proc/net/tcp (Documentation/networking/proc_net_tcp.rst)."""
    if not line.startswith("/proc/net/"):
        return None
    words = line.partition(":")[2].split()
    if len(words) < 10 or words[3] != "0A":
        return None
    address, _, port = words[1].partition(":")
    return Listener(_address(address), int(port, 16), ()), f"socket:[{words[9]}]"


def _address(digits: str) -> str:
    """Return an address of the kernel's table: words in the host's byte order, which is little."""
    words = [digits[at : at + 8] for at in range(0, len(digits), 8)]
    data = b"".join(bytes.fromhex(word)[::-1] for word in words)
    if len(data) == 4:
        return ".".join(map(str, data))
    address = IPv6Address(data)
    return str(address.ipv4_mapped or address)


def _details(sections: Sections) -> tuple[dict[str, int], Mapping[str, list[str]]]:
    owners: dict[str, int] = {}
    try:
        body = sections.body("process-details")
    except NoAnswerError:
        return owners, {}
    for line in as_text(body).splitlines():
        uid, _, path = line.partition(" ")
        if not is_number(uid):
            break
        owners[path] = int(uid)
    # A path, and its lines with a colon each in front; else as grep prints them.
    lines, path = dict(sections.lines("process-details")), ""
    for line in as_text(body).split("\n"):
        if line.startswith(":"):
            lines.setdefault(path, []).append(line[1:])
        else:
            path = line
    return owners, lines


def _outputs(sections: Sections) -> Mapping[int, tuple[str, ...]]:
    """Read section ``process-outputs``: a line of ls a file, and a line for each pipe that has a reader."""
    try:
        lines = sections.text("process-outputs").splitlines()
    except NoAnswerError:
        return {}
    if "end" not in lines:
        return {}
    read = {line.removeprefix("reader ") for line in lines if line.startswith("reader ")}
    result: dict[int, tuple[str, ...]] = {}
    for line in lines:
        if match := _OUTPUT.fullmatch(line):
            target = match[2]
            if target.startswith("pipe:[") and target not in read:
                target = NO_READER
            result[int(match[1])] = (*result.get(int(match[1]), ()), target)
    return result


def _cgroup(lines: list[str] | None) -> str | None:
    """Return the path in systemd's tree: version 2, else the named hierarchy (cgroups(7))."""
    if not lines:
        return None
    paths = {line.split(":", 2)[1]: line.split(":", 2)[2] for line in lines if line.count(":") > 1}
    named = paths.get("name=systemd")
    return named if named is not None else paths.get("")


def _probe_pid(sections: Sections) -> int:
    for line in sections.text("session").splitlines():
        if line.startswith("pid "):
            return int(line[4:])
    return 0


def _descendants(rows: Mapping[int, Process], root: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid, process in rows.items():
        children.setdefault(process.parent, []).append(pid)
    result: set[int] = set()
    waiting: Iterable[int] = [root] if root else []
    while waiting:
        result.update(waiting)
        waiting = [
            child for pid in waiting for child in children.get(pid, ()) if child not in result
        ]
    return result
