"""The job that remedy runs in, and which of its nodes is which host of the inventory.

Sources: squeue(1), scontrol(1), slurm.conf(5) for NodeName, NodeHostname and NodeAddr.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from remedy.errors import LaunchError, UsageError
from remedy.inventory import Node
from remedy.text import counted, fold, listed, visible

SECONDS = 30.0
"""For a question to slurmctld, which its commands go on asking for a while where it is busy."""

ENDING_SECONDS = 5.0
"""For a job that is ending to have ended."""

RUNNING = "RUNNING"
COMMANDS = ("srun", "squeue", "scontrol", "scancel")
_JOB = re.compile(r"[0-9]+")
_NODE = re.compile(r"(?:^|\s)(NodeName|NodeAddr|NodeHostName|State)=(\S*)")
# States in which a node starts no step, or is about to go: scontrol(1), sinfo(1).
_TROUBLE = re.compile(r"DOWN|DRAIN|FAIL|NOT_RESPONDING|\*$|REBOOT|MAINT|POWER")

# By state: what became of a job, and what to do. squeue(1), "JOB STATE CODES".
_ENDS = {
    "": (
        "is not known to slurmctld, or has ended",
        "Ask for an allocation: salloc. The jobs there are: squeue --me",
    ),
    "TIMEOUT": ("came to its time limit", "Ask for more time: salloc --time"),
    "CANCELLED": ("was cancelled", "Ask for an allocation, and run the command again: salloc"),
    "NODE_FAIL": (
        "lost a node",
        "Which node, and why: sinfo --list-reasons; and scontrol show job {job}",
    ),
    "COMPLETED": ("has ended", "Ask for an allocation, and run the command again: salloc"),
    "COMPLETING": ("is ending", "Ask for an allocation, and run the command again: salloc"),
    "PENDING": ("has no nodes yet", "Wait until it runs: squeue --jobs={job}"),
    "CONFIGURING": ("has nodes that still boot", "Wait until it runs: squeue --jobs={job}"),
}

Ask = Callable[[Sequence[str]], tuple[int, str, str]]
"""Runs a command of Slurm: its exit code, what it printed, and its errors."""


@dataclass(frozen=True)
class SlurmNode:
    """A node of the job, as slurmctld has it.

    Args:
        name: NodeName, which need not be a host name.
        hostname: NodeHostName.
        address: NodeAddr, a name or an address.
        state: such as ``MIXED`` or ``IDLE+DRAIN``.
    """

    name: str
    hostname: str = ""
    address: str = ""
    state: str = ""

    @property
    def is_troubled(self) -> bool:
        """Whether its state is one in which nodes are taken out of use."""
        return _TROUBLE.search(self.state) is not None


@dataclass(frozen=True)
class Placement:
    """Which host is which node.

    Args:
        nodes: by host of the inventory.
        strangers: nodes of the job that no host of the inventory is.
    """

    nodes: Mapping[str, str]
    strangers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Allocation:
    """A job of Slurm that is running.

    Args:
        job: its id.
        nodes: those that it has.
    """

    job: str
    nodes: tuple[SlurmNode, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of a verdict has to know of the nodes' states."""
        troubled = [node for node in self.nodes if node.is_troubled]
        return tuple(
            f"{visible(node.name)}: Slurm has the node as {visible(node.state)}"
            for node in troubled
        )

    def place(self, hosts: Sequence[Node]) -> Placement:
        """Find out which node each host is.

        By NodeName, NodeHostName, NodeAddr, or the name before the first dot: the first that gives any.

        Args:
            hosts: of the whole inventory.

        Raises:
            UsageError: a host is several nodes, or several hosts are one node.
        """
        nodes: dict[str, str] = {}
        for host in hosts:
            matches = self._matches(host)
            if len(matches) > 1:
                raise UsageError(
                    f"{host.name} is the host of {counted(len(matches), 'node')} of job {self.job}: "
                    f"{listed(matches)}",
                    next_step="Give the host in the inventory the NodeName of one of them.",
                )
            if matches:
                nodes[host.name] = matches[0]
        taken: dict[str, str] = {}
        for name, node in nodes.items():
            if node in taken:
                raise UsageError(
                    f"{taken[node]} and {name} of the inventory are one node of job {self.job}: {node}",
                    next_step="Leave one of them out: --limit.",
                )
            taken[node] = name
        strangers = tuple(node.name for node in self.nodes if node.name not in taken)
        return Placement(nodes, strangers)

    def _matches(self, host: Node) -> list[str]:
        """The nodes that a host may be, by the first of the rules that gives any."""
        addresses = {host.name, host.ssh_address}
        rules: tuple[Callable[[SlurmNode], bool], ...] = (
            lambda node: node.name == host.name,
            lambda node: node.hostname == host.name,
            lambda node: node.address in addresses,
            lambda node: _short(host.name) in (_short(node.name), _short(node.hostname)),
        )
        for rule in rules:
            if matches := [node.name for node in self.nodes if rule(node)]:
                return matches
        return []


def _short(name: str) -> str:
    return name.partition(".")[0]


def ask_slurm(command: Sequence[str]) -> tuple[int, str, str]:
    """Run a command of Slurm, and return its exit code, what it printed, and its errors.

    Raises:
        LaunchError: slurmctld gives no answer.
    """
    try:
        done = subprocess.run(
            list(command),
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchError(
            f"{command[0]} gave no answer within {SECONDS:.0f} s"
            if isinstance(error, subprocess.TimeoutExpired)
            else f"{command[0]} cannot be run: {error.strerror}",
            next_step="Does slurmctld answer? scontrol ping",
        ) from error
    return (
        done.returncode,
        done.stdout.decode(errors="replace"),
        done.stderr.decode(errors="replace"),
    )


def read_allocation(
    inventory: str, environment: Mapping[str, str] = os.environ, ask: Ask = ask_slurm
) -> Allocation:
    """Read the job that this process runs in.

    Args:
        inventory: its path as it is typed, for the commands to type.
        environment: of this process.
        ask: runs a command of Slurm.

    Raises:
        UsageError: this process is in no job, or in another user's, or there is no Slurm here.
        LaunchError: the job is not running, or slurmctld does not answer.
    """
    job = environment.get("SLURM_JOB_ID", "")
    lacking = [
        name for name in COMMANDS if shutil.which(name, path=environment.get("PATH")) is None
    ]
    if lacking:
        raise UsageError(
            f"--launcher slurm needs {listed(lacking)}, not in the PATH of this machine",
            next_step="Run remedy where jobs are submitted: on a login node or on the first node of a job.",
        )
    if not _JOB.fullmatch(job):
        raise UsageError(
            "--launcher slurm starts the ranks inside an allocation, and there is none here: "
            "SLURM_JOB_ID is not set",
            next_step="Start remedy in a job that has the hosts whole: salloc --exclusive "
            f"--nodelist=NODES remedy verify {inventory} --launcher slurm",
        )
    state, owner, names = _read_job(job, ask)
    if state != RUNNING:
        raise ended(job, state)
    if owner != str(os.getuid()):
        raise UsageError(
            f"job {job} belongs to the user with the id {visible(owner)}, and remedy runs with the id "
            f"{os.getuid()}",
            next_step="Slurm starts steps for the job's own user alone: run remedy as that user, without sudo.",
        )
    code, out, error = ask(["scontrol", "show", "node", names, "--oneliner"])
    nodes = tuple(_nodes(out))
    if code != 0 or not nodes:
        raise LaunchError(
            f"job {job}: scontrol does not show its nodes: {_last(error)}",
            next_step=f"Check it by hand: scontrol show node {names}",
        )
    return Allocation(job, nodes)


def state_of(job: str, ask: Ask = ask_slurm) -> str:
    """Return the state of a job, such as ``RUNNING``; empty where slurmctld knows of no such job.

    A job that is ending does not say why before it has ended, which is waited for a little.

    Raises:
        LaunchError: slurmctld does not answer.
    """
    state = _read_job(job, ask)[0]
    end = time.monotonic() + ENDING_SECONDS
    while state == "COMPLETING" and time.monotonic() < end:
        time.sleep(0.5)
        state = _read_job(job, ask)[0]
    return state


def ended(job: str, state: str) -> LaunchError:
    """Return the error of a job that runs no steps.

    Args:
        job: its id.
        state: as squeue shows it; empty where slurmctld knows no such job.
    """
    how, step = _ENDS.get(state, (f"is {visible(state)}", "How it went: scontrol show job {job}"))
    return LaunchError(
        f"job {job} {how}: Slurm starts no ranks in it, so nothing is proved",
        next_step=step.format(job=job),
    )


def _read_job(job: str, ask: Ask) -> tuple[str, str, str]:
    """Return state, user id and nodes of a job; empty texts where slurmctld knows of none."""
    code, out, error = ask(
        ["squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T %U %N"]
    )
    words = out.split()
    if code == 0:
        state, owner, names = (*words, "", "", "")[:3]
        return state, owner, names
    if "nvalid job id" in error:
        return "", "", ""
    raise LaunchError(
        f"slurmctld does not answer for job {job}: {_last(error)}",
        next_step="Does it run? scontrol ping",
    )


def _nodes(text: str) -> Iterable[SlurmNode]:
    """Read what ``scontrol show node --oneliner`` prints; what people write comes behind these fields."""
    for line in text.splitlines():
        values: dict[str, str] = {}
        for key, value in _NODE.findall(line):
            values.setdefault(key, value)
        if name := values.get("NodeName"):
            yield SlurmNode(
                name,
                values.get("NodeHostName", ""),
                values.get("NodeAddr", ""),
                values.get("State", ""),
            )


def _last(error: str) -> str:
    lines = error.strip().splitlines()
    return visible(lines[-1][:200]) if lines else "it printed nothing"


def outside(
    placement: Placement, hosts: Sequence[str], job: str, inventory: str
) -> UsageError | None:
    """Return the error of hosts that a proof is asked for and that the job has not; None where it has all.

    Args:
        placement: of the job's nodes.
        hosts: the proof is asked for.
        job: its id.
        inventory: its path as it is typed.
    """
    absent = [name for name in hosts if name not in placement.nodes]
    if not absent:
        return None
    present = [name for name in hosts if name in placement.nodes]
    verb = "is not a node" if len(absent) == 1 else "are not nodes"
    step = (
        f"Prove those that it has: --limit {fold(present)}; or ask for all of them: "
        if present
        else "Ask for them: "
    )
    return UsageError(
        f"{fold(absent)} {verb} of job {job}: no node of it has one of these names or addresses as its "
        "NodeName, NodeHostName or NodeAddr",
        next_step=f"{step}salloc --exclusive --nodelist={fold(hosts)} remedy verify {inventory} "
        "--launcher slurm",
    )
