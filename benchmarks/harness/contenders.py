"""The tools that are compared: what each runs on fresh hosts and again, and how it says that it was idle."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness.cluster import Cluster

STATE = Path(__file__).parents[1] / "fleet"
# Beside this Python: the commands that the dependencies of remedy, and remedy itself, install.
BIN = Path(sys.executable).parent
ANSIBLE = "ansible-core>=2.16,<3"


@dataclass(frozen=True)
class Contender:
    """One tool.

    Args:
        key: its name in the results.
        title: what is run, in words.
        again: the command on hosts that are as it wants them.
        first: the command on fresh hosts; None for one that changes nothing.
        environment: beyond that of the benchmark.
        idle: whether what ``again`` printed says that nothing was changed.
    """

    key: str
    title: str
    again: tuple[str, ...]
    first: tuple[str, ...] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    idle: Callable[[str], bool] = lambda _: True


def remedy(cluster: Cluster) -> Contender:
    """Return remedy itself, with the benchmark's own remedy for what no remedy of the program covers."""
    command = (str(BIN / "remedy"), "apply", str(cluster.inventory), "--no-verify")
    return Contender(
        key="remedy",
        title="remedy apply --no-verify",
        first=(*command, "--yes"),
        # Without --yes and without a terminal it refuses to change anything: exit 0 means nothing was to do.
        again=command,
        environment={"PYTHONPATH": f"{_entry_point(cluster.folder)}{os.pathsep}{STATE}"},
    )


def floor(cluster: Cluster, script: Path) -> Contender:
    """Return the floor: pyinfra's own API connects and runs the probe as one fact."""
    command = (sys.executable, str(STATE / "floor.py"), str(cluster.inventory), str(script))
    return Contender("floor", "pyinfra API: connect, one fact (the probe)", again=command)


def pyinfra(cluster: Cluster) -> Contender:
    """Return the same state by pyinfra's own operations, as it is used: it shows first what it will change.

    It then waits for the enter key, which comes at once.
    """
    line = f"echo | {shlex.join(_pyinfra(cluster))}"
    command = ("sh", "-c", line)
    return Contender(
        "pyinfra", "pyinfra operations", first=command, again=command, idle=pyinfra_idle
    )


def pyinfra_blind(cluster: Cluster) -> Contender:
    """Return the same without showing anything first, which halves what pyinfra reads."""
    command = (*_pyinfra(cluster), "--yes")
    return Contender(
        "pyinfra-yes", "pyinfra --yes operations", first=command, again=command, idle=pyinfra_idle
    )


def ansible(cluster: Cluster, cache: Path) -> Contender:
    """Return the same state by a playbook; ansible-core is installed into ``cache`` where it is not yet."""
    command = (
        str(_ansible(cache) / "ansible-playbook"),
        "--inventory",
        str(cluster.ansible_inventory),
        str(STATE / "playbook.yml"),
    )
    return Contender(
        "ansible",
        "ansible-core playbook",
        first=command,
        again=command,
        environment={"ANSIBLE_CONFIG": str(STATE / "ansible.cfg"), "LC_ALL": "C.UTF-8"},
        idle=_ansible_idle,
    )


def ssh(cluster: Cluster) -> Contender:
    """Return a bare login to every host."""
    names = " ".join(host.name for host in cluster.lab.record().hosts)
    login = f"ssh -F {shlex.quote(str(cluster.ssh_config))} HOST true"
    line = f"printf '%s\\n' {names} | xargs -P{cluster.count} -I HOST {login}"
    return Contender("ssh", f"xargs -P{cluster.count} ssh HOST true", again=("sh", "-c", line))


def _pyinfra(cluster: Cluster) -> tuple[str, ...]:
    parallel = ("--parallel", str(cluster.count))
    return (
        str(BIN / "pyinfra"),
        *parallel,
        str(cluster.inventory),
        str(STATE / "stock_pyinfra.py"),
    )


def _entry_point(folder: Path) -> Path:
    """Make what an installed distribution with an entry point for the benchmark's remedy looks like."""
    place = folder / "plugins"
    info = place / "fleet_state-0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fleet-state\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[remedy.deploys]\ntraining_state = training_state\n")
    return place


def pyinfra_idle(text: str) -> bool:
    """Return whether pyinfra says that it changed nothing."""
    # Hosts, success, error, no change; "-" stands for none. An operation that changed nothing is no success.
    totals = re.search(r"Grand total\s+\d+\s+(\S+)\s+(\S+)\s+\d+", text)
    return totals is not None and totals.groups() == ("-", "-")


def _ansible_idle(text: str) -> bool:
    recap = re.findall(r"\bchanged=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", text)
    return bool(recap) and all(set(counts) == {"0"} for counts in recap)


def _ansible(cache: Path) -> Path:
    """Return the folder with ansible's commands, in an environment of its own."""
    home = cache / "ansible"
    bin_folder = home / "bin"
    if not (bin_folder / "ansible-playbook").exists():
        venv.create(home, clear=True, with_pip=True)
        pip = [str(bin_folder / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--disable-pip-version-check", ANSIBLE], check=True)
    return bin_folder
