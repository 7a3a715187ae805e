"""Limits of sessions that end jobs, or keep them from starting, whatever the hardware. Not a remedy.

``limits`` reports what is said here: lines of limits.conf and its folder, and what the probe's own session has
where no line says so. Nobody writes such a line for training, so it is named and stays.

Sources: limits.conf(5), pam_limits(8), getrlimit(2).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from remedy.edit.limits import UNLIMITED, LimitLine
from remedy.plan import Workbench
from remedy.probe import HostState, Kernel
from remedy.text import amount, counted
from remedy.values import Unknown

LABEL = "session-limit"
GIB = 1 << 30
LARGEST_FILE = 64 * GIB
"""A checkpoint, or a segment in /dev/shm, may be as large."""
ASSUMED_MEMORY = 64 * GIB
"""Of a host whose memory is not known."""
FEWEST: dict[str, tuple[int, str]] = {
    # item -> the least number, and what it is of
    "nproc": (1024, "processes and threads"),
    "nofile": (256, "open files"),
    "maxlogins": (4, "of its logins at a time"),
    "maxsyslogins": (4, "logins of all users at a time"),
}
_SIZES = {"as": "memory", "data": "memory", "stack": "stack", "fsize": "a file"}
_LEAST_STACK = 1 << 20
_ULIMIT = re.compile(r"\bulimit\s+(?:-[HS]\s+)?-[HS]?([a-z])\s+(\d+)\b")
_LETTERS = {
    # of bash and dash -> the item, and bytes or things of one
    "n": ("nofile", 1), "u": ("nproc", 1), "t": ("cpu", 1),
    "v": ("as", 1024), "d": ("data", 1024), "s": ("stack", 1024), "f": ("fsize", 512),
}  # fmt: skip


def note_small(bench: Workbench[Any], entries: Sequence[LimitLine]) -> None:
    """Name limits under which jobs do not live.

    Args:
        bench: with the host.
        entries: the lines of all files of limits.
    """
    host, noted = bench.host, set()
    for entry in entries:
        words = _words(host, entry.item, entry.value, per_minute=True)
        if (
            words is None
            or entry.domain.startswith("%")
            or (entry.item, entry.domain) == ("nproc", "root")
        ):
            continue
        noted.add(entry.item)
        value = "unlimited" if entry.value == UNLIMITED else str(entry.value)
        bench.blocked(
            f"{entry.path} gives {entry.domain} only {words}",
            f"{entry.path}:{entry.line}: {entry.domain} {entry.kind} {entry.item} ({value})",
            f"Remove line {entry.line} of {entry.path}, and log in again.",
            label=_label(entry.item),
        )
    for item, words in _of_session(host):
        if item not in noted:
            bench.blocked(
                f"a session over ssh has only {words}",
                f"/proc/self/limits: {item}",
                "No line of limits.conf says so: see the shell's start-up files (ulimit), and Limit*= of "
                "sshd's unit (systemctl cat ssh).",
                label=_label(item),
            )


def note_of_shells(bench: Workbench[Any]) -> None:
    """Name lines of shells' start-up files that lower a limit: login shells have it, and the probe has not."""
    mentions = () if isinstance(bench.host.mentions, Unknown) else bench.host.mentions
    for mention in mentions:
        text = mention.text.strip()
        for letter, value in [] if text.startswith("#") else _ULIMIT.findall(text):
            item, unit = _LETTERS.get(letter, ("", 1))
            words = _words(bench.host, item, int(value) * unit, per_minute=False)
            if words is not None:
                bench.blocked(
                    f"{mention.path} gives shells only {words}",
                    f"{mention.path}:{mention.line}: {text[:160]}",
                    f"Remove line {mention.line} of {mention.path}, and log in again.",
                    label=_label(item),
                )


def _label(item: str) -> str:
    return "nofile-limit" if item == "nofile" else LABEL


def _of_session(host: HostState) -> Iterator[tuple[str, str]]:
    """Yield the limits of the probe's own session that are too small, in words."""
    limits = {} if isinstance(host.limits, Unknown) else host.limits
    for item, limit in limits.items():
        is_free = item == "nproc" and host.root  # which the kernel does not hold root to
        words = _words(host, item, limit.soft, per_minute=False)
        if words is not None and not is_free:
            yield item, words


def _words(host: HostState, item: str, value: int, *, per_minute: bool) -> str | None:
    """Return what a limit leaves, in words; None where it is enough, or nothing to jobs."""
    if value == UNLIMITED:
        return None
    if item == "cpu":
        time = counted(value, "minute" if per_minute else "second")
        return f"{time} of CPU, after which a process is killed"
    if item in FEWEST:
        least, what = FEWEST[item]
        return f"{value} {what}" if value < least else None
    if item not in _SIZES:
        return None
    memory = host.kernel.memory if isinstance(host.kernel, Kernel) else ASSUMED_MEMORY
    least = {"fsize": LARGEST_FILE, "stack": _LEAST_STACK}.get(item, memory)
    return f"{amount(value)} of {_SIZES[item]} ({item})" if value < least else None
