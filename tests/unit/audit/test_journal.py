"""The journal: every edit, removal, move and tear is found."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from remedy.audit import Journal, journal, verify_chain
from remedy.audit.journal import HEAD_NAME, TORN_NAME, files_of, read_records
from remedy.errors import RefusedError, RemedyError


def make(home: Path, count: int = 4) -> Path:
    work = Journal(home, run="r1", mode="apply")
    for number in range(count):
        work.write("event", number=number)
    return work.path


def test_a_journal_that_nobody_touched_is_whole(tmp_path: Path) -> None:
    assert verify_chain(make(tmp_path)) == (4, "")


def test_every_single_byte_counts(tmp_path: Path) -> None:
    path = make(tmp_path, 2)
    whole = path.read_bytes()
    for index in range(len(whole)):
        for flip in (0x01, 0x20):
            path.write_bytes(whole[:index] + bytes([whole[index] ^ flip]) + whole[index + 1 :])
            assert verify_chain(path)[1], f"byte {index} of the journal can be changed unseen"


def test_a_removed_or_moved_record_is_found(tmp_path: Path) -> None:
    path = make(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], *lines[2:]]))
    assert verify_chain(path) == (1, "record 1 does not follow the one before it")
    path.write_bytes(b"".join([lines[1], lines[0], *lines[2:]]))
    assert verify_chain(path)[0] == 0


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_torn_last_line_is_found_and_then_written_over(tmp_path: Path, cut: int) -> None:
    path = make(tmp_path, 3)
    head = (tmp_path / HEAD_NAME).read_bytes()
    make(tmp_path, 1)
    # The head is written after the record: a crash within the record has left the one before it.
    (tmp_path / HEAD_NAME).write_bytes(head)
    torn = path.read_bytes().splitlines(keepends=True)[-1][:-cut]
    path.write_bytes(path.read_bytes()[:-cut])
    assert "torn" in verify_chain(path)[1]
    Journal(tmp_path, run="r2", mode="apply").write("after the crash")
    assert verify_chain(path) == (4, "")
    assert json.loads(path.read_text().splitlines()[-1])["run"] == "r2"
    assert (tmp_path / TORN_NAME).read_bytes() == torn


def test_records_longer_than_a_read_are_chained(tmp_path: Path) -> None:
    work = Journal(tmp_path, run="r", mode="apply")
    for size in (10, 200_000, 70_000, 1):
        work.write("event", text="x" * size)
    assert verify_chain(work.path) == (4, "")


def test_a_folder_that_cannot_be_made_stops_the_run_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RemedyError, match="cannot be written"):
        Journal(tmp_path / "file" / "home", run="r", mode="apply").write("event")


@pytest.mark.parametrize("left", [0, 1, 3])
def test_records_that_are_cut_off_at_the_end_are_missed(tmp_path: Path, left: int) -> None:
    path = make(tmp_path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:left]))
    count, problem = verify_chain(path)
    lost = "record 3 is" if left == 3 else f"records {left} to 3 are"
    assert (count, problem) == (left, f"{lost} missing at the end")
    before = path.read_bytes()
    with pytest.raises(RefusedError, match="removed or changed"):
        Journal(tmp_path, run="r2", mode="apply").write("event")
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["gone", "garbage"])
def test_a_head_that_names_nothing_is_told(tmp_path: Path, damage: str) -> None:
    journal = Journal(tmp_path / ".remedy", run="r1", mode="apply")
    head = journal.path.with_name(HEAD_NAME)
    journal.write("planned")
    head.unlink()  # a crash right after the first record
    assert verify_chain(journal.path) == (1, "")
    journal.write("began")
    assert verify_chain(journal.path) == (2, "")
    if damage == "gone":
        head.unlink()
    else:
        head.write_text("garbage")
    assert "is gone or cannot be read" in verify_chain(journal.path)[1]


def test_a_journal_that_was_removed_is_missed(tmp_path: Path) -> None:
    path = make(tmp_path)
    path.unlink()
    assert "missing" in verify_chain(path)[1]
    with pytest.raises(RefusedError, match="removed or changed"):
        Journal(tmp_path, run="r2", mode="apply").write("event")


def test_a_journal_with_other_records_than_its_head_is_found(tmp_path: Path) -> None:
    path = make(tmp_path / "one")
    other = make(tmp_path / "two")
    path.write_bytes(other.read_bytes())
    assert "is not the one that the file head names" in verify_chain(path)[1]


@pytest.fixture
def rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(journal, "ROTATE_BYTES", 600)
    return make(tmp_path, 20)


def test_a_long_journal_goes_on_in_a_new_file_and_is_one_chain(rotated: Path) -> None:
    files = files_of(rotated)
    assert len(files) > 3
    assert files[-1] == rotated
    assert all(file.stat().st_size < 1000 for file in files)
    assert verify_chain(rotated) == (20, "")
    assert [r.body["data"]["number"] for r in read_records(rotated)] == list(range(20))


def test_an_older_file_that_is_gone_or_was_edited_is_found(rotated: Path) -> None:
    first, second, *_ = files_of(rotated)
    whole = second.read_bytes()
    second.write_bytes(whole.replace(b'"number":4', b'"number":5'))
    assert verify_chain(rotated)[1]
    second.write_bytes(whole)
    assert verify_chain(rotated) == (20, "")
    first.unlink()
    assert verify_chain(rotated) == (0, "record 0 does not follow the one before it")


def test_a_crash_between_rotation_and_the_next_record_loses_nothing(rotated: Path) -> None:
    last = list(read_records(rotated))[-1].number
    rotated.rename(rotated.with_name(f"journal-{last:09d}.jsonl"))
    make(rotated.parent, 1)
    assert verify_chain(rotated) == (21, "")


def test_a_full_disk_leaves_the_journal_whole_and_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(tmp_path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RemedyError, match="No space left") as caught:
        make(tmp_path, 1)
    assert "make room" in caught.value.next_step
    assert path.read_bytes() == before
    assert verify_chain(path) == (4, "")


def test_a_head_tells_which_journal_it_belongs_to(tmp_path: Path) -> None:
    work = Journal(tmp_path, run="r", mode="apply")
    first, second = work.write("one"), work.write("two")
    assert first.journal == first.hash == second.journal
    assert (first.seq, second.seq) == (0, 1)


def test_a_record_is_one_line_of_canonical_json_with_all_its_fields(tmp_path: Path) -> None:
    work = Journal(tmp_path / ".remedy", run="r1", mode="check")
    work.write("one")
    head = work.write("two", b="é", a=[1])
    line = work.path.read_text().splitlines()[1]
    body = json.loads(line)
    assert line == json.dumps(body, sort_keys=True, separators=(",", ":"))
    assert line.isascii()
    assert (body["seq"], body["run"], body["mode"], body["event"]) == (1, "r1", "check", "two")
    assert body["data"] == {"a": [1], "b": "é"}
    assert (body["hash"], head.hash) == (head.hash, body["hash"])
    assert body["time"].endswith("+00:00")
    assert len(body["time"]) == len("2026-01-31T12:00:00.000+00:00")
    assert (tmp_path / ".remedy").stat().st_mode & 0o777 == 0o700
    assert json.loads((tmp_path / ".remedy" / HEAD_NAME).read_text()) == {
        "journal": json.loads(work.path.read_text().splitlines()[0])["hash"],
        "seq": 1,
        "hash": head.hash,
    }


def test_the_first_record_follows_nothing(tmp_path: Path) -> None:
    first = json.loads(make(tmp_path, 1).read_text())
    assert (first["seq"], first["prev"]) == (0, "0" * 64)


def test_a_journal_that_was_cut_off_is_told_with_both_records_and_what_to_do(
    tmp_path: Path,
) -> None:
    path = make(tmp_path, 4)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    with pytest.raises(RefusedError) as caught:
        Journal(tmp_path, run="r2", mode="apply").write("event")
    for fact in (str(path), str(tmp_path / HEAD_NAME), "record 1", "record 3"):
        assert fact in caught.value.message
    assert "Bring the journal back" in caught.value.next_step


def test_a_last_record_that_was_exchanged_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "a", 3)
    other = make(tmp_path / "b", 3)
    path.write_bytes(other.read_bytes())
    with pytest.raises(RefusedError, match="record 2"):
        Journal(tmp_path / "a", run="r2", mode="apply").write("event")


@pytest.mark.parametrize("end", [b"garbage\n", b"{}\n", b'{"seq": "x", "hash": "h"}\n'])
def test_a_last_record_that_nobody_can_read_stops_the_run_in_words(
    tmp_path: Path, end: bytes
) -> None:
    path = make(tmp_path, 2)
    with path.open("ab") as file:
        file.write(end)
    (tmp_path / HEAD_NAME).unlink()
    with pytest.raises(RemedyError) as caught:
        Journal(tmp_path, run="r2", mode="apply").write("event")
    assert str(path) in caught.value.message
    assert "remedy audit verify" in caught.value.next_step


@pytest.mark.parametrize("size", [70_000, 200_000])
def test_a_torn_line_longer_than_a_read_is_set_aside_as_a_whole(tmp_path: Path, size: int) -> None:
    path = make(tmp_path, 2)
    whole = path.read_bytes()
    path.write_bytes(whole + b"x" * size)
    Journal(tmp_path, run="r2", mode="apply").write("event")
    assert (tmp_path / TORN_NAME).read_bytes() == b"x" * size
    assert path.read_bytes().startswith(whole)
    assert verify_chain(path) == (3, "")


def test_a_journal_that_is_nothing_but_a_torn_line_begins_anew(tmp_path: Path) -> None:
    path = make(tmp_path, 1)
    torn = path.read_bytes()[:-1]
    path.write_bytes(torn)
    (tmp_path / HEAD_NAME).unlink()
    make(tmp_path, 1)
    assert verify_chain(path) == (1, "")
    assert (tmp_path / TORN_NAME).read_bytes() == torn


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"[]\n", "not a record"),
        (b"{}\n", "not a record"),
        (b"[" * 100_000 + b"\n", "not a record"),
        (b'{"hash": "h"}\n', "does not follow"),
        (b'{"seq": 2, "prev": "h", "hash": "h"}\n', "does not follow"),
    ],
)
def test_the_first_line_that_is_no_record_is_named(tmp_path: Path, line: bytes, words: str) -> None:
    path = make(tmp_path, 2)
    with path.open("ab") as file:
        file.write(line)
    count, problem = verify_chain(path)
    assert count == 2
    assert problem.startswith("record 2 ")
    assert words in problem


def test_records_are_read_up_to_the_first_that_is_none(tmp_path: Path) -> None:
    path = make(tmp_path, 2)
    whole = path.read_bytes()
    for line in (b"torn", b"[]\n", b'{"run": "r", "mode": "m", "event": "e", "data": {}}\n'):
        path.write_bytes(whole + line + whole)
        assert [record.number for record in read_records(path)] == [0, 1]
    assert list(read_records(tmp_path / "nowhere" / "journal.jsonl")) == []


def test_older_files_are_named_by_their_last_record_and_come_first(rotated: Path) -> None:
    *older, newest = files_of(rotated)
    assert newest == rotated
    for file in older:
        last = json.loads(file.read_text().splitlines()[-1])["seq"]
        assert file.name == f"journal-{last:09d}.jsonl"
    assert older == sorted(older)
    newest.unlink()
    assert files_of(rotated) == tuple(older)


def test_the_head_after_a_rotation_belongs_to_the_same_journal(rotated: Path) -> None:
    first = json.loads(files_of(rotated)[0].read_text().splitlines()[0])["hash"]
    head = Journal(rotated.parent, run="r2", mode="apply").write("event")
    assert (head.journal, head.seq) == (first, 20)
    (rotated.parent / HEAD_NAME).unlink()
    assert Journal(rotated.parent, run="r2", mode="apply").write("event").journal == first
