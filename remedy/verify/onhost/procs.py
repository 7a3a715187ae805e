"""What the agent needs to know about the processes and sockets of its own tree, read from /proc.

It travels to the host with the agent: standard library only, Python >= 3.8. A process that ends while
it is read is not there.
"""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import os
import re
import signal
import time
from typing import Callable  # noqa: UP035  (Python 3.8)

PR_SET_PDEATHSIG = 1  # prctl(2)
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
# Socket states, include/net/tcp_states.h
ESTABLISHED, SYN_SENT, LISTEN = 1, 2, 10


def prctl(option: int, value: int) -> None:
    """Set one attribute of this process; a kernel that lacks it is no reason to stop."""
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def pids() -> list[int]:
    """List all process ids that this process can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def read(path: str) -> bytes:
    """Read the bytes of a /proc file; none when the process has gone or is not ours to read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return b""


def parent_and_state(pid: int) -> tuple[int, str]:
    """Read the parent's id and the state letter of a process; (0, "") when it has gone.

    The command's name comes in brackets and may hold any character: proc_pid_stat(5).
    """
    fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return (int(fields[1]), fields[0].decode("ascii")) if len(fields) > 1 else (0, "")


def descendants(root: int) -> list[int]:
    """List the living processes below one, whatever session or group they moved to; zombies do not count."""
    children: dict[int, list[int]] = {}
    for pid in pids():
        parent, state = parent_and_state(pid)
        # A zombie's children were handed on already: nothing is lost by leaving it out.
        if state and state not in "ZX":
            children.setdefault(parent, []).append(pid)
    tree: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        tree += below
        queue += below
    return tree


def marked(marker: str) -> list[int]:
    """List the living processes that were started with this ``NAME=value`` in their environment."""
    entry = marker.encode("ascii")
    return [
        pid
        for pid in pids()
        if entry in read(f"/proc/{pid}/environ").split(b"\0")
        and parent_and_state(pid)[1] not in ("", "Z", "X")
    ]


def end_all(root: int, marker: str, spare: set[int], grace: float) -> list[int]:
    """End a tree: TERM, a grace, then KILL until nothing is left.

    Args:
        root: the process whose descendants end; it must be their subreaper to see them all.
        marker: ``NAME=value``; processes that carry it end too, wherever they hang.
        spare: processes that stay.
        grace: seconds between TERM and KILL.

    Returns:
        what is left after all: processes that the kernel does not let go.
    """

    def remaining() -> set[int]:
        return {*descendants(root), *marked(marker)} - spare - {os.getpid()}

    def send(number: int) -> None:
        for pid in remaining():
            with contextlib.suppress(OSError):
                os.kill(pid, number)

    if grace and remaining():
        send(signal.SIGTERM)
        wait_until(lambda: not remaining(), grace)
    # Again and again: a process may have forked between the look and the blow.
    end = time.monotonic() + 5.0
    while remaining() and time.monotonic() < end:
        send(signal.SIGKILL)
        time.sleep(0.02)
    return sorted(remaining())


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until something holds, for at most this long."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)


def slurm_step() -> str:
    """Name the step of Slurm that this process is in ("JOB.STEP"); empty where Slurm did not start it.

    The environment alone shows nothing: anybody may set it. slurmstepd, which starts every process of a step,
    is one of our parents, and names the step in its title (``slurmstepd: [12.3]``). Where /proc hides the
    processes of others (hidepid), it is the environment that counts.
    """
    named = f"{os.environ.get('SLURM_JOB_ID', '')}.{os.environ.get('SLURM_STEP_ID', '')}"
    if named.startswith(".") or named.endswith("."):
        return ""
    pid = os.getppid()
    while pid > 1:
        title = re.match(rb"slurmstepd: \[([0-9]+\.[0-9]+)\]", read(f"/proc/{pid}/cmdline"))
        if title:
            return title[1].decode("ascii")
        above, state = parent_and_state(pid)
        if not state:
            return named
        pid = above
    return ""


class Socket:
    """One TCP socket: local and remote (address, port), state, and the inode that leads to its owner."""

    __slots__ = ("inode", "local", "remote", "state")

    def __init__(self, fields: list[str]) -> None:
        self.local = endpoint(fields[1])
        self.remote = endpoint(fields[2])
        self.state = int(fields[3], 16)
        self.inode = fields[9]


def endpoint(text: str) -> tuple[str, int]:
    """Decode address and port of /proc/net/tcp from their hexadecimal form; IPv4 inside IPv6 becomes IPv4.

    The address is printed as 32-bit words in the machine's own byte order: proc_net_tcp(5).
    """
    address, _, port = text.partition(":")
    raw = bytes.fromhex(address)
    words = [raw[at : at + 4] for at in range(0, len(raw), 4)]
    if ctypes.c_uint16.from_buffer_copy(b"\x01\x00").value == 1:
        words = [word[::-1] for word in words]
    ip = ipaddress.ip_address(b"".join(words))
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return str(mapped or ip), int(port, 16)


def sockets() -> list[Socket]:
    """Read all TCP sockets of this network namespace."""
    table = []
    for name in ("tcp", "tcp6"):
        for line in read(f"/proc/net/{name}").decode("ascii", "replace").splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9:
                table.append(Socket(fields))
    return table


def owned_inodes(owners: list[int]) -> set[str]:
    """Collect the inodes of the sockets that these processes hold open."""
    inodes = set()
    for pid in owners:
        folder = f"/proc/{pid}/fd"
        try:
            names = os.listdir(folder)  # noqa: PTH208
        except OSError:
            continue
        for name in names:
            try:
                target = os.readlink(f"{folder}/{name}")  # noqa: PTH115
            except OSError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    return inodes


def holder(port: int) -> str:
    """Name who listens on a port: process id, command, user id; empty when nobody does."""
    inodes = {s.inode for s in sockets() if s.state == LISTEN and s.local[1] == port}
    if not inodes:
        return ""
    for pid in pids():
        if owned_inodes([pid]) & inodes:
            command = read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode("ascii", "replace")
            owner = os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116
            return f"process {pid} of user {owner} ({command.strip()[:120]})"
    return "a process of another user"
