"""How good runs end: programs take leave in many ways, and a log that only stops takes none."""

from __future__ import annotations

import pytest

from remedy.diagnose.diagnosis import Diagnosis
from remedy.diagnose.endings.ends import LAST
from remedy.diagnose.logs import diagnose_lines

START = ["N = 128", "grid of 2 x 2 x 2 ranks"]
STEPS = [f"step:{step}/3175 val_loss:3.27{step}" for step in range(3160, 3175)]
PAGE = [f"temperature of cell {cell}: 31{cell} K" for cell in range(30)]


def is_possible(diagnosis: Diagnosis) -> bool:
    """Return whether a run is called healthy, and only possibly so."""
    return (diagnosis.label, diagnosis.confidence) == ("healthy", "possible")


@pytest.mark.parametrize(
    "last",
    [
        ["Finished!", "Total frames: 1024", "Avg per frame: 0.058"],
        ["real\t0m37.513s", "user\t0m36.063s", "sys\t0m8.566s"],
        ["; END 2024-11-11 00:51:16"],
        [" Total times  cpu:      424.3s     wall:      151.4s"],
        ["Figure of Merit (FOM): nnz_AP / (Setup Phase Time + 3 * Solve Phase Time) 9.7e+08"],
        ["              0 tests completed and failed residual checks,", "End of Tests."],
        ["|gsm8k|      3|flexible-extract|     5|exact_match|0.5167|±  |0.0289|"],
        ["[INFO]: train job success!"],
        ["Elapsed time: 60.3093"],
    ],
)
def test_a_program_that_takes_leave_ended_well(last: list[str]) -> None:
    assert diagnose_lines({"log": [*START, *last]}).label == "healthy"


@pytest.mark.parametrize(
    "last",
    [
        ["Training init time: 691.540s", "Starting training..."],
        ["device: 7, Driver API Version: 10.0, Runtime API Version: 10.0"],
        ["Evaluating iter 10/10"],
        ["loading the shards is done in a moment"],
        [],
    ],
)
def test_a_log_that_only_stops_takes_no_leave(last: list[str]) -> None:
    assert diagnose_lines({"log": [*START, *last]}).label == "unknown"


def test_a_farewell_excuses_no_failure() -> None:
    lines = [*START, "solver: fatal error in the third block", "real\t0m3.1s"]
    assert diagnose_lines({"log": lines}).label != "healthy"


def test_one_log_that_takes_no_leave_leaves_all_open() -> None:
    logs = {"gpu01.log": [*START, "Elapsed time: 60.3"], "gpu02.log": START}
    assert diagnose_lines(logs).label == "unknown"


def test_the_last_of_its_steps_is_an_end() -> None:
    assert is_possible(diagnose_lines({"log": STEPS}))
    last = "step:3175/3175 val_loss:3.27713 train_time:1134.603s"
    ended = diagnose_lines({"log": [*STEPS, last]})
    assert ended.label == "healthy"
    assert ended.confidence == "likely"


@pytest.mark.parametrize(("epoch", "confidence"), [("2/3", "possible"), ("3/3", "likely")])
def test_the_last_step_of_an_epoch_is_an_end_in_the_last_epoch(epoch: str, confidence: str) -> None:
    lines = [f"Epoch {epoch} step {step}/90 loss 0.{step}" for step in range(70, 91)]
    diagnosis = diagnose_lines({"log": lines})
    assert (diagnosis.label, diagnosis.confidence) == ("healthy", confidence)


def test_half_a_line_is_not_read() -> None:
    # Without its beginning, which says that NCCL informs, the line has the words of a failure.
    informs = (
        "gpu01:812:812 [0] NCCL INFO NET/Plugin : Plugin load (libnccl-net.so) returned 2 : "
        "libnccl-net.so: cannot open shared object file: No such file or directory"
    )
    last = "[after training is done] datetime: 2024-09-22 09:17:12"
    filling = "x" * (LAST - len(last) - len(informs) // 2)
    lines = [*START, informs, filling, last]
    seen = "\n".join(lines)[-LAST:]
    assert "cannot open" in seen
    assert "INFO" not in seen
    assert diagnose_lines({"log": lines}).label == "healthy"


def test_what_fails_after_a_good_end_is_a_failure() -> None:
    end = "{'train_runtime': 23328.5, 'train_loss': 0.628, 'epoch': 1.0}"
    killed = (
        "Memory cgroup out of memory: Killed process 4503 (python3) total-vm:98304kB, anon-rss:65536kB, "
        "file-rss:4096kB, shmem-rss:0kB, UID:0 pgtables:256kB oom_score_adj:0"
    )
    assert diagnose_lines({"log": [*STEPS, end]}).label == "healthy"
    assert diagnose_lines({"log": [*STEPS, end, killed]}).label == "host-oom"


def test_a_launcher_that_only_started_proves_nothing() -> None:
    started = (
        "W0812 22:10:20.876000 183214 torch/distributed/run.py:766] Setting OMP_NUM_THREADS environment "
        "variable for each process to be 1 in default, to avoid your system being overloaded"
    )
    assert diagnose_lines({"log": [started]}).label == "unknown"


@pytest.mark.parametrize(
    "below",
    [
        "RESULT: FAIL",
        "Segfault",
        "Terminated",
        "+ exit 1",
        "Command exited with non-zero status 2",
        "worker 3 vanished, shutting down",
        "2026-06-01 12:10:20 received SIGTERM, shutting down",
        "waiting for other ranks to reach the final barrier",
        "rank 5 never arrived at barrier",
        "All ranks done except rank 5",
        "3 of 8 ranks reported wrong sums",
        "finished successfully on 7 of 8 ranks",
        "7 succeeded, 1 did not",
        "output mismatch in 4 tensors",
        "model.bin could not be written",
        "Terminé avec des erreurs",
        "Subject: Job 55: <train> in cluster <c1> Exited",
        "Success rate: 0%",
        "all predictions empty",
        "[user@gpu01 ~]$ echo $?\n1",
    ],
)
def test_what_stands_below_a_good_end_puts_it_in_doubt(below: str) -> None:
    last = "step:3175/3175 val_loss:3.27713 train_time:1134.603s"
    diagnosis = diagnose_lines({"log": [*STEPS, last, *below.split("\n")]})
    assert diagnosis.label != "healthy"
    assert not diagnosis.is_fine


@pytest.mark.parametrize(
    "below",
    [
        "$ echo $?\n0",
        "Success rate: 100%",
        "0 tests failed",
        "Job terminated of its own accord",
        "Read file <job.err> for stderr output",
    ],
)
def test_what_is_no_failure_leaves_a_good_end_as_it_is(below: str) -> None:
    last = "step:3175/3175 val_loss:3.27713 train_time:1134.603s"
    assert diagnose_lines({"log": [*STEPS, last, below]}).is_fine


def test_numbers_that_are_none_put_a_good_end_in_doubt() -> None:
    lines = [f"step {step}/20 loss {'nan' if step > 6 else '0.5'}" for step in range(1, 21)]
    assert not diagnose_lines({"log": [*lines, "done"]}).is_fine


def test_who_shuts_down_long_after_the_last_step_was_stopped() -> None:
    steps = [f"2026-06-01 12:{minute:02}:00 step {minute} loss 0.{minute}" for minute in range(40)]
    assert diagnose_lines({"log": [*steps, "2026-06-01 12:40:00 shutting down"]}).is_fine
    late = diagnose_lines({"log": [*steps, "2026-06-01 18:00:00 shutting down"]})
    assert late.label == "unknown"


def test_many_steps_are_possibly_a_good_run() -> None:
    assert diagnose_lines({"log": STEPS[:6]}).label == "unknown"
    diagnosis = diagnose_lines({"log": STEPS})
    assert is_possible(diagnosis)
    assert diagnosis.candidates[0].label == "peer-died-timeout"
    assert "a job that hangs after its last step looks the same" in diagnosis.notes[0]


def test_a_rank_that_stopped_long_before_the_others_is_not_at_work() -> None:
    def steps(minutes: int) -> list[str]:
        return [f"2026-11-28 10:{m:02}:00 step {m} loss 0.{m}" for m in range(minutes)]

    assert is_possible(diagnose_lines({"rank0": steps(50), "rank1": steps(50)}))
    assert diagnose_lines({"rank0": steps(50), "rank1": steps(15)}).label == "unknown"


def test_a_rank_that_stopped_long_before_the_others_in_one_log_is_not_at_work() -> None:
    def steps(rank: int, minutes: int) -> list[str]:
        return [
            f"[rank{rank}]: 2026-11-28 10:{m:02}:00 step {m} loss 0.{m}" for m in range(minutes)
        ]

    assert is_possible(diagnose_lines({"log": sorted([*steps(0, 40), *steps(1, 40)])}))
    behind = [*steps(0, 40), *steps(1, 15)]
    behind.sort(key=lambda line: line[9:])
    assert diagnose_lines({"log": behind}).label == "unknown"


def test_a_job_that_stood_still_until_its_time_limit_hung_whichever_log_says_so() -> None:
    steps = [f"2026-06-01T12:{minute:02}:00 step {minute} loss 0.{minute}" for minute in range(8)]
    end = "slurmstepd: error: *** JOB 12 ON gpu01 CANCELLED AT 2026-06-01T18:00:00 DUE TO TIME LIMIT ***"
    assert diagnose_lines({"rank0": [*steps, end], "rank1": steps}).label == "peer-died-timeout"


def test_a_page_without_a_word_of_a_failure_is_possibly_a_good_run() -> None:
    assert is_possible(diagnose_lines({"log": PAGE}))
    assert diagnose_lines({"log": PAGE[:10]}).label == "unknown"
    assert diagnose_lines({"log": PAGE, "other": PAGE[:10]}).label == "unknown"


@pytest.mark.parametrize(
    "line",
    [
        "solver: invalid mesh",
        "cell 7 was lost",
        "the solver is stuck",
        "Fehler beim Lesen",
        "错误: 内存不足",
        "gpu01:812:812 [0] NCCL INFO comm 0x56 rank 1 nranks 2 cudaDev 1 - Init START",
        "server socket has started to listen",
        "\ufffd" * 100,
    ],
)
def test_a_page_with_one_line_that_is_strange_stays_unknown(line: str) -> None:
    assert diagnose_lines({"log": [*PAGE, line]}).label == "unknown"


def test_a_run_that_is_through_without_a_loss_is_its_programs_own_failure() -> None:
    steps = [f"step {step}/40 loss {'nan' if step > 20 else '0.5'}" for step in range(10, 41, 10)]
    found = diagnose_lines({"log": [*steps, "Training completed in 0:10:00"]})
    assert (found.label, found.confidence) == ("application-error", "possible")
    assert any("no number" in note for note in found.notes)


def test_what_was_compiled_before_the_steps_was_no_end() -> None:
    begun = [">>> done with compiling", "WARNING: could not find the metadata file latest.txt"]
    steps = [f"iteration {step}/40 loss 2.{step}" for step in range(10, 41, 10)]
    assert diagnose_lines({"log": [*begun, *steps, "[after training is done]"]}).label == "healthy"


def test_a_good_run_over_sockets_is_said_to_be_slow_perhaps() -> None:
    lines = [
        "gpu01:812:900 [0] NCCL INFO Using network Socket",
        "gpu01:812:900 [0] NCCL INFO comm 0x55d0c1a7 rank 0 nranks 16 nNodes 2 cudaDev 0 - Init START",
        *STEPS,
        "Training completed",
    ]
    found = diagnose_lines({"log": lines})
    assert found.label == "healthy"
    assert any("TCP sockets" in note for note in found.notes)
    alone = [line.replace("nNodes 2", "nNodes 1") for line in lines]
    assert not any("TCP sockets" in note for note in diagnose_lines({"log": alone}).notes)
