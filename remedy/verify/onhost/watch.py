"""What the agent sees of a run while it lasts: phases, connections, shared memory, and what NCCL says.

It travels to the host with the agent: standard library only, Python >= 3.8.
"""

from __future__ import annotations

import glob
import json
import os
import re
import socket
import threading
import time
from typing import Any

from remedy.verify.onhost import nccl_ras as ras
from remedy.verify.onhost import procs, ras_answer

# A phase that NCCL is in, and how long one has to last for NCCL to be asked who is missing; in seconds.
NCCL_PHASES = ("rendezvous", "group", "barrier", "reduced", "paired")
HUNG_AFTER = 5.0
RAS_SECONDS = 8.0
UNANSWERED_AFTER = 2.0  # seconds; the second SYN is sent after one (RFC 6298, section 2)
LOG_LINES = 40
LOG_WIDTH = 400
# Memory that NCCL, torch and Open MPI name, which the killed leave behind.
SHARED = ("nccl-", "torch_", "vader_segment")


class RunWatch:
    """What is seen of the run while it lasts: phases, connections, shared memory."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.guard = 0
        self.waiting: dict[tuple[str, int, str], list[float]] = {}
        self.links: set[tuple[str, str]] = set()
        self.shm: set[str] = set()
        self.name_address = ""
        self.states: dict[int, str] = {}
        self.missed: dict[int, str] = {}
        self.phases: list[str] = []
        self.moved = 0.0
        self.asking: threading.Thread | None = None

    def progress(self, phases: list[str], now: float) -> None:
        """Note how far the ranks are; where they do not go on, ask NCCL who is missing.

        In a thread, again and again: torch ends a rank that waited too long, and what NCCL knew goes with it.
        """
        if phases != self.phases:
            self.phases, self.moved = phases, now
        hung = now - self.moved > HUNG_AFTER and set(phases) & set(NCCL_PHASES)
        if hung and not (self.asking and self.asking.is_alive()):
            self.moved = now
            self.asking = threading.Thread(target=self.ask_nccl, daemon=True)
            self.asking.start()

    def ask_nccl(self) -> None:
        """Keep what NCCL says of ranks that it misses."""
        self.missed = ras_answer.missing(ras.ask(ras.address(), RAS_SECONDS)) or self.missed

    def note_states(self, launcher: int, count: int) -> None:
        """Note the state of each rank's process while it is there, where it stays: stopped, or stuck.

        Args:
            launcher: the process that started the ranks; its command line names their program, too.
            count: of the ranks here.
        """
        ranks = {rank: value.get("pid", 0) for rank, value in self.read("phase").items()}
        # What has stopped before it began has left no word of itself.
        program = f"{self.directory}/worker.py".encode("ascii")
        unknown = (
            pid
            for pid in sorted(procs.descendants(os.getpid()))
            if pid not in (launcher, *ranks.values())
            and program in procs.read(f"/proc/{pid}/cmdline").split(b"\0")
        )
        ranks.update(zip((rank for rank in range(count) if rank not in ranks), unknown))  # noqa: B905
        before = {rank: procs.parent_and_state(pid)[1] for rank, pid in ranks.items()}
        time.sleep(0.2)
        for rank, pid in ranks.items():
            state = procs.parent_and_state(pid)[1]
            self.states[rank] = state if state == before[rank] else ""

    def resolve(self) -> None:
        """Find what the host's own name leads to: gloo offers that address to its peers.

        Left out where the environment names gloo's interface, because the name is then not used.
        """
        if os.environ.get("GLOO_SOCKET_IFNAME"):
            return
        try:
            addresses = socket.getaddrinfo(socket.gethostname(), None, 0, socket.SOCK_STREAM)
            self.name_address = str(addresses[0][4][0])
        except OSError as error:
            self.name_address = f"does not resolve ({error.strerror})"

    def read(self, kind: str) -> dict[int, dict[str, Any]]:
        """Read the JSON files of one kind, by local rank."""
        records = {}
        for path in glob.glob(f"{self.directory}/{kind}.*.json"):  # noqa: PTH207
            records[int(path.split(".")[-2])] = json.loads(procs.read(path) or b"{}")
        return records

    def look(self) -> None:
        """Note the connections of the tree, and the shared memory it holds under a name."""
        now = time.monotonic()
        tree = procs.descendants(os.getpid())
        inodes = procs.owned_inodes(tree)
        for sock in procs.sockets():
            if sock.inode not in inodes:
                continue
            if sock.state == procs.SYN_SENT:
                self.waiting.setdefault((*sock.remote, sock.inode), [now, now])[1] = now
            elif sock.state == procs.ESTABLISHED:
                self.links.add((sock.local[0], sock.remote[0]))
                self.waiting.pop((*sock.remote, sock.inode), None)
        try:
            named = any(name.startswith(SHARED) for name in os.listdir("/dev/shm"))  # noqa: PTH208, S108
        except OSError:
            named = False
        for pid in tree if named else []:
            text = procs.read(f"/proc/{pid}/maps").decode("utf-8", "replace")
            maps = re.findall(r"(/dev/shm/([\w.-]+))$", text, re.M)
            self.shm.update(path for path, name in maps if name.startswith(SHARED))

    def unanswered(self) -> list[list[Any]]:
        """List connection attempts that nobody answered: address, port, seconds."""
        longest: dict[tuple[str, int], float] = {}
        for (address, port, _), (first, last) in self.waiting.items():
            if last - first >= UNANSWERED_AFTER:
                longest[address, port] = max(last - first, longest.get((address, port), 0.0))
        return [[address, port, round(t, 1)] for (address, port), t in sorted(longest.items())]


def tail(path: str, lines: int = LOG_LINES) -> list[str]:
    """Read the last lines of a log, each shortened."""
    text = procs.read(path)[-(max(lines, 160) * LOG_WIDTH) :].decode("utf-8", "replace")
    return [line[:LOG_WIDTH] for line in text.splitlines()[-lines:]]
