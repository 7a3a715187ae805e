"""What hosts note of a run, put together; a host may print anything."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.apply.receipts import MARK, Receipts, parse, question, summed_up
from remedy.apply.script import ROOT
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
    text = f"hello\n{MARK} n0 begin\n0123\n\n{begun}\n{MARK} n0 end\n"
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
    text = f"{MARK} n0 begin\n{first}\n\n{line(0, '-', 'begun')}\n{MARK} n0 end\n"
    receipts = parse(text, "n0")
    assert receipts is not None
    assert (receipts.machine, receipts.began) == (mark, T.format(0))


HOLDS = """
cd "$1"; root=$1
read -r boot </proc/sys/kernel/random/boot_id
read -r stat <"/proc/$$/stat"; set -- ${stat##*) }
ln -s "token r1 $boot $$ $((${20} + LATER)) 2026-01-01T00:00:00Z me" "$root/owner"
exec sleep 60
"""


@pytest.mark.parametrize(
    ("run", "later", "at_work"),
    [
        ("r1", 0, True),
        ("r2", 0, False),  # the lock is another run's
        ("r1", 1, False),  # its process is gone, and its number is another's
    ],
)
def test_a_host_says_whether_the_script_is_at_work(
    tmp_path: Path, run: str, later: int, at_work: bool
) -> None:
    text = question(run, "n0").replace(ROOT, str(tmp_path))
    script = HOLDS.replace("LATER", str(later))
    with subprocess.Popen(["sh", "-c", script, "sh", str(tmp_path)]) as holder:
        while not (tmp_path / "owner").is_symlink():
            time.sleep(0.01)
        done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True)
        holder.kill()
    receipts = parse(done.stdout, "n0")
    assert receipts is not None
    assert (receipts.at_work, receipts.began) == (at_work, "")
    assert ("has just begun there" in receipts.summary) is at_work
    after = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True)
    gone = parse(after.stdout, "n0")
    assert gone is not None
    assert not gone.at_work, "whoever had the lock is dead"


def test_what_goes_on_is_not_called_cut_off() -> None:
    lines = [line(0, "-", "begun"), line(1, "01-x", "started")]
    words = replace(summed_up(lines), at_work=True).summary
    assert "01-x was begun, and its end is not noted yet" in words
    assert "the script is at work there" in words
    assert "did not come to its end" not in words
