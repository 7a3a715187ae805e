"""Whose memory it was that lacked: the program's own, as in containers under a number, or another process's."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines

HEAD = "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
GPU = "GPU 0 has a total capacity of 79.15 GiB of which 1.20 GiB is free. "
TORCH = "Of the allocated memory {} is allocated by PyTorch, and {} is reserved by PyTorch but unallocated."
OWN = "Including non-PyTorch memory, this process has {} memory in use. "


def _label(*parts: str) -> str:
    return diagnose_lines({"log": [HEAD + GPU + "".join(parts)]}).label


OTHER = (
    ("Process 4021 has 70.10 GiB memory in use. ", OWN.format("7.80 GiB")),
    (OWN.format("7.80 GiB"), "Process 4021 has 70.10 GiB memory in use. "),
    (
        "Process 9 has 40.00 GiB memory in use. ",
        "Process 4021 has 37.90 GiB memory in use. ",
        TORCH.format("36.00 GiB", "1.50 GiB"),
    ),
    ("Process 4021 has 70.10 GiB memory in use.",),  # the end of the line was cut off
)
ITSELF = (
    (OWN.format("77.90 GiB"), TORCH.format("76.00 GiB", "1.10 GiB")),
    ("Process 4021 has 77.90 GiB memory in use. ", TORCH.format("76.00 GiB", "1.10 GiB")),
    ("Process 4021 has 77.90 GiB memory in use.",),
    # A desktop, and another rank that has only its context there.
    ("Process 4021 has 148.91 MiB memory in use. ", OWN.format("77.70 GiB")),
    (
        "Process 9 has 500.00 MiB memory in use. ",
        "Process 4021 has 77.40 GiB memory in use. ",
        TORCH.format("76.00 GiB", "1.10 GiB"),
    ),
    # The driver does not know what the process uses.
    ("Process 4021 has 17179869184.00 GiB memory in use. ", TORCH.format("76.00 GiB", "1.10 GiB")),
)


@pytest.mark.parametrize("parts", OTHER)
def test_memory_that_another_process_holds(parts: tuple[str, ...]) -> None:
    assert _label(*parts) == "stale-process"


@pytest.mark.parametrize("parts", ITSELF)
def test_memory_that_the_program_holds_itself(parts: tuple[str, ...]) -> None:
    assert _label(*parts) == "application-error"


def test_what_others_hold_and_would_not_suffice_is_not_why() -> None:
    head = HEAD.replace("2.00", "60.00") + GPU
    text = head + "Process 4021 has 30.00 GiB memory in use. " + OWN.format("47.90 GiB")
    assert diagnose_lines({"log": [text]}).label == "application-error"


def test_the_number_of_the_process_is_named_where_it_is_another() -> None:
    result = diagnose_lines({"log": [HEAD + GPU + "".join(OTHER[0])]})
    assert result.lead is not None
    assert result.lead.details["pid"] == "4021"


@pytest.mark.parametrize(
    ("allocated", "free", "reserved", "label"),
    [
        ("69.17 MiB", "24.56 MiB", "86.00 MiB", "stale-process"),
        ("7.01 GiB", "24.56 MiB", "7.20 GiB", "application-error"),
        ("3.10 GiB", "4.40 GiB", "3.20 GiB", "application-error"),
    ],
)
def test_torch_before_it_named_processes(
    allocated: str, free: str, reserved: str, label: str
) -> None:
    line = (
        "RuntimeError: CUDA out of memory. Tried to allocate 216.00 MiB (GPU 0; 7.92 GiB total capacity; "
        f"{allocated} already allocated; {free} free; {reserved} reserved in total by PyTorch)"
    )
    assert diagnose_lines({"log": [line]}).label == label
    # As it is posted, without its beginning.
    assert diagnose_lines({"log": [line.partition("memory. ")[2]]}).label == label
