"""Where figures come from: the commit, the day, the machine in words that name neither it nor what is on it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path


def describe() -> str:
    """Return, for example, ``2 cores, 24 GiB of memory, Linux 6.1 on x86_64, Python 3.11.2``."""
    cores = len(os.sched_getaffinity(0))
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    release = re.match(r"\d+\.\d+", platform.release())
    kernel = f"{platform.system()} {release.group() if release else ''}".strip()
    return (
        f"{cores} cores, {pages / 2**30:.0f} GiB of memory, {kernel} on {platform.machine()}, "
        f"{_distribution()}, Python {platform.python_version()}"
    )


def load() -> float:
    """Return the load average of the last minute: near 0 on a machine that does nothing else."""
    return os.getloadavg()[0]


def commit() -> str:
    """Return the commit that is checked out, with a mark where files differ from it."""
    words = ("git", "describe", "--always", "--dirty")
    root = Path(__file__).parents[2]
    return subprocess.run(
        words, cwd=root, capture_output=True, text=True, check=True
    ).stdout.strip()


def today() -> str:
    """Return the day, in UTC."""
    return datetime.now(timezone.utc).date().isoformat()


def _distribution() -> str:
    for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip('"')
    return "an unnamed distribution"
