"""A run's records put together: who did what, to which hosts, and how each of them ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remedy.audit.journal import Journal, JournalRecord
from remedy.audit.story import Story, hosts_of_plan, read_stories, stories

WHEN = "2026-01-01T00:00:00+00:00"


def record(
    number: int, event: str, run: str = "r1", mode: str = "apply", **data: Any
) -> JournalRecord:
    return JournalRecord(
        number, {"run": run, "mode": mode, "time": WHEN, "event": event, "data": data}
    )


def told(*records: JournalRecord) -> Story:
    (story,) = stories(records).values()
    return story


PLANNED = record(
    0,
    "planned",
    by="bob@ops",
    digest="d" * 64,
    of="r8",
    resumes="r9",
    approvals=[
        {"principal": "ann@ops", "signature": "s"},
        {"principal": "eve@ops", "signature": "s"},
    ],
    changes={"a": ["one", "two"], "b": ["three"]},
    waves=2,
)


def result(number: int, status: str, detail: str = "") -> dict[str, str]:
    return {"id": f"{number:02d}-x", "status": status, "detail": detail}


def test_the_first_record_says_what_was_planned_and_by_whom() -> None:
    story = told(PLANNED)
    assert (story.run, story.mode, story.time) == ("r1", "apply", WHEN)
    assert (story.by, story.digest, story.of, story.resumes) == ("bob@ops", "d" * 64, "r8", "r9")
    assert story.approvals == ("ann@ops", "eve@ops")
    assert story.planned == {"a": ("one", "two"), "b": ("three",)}
    assert story.count == 3
    assert (story.began, story.unfinished) == (set(), ("a", "b"))
    assert (story.exit_code, story.proved, story.hosts) == (None, None, {})


def test_hosts_are_used_from_the_wave_that_begins_on_them() -> None:
    assert told(PLANNED, record(1, "began", hosts=["a"])).began == {"a"}
    assert told(
        PLANNED, record(1, "began", hosts=["a"]), record(2, "began", hosts=["b"])
    ).began == {
        "a",
        "b",
    }


def test_what_hosts_say_of_each_change_is_kept() -> None:
    story = told(
        PLANNED,
        record(1, "changed", hosts={"a": {"results": [result(1, "done"), result(2, "lost", "why")]}}),
        record(2, "changed", hosts={"b": {"refused": "no root", "results": []}}),
    )  # fmt: skip
    assert story.results == {"a": {"01-x": "done", "02-x": "lost"}}
    assert story.words == {"a": {"02-x": "why"}}
    assert story.refused == {"b": "no root"}


@pytest.mark.parametrize(
    ("status", "finished"),
    [
        ("done", True), ("already", True), ("stale", True), ("failed", True),
        ("lost", False), ("not tried", False), ("reverted", False),
    ],
)  # fmt: skip
def test_a_host_is_finished_when_a_change_of_it_came_to_an_end(status: str, finished: bool) -> None:
    story = told(PLANNED, record(1, "changed", hosts={"a": {"results": [result(1, status)]}}))
    assert story.unfinished == (("b",) if finished else ("a", "b"))


@pytest.mark.parametrize("passed", [True, False])
def test_the_proof_and_the_end_are_told(passed: bool) -> None:
    story = told(
        PLANNED,
        record(3, "verified", passed=passed, reason="the sum"),
        record(4, "ended", by="eve@ops", exit_code=4, hosts={"a": "changed"}, boots={"a": "id"}),
    )
    assert (story.proved, story.reason) == (passed, "the sum")
    assert (story.exit_code, story.hosts, story.boots) == (4, {"a": "changed"}, {"a": "id"})
    assert story.by == "bob@ops"
    assert story.records == [0, 3, 4]


def test_a_run_that_planned_nothing_is_told_by_its_end() -> None:
    assert told(record(0, "ended", by="eve@ops", exit_code=0)).by == "eve@ops"
    assert told(record(0, "unlocking"), record(1, "unlocked", by="eve@ops")).by == "eve@ops"
    assert told(record(0, "verified", passed=True)).by == ""


def test_who_opens_the_lock_of_a_run_is_not_its_author_and_ends_no_host_of_it() -> None:
    story = told(PLANNED, record(1, "unlocked", by="eve@ops", hosts={"a": "free"}))
    assert (story.by, story.hosts) == ("bob@ops", {})
    alone = told(record(1, "unlocked", mode="unlock", by="eve@ops", hosts={"a": "free"}))
    assert (alone.by, alone.hosts) == ("eve@ops", {"a": "free"})


def test_a_rehearsal_a_check_and_a_saved_plan_are_told_in_one_record() -> None:
    rehearsed = told(
        record(0, "rehearsed", mode="rehearsal", by="a", exit_code=3, changes={"a": ["one"]},
               hosts={"a": {"results": [result(1, "would")]}})
    )  # fmt: skip
    assert (rehearsed.exit_code, rehearsed.results) == (3, {"a": {"01-x": "would"}})
    checked = told(record(0, "checked", by="a", exit_code=1, hosts={"a": "drift"}))
    assert (checked.exit_code, checked.hosts, checked.results) == (1, {"a": "drift"}, {})
    saved = told(record(0, "saved", by="a", digest="d", changes=None))
    assert (saved.by, saved.digest, saved.planned) == ("a", "d", {})


def test_stories_are_in_the_order_in_which_the_runs_began() -> None:
    found = stories(
        [record(0, "planned", "r2"), record(1, "planned", "r1"), record(2, "ended", "r2")]
    )
    assert list(found) == ["r2", "r1"]
    assert found["r2"].records == [0, 2]


def test_the_hosts_of_a_plan_are_those_that_it_was_applied_to(tmp_path: Path) -> None:
    def run(name: str, mode: str, digest: str, *hosts: str) -> Journal:
        journal = Journal(tmp_path, run=name, mode=mode)
        journal.write("planned", digest=digest, changes={h: ["t"] for h in "abcd"}, waves=1)
        if hosts:
            journal.write("began", hosts=list(hosts))
        return journal

    run("r1", "apply", "this", "a")
    run("r2", "apply", "this", "b")
    run("r3", "apply", "other", "c")
    path = run("r4", "rollback", "this", "d").path
    assert hosts_of_plan(path, "this") == {"a", "b"}
    assert hosts_of_plan(path, "nothing") == set()
    assert list(read_stories(path)) == ["r1", "r2", "r3", "r4"]


@pytest.mark.parametrize(
    ("run", "mode", "began"),
    [
        ("20260131T115000Z-0a1b2c3d", "verify", "2026-01-31T11:50:00+00:00"),
        ("20260131T115000Z-0a1b2c3d", "unlock", "2026-01-31T12:00:00.000+00:00"),
        ("20260131T130000Z-0a1b2c3d", "verify", "2026-01-31T12:00:00.000+00:00"),
        ("r1", "verify", "2026-01-31T12:00:00.000+00:00"),
    ],
)
def test_a_run_that_is_on_record_when_it_ends_began_at_the_time_of_its_id(
    run: str, mode: str, began: str
) -> None:
    body = {"run": run, "mode": mode, "time": "2026-01-31T12:00:00.000+00:00"}
    (story,) = stories([JournalRecord(1, {**body, "event": "ended", "data": {}})]).values()
    assert story.time == began
