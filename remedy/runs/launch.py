"""What starts the ranks of a proof on the hosts: ssh, or srun inside an allocation of Slurm.

Only what proves goes through Slurm: ranks, the calls between hosts before them, the tests of the isolation.
What looks at a host (the probe, ``--explain``) goes over ssh in any case, and so does what cleans up after
ranks that Slurm killed.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from remedy.errors import RemedyError, UnreachableError
from remedy.inventory import Inventory
from remedy.sentences import without_host
from remedy.text import fold, quoted
from remedy.transport import Listener, Output, Root, Script
from remedy.transport.slurm import Steps, outside, read_allocation
from remedy.verify.scripts import Run
from remedy.verify.verdict import Culprit, Verdict

CLEANING_SECONDS = 30.0


@dataclass(frozen=True)
class Launcher:
    """How scripts of a verification come to run on hosts.

    Args:
        run: runs them.
        job: of Slurm; empty where ssh starts them.
        notes: what a reader of the verdict has to know of the job.
        errors: the last error of each host on which a script did not come to its end.
    """

    run: Run
    job: str = ""
    notes: tuple[str, ...] = ()
    errors: Mapping[str, RemedyError] = field(default_factory=dict)

    def with_steps(self, verdict: Verdict) -> Verdict:
        """Have a verdict say what to do where a host is accused of what kept it from being started."""
        culprits = tuple(map(self._with_step, verdict.culprits))
        if not (verdict.possible or culprits) and self.errors:
            error = next(iter(self.errors.values()))
            culprits = (Culprit(reason=error.message, next_step=error.next_step),)
        return verdict.model_copy(update={"culprits": culprits})

    def _with_step(self, culprit: Culprit) -> Culprit:
        for host in culprit.hosts:
            error = self.errors.get(host)
            if error is not None and without_host(host, error.message) in culprit.reason:
                return culprit.model_copy(update={"next_step": error.next_step})
        return culprit


class Kept:
    """Scripts over ssh; why a host was last out of reach is kept.

    Args:
        run: runs scripts.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.errors: dict[str, RemedyError] = {}

    def __call__(self, scripts: Mapping[str, Script], /) -> Mapping[str, Output]:
        """Run each host's script."""
        outputs = self._run(scripts)
        self.errors.update(
            (name, output.error)
            for name, output in outputs.items()
            if isinstance(output.error, UnreachableError)
        )
        return outputs


def ssh_launcher(ssh: Run) -> Launcher:
    """Return the launcher by ssh.

    Args:
        ssh: runs scripts.
    """
    kept = Kept(ssh)
    return Launcher(kept, errors=kept.errors)


@dataclass(frozen=True)
class CleanSteps:
    """Steps of Slurm, and over ssh the removal of what those leave that Slurm kills.

    Args:
        steps: runs scripts.
        ssh: runs what removes their folders.
    """

    steps: Steps
    ssh: Run

    def __call__(self, scripts: Mapping[str, Script], /) -> Mapping[str, Output]:
        """Run each host's script in a step of its own.

        Raises:
            LaunchError: the job is over.
        """
        try:
            return self.steps(scripts)
        finally:
            folders, self.steps.folders = self.steps.folders, {}
            if folders:
                self.ssh({name: _cleaning(folder) for name, folder in folders.items()})


def _cleaning(folder: str) -> Script:
    return Script(f"rm -rf -- {shlex.quote(folder)}\n", CLEANING_SECONDS, Root.PREFERRED)


def slurm_launcher(
    inventory: Inventory, hosts: Sequence[str], ssh: Run, listener: Listener
) -> Launcher:
    """Return the launcher by Slurm, with the selected hosts placed on the nodes of the job.

    Args:
        inventory: all hosts.
        hosts: those that are selected.
        ssh: runs scripts over ssh.
        listener: hears of each host's stages.

    Raises:
        UsageError: there is no allocation here, or it lacks selected hosts.
        LaunchError: the allocation cannot be used.
    """
    path = quoted(inventory.path)
    allocation = read_allocation(path)
    placement = allocation.place(inventory.nodes)
    absent = outside(placement, hosts, allocation.job, path)
    if absent is not None:
        raise absent
    notes = list(allocation.notes)
    if placement.strangers:
        count = len(placement.strangers)
        notes.append(
            f"{fold(placement.strangers)} of job {allocation.job} {'is' if count == 1 else 'are'} not in the "
            "inventory, and took no part"
        )
    steps = Steps(allocation.job, placement.nodes, listener)
    return Launcher(CleanSteps(steps, ssh), allocation.job, tuple(notes), steps.errors)
