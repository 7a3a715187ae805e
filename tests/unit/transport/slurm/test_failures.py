"""What srun and slurmstepd print, and the sentence that comes of it."""

from __future__ import annotations

import pytest

from remedy.transport.slurm.failures import explain_end, explain_late

# As Slurm 22.05 printed them in lab hosts, but for those of its sources: memory, drained nodes, old options.
PRINTED = [
    (
        (
            "srun: error: Task launch for StepId=7.0 failed on node gpu03: Communication connection failure\n"
            "srun: error: Application launch failed: Communication connection failure\n"
            "srun: Job step aborted: Waiting up to 12 seconds for job step to finish.\n"
        ),
        "Slurm cannot start a step on the node gpu03: Communication connection failure",
        "systemctl status slurmd",
    ),
    (
        "srun: error: Node failure on gpu03\n",
        "the node gpu03 failed while its step 7.1 ran",
        "scontrol show node gpu03",
    ),
    (
        "slurmstepd: error: *** STEP 7.1 ON gpu03 CANCELLED AT 2026-11-23T19:50:01 ***\n",
        "its step 7.1 was cancelled",
        "scancel",
    ),
    (
        "slurmstepd: error: *** STEP 7.1 ON gpu03 CANCELLED AT 2026-11-23T19:50:01 DUE TO TIME LIMIT ***\n",
        "the time limit of the job ended its step 7.1",
        "salloc --time",
    ),
    (
        "srun: error: gpu03: task 0: Out Of Memory\n",
        "it needs more memory than the job has there",
        "--mem=0",
    ),
    (
        "srun: error: Unable to create step for job 7: Invalid node name specified\n",
        "Slurm creates no step on the node gpu03: Invalid node name specified",
        "scontrol show job",
    ),
    (
        "srun: error: Unable to create step for job 7: Required node not available (down)\n",
        "Slurm starts no step on the node gpu03, which is down or drained",
        "scontrol show node gpu03",
    ),
    (
        "srun: unrecognized option '--overlap'\n",
        "srun does not know the option --overlap: it is older than Slurm 20.11",
        "--launcher ssh",
    ),
    (
        (
            "srun: error: strange\nsrun: cluster configuration lacks support for cpu binding\n"
            "srun: error: gpu03: task 0: Killed\n"
        ),
        "did not run the script on the node gpu03: srun: error: strange",
        "srun --overlap",
    ),
    ("", "did not run the script on the node gpu03, and printed nothing", "srun --overlap"),
    ("x\x1b[2J" + "y" * 900, "x\\x1b[2Jyyy", "srun --overlap"),
]


@pytest.mark.parametrize(("printed", "meaning", "step"), PRINTED)
def test_what_slurm_prints_becomes_a_sentence_with_the_next_step(
    printed: str, meaning: str, step: str
) -> None:
    error = explain_end("gpu03", "gpu03", "7.1", printed)
    assert error.message.startswith("gpu03: ")
    assert meaning in error.message
    assert step in error.next_step
    assert len(error.message) < 320
    assert error.message.isprintable()


def test_an_srun_that_was_killed_here_accuses_nothing_that_it_printed_before() -> None:
    error = explain_end("gpu03", "gpu03", "7.1", "srun: cluster configuration lacks", killed_by=9)
    assert "srun was ended here by SIGKILL" in error.message


def test_a_step_that_never_began_says_what_srun_said_last() -> None:
    error = explain_late("gpu03", "n3", 60.0, "srun: Job step creation temporarily disabled\n\n")
    assert error.message == (
        "gpu03: Slurm began no step on the node n3 within 60 s; the last that srun printed: "
        "srun: Job step creation temporarily disabled"
    )
    assert "squeue --steps --nodelist=n3" in error.next_step
