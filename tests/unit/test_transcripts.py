"""Transcripts of tests: what is written is read again, and a plan that says something else is noticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remedy.plan import Change, CommandAction, FileAction, Finding, FindingKind, Plan, sha256
from tests.unit import transcripts
from tests.unit.plans import plan_with

DRIFT = Finding(
    host="a", remedy="x", kind=FindingKind.DRIFT, label="l", title="it\nis", evidence=("# 1", "## é"), fix="do"
)  # fmt: skip
OLD, NEW = b"a\nb\n", b"a\nc\n\xff"


def plan() -> Plan:
    common: dict[str, Any] = {
        "remedy": "x",
        "title": "t",
        "reason": "r",
        "label": "l",
        "disrupts": "much",
    }
    run = CommandAction(observe="o", before="1", after="2", do="d", undo="")
    write = FileAction(path="/p", real_path="/r", before=sha256(OLD), after=sha256(NEW), mode=0o600)
    changes = (
        Change(id="01-x", host="a", action=run, reversible=False, guarded=True, **common),
        Change(id="02-x", host="a", action=write, **common),
        Change(id="01-x", host="b", action=run, reversible=False, guarded=True, **common),
    )
    contents = {sha256(content): content for content in (OLD, NEW)}
    plan = plan_with(DRIFT, DRIFT.model_copy(update={"host": None}))
    return plan.model_copy(update={"changes": changes, "contents": contents})


def test_all_that_a_plan_says_and_does_is_in_its_transcript() -> None:
    assert transcripts.parts_of([plan(), plan_with()]) == {
        "x: drift (l)\n    it\n    is\n    # 1\n    ## \\xe9\n    next: do": ("a", "fleet"),
        "01 x: low, guarded, for good (l)\n    t\n    because: r\n    disrupts: much\n    observe: o\n"
        "    before: 1\n    after: 2\n    do: d\n    undo: ": ("a", "b"),
        "02 x: low (l)\n    t\n    because: r\n    disrupts: much\n    file /p -> /r, 600\n"
        "    @@ -2 +2,2 @@\n    -b\n    +c\n    +\\\\xff": ("a",),
    }


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    tests = {"test_a[x: y]": transcripts.parts_of([plan()]), "test_b": {}}
    file = tmp_path / "t.txt"
    file.write_text(transcripts.written(tests), encoding="utf-8")
    assert transcripts.read(file) == tests
    assert transcripts.read(tmp_path / "nothing.txt") == {}


def test_a_plan_that_says_something_else_is_noticed(tmp_path: Path) -> None:
    parts = transcripts.parts_of([plan()])
    file = tmp_path / "t.txt"
    file.write_text(transcripts.written({"test_a": parts}), encoding="utf-8")
    transcripts.compare(file, "test_a", parts)
    transcripts.compare(file, "test_new", {})
    other = DRIFT.model_copy(update={"fix": "do not"})
    for findings in ((), (other,), (DRIFT.model_copy(update={"host": "b"}),)):
        changed = plan().model_copy(update={"findings": findings})
        with pytest.raises(pytest.fail.Exception, match=r"--transcribe\n(.|\n)*-a,fleet: x: drift"):
            transcripts.compare(file, "test_a", transcripts.parts_of([changed]))
