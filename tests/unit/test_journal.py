"""The journal: every edit, removal, move and tear is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from remedy.audit import Journal, verify_chain
from remedy.errors import RemedyError


def make(home: Path, count: int = 4) -> Path:
    journal = Journal(home, run="r1", mode="apply")
    for number in range(count):
        journal.write("event", number=number)
    return journal.path


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
    path = make(tmp_path)
    path.write_bytes(path.read_bytes()[:-cut])
    assert "torn" in verify_chain(path)[1]
    Journal(tmp_path, run="r2", mode="apply").write("after the crash")
    assert verify_chain(path) == (4, "")
    assert json.loads(path.read_text().splitlines()[-1])["run"] == "r2"


def test_records_longer_than_a_read_are_chained(tmp_path: Path) -> None:
    journal = Journal(tmp_path, run="r", mode="apply")
    for size in (10, 200_000, 70_000, 1):
        journal.write("event", text="x" * size)
    assert verify_chain(journal.path) == (4, "")


def test_a_folder_that_cannot_be_made_stops_the_run_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RemedyError, match="cannot be written"):
        Journal(tmp_path / "file" / "home", run="r", mode="apply").write("event")
