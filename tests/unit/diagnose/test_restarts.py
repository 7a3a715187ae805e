"""Runs that were started again: what came before counts where the last of them failed, and only there."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines

OOM = (
    "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 1 has a total "
    "capacity of 79.10 GiB of which 1.81 GiB is free."
)
API = "1127 02:31:07.001000 140 torch/distributed/elastic"
FAILED = f"E{API}/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 1 (pid: 231) of binary: python3"
AGAIN = (
    f"I{API}/agent/server/api.py:889] [default] Worker group FAILED. 2/3 attempts left; "
    "will restart worker group"
)
WELL = (
    f"I{API}/agent/server/api.py:921] Local worker group finished (WorkerState.SUCCEEDED). "
    "Waiting 300 seconds for other agents to finish"
)


def _steps(first: int, last: int) -> list[str]:
    return [
        f"[rank{rank}]: epoch 0 step {step} loss 2.80"
        for step in range(first, last + 1, 100)
        for rank in range(2)
    ]


def test_an_attempt_that_torchrun_made_again_is_outlived() -> None:
    log = [*_steps(100, 100), OOM, FAILED, AGAIN, *_steps(200, 500), WELL]
    found = diagnose_lines({"log": log})
    assert (found.label, found.is_open) == ("healthy", False)


@pytest.mark.parametrize("tail", [[], [OOM, FAILED]], ids=["no step", "failed again"])
def test_an_attempt_without_a_good_one_after_it_counts(tail: list[str]) -> None:
    steps = _steps(200, 500) if tail else []
    log = [*_steps(100, 100), OOM, FAILED, AGAIN, *steps, *tail]
    assert diagnose_lines({"log": log}).label == "application-error"


@pytest.mark.parametrize(
    "begin",
    [
        "2026-11-27 09:00:00 [rank0] init world_size=2",
        "gpu01:812:812 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
        "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default",
    ],
)
def test_the_end_of_a_run_is_not_that_of_the_next_in_the_same_log(begin: str) -> None:
    run = [f"[rank0] step {step}/200 loss 2.0" for step in range(20, 201, 20)]
    whole = [*run, "Training finished"]
    assert not diagnose_lines({"log": whole}).is_open
    found = diagnose_lines({"log": [*whole, begin, "[rank0] step 10/200 loss 2.0"]})
    assert found.is_open or found.label == "unknown"


def test_who_is_preempted_has_not_failed() -> None:
    log = [
        *_steps(4000, 4100),
        "slurmstepd: error: *** JOB 88123 ON gpu07 CANCELLED AT 2026-11-27T04:10:22 DUE TO PREEMPTION ***",
        "[rank1]: socketProgress: Connection closed by remote peer gpu07<51234>",
    ]
    found = diagnose_lines({"log": log})
    assert found.lead is not None
    assert "DUE TO PREEMPTION" in found.lead.text
    assert found.is_open
    # A job that hung before its time was up is another matter.
    hung = [*_steps(4000, 4100), log[-1], log[-2].replace("PREEMPTION", "TIME LIMIT")]
    assert diagnose_lines({"log": hung}).label == "peer-died-timeout"


def test_ranks_that_are_ended_for_a_new_host_did_not_fail() -> None:
    grown = f"I{API}/agent/server/api.py:910] [default] Detected 1 new nodes from group_rank=0; will restart worker group"  # noqa: E501
    ended = f"W{API}/multiprocessing/api.py:897] Sending process 102 closing signal SIGTERM"
    assert diagnose_lines({"log": [*_steps(100, 200), grown, ended]}).label == "unknown"
    again = [*_steps(100, 200), grown, ended, *_steps(300, 600), WELL]
    assert diagnose_lines({"log": again}).label == "healthy"
