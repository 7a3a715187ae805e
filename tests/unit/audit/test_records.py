"""Records with little in them, witnesses word by word, and the edges of times and tables."""

from __future__ import annotations

import csv
import io
from dataclasses import fields, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from remedy.audit import witness
from remedy.audit.export import AuditRow, as_csv, moment, rows, within
from remedy.audit.journal import Head, JournalRecord
from remedy.audit.story import Story, stories
from remedy.audit.survival import Boot
from remedy.errors import UsageError

UTC = timezone.utc
EVENTS = (
    "planned", "saved", "checked", "rehearsed", "began", "changed", "verified", "ended", "unlocked",
)  # fmt: skip


def told(*events: tuple[str, dict[str, object]]) -> Story:
    """Return the story of one run with these events."""
    records = [
        JournalRecord(
            number, {"run": "r1", "mode": "apply", "time": "t", "event": event, "data": data}
        )
        for number, (event, data) in enumerate(events)
    ]
    return stories(records)["r1"]


@pytest.mark.parametrize("event", EVENTS)
def test_a_record_that_says_nothing_adds_nothing(event: str) -> None:
    story = told((event, {}))
    assert story == Story("r1", "apply", "t", records=[0])
    texts = (story.by, story.digest, story.of, story.resumes, story.reason)
    assert texts == ("",) * len(texts)
    assert not any((story.approvals, story.planned, story.results, story.hosts, story.boots))


@pytest.mark.parametrize("event", ["planned", "saved", "checked", "rehearsed"])
def test_who_planned_what_and_who_approved_it_is_of_any_kind_of_plan(event: str) -> None:
    data = {
        "by": "ann", "digest": "d", "of": "r0", "resumes": "r9", "exit_code": 2,
        "approvals": [{"principal": "eve", "time": "x"}, {"principal": "bob"}],
        "changes": {"a": ["one", "two"], "b": ["three"]},
    }  # fmt: skip
    story = told((event, data))
    assert (story.by, story.digest, story.of, story.resumes) == ("ann", "d", "r0", "r9")
    assert (story.approvals, story.exit_code, story.count) == (("eve", "bob"), 2, 3)
    assert story.planned == {"a": ("one", "two"), "b": ("three",)}
    assert story.unfinished == ("a", "b")


@pytest.mark.parametrize(("status", "settled"), [
    ("done", True), ("already", True), ("stale", True), ("failed", True), ("skipped", False), ("lost", False),
])  # fmt: skip
def test_a_host_is_unfinished_until_one_of_its_changes_is_settled(
    status: str, settled: bool
) -> None:
    report = {"results": [{"id": "01-x", "status": status, "detail": "why"}]}
    story = told(
        ("planned", {"changes": {"a": ["one"], "b": ["two"]}}),
        ("began", {"hosts": ["a"]}),
        ("changed", {"hosts": {"a": report, "b": {"refused": "no room"}}}),
    )
    assert story.unfinished == (("b",) if settled else ("a", "b"))
    assert story.results == {"a": {"01-x": status}}
    assert story.words == {"a": {"01-x": "why"}}
    assert (story.refused, story.began) == ({"b": "no room"}, {"a"})


def test_the_end_and_the_proof_are_those_of_the_last_record() -> None:
    story = told(
        ("planned", {"by": "ann", "exit_code": 3}),
        ("verified", {"passed": False, "reason": "no sum"}),
        ("ended", {"by": "bob", "exit_code": 0, "hosts": {"a": "ok"}, "boots": {"a": "b1"}}),
    )
    assert (story.by, story.proved, story.reason) == ("ann", False, "no sum")
    assert (story.exit_code, story.hosts, story.boots) == (0, {"a": "ok"}, {"a": "b1"})
    assert story.records == [0, 1, 2]
    # A run that ended before it planned anything is known by its end.
    assert told(("ended", {"by": "bob"})).by == "bob"


def test_what_a_boot_may_have_done_are_different_words() -> None:
    words = {boot.value for boot in Boot}
    assert len(words) == len(list(Boot)) == 5
    assert all(words)


# --- witnesses ------------------------------------------------------------------------------------------------


def test_a_place_is_one_folder_on_one_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "link").symlink_to(other)
    here = witness.place(other)
    assert (len(here), int(here, 16) >= 0) == (16, True)
    assert witness.place(tmp_path / "link") == here
    assert witness.place(tmp_path / "x" / ".." / "other") == here
    assert witness.place(tmp_path) != here
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    assert witness.place(other) != here
    assert witness.words(Head("j", 7, "h"), other, "r").split(" ")[3] == witness.place(other)


HASHES = {0: "genesis", 1: "one", 2: "two"}


@pytest.mark.parametrize(
    ("head", "facts"),
    [
        ("another 1 x here r7", ("r7", "another journal")),
        ("genesis 9 x here r7", ("r7", "record 9", "ends with 2")),
        ("genesis 2 x here r7", ("r7", "record 2")),
    ],
)
def test_what_does_not_agree_is_said_with_its_run_and_its_record(
    head: str, facts: tuple[str, ...]
) -> None:
    problem = witness.judge(["genesis 1 one here r1", head], HASHES, "here", ["r1"])
    assert all(fact in problem for fact in facts)


def test_a_record_of_a_journal_elsewhere_is_no_witness_against_this_one() -> None:
    heads = ["another 1 x there r7", "genesis 0 genesis there r1", "genesis 2 two here r2"]
    assert witness.judge(heads, HASHES, "here", ["r1", "r2"]) == ""
    # The first that is missing is named; what was kept of others does not stand for it.
    problem = witness.judge(heads, HASHES, "here", ["r1", "r3", "r4"])
    assert "r3" in problem
    assert "r4" not in problem


@pytest.mark.parametrize("head", ["genesis 2 wrong here", "genesis -2 wrong here r1", "genesis x wrong here r1",
                                  "genesis 2 wrong here r1 more", ""])  # fmt: skip
def test_what_is_no_head_says_nothing(head: str) -> None:
    assert witness.judge([head], HASHES, "here", []) == ""
    assert "r1" in witness.judge([head], HASHES, "here", ["r1"])


# --- times and tables -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "end", "expected"),
    [
        ("2026-01-31", False, datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31", True, datetime(2026, 2, 1, tzinfo=UTC)),
        ("2026-01-31T12:00", True, datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00Z", True, datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00+01:00", False, datetime(2026, 1, 31, 11, tzinfo=UTC)),
    ],
)
def test_a_date_is_its_beginning_or_its_end_in_utc(
    text: str, end: bool, expected: datetime
) -> None:
    assert moment(text, end=end) == expected
    assert moment(text, end=end).tzinfo is not None


def test_what_is_no_date_is_refused_with_one_that_is() -> None:
    with pytest.raises(UsageError) as error:
        moment("next week")
    assert "'next week'" in str(error.value)
    assert "2026-01-31" in str(error.value.next_step)


@pytest.mark.parametrize("ahead", [-1, 0, 1])
def test_a_range_has_its_beginning_and_not_its_end(ahead: int) -> None:
    began = datetime(2026, 1, 31, 12, tzinfo=UTC)
    story = Story("r1", "apply", began.isoformat())
    edge = began + timedelta(seconds=ahead)
    assert within(story, edge, None) is (ahead <= 0)
    assert within(story, None, edge) is (ahead > 0)
    assert within(story, None, None)
    assert not within(story, edge, edge)


def test_each_column_has_its_own_field_and_each_line_its_own_row() -> None:
    (row,) = rows([Story("r1", "apply", "t", hosts={"a": "ok"})], {})
    names = [field.name for field in fields(AuditRow)]
    distinct = replace(row, **{name: f"<{name}>" for name in names})
    text = as_csv([distinct, row])
    assert text.startswith(",".join(names) + "\r\n")
    assert text.count("\r\n") == 3
    first, second = csv.DictReader(io.StringIO(text, newline=""))
    assert first == {name: f"<{name}>" for name in names}
    assert (second["run"], second["host"], second["host_ended"]) == ("r1", "a", "ok")
    assert as_csv([]) == ",".join(names) + "\r\n"
