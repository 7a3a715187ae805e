"""Jobs whose launchers were sent SIGTERM: by whom, no log of theirs shows."""

from __future__ import annotations

from remedy.diagnose.diagnosis import Diagnosis
from remedy.diagnose.logs import diagnose_lines

STEPS = [
    f"2026-03-02 11:04:{second:02d} rank 0 step {second} loss 2.4{second}"
    for second in range(10, 40)
]
SIGTERM = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 13 got signal: 15"
DEAD_PEER = (
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] "
    "Connection closed by peer [10.0.0.2]:40122"
)


def possible(diagnosis: Diagnosis) -> list[str]:
    return [candidate.label for candidate in diagnosis.candidates]


def test_all_launchers_were_sent_it_in_the_middle_of_their_steps() -> None:
    diagnosis = diagnose_lines({"a.log": [*STEPS, SIGTERM], "b.log": [*STEPS, SIGTERM]})
    assert diagnosis.label == "unknown"
    assert possible(diagnosis)[:2] == ["application-error", "peer-died-timeout"]
    assert any("ask the scheduler" in note for note in diagnosis.notes)


def test_one_log_may_be_that_of_a_job_another_part_of_which_failed() -> None:
    diagnosis = diagnose_lines({"a.log": [*STEPS, SIGTERM]})
    assert possible(diagnosis)[0] == "peer-died-timeout"


def test_a_log_without_it_may_be_of_the_host_that_failed() -> None:
    diagnosis = diagnose_lines({"a.log": [*STEPS, SIGTERM], "b.log": STEPS[:12]})
    assert possible(diagnosis)[0] == "peer-died-timeout"


def test_what_a_rank_suffered_before_is_the_answer() -> None:
    diagnosis = diagnose_lines({"a.log": [*STEPS, DEAD_PEER, SIGTERM], "b.log": [*STEPS, SIGTERM]})
    assert diagnosis.label == "peer-died-timeout"


def test_steps_that_ended_long_before_are_a_hang() -> None:
    late = f"2026-03-02 12:40:00 {SIGTERM}"
    diagnosis = diagnose_lines({"a.log": [*STEPS, late], "b.log": [*STEPS, late]})
    assert diagnosis.label == "peer-died-timeout"
    assert any("a hang" in note for note in diagnosis.notes)
