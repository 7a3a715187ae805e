"""The command line of one step, and what its node runs. Pure.

The script travels on srun's standard input, which stays open: a node that sees its end (remedy let go, or is
dead) ends the script in good order, so that it can clean up. A step that Slurm itself ends is killed at once.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from remedy.answers import read_exit
from remedy.transport.script import Script
from remedy.transport.wrapper import HOW_TO_READ, KILL_AFTER, Marks

# Options of srun that a job's environment may set (srun(1), "INPUT ENVIRONMENT VARIABLES") and that would start
# something else than one process with all that the job has on the node, or lead its output elsewhere.
UNWANTED = re.compile(
    r"SLURM_(LABELIO|STD(IN|OUT|ERR)MODE|UNBUFFEREDIO|OPEN_MODE|PTY_\w+|TEST_EXEC|PROLOG|EPILOG|WAIT|SIGNAL"
    r"|NTASKS\w*|NPROCS|DISTRIBUTION|DIST_\w+|SPREAD_JOB|OVERCOMMIT|EXACT|EXCLUSIVE|IMMEDIATE|TIMELIMIT"
    r"|GPUS\w*|GPU_BIND|GRES|GRES_FLAGS|CPUS_PER_\w+|MEM_PER_\w+|TRES_PER_TASK|STEP_GRES|HINT|THREADS\w*"
    r"|REMOTE_CWD|WORKING_DIR|MPI_TYPE|BCAST\w*|RESV_PORTS|KILL_BAD_EXIT|EXIT_\w+)"
    r"|SRUN_(CPUS_PER_TASK|CONTAINER\w*)"
)

_STEP = re.compile(r"[0-9]+\.[0-9]+")

# The shell that is the step's task. It takes as many bytes of its input as the script has, and a reader of the
# rest ends the script when there is no more to come. `wait` returns early at a signal (sh(1)). Temporary files
# go into a folder of the step's own, whose name remedy knows: a step that Slurm kills cleans nothing up.
_TASK = """\
{how}folder=${{TMPDIR:-/tmp}}/{word}
printf "\\n%s\\n" {shell} >&2
step=${{SLURM_JOB_ID-}}.${{SLURM_STEP_ID-}}
printf "\\n%s %s %s %s\\n%s\\n" {word} "$step" "${{SLURMD_NODENAME-}}" "$folder" {shell}
mkdir -m 700 "$folder" && export TMPDIR="$folder" || folder=
exec 3<&0
text=$(head -c {size})
printf "%s\\n" {script}
printf "%s\\n" "$text" | timeout -k {kill} {deadline:.0f} sh "$@" 3<&- &
pid=$!
trap 'kill -TERM $pid' TERM HUP INT
(while read -r _ <&3; do :; done; kill -TERM $pid) >/dev/null 2>&1 &
while wait $pid; code=$?; kill -0 $pid 2>/dev/null; do :; done
kill $! 2>/dev/null
[ -z "$folder" ] || rm -rf "$folder"
printf "\\n%s %s\\n" {word} $code >&2
"""


@dataclass(frozen=True)
class StepPlace:
    """Where a step runs, as it says itself.

    Args:
        step: "JOB.STEP".
        node: NodeName.
        folder: of its temporary files.
    """

    step: str
    node: str
    folder: str


@dataclass(frozen=True)
class StepMark:
    """What a step says of itself: before anything else where it is, and at the end how its script ended.

    Args:
        word: of this step alone; its folder is called so.
    """

    word: str

    def read(self, noise: bytes) -> StepPlace | None:
        """Return where the step is, from what came before the script; None where it does not say."""
        for line in noise.decode(errors="replace").splitlines():
            words = line.split(" ", 3)  # the folder may have blanks
            if len(words) < 4 or words[0] != self.word:
                continue
            _, step, node, folder = words
            is_own = folder.startswith("/") and folder.endswith(f"/{self.word}")
            return StepPlace(step, node, folder) if is_own and _STEP.fullmatch(step) else None
        return None

    def split_end(self, errors: str) -> tuple[str, int | None]:
        """Return a script's errors, and its exit code; None where it did not come to its end.

        Args:
            errors: all that the step printed as errors, which ends with the mark where the step was not killed.
        """
        return read_exit(errors, self.word)


def step_command(
    job: str, node: str, script: Script, marks: Marks, mark: StepMark, seconds: float
) -> list[str]:
    """Return the command line that runs a script as a step of its own on one node.

    Args:
        job: its id.
        node: NodeName.
        script: what is to run there.
        marks: what is printed before it.
        mark: what the step says of itself.
        seconds: that it may wait for its beginning.
    """
    task = _TASK.format(
        how=HOW_TO_READ,
        shell=shlex.quote(marks.shell),
        script=shlex.quote(marks.script),
        word=shlex.quote(mark.word),
        size=len(script.text.encode()),
        kill=KILL_AFTER,
        deadline=script.deadline,
    )
    return [
        "srun",
        "--quiet",
        f"--jobid={job}",
        f"--nodelist={node}",
        "--nodes=1",
        "--ntasks=1",
        # Beside whatever else the job runs, with all that the job has on the node, bound to no core of it.
        "--overlap",
        # Where nobody is left to end it, it does not wait for ever.
        f"--immediate={seconds:.0f}",
        "--cpu-bind=none",
        "--mpi=none",
        "--input=all",
        "--output=all",
        "--error=all",
        "--chdir=/",
        "--job-name=remedy-verify",
        "sh",
        "-c",
        task,
    ]


def step_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of srun, and of the step, without options of srun that interfere."""
    return {name: value for name, value in environment.items() if not UNWANTED.fullmatch(name)}
