"""Forms in which failures are told by other programs than those of the corpus, and what is near them."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines

FORMS = (
    # A consequence names the Xid that it follows from: that one says what it is.
    ("NVRM: Xid (PCI:0000:3b:00): 45, pid=812, Ch 00000004 caused by previous Xid 145", "gpu-hardware-xid"),
    ("NVRM: Xid (PCI:0000:3b:00): 45, pid=812, Ch 00000004 caused by previous Xid 31", "application-error"),
    # What the errno of a file says is the program's own order of events, not the storage's.
    ("FileExistsError: [Errno 17] File exists: 'a.pt' -> '/ckpt/last.pt'", "application-error"),
    ("OSError: [Errno 39] Directory not empty: '/ckpt/tmp-7' -> '/ckpt/7'", "application-error"),
    ("OSError: [Errno 116] Stale file handle: '/ckpt/7'", "storage-fault"),
    # Queue pairs of programs that have verbs of their own.
    ("Failed to modify QP 0x12c to RTR: No such device", "ib-misconfig"),
    # A pod that has no place is no container without its runtime.
    ("0/4 nodes are available: 4 Insufficient nvidia.com/gpu.", "rank-mismatch"),
    ("connect() timed out. Original timeout was 900000 ms.", "firewall-ports"),
    ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "driver-mismatch"),
    ("RuntimeError: Found no NVIDIA driver on your system.", "container-gpu-runtime"),
)  # fmt: skip
HEADER = "#       size         count    type   redop     time   algbw   busbw  error"
ROW = "     1048576        262144   float     sum    553.2    1.90    3.67  2e-06"
COMPLETE = (
    "gpu01:81{0}:902 [{0}] NCCL INFO comm 0x55d{0} rank {0} nranks 4 cudaDev {0} nvmlDev {0} - "
    "Init COMPLETE"
)


@pytest.mark.parametrize(("line", "label"), FORMS, ids=[line[:50] for line, _ in FORMS])
def test_forms(line: str, label: str) -> None:
    assert diagnose_lines({"log": [line]}).label == label


def test_the_columns_of_a_table_are_no_failure() -> None:
    assert (
        diagnose_lines({"log": [HEADER, ROW, "# Out of bounds values : 0 OK"]}).label == "healthy"
    )


@pytest.mark.parametrize("complete", [3, 4])
def test_a_log_that_ends_with_a_set_up_is_a_hang_until_more_of_it_is_seen(complete: int) -> None:
    lines = [COMPLETE.format(rank) for rank in range(complete)]
    found = diagnose_lines({"log": lines})
    assert (found.label, found.candidates[0].label) == ("unknown", "p2p-acs-iommu")
    steps = [f"step {step} loss 0.{step}" for step in range(1, 40)]
    assert diagnose_lines({"log": [*lines, *steps]}).label == "healthy"
    # A few are what a run makes that hangs early.
    assert diagnose_lines({"log": [*lines, *steps[:2]]}).label == "unknown"


def test_variables_that_did_not_arrive_are_a_second_answer() -> None:
    line = "ValueError: Error initializing: environment variable MASTER_ADDR expected, but not set"
    found = diagnose_lines({"log": [line]})
    assert found.label == "application-error"
    assert found.confidence == "likely"
    assert found.candidates[1].label == "env-not-propagated"


def test_memory_that_torch_does_not_hold_is_held_by_another_process() -> None:
    head = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 30.00 MiB. "
    gpu = "GPU 0 has a total capacity of 39.39 GiB of which 8.00 MiB is free. "
    used = "Process 77 has 38.20 GiB memory in use. Of the allocated memory {} is allocated by PyTorch."
    other, own = (head + gpu + used.format(size) for size in ("14.00 MiB", "36.10 GiB"))
    assert diagnose_lines({"log": [other]}).label == "stale-process"
    assert diagnose_lines({"log": [own]}).label == "application-error"
