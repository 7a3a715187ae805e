"""This machine, as far as a lab needs it: tools, processes, mounts, one kernel setting."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from remedy.errors import LabError

AGAIN = "Check the lab: remedy lab status. To start over: remedy lab down, then remedy lab up"

# Tool -> the Debian and Ubuntu package that brings it.
TOOLS = {
    "debootstrap": "debootstrap",
    "systemd-nspawn": "systemd-container",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "mount": "mount",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
}

_NEIGHBOURS = Path("/proc/sys/net/ipv4/neigh/default")
# Kernel settings that all hosts of all labs share, and what they have to be at least.
LIMITS = {
    # Every systemd takes a handful of instances; the usual 128 starves the twentieth host.
    Path("/proc/sys/fs/inotify/max_user_instances"): 8192,
    # All network namespaces share one table of neighbours: 64 hosts that know each other have 4,032. Beyond
    # the third threshold, 1,024, packets are lost as if a firewall dropped them: arp(7).
    _NEIGHBOURS / "gc_thresh2": 65536,
    _NEIGHBOURS / "gc_thresh3": 131072,
}


def require() -> None:
    """Check that labs can run here.

    Raises:
        LabError: they cannot; says what is missing and how it is had.
    """
    reason = obstacle()
    if reason is not None:
        raise LabError(reason[0], next_step=reason[1])


def obstacle() -> tuple[str, str] | None:
    """Return what keeps labs from running here.

    Returns:
        None when they can run, else the reason and the next step.
    """
    if sys.platform != "linux":
        return (
            f"The lab needs Linux; this is {sys.platform}.",
            "Run it in a Linux virtual machine with Debian or Ubuntu.",
        )
    if os.geteuid() != 0:
        return ("The lab needs root: it makes namespaces and mounts.", "Run the command with sudo.")
    missing = sorted(tool for tool in TOOLS if shutil.which(tool) is None)
    if missing:
        packages = " ".join(sorted({TOOLS[tool] for tool in missing}))
        return (
            f"The lab needs tools that are not installed: {', '.join(missing)}.",
            f"On Debian and Ubuntu: apt-get install {packages}",
        )
    return None


def tool(*command: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a tool of this machine.

    Raises:
        LabError: it failed; carries the end of what it said.
    """
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if check and done.returncode != 0:
        message = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise LabError(
            f"`{' '.join(words)}` failed ({done.returncode}): {' '.join(message)}", next_step=AGAIN
        )
    return done


def processes() -> Iterator[tuple[int, list[str]]]:
    """Yield every process with a command line.

    Yields:
        its id and its arguments.
    """
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")[:-1]
        except OSError:
            continue  # It ended meanwhile.
        if words:
            yield int(entry.name), [os.fsdecode(word) for word in words]


def children(pid: int) -> list[int]:
    """Return the direct children of a process."""
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except OSError:
        return []


def alive(pid: int) -> bool:
    """Return whether a process exists and is no zombie."""
    try:
        # The name in parentheses may itself hold spaces and parentheses.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def kill(pids: Iterable[int]) -> None:
    """Kill processes hard; those already gone are no error."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def wait_gone(pids: Sequence[int], seconds: float) -> list[int]:
    """Wait until processes have ended.

    Args:
        pids: their ids.
        seconds: how long at most.

    Returns:
        those that are still there.
    """
    deadline = time.monotonic() + seconds
    remaining = [pid for pid in pids if alive(pid)]
    while remaining and time.monotonic() < deadline:
        time.sleep(0.02)
        remaining = [pid for pid in remaining if alive(pid)]
    return remaining


def mounts_below(folder: Path) -> list[Path]:
    """Return the mount points in and below a folder, the deepest first.

    Args:
        folder: an absolute path.
    """
    points = []
    for line in Path("/proc/self/mounts").read_bytes().splitlines():
        # Spaces and the like are written as octal escapes.
        point = line.split()[1].decode("unicode_escape").encode("latin-1")
        path = Path(os.fsdecode(point))
        if path == folder or folder in path.parents:
            points.append(path)
    return sorted(points, key=lambda path: len(path.parts), reverse=True)


def remove_tree(folder: Path) -> None:
    """Remove a folder, and never anything through a mount below it.

    Args:
        folder: what to remove; nothing happens where it is not there.

    Raises:
        LabError: a mount below it cannot be undone.
    """
    for point in mounts_below(folder):
        tool("umount", point, check=False)
    held = mounts_below(folder)
    if held:
        raise LabError(
            f"{held[0]} is still mounted, so {folder} was not removed",
            next_step=f"See what holds it (fuser -vm {held[0]}), end that, and try again.",
        )
    if folder.exists():
        shutil.rmtree(folder)


def raise_limits(folder: Path, limits: Mapping[Path, int] = LIMITS) -> None:
    """Let enough hosts run, and note what the settings were."""
    for setting, target in limits.items():
        if not os.access(setting, os.W_OK):
            # In a container's own network namespace some are not there: a small lab runs all the same.
            continue
        before = int(setting.read_text())
        memory = folder / setting.name
        if before >= target:
            continue
        if not memory.exists():
            memory.write_text(f"{before}\n")
        setting.write_text(f"{target}\n")


def restore_limits(folder: Path, limits: Mapping[Path, int] = LIMITS) -> None:
    """Put back what ``raise_limits`` changed, unless somebody changed it since."""
    for setting, target in limits.items():
        memory = folder / setting.name
        try:
            before = int(memory.read_text())
        except (OSError, ValueError):
            continue
        if int(setting.read_text()) == target:
            setting.write_text(f"{before}\n")
        memory.unlink()
