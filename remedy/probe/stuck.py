"""A probe that a program on its host keeps from ending: what the host says of it on standard error. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from remedy.errors import ProbeError
from remedy.text import clipped

MOST = 64  # lines that are read: a probe starts few programs at a time
_LINE = re.compile(
    r"remedy-stuck (?P<nonce>\w{32}) (?P<pid>\d{1,10}) (?P<state>\w) (?P<command>.*)"
)
# proc_pid_stat(5): what a process does that no signal ended, and what to look at then.
_WAITS = (
    (
        "D",
        "waits in the kernel, where no signal reaches it",
        (
            "A driver, or a file system of the network, does not answer. On the host, as root: dmesg | tail "
            "-n 20; cat /proc/{pid}/stack; findmnt -t nfs,nfs4,cifs,fuse"
        ),
    ),
    (
        "T",
        "is stopped",
        "Something on the host stopped it (SIGSTOP, or a debugger): look for what, then run the command again.",
    ),
    (
        "t",
        "is stopped by a debugger",
        "Something on the host traces it: grep TracerPid /proc/{pid}/status. Then run the command again.",
    ),
)


class StuckProcess(NamedTuple):
    """A process of the probe that was left when its time was over: its number, state and command line."""

    pid: int
    state: str
    command: str


def stuck_processes(stderr: str, nonce: str) -> tuple[StuckProcess, ...]:
    """Return the processes that kept a probe from ending, as its watchdog named them (frame.sh).

    Args:
        stderr: what the host printed on standard error.
        nonce: the mark of the probe.
    """
    matches = filter(None, map(_LINE.fullmatch, stderr.splitlines()))
    return tuple(
        StuckProcess(int(match["pid"]), match["state"], match["command"].strip())
        for match in list(matches)[:MOST]
        if match["nonce"] == nonce
    )


def explain_stuck_probe(host: str, processes: tuple[StuckProcess, ...]) -> ProbeError:
    """Return the error of a host whose probe did not end in its time.

    Args:
        host: its name.
        processes: those that were left, one at least.
    """
    for state, does, step in _WAITS:
        for process in processes:
            if process.state == state:
                command = clipped(process.command or "its name is not known", 100)
                return ProbeError(
                    f"{host}: the probe did not end there: its process {process.pid} {does}: {command}",
                    next_step=step.format(pid=process.pid),
                )
    commands = [p.command for p in processes if p.command] or ["programs whose names are not known"]
    return ProbeError(
        f"{host}: the probe did not end there in its time; at work last: {clipped(commands[-1], 100)}",
        next_step="On the host: is it out of memory, or its processors busy (uptime; free -m)? Then run the "
        "command again.",
    )
