"""How a host that is about to change by itself is settled, before anything is decided over it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from remedy.apply.report import Settled
from remedy.audit.presence import hold, is_at_work
from remedy.errors import LockedError
from remedy.probe import Guards, PendingGuard, RunAtWork
from remedy.runs import host
from remedy.runs.outcome import HostStatus
from remedy.runs.probe import about_to_change
from remedy.runs.settle import (
    MOST_SECONDS,
    SCRIPT_SECONDS,
    Case,
    Means,
    Purpose,
    decide,
    settled_words,
)

WAIT, CONFIRM, BACK, LEAVE = Means.WAIT, Means.CONFIRM, Means.TAKE_BACK, Means.LEAVE
READ, APPLY, ROLL_BACK = Purpose.READ, Purpose.APPLY, Purpose.ROLL_BACK


def waiting(seconds: float | None = 40.0, *, attended: bool = True) -> Guards:
    pending = PendingGuard(run="r1", seconds=seconds, titles=("t",), attended=attended)
    return Guards(pending=pending)


def working(seconds: float = 1.0) -> Guards:
    return Guards(at_work=RunAtWork(run="r1", by="ann@ops", since="then", seconds=seconds))


@pytest.mark.parametrize(
    ("expected", "case"),
    [
        # a run of this journal that was cut off, and what it left waits
        (WAIT, Case(waiting(), READ, cut_off=True)),
        (WAIT, Case(waiting(), READ, cut_off=True, agrees=True)),
        (CONFIRM, Case(waiting(), APPLY, cut_off=True, agrees=True)),
        (BACK, Case(waiting(), APPLY, cut_off=True)),
        (BACK, Case(waiting(), ROLL_BACK, cut_off=True, agrees=True)),
        # somebody else's, or one whose controller is at work: it may be confirmed any moment
        (WAIT, Case(waiting(), APPLY)),
        (WAIT, Case(waiting(), ROLL_BACK)),
        (WAIT, Case(waiting(None), APPLY)),
        # longer than a command waits
        (LEAVE, Case(waiting(3000), APPLY)),
        (LEAVE, Case(waiting(3000), READ, cut_off=True)),
        (BACK, Case(waiting(3000), APPLY, cut_off=True)),
        # nothing on the host is there to take it back any more
        (LEAVE, Case(waiting(attended=False), READ)),
        (BACK, Case(waiting(attended=False), APPLY)),
        (CONFIRM, Case(waiting(attended=False), APPLY, cut_off=True, agrees=True)),
        # it was tried, and something still waits
        (LEAVE, Case(waiting(), APPLY, cut_off=True, retried=True)),
        # a script is at work: it ends within its deadline, and that of somebody else is left alone soon
        (WAIT, Case(working(), READ)),
        (WAIT, Case(working(), APPLY, cut_off=True, agrees=True, waited=100)),
        (LEAVE, Case(working(), APPLY, waited=100)),
        (LEAVE, Case(working(SCRIPT_SECONDS + 1), APPLY, cut_off=True)),
        (
            WAIT,
            Case(Guards(at_work=working().at_work, pending=waiting().pending), APPLY, cut_off=True),
        ),
        # no command waits for ever
        (LEAVE, Case(working(), APPLY, cut_off=True, waited=MOST_SECONDS + 1)),
        (LEAVE, Case(waiting(), APPLY, cut_off=True, agrees=True, waited=MOST_SECONDS + 1)),
    ],
)
def test_each_case_has_one_way(expected: Means, case: Case) -> None:
    assert decide(case) is expected


@pytest.mark.parametrize("guards", [waiting(), waiting(None), waiting(attended=False), working()])
def test_a_host_that_is_about_to_change_is_neither_ok_nor_pending(guards: Guards) -> None:
    error = about_to_change("gpu01", guards, "'my hosts.py'")
    assert isinstance(error, LockedError)
    assert error.message.startswith("gpu01: about to change")
    assert "remedy unlock r1 'my hosts.py' --force" in error.next_step
    outcome = host.unread(error)
    assert (outcome.status, outcome.exit_code) == (HostStatus.UNSETTLED, 4)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("confirmed", "confirmed, since"),
        ("reverted", "taken back"),
        ("gone", "no longer waited"),
        ("refused", "still wait: no room"),
    ],
)
def test_what_was_done_is_told(state: str, words: str) -> None:
    guard = waiting().pending
    assert guard is not None
    assert words in settled_words(guard, Settled(state, "no room"))


def test_a_controller_is_at_work_until_its_process_ends(tmp_path: Path) -> None:
    (tmp_path / "runs" / "r1").mkdir(parents=True)
    assert not is_at_work(tmp_path, "r1")
    code = (
        "import os, sys; from pathlib import Path; from remedy.audit.presence import hold;"
        "kept = hold(Path(sys.argv[1]), 'r1'); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    assert is_at_work(tmp_path, "r1")
    assert hold(tmp_path, "r1") is None
    holder.kill()
    holder.communicate()
    assert not is_at_work(tmp_path, "r1")


def test_a_run_that_left_no_folder_has_no_controller(tmp_path: Path) -> None:
    assert not is_at_work(tmp_path, "r1")
    assert hold(tmp_path, "r1") is None
