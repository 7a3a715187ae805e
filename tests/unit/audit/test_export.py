"""The journal as a table: a row for each change of a host, with what became of it."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, fields, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from remedy.audit.agreement import Agreement, keep
from remedy.audit.export import AuditRow, as_csv, moment, plans_of, rows, within
from remedy.audit.story import Story
from remedy.errors import UsageError
from remedy.plan import Change, CommandAction, FileAction, Plan

UTC = timezone.utc


def change(host: str, number: int, action: FileAction | CommandAction) -> Change:
    return Change(
        id=f"{number:02d}-x",
        host=host,
        remedy="x",
        title=f"title {number}",
        reason="reason",
        label="l",
        action=action,
    )


COMMAND = CommandAction(observe="look", before="old", after="new", do="x", undo="y")
MADE = FileAction(path="/etc/link", real_path="/etc/file", before=None, after="f" * 64)
GONE = FileAction(path="/etc/gone", real_path="/etc/gone", before="e" * 64, after=None)
PLAN = Plan(
    tool_version="0", created="2026-01-01T00:00:00+00:00", author="ann@ops", inventory="i", inventory_digest="",
    spec_digest="", changes=(change("a", 1, COMMAND), change("a", 2, MADE), change("b", 1, GONE)),
)  # fmt: skip


def story(**fields_: object) -> Story:
    given: dict[str, object] = {
        "run": "r1",
        "mode": "apply",
        "time": "2026-01-01T00:00:00+00:00",
        **fields_,
    }
    return Story(**given)  # type: ignore[arg-type]


def table(told: Story, plan: Plan | None = PLAN) -> list[AuditRow]:
    return list(rows([told], {} if plan is None else {told.run: plan}))


PLANNED = {"a": ("title 1", "title 2"), "b": ("title 1",)}


def test_each_change_has_a_row_with_what_is_changed_from_what_to_what() -> None:
    found = table(story(planned=PLANNED))
    assert [(r.host, r.change, r.title, r.reason) for r in found] == [
        ("a", "01-x", "title 1", "reason"),
        ("a", "02-x", "title 2", "reason"),
        ("b", "01-x", "title 1", "reason"),
    ]
    assert [(r.object, r.before, r.after) for r in found] == [
        ("look", "old", "new"), ("/etc/file", "absent", "f" * 64), ("/etc/gone", "e" * 64, "absent"),
    ]  # fmt: skip


def test_a_row_says_what_the_run_was_and_who_approved_it() -> None:
    told = story(
        planned={"a": ("t",)}, by="bob@ops", approvals=("ann@ops", "eve@ops"), digest="d", of="r0", exit_code=4,
        hosts={"a": "failed"},
    )  # fmt: skip
    row = table(told)[0]
    assert (row.run, row.mode, row.time) == ("r1", "apply", "2026-01-01T00:00:00+00:00")
    assert (row.by, row.approved_by, row.plan, row.of) == ("bob@ops", "ann@ops eve@ops", "d", "r0")
    assert (row.exit_code, row.host_ended) == ("4", "failed")
    assert table(story(planned={"a": ("t",)}, resumes="r9"))[0].of == "r9"


def test_what_is_not_known_is_empty() -> None:
    row = table(story(planned={"a": ("t",)}))[0]
    assert (row.exit_code, row.host_ended, row.proved, row.of, row.detail) == ("", "", "", "", "")
    assert row.status == "planned"
    assert table(story(planned={"a": ("t",)}, began={"a"}))[0].status == "not known"


@pytest.mark.parametrize(("proved", "word"), [(True, "yes"), (False, "no"), (None, "")])
def test_the_proof_is_a_word(proved: bool | None, word: str) -> None:
    assert {row.proved for row in table(story(planned=PLANNED, proved=proved))} == {word}


def test_the_status_and_the_words_of_the_host_stand_beside_each_change() -> None:
    told = story(
        planned=PLANNED,
        results={"a": {"01-x": "done", "02-x": "failed"}},
        words={"a": {"02-x": "no room"}},
        refused={"b": "no root"},
    )
    assert [(r.status, r.detail) for r in table(told)] == [
        ("done", ""), ("failed", "no room"), ("planned", "no root"),
    ]  # fmt: skip


def test_without_the_plan_the_rows_are_what_the_host_said() -> None:
    (row,) = table(story(planned={"a": ("t",)}, results={"a": {"07-y": "done"}}), None)
    assert (row.change, row.status) == ("07-y", "done")
    assert (row.title, row.reason, row.object, row.before, row.after) == ("", "", "", "", "")


def test_every_host_that_the_run_knows_of_has_a_row() -> None:
    told = story(
        planned={"a": ("t",)}, results={"c": {"01-x": "done"}}, hosts={"d": "ok", "a": "changed"}
    )
    found = [(row.host, row.change, row.status) for row in table(told, None)]
    assert found == [("a", "", ""), ("c", "01-x", "done"), ("d", "", "")]


def test_a_host_for_which_nothing_was_planned_has_no_rows_of_the_plan() -> None:
    found = table(story(planned={"b": ("t",)}, hosts={"a": "ok", "b": "changed"}))
    assert [(row.host, row.change) for row in found] == [("b", "01-x"), ("a", "")]


# --- CSV ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["=", "+", "-", "@"])
def test_what_a_spreadsheet_would_compute_is_text(start: str) -> None:
    row = replace(table(story(planned={"a": ("t",)}))[0], detail=f"{start}cmd", title=f"a{start}b")
    (read,) = csv.DictReader(io.StringIO(as_csv([row]), newline=""))
    assert read["detail"] == f"'{start}cmd"
    assert read["title"] == f"a{start}b"


def test_the_table_has_a_header_and_one_line_a_row_as_rfc_4180_wants_it() -> None:
    found = table(story(planned=PLANNED))
    text = as_csv(found)
    assert text.split("\r\n")[0] == ",".join(field.name for field in fields(AuditRow))
    assert text.count("\r\n") == text.count("\n") == 4
    assert [dict(row) for row in csv.DictReader(io.StringIO(text))] == [
        asdict(row) for row in found
    ]


# --- plans and times ---------------------------------------------------------------------------------------


def test_the_plan_of_a_run_counts_when_it_is_the_one_that_the_journal_names(tmp_path: Path) -> None:
    for run in ("r1", "r2", "r3"):
        keep(Agreement(PLAN), tmp_path, run)
    found = plans_of(
        tmp_path,
        [
            story(run="r0", digest=PLAN.digest),
            story(run="r1", digest=PLAN.digest),
            story(run="r2", digest="another"),
            story(run="r3"),
        ],
    )
    assert {run: plan.digest for run, plan in found.items()} == {
        "r1": PLAN.digest,
        "r3": PLAN.digest,
    }


@pytest.mark.parametrize(
    ("text", "end", "expected"),
    [
        ("2026-01-31", False, datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31", True, datetime(2026, 2, 1, tzinfo=UTC)),
        ("2026-01-31T12:00:00Z", False, datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00", True, datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00+02:00", False, datetime(2026, 1, 31, 10, tzinfo=UTC)),
    ],
)
def test_a_moment_is_in_utc_unless_it_names_a_zone(
    text: str, end: bool, expected: datetime
) -> None:
    found = moment(text, end=end)
    assert found == expected
    assert found.tzinfo is not None


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "31.01.2026"])
def test_what_is_no_moment_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        moment(text)
    assert repr(text) in caught.value.message
    assert "2026-01-31" in caught.value.next_step


def test_a_range_holds_its_beginning_and_not_its_end() -> None:
    began = moment("2026-01-01T00:00:00Z")
    later, before = began + timedelta(seconds=1), began - timedelta(seconds=1)
    told = story(time="2026-01-01T00:00:00+00:00")
    assert within(told, None, None)
    assert within(told, began, later)
    assert not within(told, later, None)
    assert not within(told, None, began)
    assert not within(told, before, began)
    assert within(told, before, later)
