"""Lines that a terminal folded, and rows of tables, which are none."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines


@pytest.mark.parametrize("end", ["", "\r"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("width", [64, 80, 120])
def test_lines_that_a_terminal_folded_are_read_as_they_were_printed(width: int, end: str) -> None:
    text = [
        "gpu01:812:901 [0] include/shm.h:48 NCCL WARN Error: failed to extend /dev/shm/nccl-8xQ2Lt to "
        f"{9_637_892 + n} bytes, which is more than this file system has, whatever else is in it"
        for n in range(6)
    ]
    folded = [line[at : at + width] for line in text for at in range(0, len(line), width)]
    found = diagnose_lines({"log": [row + end for row in ("start", *folded, "end")]})
    assert found.label == "shm-too-small"
    assert found.lead is not None
    assert found.lead.line == 2
    assert folded[found.candidates[0].evidence[1].line - 2].startswith("gpu01:812:901")


def test_the_rows_of_a_table_are_no_folded_lines() -> None:
    rows = [
        f"{number:<15} {'train':>10} {'FAILED' if number == 124 else 'COMPLETED':>10} {'1:0':>8} "
        for number in range(121, 127)
    ]
    head = f"{'JobID':<15} {'JobName':>10} {'State':>10} {'ExitCode':>8} "
    table = [head, f"{'-' * 15} {'-' * 10} {'-' * 10} {'-' * 8} ", *rows]
    lead = diagnose_lines({"sacct.txt": table}).lead
    assert lead is not None
    assert (lead.line, lead.text.split()) == (6, ["124", "train", "FAILED", "1:0"])


def test_the_table_of_nvidia_smi_is_no_folded_line() -> None:
    # As driver 580.159.04 prints it of an H200: between the rows of its boxes stands no space.
    rule = f"+{'-' * 41}+{'-' * 24}+{'-' * 22}+"
    rows = [
        f"| {text:<39} | {'':22} | {'':>20} |"
        for text in ("GPU  Name", "Fan  Temp", "0  NVIDIA H200", "N/A   39C")
    ]
    head = "| NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     |"
    table = [
        "Sat Nov 28 06:13:38 2026",
        rule,
        head,
        rule,
        *rows[:2],
        rule.replace("-", "="),
        *rows[2:],
        rule,
    ]
    used = "|    0   N/A  N/A            1127      C   python3                                1634MiB |"
    found = diagnose_lines({"smi": [*table, *[used] * 20, rule]})
    assert (found.label, found.notes) == ("unknown", ())


def test_lines_of_one_form_and_length_are_no_folded_lines() -> None:
    links = [
        f"gpu0{a} -> gpu0{b} port 4{a}{b}87: no answer (dropped on the way): 3.5 s, tried again"
        for a in range(1, 5)
        for b in range(1, 5)
        if a != b
    ]
    found = diagnose_lines({"log": links})
    assert found.lead is not None
    assert found.lead.text == links[0]
