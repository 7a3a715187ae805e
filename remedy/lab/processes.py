"""The processes and control groups that carry a lab's hosts, found on the machine and not in the record."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from remedy.errors import LabError
from remedy.lab import machine
from remedy.lab.paths import LabPaths

# For what is started by the lab, on this machine and in a host.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


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


def launch(command: Sequence[str], *, name: str, log: Path) -> None:
    """Start what carries a host, so that it outlives this process and the shell it was typed in.

    Args:
        command: what to start.
        name: the host's machine name.
        log: where its output is added.
    """
    # Without the first /proc/sys/net is read-only in the host.
    environment = {"SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network", "PATH": PATH, "LC_ALL": "C.UTF-8"}
    if under_systemd():
        # There, control groups of one's own come with a unit. Its name is new each time, because
        # systemd may still be at work on the unit of a host that was killed a moment ago.
        machine.tool(
            *("systemd-run", "--quiet", "--collect", f"--unit={name}-{os.urandom(4).hex()}"),
            *(
                "--property=Delegate=yes",
                "--property=KillMode=mixed",
                "--property=TasksMax=infinity",
            ),
            *(f"--property=StandardOutput=append:{log}", "--property=StandardError=inherit"),
            *(f"--setenv={key}={value}" for key, value in environment.items()),
            *command,
        )
        return
    with log.open("ab") as out:
        subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd="/",
            env=environment,
            start_new_session=True,
        )


def under_systemd() -> bool:
    """Return whether this machine itself is run by systemd."""
    return Path("/run/systemd/system").is_dir()


def kill_hosts(paths: LabPaths, hosts: Sequence[str] | None) -> None:
    """Take the power of some hosts away, and wait until nothing of them runs.

    Args:
        paths: which lab.
        hosts: their inventory names; None for whatever of the lab is there.

    Raises:
        LabError: something does not end.
    """
    names: Sequence[str | None] = [None] if hosts is None else hosts
    remaining: list[int] = []
    # Twice at least: what the first look found may have started something just before it died.
    for _ in range(5):
        remaining = []
        for name in names:
            carriers = find(paths, name)
            # Supervisors first: they would boot the host again.
            for group in (carriers.supervisors, carriers.nspawn, carriers.inside):
                machine.kill(group)
                remaining += group
        if not remaining:
            break
        machine.wait_gone(remaining, 5.0)
    else:
        raise LabError(
            f"processes {remaining} of the lab do not end", next_step="Run the command again."
        )
    for name in names:
        for cgroup in host_cgroups(paths, name):
            _remove_cgroup(cgroup)


def cgroups(*, every: bool = True) -> list[Path]:
    """Return the control group hierarchies of this machine, each with a folder for labs.

    Under a systemd of this machine there is none: that gives each host a unit.
    """
    if under_systemd():
        return []
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.procs").exists():
        roots = [root]
    elif every:
        # Version 1 names a hierarchy of several controllers also by links to it; a folder that is no mount is
        # somebody's mistake, and holds files that nobody empties.
        roots = [
            path for path in sorted(root.glob("*")) if path.is_mount() and not path.is_symlink()
        ]
    else:
        roots = [root / "unified", root / "systemd"]
    return [
        path / "remedy-lab"
        for path in roots
        if (path / "cgroup.procs").exists() and os.access(path, os.W_OK)
    ]


def make_cgroups(*, every: bool) -> list[Path]:
    """Make the folders for labs in this machine's hierarchies."""
    groups = cgroups(every=every)
    for group in groups:
        group.mkdir(exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):
            # In version 1 a group takes no process before it has these.
            if group.parent.name == "cpuset" and (group / setting).exists():
                (group / setting).write_text((group.parent / setting).read_text())
                (group / "cgroup.clone_children").write_text("1")
    return groups


def host_cgroups(paths: LabPaths, host: str | None) -> list[Path]:
    """Return the control groups of a host, or of all of a lab's hosts, that are really there.

    Args:
        paths: which lab.
        host: its inventory name; None for all.
    """
    pattern = paths.machine(host if host is not None else "*")
    return [group for path in cgroups() for group in path.glob(pattern)]


def _remove_cgroup(group: Path) -> None:
    """Remove a control group with everything below it; it must be empty of processes."""
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
