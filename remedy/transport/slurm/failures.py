"""What it means that a step did not come to its end. Pure: what srun printed goes in, errors come out."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from remedy.errors import RemedyError
from remedy.text import visible

_SHOWN = 200
# Said of what ended the step, not why; a line that says more is preferred.
_BARE = re.compile(
    r"srun: (?:Job step aborted|Terminating|forcing|cluster configuration lacks|error: \S+ tasks? [\d-]+:)"
)


@dataclass(frozen=True)
class Ending:
    """A text of srun or slurmstepd, and what it means.

    Args:
        pattern: of a line; its first group, where there is one, is the reason.
        meaning: a sentence without the host, with ``{node}``, ``{step}`` and ``{reason}``.
        next_step: what to do about it, with the same.
    """

    pattern: str
    meaning: str
    next_step: str


ENDINGS = (
    Ending(
        r"(?:Task|Job step) launch .*failed on node \S+: (.+)",
        "Slurm cannot start a step on the node {node}: {reason}",
        "Does slurmd run there? On the node: systemctl status slurmd. Here: scontrol show node {node}",
    ),
    Ending(
        r"DUE TO NODE FAILURE|Node failure|NODE_FAIL",
        "the node {node} failed while its step {step} ran",
        "Why Slurm took it down: scontrol show node {node}",
    ),
    Ending(
        r"DUE TO TIME LIMIT",
        "the time limit of the job ended its step {step}",
        "Ask for more time: salloc --time",
    ),
    Ending(
        r"oom_kill|Out Of Memory|out-of-memory",
        "its step {step} was killed: it needs more memory than the job has there",
        "Ask for all memory of the nodes: salloc --exclusive --mem=0",
    ),
    Ending(
        r"Required node not available|Nodes? .*(?:down|drained)|ReqNodeNotAvail",
        "Slurm starts no step on the node {node}, which is down or drained",
        "scontrol show node {node}",
    ),
    Ending(
        r"Unable to create step for job \S+: (.+)",
        "Slurm creates no step on the node {node}: {reason}",
        "What the job has there: scontrol show job --details; and scontrol show node {node}",
    ),
    Ending(
        r"Unable to confirm allocation for job \S+: (.+)",
        "Slurm refuses steps in the job: {reason}",
        "Run remedy inside the allocation, as its user.",
    ),
    Ending(
        r"unrecognized option '?(--[a-z-]+)|[Ii]nvalid option:? '?(--[a-z-]+)",
        "srun does not know the option {reason}: it is older than Slurm 20.11",
        "Let ssh start the ranks: --launcher ssh",
    ),
    Ending(
        r"Force Terminated|CANCELLED AT|STEP \S+ ON \S+ CANCELLED",
        "its step {step} was cancelled",
        "Somebody ran scancel, or the job came to its end. Run the command again.",
    ),
    Ending(
        r"temporarily (?:disabled|unable)[^(]*\(([^)]*)\)",
        "Slurm has no room for a step on the node {node}: {reason}",
        "End what the job runs there: squeue --steps",
    ),
)


def explain_end(host: str, node: str, step: str, printed: str, killed_by: int = 0) -> RemedyError:
    """Return the error of a step that did not come to its end.

    Args:
        host: of the inventory.
        node: of Slurm.
        step: its id; empty where none was created.
        printed: the errors of srun, which may hold others'.
        killed_by: the signal that ended srun itself; 0 for none.
    """
    if killed_by:
        return RemedyError(
            f"{host}: srun was ended here by {signal.Signals(killed_by).name} before its step on the "
            f"node {node} was over",
            next_step="Was this machine out of memory? dmesg | tail. Then run the command again.",
        )
    for ending in ENDINGS:
        match = re.search(ending.pattern, printed)
        if match is not None:
            reason = next(filter(None, match.groups()), "") if match.groups() else ""
            values = {"node": node, "step": step or "", "reason": _shown(reason)}
            meaning = " ".join(ending.meaning.format(**values).split())
            return RemedyError(f"{host}: {meaning}", next_step=ending.next_step.format(**values))
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    telling = [line for line in lines if not _BARE.match(line)] or lines
    why = f": {_shown(telling[-1])}" if telling else ", and printed nothing"
    return RemedyError(
        f"{host}: srun did not run the script on the node {node}{why}",
        next_step=f"Try by hand, in the job: srun --overlap --nodelist={node} --ntasks=1 hostname",
    )


def explain_late(host: str, node: str, seconds: float, printed: str) -> RemedyError:
    """Return the error of a step that had not begun in time.

    Args:
        seconds: how long it was waited for.
    """
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    last = f"; the last that srun printed: {_shown(lines[-1])}" if lines else ""
    return RemedyError(
        f"{host}: Slurm began no step on the node {node} within {seconds:.0f} s{last}",
        next_step=f"What runs there: squeue --steps --nodelist={node}; and scontrol show node {node}",
    )


def explain_hang(host: str, node: str, step: str, seconds: float) -> RemedyError:
    """Return the error of a step that was not over in time, and that was ended from here."""
    return RemedyError(
        f"{host}: the step {step} on the node {node} was not over {seconds:.0f} s after its start, past its "
        "deadline there",
        next_step=f"Is the node frozen? scontrol show node {node}",
    )


def explain_deadline(host: str, node: str, seconds: float) -> RemedyError:
    """Return the error of a script that its node ended at its deadline."""
    return RemedyError(
        f"{host}: the script was not over on the node {node} after {seconds:.0f} s, and was ended there",
        next_step="Is the node frozen, or busy with something else? squeue --steps; and on the node: top",
    )


def explain_elsewhere(host: str, node: str, step: str, actual: str) -> RemedyError:
    """Return the error of a step that says it is another than the one that was asked for."""
    return RemedyError(
        f"{host}: the step was asked for on the node {node}, and ran as {visible(step)} on {visible(actual)}",
        next_step="Report it with the output of: scontrol show config",
    )


def _shown(text: str) -> str:
    line = visible(" ".join(text.split()))
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]} ..."
