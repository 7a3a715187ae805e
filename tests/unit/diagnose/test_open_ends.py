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


def test_one_rank_that_says_so_is_enough_unless_another_ends_strangely() -> None:
    logs = {"a.log": [*STEPS, "training finished"], "b.log": [*STEPS, "Segfault"]}
    assert diagnose_lines(logs).label == "unknown"
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


@pytest.mark.parametrize(
    "end",
    [
        "rank 3 died",
        "connection lost, exiting",
        "watchdog: no progress for 600 s, exiting",
        "Terminated",
        "Stopping: validation diverged",
        "checkpoint is corrupted",
        "quota exceeded",
        "Traceback (most recent call last):",
        "123 FAILED 1:0",
        # Words that excuse others, where those are numbers or names.
        "ERROR: loss became nan, aborting",
        "FATAL: lost quorum, 0 errors",
        "CRITICAL gradient error rate too high, killed",
        "Error: retry (3/3) exhausted, aborting",
        "evaluation failed; see errors.py",
        "cannot continue: no errors were logged",
    ],
)
def test_what_follows_the_last_step_is_no_healthy_run(end: str) -> None:
    diagnosis = diagnose_lines({"log": ["UserWarning: strides do not match", *STEPS, end]})
    assert diagnosis.label != "healthy"
    lead = diagnosis.lead.text if diagnosis.lead else ""
    assert any(end in text for text in (lead, *diagnosis.notes))


@pytest.mark.parametrize(
    "line",
    [
        "INFO:root:memory in use 12 GiB",
        "checkpoint written by rank 0",
        "validation accuracy 0.71",
        "loss_disc=3.506, loss_gen=3.726",
        "error rate: 0.12",
        "errors: 0",
    ],
)
def test_what_a_program_at_work_prints_after_a_step_is_nothing(line: str) -> None:
    diagnosis = diagnose_lines({"log": ["UserWarning: strides do not match", *STEPS, line]})
    assert (diagnosis.label, diagnosis.confidence) == ("healthy", "possible")


@pytest.mark.parametrize(
    "line",
    [
        "trainer-1 exited with code 1",
        "2026-11-20 10:00:01,123 INFO exited: train (exit status 1; not expected)",
        "train.service: Main process exited, code=exited, status=1/FAILURE",
        "Status message: Job entrypoint command failed with exit code 1, last available logs:",
        "make: *** [Makefile:12: train] Error 1",
        "      Exit Code:    1",
        "Exit_status=1",
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_what_a_supervisor_reports_is_no_healthy_run(line: str, is_first: bool) -> None:
    """Some report the end before they print the output."""
    lines = [line, *STEPS] if is_first else [*STEPS, line]
    assert diagnose_lines({"log": lines}).label == "unknown"


def test_an_exit_code_of_its_own_is_the_programs_affair() -> None:
    assert (
        diagnose_lines({"log": [*STEPS, "app-1 exited with code 3"]}).label == "application-error"
    )
    assert diagnose_lines({"log": [*STEPS, "app-1 exited with code 0"]}).label == "healthy"


def test_what_is_harmless_by_itself_may_be_all_that_there_is() -> None:
    warning = "WARNING: There was an error initializing an OpenFabrics device."
    diagnosis = diagnose_lines({"log": [warning]})
    assert (diagnosis.label, diagnosis.confidence) == ("healthy", "possible")
    assert any("no line shows how the run ended" in note for note in diagnosis.notes)
    more = diagnose_lines({"log": [warning, "Aborted by peer: giving up"]})
    assert "healthy" not in [candidate.label for candidate in more.candidates]
