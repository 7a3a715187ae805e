"""The fleet that a benchmark runs on: lab hosts, and the files by which each tool reaches them."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from remedy.errors import LabError
from remedy.lab import processes
from remedy.lab.cluster import INVENTORY, Lab
from remedy.lab.host import Host
from remedy.lab.life import Life
from remedy.lab.options import UpOptions
from remedy.lab.paths import NAME_VARIABLE, LabPaths

T = TypeVar("T")

THREADS = 16
# As many hosts as can boot side by side on two busy cores without one of them running into its time limit.
BATCH = 8
# What a host still does right after the boot has ended: timers that fire once, caches that fill.
SETTLE_SECONDS = 5.0
BOOT_SECONDS = 300.0


class Cluster:
    """Lab hosts, all up, and a folder with the files by which each tool reaches them.

    Args:
        count: how many hosts.
        folder: where the files go.
        docker: whether dockerd runs in them.
        life: what runs in them besides.
    """

    def __init__(
        self, count: int, folder: Path, *, docker: bool = False, life: Life = "bare"
    ) -> None:
        self.lab = Lab(LabPaths.of())
        self.count = count
        self.docker = docker
        self.life = life
        self.folder = folder
        self.inventory = folder / "inventory.py"
        self.ansible_inventory = folder / "hosts.json"
        self.ssh_config = folder / "ssh_config"

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which the inventory finds this lab."""
        # A shell that forbids Python to keep compiled modules would have remedy alone, which runs from its
        # sources here, compile itself in every run; pip compiles what it installs.
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        return {**kept, NAME_VARIABLE: self.lab.paths.name}

    def up(self) -> None:
        """Boot the hosts, and write the files.

        Raises:
            LabError: the lab cannot be had, or one of that name runs with other hosts.
        """
        self.lab.up(UpOptions(count=self.count, docker=self.docker, life=self.life))
        self.settle()
        self._write_files()

    def down(self) -> None:
        """Remove the hosts."""
        self.lab.down()

    def fresh(self) -> None:
        """Bring every host back to the state of a fresh installation, and let it come to rest."""
        names = [host.name for host in self.lab.hosts()]
        for start in range(0, len(names), BATCH):
            batch = names[start : start + BATCH]
            try:
                self.lab.reset(*batch)
            except LabError:
                # One boot of some hundred that fails must not cost the figures of an hour.
                self.lab.reset(*batch)
        self.settle()

    def settle(self) -> None:
        """Wait until every host has ended its boot."""
        each(self.lab.hosts(), _booted)
        if self.docker:
            each(
                self.lab.hosts(), lambda host: host.must(["systemctl", "enable", "--now", "docker"])
            )
        time.sleep(SETTLE_SECONDS)

    def cpu_seconds(self) -> float:
        """Return the processor time that the hosts' processes have had since the boot, by their cgroups."""
        used = 0
        for host in self.lab.hosts():
            for group in processes.host_cgroups(self.lab.paths, host.name):
                stat = group / "cpu.stat"
                words = stat.read_text(encoding="ascii").split() if stat.exists() else []
                used += int(words[words.index("usage_usec") + 1]) if "usage_usec" in words else 0
        return used / 1e6

    def probe_milliseconds(self, script: str, runs: int, hosts: int) -> list[float]:
        """Return the CPU time of one probe on each of the first ``hosts`` hosts, in milliseconds.

        Measured inside the host, by its shell's ``times``: a shell that runs the script ``runs`` times, itself
        and all its children, one host at a time.
        """
        return [_probe_milliseconds(host, script, runs) for host in self.lab.hosts()[:hosts]]

    def _write_files(self) -> None:
        lab = self.lab.record()
        shutil.copyfile(INVENTORY, self.inventory)
        hosts = {
            host.name: {
                "ansible_host": host.management_address,
                "cluster_address": host.cluster_address,
            }
            for host in lab.hosts
        }
        options = {
            "IdentityFile": lab.key,
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": lab.known_hosts,
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "LogLevel": "ERROR",
            "User": "root",
        }
        lines = ["Host *", *(f"    {key} {value}" for key, value in options.items())]
        for host in lab.hosts:
            lines += [f"Host {host.name}", f"    HostName {host.management_address}"]
        self.ssh_config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        group = {
            "hosts": hosts,
            "vars": {"ansible_ssh_common_args": f"-F {self.ssh_config}", "ansible_user": "root"},
        }
        self.ansible_inventory.write_text(json.dumps({"all": group}, indent=1), encoding="utf-8")


def each(hosts: Iterable[Host], work: Callable[[Host], T]) -> list[T]:
    """Do something to many hosts at a time; return the results in their order."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, hosts))


def _booted(host: Host) -> None:
    # Ends with an error where a unit failed, which is the hosts' business and not this one's.
    host.run(["systemctl", "is-system-running", "--wait"], seconds=BOOT_SECONDS)


def _probe_milliseconds(host: Host, script: str, runs: int) -> float:
    loop = (
        "cat >/run/benchmark.sh; n=0; "
        f"while [ $n -lt {runs} ]; do sh -s </run/benchmark.sh >/dev/null 2>&1; n=$((n + 1)); done; "
        "times; rm /run/benchmark.sh"
    )
    output = host.run(["sh", "-c", loop], stdin=script, seconds=BOOT_SECONDS).stdout
    # Two lines of two times each: the shell itself, and its children; user and system.
    return sum(map(_seconds, output.split())) / runs * 1000


def _seconds(text: str) -> float:
    minutes, _, seconds = text.rstrip("s").partition("m")
    return int(minutes) * 60 + float(seconds)
