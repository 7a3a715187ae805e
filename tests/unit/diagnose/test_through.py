"""Jobs that were through, jobs that went on, and what proves neither."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines
from tests.unit.diagnose.launcher import report

EPOCHS = [
    line
    for epoch in (1, 2, 3)
    for line in (f"Epoch {epoch}/3", f"10/10 - 1s - loss: 1.{5 - epoch}")
]
GONE = (
    "E0000 00:00:1795860348.769110 154 base_collective_executor.cc:252] BaseCollectiveExecutor::StartAbort "
    "UNAVAILABLE: Failed to send RPC to coordination service."
)


def test_what_comes_after_the_last_epoch_of_all_logs_is_no_failure() -> None:
    assert diagnose_lines({"a.log": EPOCHS, "b.log": [*EPOCHS, GONE]}).label == "healthy"
    cut = diagnose_lines({"a.log": EPOCHS[:-1], "b.log": [*EPOCHS, GONE]})
    assert cut.label == "peer-died-timeout"
    amid = diagnose_lines({"a.log": EPOCHS, "b.log": [*EPOCHS[:4], GONE]})
    assert amid.label == "peer-died-timeout"


def test_several_processes_in_one_log_end_with_their_last_epoch() -> None:
    lines = [f"{rank}: {line}" for line in EPOCHS for rank in range(3)]
    assert diagnose_lines({"log": lines}).label == "healthy"


def test_what_a_run_outlived_is_said() -> None:
    slow = "gpu01:21:29 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"
    steps = [f"[09:59:{second}] step {second} loss 0.{second}" for second in range(10, 30)]
    diagnosis = diagnose_lines({"log": [slow, *steps, "done"]})
    assert diagnosis.label == "healthy"
    assert any(
        "log:1: the run went on after it: the adapter cannot reach" in note
        for note in diagnosis.notes
    )


def test_a_process_that_was_killed_proves_nothing_of_the_memory_of_its_host() -> None:
    diagnosis = diagnose_lines({"log": report()})
    assert diagnosis.label == "unknown"
    assert "host-oom" in [candidate.label for candidate in diagnosis.candidates]


GOOD = ["step 1/2 loss 1.5", "step 2/2 loss 1.4", "Training complete."]


@pytest.mark.parametrize(
    ("other", "label"),
    [
        (["step 1/2 loss 1.5", "GPU 3 does not answer, giving up"], "unknown"),
        (["step 1/2 loss nan", "done"], "application-error"),
    ],
)
def test_the_success_of_one_rank_is_not_that_of_another(other: list[str], label: str) -> None:
    diagnosis = diagnose_lines({"rank0.log": GOOD, "rank1.log": other})
    assert diagnosis.label == label
    assert diagnosis.notes
    assert diagnose_lines({"rank0.log": GOOD, "rank0.stderr.log": []}).is_fine
    empty = diagnose_lines({"rank0.log": GOOD, "rank1.log": []})
    assert not empty.is_fine
    assert "rank1.log: is empty" in empty.notes
    assert diagnose_lines({"rank0.log": GOOD, "rank1.log": GOOD[:2]}).label == "healthy"


def test_what_the_kernel_counts_from_its_boot_leads_where_it_is_as_good_as_proof() -> None:
    xid = "[1234567.123456] NVRM: Xid (PCI:0000:3b:00): 79, pid=2211, GPU has fallen off the bus."
    victim = "2026-03-01 10:00:40 RuntimeError: CUDA error: unspecified launch failure"
    assert diagnose_lines({"dmesg.txt": [xid], "gpu02.log": [victim]}).label == "gpu-hardware-xid"


def test_a_warning_about_a_module_is_no_failure() -> None:
    warning = "/opt/t.py:368: UserWarning: Failed to initialize NumPy: No module named 'numpy'"
    lost = "[rank1]: RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.3]:4782."
    assert (
        diagnose_lines({"rank0.log": [warning], "rank1.log": [lost]}).label == "peer-died-timeout"
    )


def test_an_exception_that_a_job_survived_fails_no_job_that_ended_well() -> None:
    raised = [
        "Traceback (most recent call last):",
        '  File "/a/b.py", line 3, in f',
        "ValueError: bad sample 17",
    ]
    survived = [
        "step 1/3 loss 2.5",
        *raised,
        "skipped sample 17",
        "step 2/3 loss 2.4",
        "step 3/3 loss 2.2",
    ]
    assert diagnose_lines({"log": [*survived, "Training complete."]}).label == "healthy"
    assert (
        diagnose_lines({"log": [*survived[:6], "Training complete."]}).label == "application-error"
    )
    assert diagnose_lines({"log": survived}).label == "application-error"
    assert diagnose_lines({"log": [*survived, *raised]}).label == "application-error"


def test_a_rank_that_failed_for_a_reason_that_is_not_known_comes_before_those_that_miss_it() -> (
    None
):
    own = [
        "Traceback (most recent call last):",
        '  File "/a/b.py", line 3, in f',
        "RuntimeError: cannot open device quux0",
    ]
    lost = (
        "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.1.0.7]:4711"
    )
    diagnosis = diagnose_lines({"log": [*(f"[rank5]: {line}" for line in own), f"[rank0]: {lost}"]})
    assert diagnosis.label == "unknown"
    assert diagnosis.lead is not None
    assert "quux0" in diagnosis.lead.text
    assert any("pair.cc" in quote.text for quote in diagnosis.consequences)
