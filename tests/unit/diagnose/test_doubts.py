"""An answer is certain only where nothing else can be meant."""

from __future__ import annotations

import pytest

from remedy.diagnose.diagnosis import Diagnosis
from remedy.diagnose.logs import diagnose_lines

FULL = "OSError: [Errno 28] No space left on device: '/ckpt/model.pt'"
XID = "[8123.5] NVRM: Xid (PCI:0000:4f:00): 79, pid=9912, GPU has fallen off the bus."
STEPS = [f"2026-01-01 10:01:{10 + n:02d} step {n} loss {4 - n / 10}" for n in range(5)]
WAITED = (
    "[rank{0}]:[E709 17:05:38.1 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
    "600000 ms"
)


def diagnosis_of(*lines: str) -> Diagnosis:
    return diagnose_lines({"log": lines})


def doubt_of(diagnosis: Diagnosis) -> str:
    return next((note for note in diagnosis.notes if note.startswith("not certain: ")), "")


@pytest.mark.parametrize("text", [FULL, XID])
def test_a_text_that_is_as_good_as_proof_is_certain(text: str) -> None:
    diagnosis = diagnosis_of(*STEPS, text)
    assert diagnosis.confidence == "certain"
    assert doubt_of(diagnosis) == ""


def test_a_job_that_goes_on_after_a_text_did_not_fail_by_it() -> None:
    diagnosis = diagnosis_of(XID, *STEPS, "RuntimeError: the loss is not a number")
    assert (diagnosis.label, diagnosis.confidence) == ("gpu-hardware-xid", "likely")
    assert doubt_of(diagnosis) == "not certain: the job went on after it"


def test_a_line_before_it_in_the_words_of_the_system_takes_certainty() -> None:
    before = "fatal: the tracker: Software caused connection abort"
    diagnosis = diagnosis_of(before, FULL)
    assert (diagnosis.label, diagnosis.confidence) == ("disk-full", "likely")
    assert "a line before it" in doubt_of(diagnosis)


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("Getting socket times out. Reason: Failed to bind the IP port", "likely"),
        ("Getting socket times out. Reason: Remote Rank did not send the data", "certain"),
    ],
)
def test_who_suffers_says_in_the_same_line_from_what(text: str, confidence: str) -> None:
    diagnosis = diagnosis_of(f"EI0006: 2025-03-11-02:10:22.011 {text}")
    assert (diagnosis.label, diagnosis.confidence) == ("hccl-timeout", confidence)


@pytest.mark.parametrize(("seconds", "confidence"), [(1, "certain"), (55, "likely")])
def test_another_failure_long_before_takes_certainty(seconds: int, confidence: str) -> None:
    first = "2026-01-01 10:00:00 torch: Observed flight recorder dump signal from another rank via store"
    bind = f"2026-01-01 10:00:{seconds:02d} bind on port 29500: Address already in use"
    diagnosis = diagnosis_of(first, bind)
    assert (diagnosis.label, diagnosis.confidence) == ("master-port-in-use", confidence)
    assert ("long before" in doubt_of(diagnosis)) == (confidence == "likely")


@pytest.mark.parametrize(
    "text",
    [
        "Job for nvidia-peermem.service failed because the control process exited with error code.",
        "Failed to start nv_peer_mem.service: Unit nv_peer_mem.service not found.",
    ],
)
def test_the_state_of_a_service_is_no_proof(text: str) -> None:
    diagnosis = diagnosis_of(text)
    assert (diagnosis.label, diagnosis.confidence) == ("gdr-peermem", "likely")


def test_a_line_that_informs_is_no_proof_where_nothing_fails() -> None:
    disabled = "gpu01:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"
    failure = "gpu01:1:2 [0] NCCL WARN Call to ibv_reg_mr failed with error Bad address"
    assert diagnosis_of(disabled).confidence == "likely"
    assert diagnosis_of(disabled, failure).confidence == "certain"


def test_the_same_text_of_many_processes_is_not_surer() -> None:
    text = "[rank{}] fatal: connect to 10.0.0.4 port 41235 failed: No route to host"
    assert diagnosis_of(*(text.format(rank) for rank in range(8))).confidence != "certain"


@pytest.mark.parametrize(
    ("world", "confidence"),
    [(3, "possible"), (4, "certain")],
)
def test_no_rank_is_gone_where_all_of_them_wait_in_one_collective(
    world: int, confidence: str
) -> None:
    start = f"gpu01:812:901 [0] NCCL INFO comm 0x55d rank 0 nRanks {world} - Init START"
    diagnosis = diagnosis_of(start, *(WAITED.format(rank, 12) for rank in range(3)))
    assert (diagnosis.label, diagnosis.confidence) == ("peer-died-timeout", confidence)
    is_noted = any("none of them is gone" in note for note in diagnosis.notes)
    assert is_noted == (confidence == "possible")


def test_ranks_from_the_first_on_are_enough_for_a_doubt_and_not_for_certainty() -> None:
    diagnosis = diagnosis_of(*(WAITED.format(rank, 12) for rank in range(3)))
    assert (diagnosis.label, diagnosis.confidence) == ("peer-died-timeout", "likely")
    assert "network-unreachable" in [candidate.label for candidate in diagnosis.candidates]
    # Rank 0 did not say that it waited: it is the one that is gone, or stalls.
    without_first = diagnosis_of(*(WAITED.format(rank, 12) for rank in range(1, 4)))
    assert without_first.confidence == "certain"


def test_a_log_in_which_nobody_waits_may_be_that_of_a_rank_that_is_gone() -> None:
    waiting = {f"gpu0{rank + 1}.log": [WAITED.format(rank, 12)] for rank in range(2)}
    assert diagnose_lines(waiting).confidence == "likely"
    silent = {**waiting, "gpu03.log": [*STEPS]}
    assert diagnose_lines(silent).confidence == "certain"


def test_what_is_between_ranks_goes_with_the_network_of_the_job() -> None:
    adapters = (
        "gpu01:812:901 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eno1:10.0.0.1<0>"
    )
    diagnosis = diagnosis_of(adapters, *(WAITED.format(rank, 12) for rank in range(2)))
    assert diagnosis.candidates[1].label == "ib-link-fault"


def test_two_texts_of_one_fact_are_one_witness() -> None:
    closed = (
        "gpu01:22:46 [0] misc/socket.cc:72 NCCL WARN Net : Connection closed by remote peer g2<4>"
    )
    error = "[rank0]: ncclRemoteError: A call failed possibly due to a network error"
    alone, both = diagnosis_of(closed), diagnosis_of(closed, error)
    assert both.label == "peer-died-timeout"
    assert both.certainty == alone.certainty


@pytest.mark.parametrize(
    ("before", "number", "doubt"),
    [
        ([], 12, ""),
        (STEPS, 2, ""),
        ([], 2, "who is missing may never have been reached"),
        (["fatal: the tracker gave up on job 7"], 12, "fatal: the tracker gave up on job 7"),
        (["fatal: the tracker gave up on job 7", *STEPS], 12, ""),
    ],
)
def test_a_rank_is_lost_for_certain_where_the_ranks_had_worked_and_nothing_else_failed(
    before: list[str], number: int, doubt: str
) -> None:
    diagnosis = diagnosis_of(*before, WAITED.format(1, number))
    assert diagnosis.label == "peer-died-timeout"
    assert diagnosis.confidence == ("likely" if doubt else "certain")
    assert doubt in doubt_of(diagnosis)
    assert bool(doubt) == bool(doubt_of(diagnosis))


def test_lines_keep_their_numbers_whatever_stands_in_them_and_below() -> None:
    gave_up = "fatal: the tracker gave up on job 7"
    for lines in (
        (gave_up, WAITED.format(1, 12), "", ""),
        ("page\x0cpage", gave_up, WAITED.format(1, 12)),
    ):
        assert gave_up in doubt_of(diagnosis_of(*lines))
    # What an event is about stands in its own line, also where a form feed stands above it.
    found = diagnosis_of(*STEPS, "page\x0cpage", WAITED.format(1, 12), WAITED.format(2, 12))
    assert doubt_of(found) == ""
