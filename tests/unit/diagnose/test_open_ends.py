"""A log that ends with a step shows no end: a run that goes on, or one that hangs since."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines

STEPS = [f"step {number} loss {4 - number / 10}" for number in range(6)]
NOTE = "no line shows that the program ended"


def test_steps_alone_are_no_healthy_run() -> None:
    found = diagnose_lines({"gpu01.log": STEPS, "gpu02.log": STEPS})
    assert found.label == "unknown"
    assert found.candidates[0].label == "peer-died-timeout"
    assert any(NOTE in note for note in found.notes)


@pytest.mark.parametrize(
    "end",
    [
        "training finished",
        "rank 0 done",
        "2026-11-26 03:11:30,964 ignite.distributed.launcher.Parallel INFO: End of run",
        "gpu01:22:22 [0] NCCL INFO comm 0x19d37140 rank 0 nranks 2 cudaDev 0 busId 60 - Destroy COMPLETE",
        "Total wall time 412.1 s",
        "INFO:     Application startup complete.",
    ],
)
def test_a_program_that_says_that_it_is_done_is_healthy(end: str) -> None:
    found = diagnose_lines({"log": [*STEPS, end]})
    assert (found.label, found.notes) == ("healthy", ())


def test_one_rank_that_says_so_is_enough() -> None:
    assert (
        diagnose_lines({"a.log": [*STEPS, "training finished"], "b.log": STEPS}).label == "healthy"
    )


@pytest.mark.parametrize(
    "warning",
    [
        "UserWarning: Grad strides do not match bucket view strides.",
        "[W1126 03:10:10.788316210 socket.cpp:207] [c10d] The hostname of the client cannot be told.",
        "libtpu.so already in used by another process. Not attempting to load libtpu.so in this process.",
        "ringer: dial 10.0.0.4:7001: Network is unreachable",
    ],
)
def test_steps_after_a_warning_answer_what_it_meant_and_no_more(warning: str) -> None:
    found = diagnose_lines({"log": [warning, *STEPS]})
    assert (found.label, found.confidence) == ("healthy", "possible")
    assert any(NOTE in note for note in found.notes)


def test_a_step_that_says_done_is_no_end() -> None:
    steps = [f"done with step {number} loss {4 - number / 10}" for number in range(6)]
    assert diagnose_lines({"log": steps}).label == "unknown"
