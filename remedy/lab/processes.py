"""The processes and control groups that carry a lab's hosts, found by what is really there."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from remedy.errors import LabError
from remedy.lab import machine
from remedy.lab.paths import LabPaths


@dataclass(frozen=True)
class Processes:
    """The processes of this machine that carry a host.

    Args:
        supervisors: those that boot it again after a reboot.
        nspawn: those that hold it.
        inside: everything in its control groups.
    """

    supervisors: list[int]
    nspawn: list[int]
    inside: list[int]


def find(paths: LabPaths, host: str | None = None) -> Processes:
    """Find a host's processes, or those of all of a lab's hosts, by what is really there.

    Args:
        paths: which lab.
        host: its inventory name; None for all.
    """
    hosts = paths.folder / "hosts"
    supervisors, nspawn = [], []
    for pid, words in machine.processes():
        if len(words) > 2 and words[1].endswith("/boot.sh"):
            folder = Path(words[3] if words[2] == "--inside" else words[2])
            if folder.parent == hosts and host in {None, folder.name}:
                supervisors.append(pid)
        elif words[0].endswith("systemd-nspawn"):
            for word in words:
                root = Path(word.removeprefix("--directory="))
                if root.parent.parent == hosts and host in {None, root.parent.name}:
                    nspawn.append(pid)
    inside = []
    for group in host_cgroups(paths, host):
        # Not a glob: groups come and go meanwhile, which os.walk takes as it is.
        for below, _, _ in os.walk(group):
            try:
                pids = [int(pid) for pid in (Path(below) / "cgroup.procs").read_text().split()]
            except OSError:
                continue
            # 0 stands for a process that cannot be named here; to kill(2) it means this process's
            # group.
            inside += [pid for pid in pids if pid > 0]
    return Processes(supervisors, nspawn, inside)


def kill_hosts(paths: LabPaths, hosts: Sequence[str] | None) -> None:
    """Take the power of some hosts away, and wait until nothing of them runs.

    Args:
        paths: which lab.
        hosts: their inventory names; None for whatever of the lab is there.

    Raises:
        LabError: something does not end.
    """
    names: Sequence[str | None] = [None] if hosts is None else hosts
    left: list[int] = []
    # Twice at least: what the first look found may have started something just before it died.
    for _ in range(5):
        left = []
        for name in names:
            found = find(paths, name)
            # Supervisors first: they would boot the host again.
            for group in (found.supervisors, found.nspawn, found.inside):
                machine.kill(group)
                left += group
        if not left:
            break
        machine.wait_gone(left, 5.0)
    else:
        raise LabError(
            f"Processes {left} of the lab do not end.", next_step="Run the command again."
        )
    for name in names:
        for cgroup in host_cgroups(paths, name):
            _remove_cgroup(cgroup)


def cgroups() -> list[Path]:
    """The control group hierarchies that a host's systemd works in, each with a folder for labs.

    Under a systemd of this machine there is none: that gives each host a unit.
    """
    if Path("/run/systemd/system").is_dir():
        return []
    root = Path("/sys/fs/cgroup")
    found = [root / "unified", root / "systemd"]
    if (root / "cgroup.procs").exists():
        found = [root]
    return [
        path / "remedy-lab"
        for path in found
        if (path / "cgroup.procs").exists() and os.access(path, os.W_OK)
    ]


def host_cgroups(paths: LabPaths, host: str | None) -> list[Path]:
    """The control groups of a host, or of all of a lab's hosts, that are really there.

    Args:
        paths: which lab.
        host: its inventory name; None for all.
    """
    pattern = paths.machine(host if host is not None else "*")
    return [found for path in cgroups() for found in path.glob(pattern)]


def _remove_cgroup(group: Path) -> None:
    """Remove a control group with everything below it; it must be empty of processes.

    Args:
        group: its folder.
    """
    for folder, _, _ in os.walk(group, topdown=False):
        for _ in range(50):
            try:
                Path(folder).rmdir()
            except FileNotFoundError:
                break
            except OSError:
                # The kernel takes a moment to notice that the last process is gone.
                time.sleep(0.02)
            else:
                break
