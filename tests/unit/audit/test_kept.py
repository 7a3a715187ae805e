"""What is kept beside the journal and for how long, and what a record holds of long texts."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from remedy.audit import Journal, Story, journal, presence, verify_chain, witness
from remedy.audit.agreement import Agreement, forget, keep, plan_path, undoing
from remedy.audit.approval import Approval, planner_file
from remedy.audit.journal import LONGEST_TEXT, TORN_NAME, pick_hashes
from remedy.plan import read_plan
from remedy.plan.shared import FORMAT
from tests.unit.audit.agreement_bench import WHEN, plan

# --- the plans of runs


def runs(home: Path, *names: str) -> None:
    for name in names:
        (home / "runs" / name).mkdir(parents=True)
        (home / "runs" / name / "plan.json").write_text("{}")


def left(home: Path) -> list[str]:
    return sorted(folder.name for folder in (home / "runs").iterdir())


def test_plans_of_old_runs_go_and_what_is_no_run_stays(tmp_path: Path) -> None:
    old, edge, new = (f"2026010{day}T120000Z-0123abcd" for day in (1, 2, 3))
    strange = [f"{old}-kept", f"x{old}", "20260101T120000Z", "notes"]
    runs(tmp_path, old, edge, new, *strange)
    now = datetime(2026, 1, 9, 12, tzinfo=timezone.utc)
    forget(tmp_path, None, now)
    assert len(left(tmp_path)) == 7
    forget(tmp_path, 8, now)
    assert left(tmp_path) == sorted([edge, new, old, *strange])
    forget(tmp_path, 7, now)
    assert left(tmp_path) == sorted([edge, new, *strange])


def test_a_run_that_is_at_work_keeps_its_plan(tmp_path: Path) -> None:
    old = "20260101T120000Z-0123abcd"
    runs(tmp_path, old)
    now = datetime(2026, 3, 1, tzinfo=timezone.utc)
    assert not presence.is_at_work(tmp_path, old)
    held = presence.hold(tmp_path, old)
    assert held is not None
    assert presence.is_at_work(tmp_path, old)
    assert presence.hold(tmp_path, old) is None
    forget(tmp_path, 1, now)
    assert left(tmp_path) == [old]
    held.close()
    assert not presence.is_at_work(tmp_path, old)
    forget(tmp_path, 1, now)
    assert left(tmp_path) == []
    assert presence.hold(tmp_path, old) is None


def test_the_planners_signature_is_kept_and_recorded_too(tmp_path: Path) -> None:
    signature = tmp_path / "p.json.planner"
    signature.write_text("by pat\n")
    agreed = Agreement(plan(), planner=Approval("pat@ops", signature))
    expected = {"principal": "pat@ops", "signature": "by pat\n"}
    assert agreed.record(plan(), waves=1)["planner"] == expected
    assert "planner" not in Agreement(plan()).record(plan(), waves=1)
    home = tmp_path / ".remedy"
    keep(agreed, home, "r1")
    assert planner_file(plan_path(home, "r1")).read_text() == "by pat\n"
    assert planner_file(plan_path(home, "r1")).name == "plan.json.planner"
    assert stat.S_IMODE((home / "runs").stat().st_mode) == 0o700
    keep(Agreement(plan()), home, "r2")
    assert not planner_file(plan_path(home, "r2")).exists()
    assert read_plan(plan_path(home, "r2")) == plan()


def test_the_plan_back_is_of_this_format_and_knows_nothing_of_the_hosts() -> None:
    of_old = {
        "format_version": 0, "observed": {"a": "x"}, "machines": {"a": "y"}, "secrets": {"a N": "z"},
        "sealed_by": "k",
    }  # fmt: skip
    back = undoing(plan().model_copy(update=of_old), Story("r7", "apply", ""), WHEN)
    assert back.format_version == FORMAT
    assert (back.observed, back.machines, back.secrets, back.sealed_by) == ({}, {}, {}, "")
    assert back.purpose == "rollback r7"
    assert (back.inventory, back.spec_digest) == ("inventory.py", "of-spec")


# --- the journal


def test_a_long_text_is_cut_wherever_it_stands_and_says_by_how_much(tmp_path: Path) -> None:
    work = Journal(tmp_path, run="r", mode="apply")
    whole, long = "x" * LONGEST_TEXT, "x" * LONGEST_TEXT + "yyy"
    work.write("event", whole=whole, long=long, deep={"a": [long, (long, 1)]}, number=1, none=None)
    body = json.loads(work.path.read_text())
    cut = f"{whole} [3 characters left out]"
    assert body["data"] == {
        "whole": whole,
        "long": cut,
        "deep": {"a": [cut, [cut, 1]]},
        "number": 1,
        "none": None,
    }
    assert verify_chain(work.path) == (1, "")


def test_a_torn_line_is_for_nobody_else_to_read(tmp_path: Path) -> None:
    work = Journal(tmp_path, run="r", mode="apply")
    work.write("one")
    with work.path.open("ab") as file:
        file.write(b"torn")
    work.write("two")
    assert stat.S_IMODE((tmp_path / TORN_NAME).stat().st_mode) == 0o600


def test_the_folder_is_on_disk_with_the_first_record_and_with_each_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(journal, "flush_folder", flushed.append)
    monkeypatch.setattr(journal, "ROTATE_BYTES", 600)
    work = Journal(tmp_path, run="r", mode="apply")
    counts = []
    for _ in range(4):
        work.write("event", text="x" * 250)
        counts.append(len(flushed))
    assert counts == [1, 1, 2, 2]
    assert set(flushed) == {tmp_path}


def test_hashes_are_those_asked_for_and_the_first_and_the_last(tmp_path: Path) -> None:
    work = Journal(tmp_path, run="r", mode="apply")
    heads = [work.write("event") for _ in range(5)]
    assert pick_hashes(work.path, ()) == {0: heads[0].hash, 4: heads[4].hash}
    assert pick_hashes(work.path, (2, 9)) == {n: heads[n].hash for n in (0, 2, 4)}
    assert pick_hashes(tmp_path / "nowhere" / "journal.jsonl", (1,)) == {}
    with work.path.open("ab") as file:
        file.write(b"[]\n")
    assert pick_hashes(work.path, (2,)) == {n: heads[n].hash for n in (0, 2)}


def test_a_device_in_the_place_of_a_journal_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.symlink_to("/dev/zero")
    assert verify_chain(path) == (0, "")
    assert pick_hashes(path, (0,)) == {}


# --- what hosts keep of it


def test_what_hosts_keep_is_compared_with_the_journal_in_this_folder(tmp_path: Path) -> None:
    work = Journal(tmp_path / "a", run="r", mode="apply")
    heads = [work.write("event") for _ in range(4)]
    lines = {
        "last": witness.words(heads[3], tmp_path / "a", "r1"),
        "early": witness.words(heads[1], tmp_path / "a", "r1"),
        "none": "",
        "edited": witness.words(replace(heads[2], hash="0" * 64), tmp_path / "a", "r2"),
        "later": witness.words(replace(heads[2], seq=9), tmp_path / "a", "r3"),
        "anew": witness.words(replace(heads[0], journal="0" * 64), tmp_path / "a", "r4"),
        "elsewhere": witness.words(replace(heads[0], journal="0" * 64), tmp_path / "b", "r5"),
    }
    assert witness.forgotten(lines, tmp_path / "a") == {
        "edited": "record 2 is not the one that run r2 left on it",
        "later": "run r3 left record 9 on it, and the journal ends with 3",
        "anew": "run r4 is of another journal in this folder: that was removed, or rewritten",
    }
    place = witness.place(tmp_path / "a")
    assert witness.lines_of(tmp_path / "a") == f"^{heads[0].hash} | {place} "
    assert witness.lines_of(tmp_path / "b") == f" {witness.place(tmp_path / 'b')} "
    assert witness.hashes(work.path) == {head.seq: head.hash for head in heads}
