"""Releasing a lock: every answer of a host is an outcome, and a lock that is still held is exit code 4."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import cast

import pytest

from remedy.apply.report import RELEASED, Unlocked
from remedy.audit.journal import FILE_NAME, read_records
from remedy.errors import UnreachableError
from remedy.inventory import Inventory
from remedy.plan import section_models
from remedy.runs.outcome import HostStatus
from remedy.runs.session import Session
from remedy.runs.unlock import HELD, WORDS, unlock
from remedy.spec import load_spec
from remedy.transport.connections import Transport


class Answers:
    """A carrier whose hosts all give one answer."""

    def __init__(self, answer: Unlocked) -> None:
        self.answer = answer

    def unlock(
        self, hosts: Iterable[str], run: str, *, force: bool, by: str
    ) -> dict[str, Unlocked]:
        assert (run, force, bool(by)) == ("r1", False, True)
        return dict.fromkeys(hosts, self.answer)


def session(folder: Path, answer: Unlocked) -> Session:
    inventory = Inventory(folder / "inventory.py", ())
    opened = Session(
        inventory, load_spec(None, section_models()), cast(Transport, None), ("gpu01",)
    )
    opened.__dict__["carrier"] = Answers(answer)
    return opened


@pytest.mark.parametrize("state", WORDS)
def test_a_released_lock(tmp_path: Path, state: str) -> None:
    outcome = unlock(session(tmp_path, Unlocked(state, "run r1 by ann")), "r1", force=False)
    assert outcome.exit_code == 0
    assert outcome.hosts["gpu01"].status is HostStatus.OK
    assert outcome.hosts["gpu01"].message.endswith(": run r1 by ann")


@pytest.mark.parametrize("state", [*HELD, "unknown", "a state of a later version"])
def test_a_lock_that_is_still_held(tmp_path: Path, state: str) -> None:
    opened = session(tmp_path, Unlocked(state))
    outcome = unlock(opened, "r1", force=False)
    assert outcome.exit_code == 4
    error = outcome.hosts["gpu01"].error
    assert error is not None
    assert error.next_step
    bodies = [entry.body for entry in read_records(opened.home / FILE_NAME)]
    assert [body["event"] for body in bodies] == ["unlocking", "unlocked"]
    assert bodies[-1]["data"]["hosts"] == {"gpu01": state}


def test_each_answer_that_releases_has_its_words() -> None:
    assert set(WORDS) == RELEASED


def test_a_host_that_cannot_be_asked_ends_as_with_any_other_command(tmp_path: Path) -> None:
    gone = UnreachableError("gpu01: no connection", next_step="Is it up?")
    outcome = unlock(session(tmp_path, Unlocked("unknown", error=gone)), "r1", force=False)
    assert outcome.exit_code == 5
    host = outcome.hosts["gpu01"]
    assert (host.status, host.error) == (HostStatus.UNREACHABLE, gone)
