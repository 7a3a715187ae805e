"""Commands that change no host are on record, and go on where that cannot be written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from remedy.audit.journal import FILE_NAME, verify_chain
from remedy.audit.story import read_stories
from remedy.cli.main import main


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    path = tmp_path / "inventory.py"
    path.write_text('hosts = [("gpu01", {"ssh_hostname": "127.0.0.1", "ssh_port": 1})]\n')
    return path


def remedy(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert "Traceback" not in result.output
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("words", "mode", "event"),
    [
        (("check",), "check", "checked"),
        (("apply", "--rehearse"), "rehearsal", "rehearsed"),
        (("verify",), "verify", "ended"),
    ],
)
def test_who_looked_is_on_record(
    inventory: Path, words: tuple[str, ...], mode: str, event: str
) -> None:
    code, _ = remedy(*words, inventory)
    path = inventory.parent / ".remedy" / FILE_NAME
    last = json.loads(path.read_text().splitlines()[-1])
    assert (last["mode"], last["event"], last["data"]["exit_code"]) == (mode, event, code)
    assert last["data"]["by"]
    assert verify_chain(path)[1] == ""
    (story,) = read_stories(path).values()
    assert (story.mode, story.exit_code) == (mode, code)
    assert f"{mode} " in remedy("history", inventory)[1]
    assert remedy("rollback", story.run, inventory, "--yes")[0] == 2


def test_a_check_works_where_it_cannot_be_recorded_and_says_so(inventory: Path) -> None:
    (inventory.parent / ".remedy").write_text("")
    code, said = remedy("check", inventory)
    assert code == 5
    assert "not recorded: the journal" in said
    assert "unreachable gpu01" in said


def test_what_only_looked_is_not_taken_back(inventory: Path) -> None:
    remedy("check", inventory)
    (run,) = read_stories(inventory.parent / ".remedy" / FILE_NAME)
    code, said = remedy("rollback", run, inventory, "--yes")
    assert code == 2
    assert "is a check that changed no host" in said


def test_a_run_that_changed_nothing_is_not_taken_back(inventory: Path) -> None:
    remedy("apply", inventory, "--yes", "--no-verify")
    (run,) = read_stories(inventory.parent / ".remedy" / FILE_NAME)
    code, said = remedy("rollback", run, inventory, "--yes")
    assert code == 2
    assert "is an apply that changed no host" in said


def test_what_has_no_end_is_not_shown_as_broken_off(inventory: Path) -> None:
    assert remedy("unlock", "20260101T000000Z-00000000", inventory)[0] == 5
    remedy("plan", inventory, "-o", inventory.parent / "plan.json")
    home = inventory.parent / ".remedy"
    history = remedy("history", inventory)[1]
    for run, word in zip(read_stories(home / FILE_NAME), ("not unlocked", "saved"), strict=True):
        assert word in history
        shown = remedy("show", run, "--home", home)[1]
        assert word in shown
        assert "not ended" not in history + shown
