"""Several files in one log, as tail prints them: told apart, and their lines keep their numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remedy.diagnose.logs import diagnose_lines
from remedy.diagnose.parts import parts_of
from remedy.diagnose.reader import blocks_of, from_text

STEPS = [f"step {number} loss {3 - number / 100:.2f}" for number in range(10, 60, 10)]
LOST = "OSError: [Errno 28] No space left on device: '/ckpt/a'"


def texts(log: str) -> dict[str, str]:
    source = from_text("job.log", log.encode())
    parts, _ = parts_of(source, *blocks_of(source))
    return {part.name: b"".join(part.read()).decode() for part in parts}


def test_each_file_is_a_log_of_its_own() -> None:
    log = ["==> rank0.log <==", *STEPS, "", "==> rank1.log <==", STEPS[0], LOST]
    assert list(texts("\n".join(log))) == ["job.log/rank0.log", "job.log/rank1.log"]
    found = diagnose_lines({"job.log": log})
    assert found.label == "disk-full"
    assert found.lead is not None
    assert (found.lead.file, found.lead.line, found.lead.rank) == ("job.log/rank1.log", 10, 1)


def test_what_one_rank_outlived_another_did_not() -> None:
    log = ["==> a <==", LOST, "==> b <==", *STEPS, "Training completed"]
    assert diagnose_lines({"job.log": log}).label == "disk-full"


def test_a_log_that_names_no_files_stays_whole() -> None:
    assert texts("step 1\nfor x in ==> here <== there") == {}
    assert texts("==> only <==\nstep 1") == {}
    assert texts("") == {}


def test_what_stands_before_the_first_file_is_kept() -> None:
    assert texts("started\n==> a <==\none\n==> b <==\ntwo") == {
        "job.log/a": "\n\none",
        "job.log/b": "\n\n\n\ntwo",
        "job.log": "started",
    }


@given(st.lists(st.tuples(st.sampled_from("abc"), st.text("xy \t", max_size=8)), max_size=20))
def test_no_line_is_lost_and_each_keeps_its_number(rows: list[tuple[str, str]]) -> None:
    log = [line for name, text in rows for line in (f"==> {name} <==", text)]
    parts = texts("\n".join(log))
    if parts:
        kept = {
            (number, line)
            for text in parts.values()
            for number, line in enumerate(text.split("\n"))
            if line
        }
        assert kept == {(n, line) for n, line in enumerate(log) if n % 2 and line}
