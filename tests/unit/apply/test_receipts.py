"""What hosts note of a run, put together; a host may print anything."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.apply.receipts import MARK, Receipts, parse, question, summed_up
from remedy.plan.identities import machine_mark

T = "2026-01-01T00:00:0{}Z"


def line(second: int, change: str, state: str) -> str:
    return json.dumps({"time": T.format(second), "run": "r", "change": change, "state": state})


def test_a_run_that_was_confirmed() -> None:
    lines = [
        line(0, "-", "begun"),
        line(1, "-", "armed"),
        line(2, "01-x", "started"),
        line(3, "01-x", "done"),
        line(4, "-", "ended"),
        line(5, "-", "confirmed"),
    ]
    receipts = summed_up(lines)
    assert receipts == Receipts(T.format(0), (("01-x", "done"),), True, "confirmed", T.format(5))
    assert receipts.summary == (
        f"began {T.format(0)}; made 01-x; guarded changes were confirmed ({T.format(5)})"
    )


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "no receipt of this run"),
        ([line(0, "-", "begun")], "made no change; the script did not come to its end"),
        (
            [line(0, "-", "begun"), line(1, "01-x", "started")],
            "01-x was begun, and its end was not noted",
        ),
        ([line(0, "-", "begun"), line(1, "01-x", "failed")], "failed 01-x"),
        ([line(0, "-", "begun"), line(1, "-", "armed")], "wait for their confirmation"),
        ([line(0, "-", "begun"), line(1, "-", "reverted")], "took the guarded changes back"),
    ],
)
def test_each_way_in_which_a_run_can_have_been_cut_off(lines: list[str], words: str) -> None:
    assert words in summed_up(lines).summary


@pytest.mark.parametrize(
    "hostile",
    ["{", "[]", "null", '"x"', json.dumps({"time": "1", "change": "\x1b[2J", "state": "done"}),
     json.dumps({"time": "\n\n", "change": "01-x", "state": "done"})],
)  # fmt: skip
def test_lines_that_no_run_wrote_say_nothing(hostile: str) -> None:
    assert summed_up([line(0, "-", "begun"), hostile]) == Receipts(T.format(0), time="")


@given(st.lists(st.text(max_size=60), max_size=8))
def test_any_lines_give_text_that_can_be_shown(lines: list[str]) -> None:
    assert summed_up(lines).summary.isprintable()


def test_an_answer_counts_with_both_its_marks() -> None:
    begun = line(0, "-", "begun")
    text = f"hello\n{MARK} n0 begin\n0123\n{begun}\n{MARK} n0 end\n"
    answer = parse(text, "n0")
    assert answer is not None
    assert answer.began == T.format(0)
    assert parse(f"{MARK} n0 begin\n{begun}\n", "n0") is None
    assert parse(text, "other") is None
    assert "'/var/lib/remedy/runs/a;b/receipt.jsonl'" in question("a;b", "n0")


@pytest.mark.parametrize(
    ("first", "mark"), [("0123abcd", machine_mark("0123abcd")), ("", "")], ids=["read", "not-there"]
)
def test_a_host_says_which_machine_it_is(first: str, mark: str) -> None:
    text = f"{MARK} n0 begin\n{first}\n{line(0, '-', 'begun')}\n{MARK} n0 end\n"
    receipts = parse(text, "n0")
    assert receipts is not None
    assert (receipts.machine, receipts.began) == (mark, T.format(0))
