"""Tracebacks in a record of JSON, in a box of rich, and behind the stamps of daemontools."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.diagnose.logs import diagnose_lines
from remedy.diagnose.scanner.enclosed import below_box, of_record
from remedy.diagnose.scanner.exceptions import raised

TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/app/train.py", line 9, in main\n'
    "    save(model)\n"
    "OSError: [Errno 28] No space left on device"
)
BOX = (
    "ERROR    training failed                          train.py:67",
    "         ╭── Traceback (most recent call last) ──╮",
    "         │ /app/train.py:65 in main              │",
    "         │ ❱ 65 │   │   train(args, log)         │",
    "         │ ╭───────────── locals ──────────────╮ │",
    "         │ │ args = Namespace(fail='disk')     │ │",
    "         │ ╰───────────────────────────────────╯ │",
    "         │ /app/save.py:12 in write              │",
    "         ╰───────────────────────────────────────╯",
    "         OSError: [Errno 28] No space left on",
    "         device:",
    "         '/checkpoints/a-very-long-name-of-a-file-",
    "         of-the-optimizer.bin'",
)


def test_a_list_of_its_lines_gives_a_traceback_back() -> None:
    printed = repr([f"{line}\n" for line in TRACEBACK.split("\n")])
    assert of_record(f"An exception was raised: {printed}").startswith(TRACEBACK)
    diagnosis = diagnose_lines({"a": [f"An exception was raised: {printed}"]})
    assert diagnosis.label == "disk-full"


@given(st.text(max_size=40), st.sampled_from(["exception", "exc_info", "stack"]))
def test_a_record_of_json_gives_its_traceback_back(before: str, key: str) -> None:
    record = json.dumps({"event": before, key: TRACEBACK, "level": "error"})
    assert of_record(record) == TRACEBACK
    assert of_record(f"gpu01: {record}") == TRACEBACK


@pytest.mark.parametrize(
    "line", ["", '{"event": "done"}', f'"{TRACEBACK[:34]}', '{"a": "Traceback']
)
def test_what_holds_no_whole_traceback_gives_none(line: str) -> None:
    assert of_record(line) == ""


def test_the_exception_of_a_record_is_on_its_own_line() -> None:
    record = json.dumps({"event": "failed", "exception": TRACEBACK})
    found = diagnose_lines({"log": ["start", record, "end"]})
    assert found.label == "disk-full"
    assert found.lead is not None
    assert (found.lead.line, found.lead.text) == (2, TRACEBACK.rpartition("\n")[2])


def test_half_a_character_in_a_record_is_no_obstacle() -> None:
    record = '{"exception": "Traceback (most recent call last):\\nValueError: \\ud800 in a name"}'
    found = diagnose_lines({"log": [record]})
    assert found.label == "application-error"
    assert found.lead is not None
    assert found.lead.text == "ValueError: ? in a name"


def test_an_exception_below_a_box_is_put_together() -> None:
    box = below_box(BOX[1], BOX[2:])
    assert box is not None
    assert box.text == (
        "OSError: [Errno 28] No space left on device: "
        "'/checkpoints/a-very-long-name-of-a-file-of-the-optimizer.bin'"
    )
    assert (box.after, box.file) == (8, "/app/save.py")
    found = diagnose_lines({"log": ["start", *BOX, "end"]})
    assert found.label == "disk-full"
    assert found.lead is not None
    assert found.lead.line == 11


@pytest.mark.parametrize("cut", [0, 3, 7])
def test_a_box_without_its_end_has_no_exception(cut: int) -> None:
    assert below_box(BOX[1], BOX[2 : 2 + cut]) is None
    assert below_box("Traceback (most recent call last):", BOX[2:]) is None


def test_stamps_of_daemontools_stand_before_each_line() -> None:
    stamped = [
        f"@400000006b09c16a1b87{number:04x} {line}"
        for number, line in enumerate(TRACEBACK.split("\n"))
    ]
    found = diagnose_lines({"log": stamped})
    assert found.label == "disk-full"
    assert found.lead is not None
    assert found.lead.line == 4


@pytest.mark.parametrize(
    ("code", "label"),
    [("sock.connect(addr)", "firewall-ports"), ("value = queue.get()", "peer-died-timeout")],
)
def test_time_that_ran_out_while_it_connected_is_a_way_that_is_closed(
    code: str, label: str
) -> None:
    lines = (
        f'\n  File "/app/net.py", line 3, in dial\n    {code}\n    ^^^^\nTimeoutError: timed out\n'
    )
    found = raised("Traceback (most recent call last):", lines.encode())
    assert found is not None
    assert found.code == code
    assert found.causes[0].label == label
