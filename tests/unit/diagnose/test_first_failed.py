"""torchrun's report of the process that failed first, and what the answer says of it."""

from __future__ import annotations

from remedy.diagnose.logs import diagnose_lines
from tests.unit.diagnose.launcher import report


def note_of(**logs: list[str]) -> str:
    notes = [note for note in diagnose_lines(logs).notes if note.startswith("torchrun saw")]
    return notes[0] if notes else ""


def test_rank_host_process_and_end_are_named() -> None:
    assert note_of(log=report()) == (
        "torchrun saw rank 3 fail first: process 88 on gpu02, ended by SIGKILL, at 11:00:39"
    )
    assert "exit code 1," in note_of(log=report(code=1))
    assert "ended by signal 77," in note_of(log=report(code=-77))


def test_of_several_reports_the_earliest_is_named() -> None:
    note = note_of(a=report("gpu01", 0, 1, second=41), b=report("gpu02", 3, -9, second=39))
    assert "rank 3 " in note
    assert "gpu02" in note


def test_a_collectors_prefix_is_no_part_of_it() -> None:
    plain = note_of(log=report())
    assert note_of(log=[f"train/0 {line}" for line in report()]) == plain
    assert note_of(log=[f"07:49:57 trainer.1 | {line}" for line in report()]) == plain


def test_a_report_that_is_cut_names_nobody() -> None:
    assert note_of(log=report()[:-4]) == ""
    assert note_of(log=["RuntimeError: no report at all"]) == ""


def test_a_hosts_name_is_bounded() -> None:
    assert "h" * 81 not in note_of(log=report("h" * 200))
