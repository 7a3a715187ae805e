"""Confirming what is guarded: a connection that fails once takes no good change back."""

from __future__ import annotations

import fcntl
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from remedy.apply import script as script_module
from remedy.apply.carrier import Carrier
from remedy.apply.job import Guard, Job, SecondProbe
from remedy.apply.report import ChangeResult, ChangeStatus, HostReport, parse_confirmation
from remedy.apply.script import render_confirm
from remedy.errors import HostKeyError, RemedyError, UnreachableError
from remedy.plan import Change, CommandAction
from remedy.transport import HostEvent, Output, Script

JOB = Job(run="20260101T000000Z-00000000", nonce="n0nce", by="me@here")
GUARDED = HostReport(
    "", {"01-x": ChangeResult(id="01-x", status=ChangeStatus.DONE)}, finished=True, armed=True
)
CONFIRMED = "n0nce - confirmed\n"
FUNCTION = re.compile(r"^(\w+)\(\) (?:\{.*\}$|\{[^\n]*\n(?:.*\n)*?\})", re.MULTILINE)
COMMAND = re.compile(
    r"(?=(?:^|[;&|!({]|\b(?:then|do|else|if|elif|while|until)\b)\s*(\w+)\b(?!\(|=))", re.MULTILINE
)
RESET = UnreachableError("h: Connection reset by peer", next_step="Look.")


@dataclass
class Wire:
    """A stand-in for the connections: what a host answers each time, and how often it was come to anew."""

    answers: dict[str, list[str | RemedyError]]
    anew: list[str] = field(default_factory=list)
    scripts: list[Script] = field(default_factory=list)

    def reconnect(self, host: str) -> None:
        self.anew.append(host)

    def run(self, scripts: Mapping[str, Script], stage: str) -> dict[str, Output]:
        assert stage == "confirming"
        self.scripts += scripts.values()
        given = {host: self.answers[host].pop(0) for host in scripts}
        return {
            host: Output(host, stdout=answer)
            if isinstance(answer, str)
            else Output(host, error=answer)
            for host, answer in given.items()
        }


@pytest.fixture
def confirm(monkeypatch: pytest.MonkeyPatch) -> Callable[[Wire], dict[str, HostReport]]:
    """Confirm the changes of all hosts of a wire; time passes by sleeping alone."""
    clock = [0.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr(
        "remedy.apply.carrier.time",
        SimpleNamespace(sleep=sleep, monotonic=lambda: clock[0], time_ns=lambda: 7),
    )

    def run(wire: Wire, second: SecondProbe | None = None) -> dict[str, HostReport]:
        events: list[HostEvent] = []
        transport: Any = wire
        carrier = Carrier(transport, Guard(seconds=60), events.append)
        return carrier._confirm(JOB, dict.fromkeys(wire.answers, GUARDED), second)

    return run


def test_a_connection_that_fails_once_is_tried_again(
    confirm: Callable[[Wire], dict[str, HostReport]],
) -> None:
    wire = Wire({"a": [CONFIRMED], "b": [RESET, RESET, CONFIRMED]})
    reports = confirm(wire)
    assert [report.reverted for report in reports.values()] == ["", ""]
    # The one that was confirmed is left alone.
    assert wire.anew == ["a", "b", "b", "b"]


def test_a_host_that_nobody_reaches_takes_back_while_there_is_time(
    confirm: Callable[[Wire], dict[str, HostReport]],
) -> None:
    wire = Wire({"a": [RESET] * 99})
    (report,) = confirm(wire).values()
    assert report.reverted == RESET.message
    # A quarter of the guard's sixty seconds, a second between two attempts, and one to see what became of it.
    assert 14 < len(wire.anew) < 19


@pytest.mark.parametrize(
    "answer", ["", "n0nce - reverted\n", "other - confirmed\n", HostKeyError("h: changed")]
)
def test_an_answer_that_is_none_is_not_asked_for_again(
    answer: str | RemedyError, confirm: Callable[[Wire], dict[str, HostReport]]
) -> None:
    wire = Wire({"a": [answer, CONFIRMED]})
    (report,) = confirm(wire).values()
    assert report.reverted
    assert len(wire.answers["a"]) == 1


def test_what_reads_the_host_again_comes_with_the_confirmation_and_its_answer_counts_where_that_came(
    confirm: Callable[..., dict[str, HostReport]],
) -> None:
    taken = []
    second = SecondProbe(Script("echo probe", 45), lambda output, at: taken.append((output, at)))
    wire = Wire({"a": [RESET, f"{CONFIRMED}probe\n"], "b": ["n0nce - reverted\nprobe\n"]})
    confirm(wire, second)
    assert [(output.host, output.stdout, at) for output, at in taken] == [
        ("a", f"{CONFIRMED}probe\n", 7)
    ]
    assert {script.text.endswith("\necho probe") for script in wire.scripts} == {True}
    assert {script.deadline for script in wire.scripts} == {75}


def test_a_script_after_the_confirmation_has_nothing_of_it_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_module, "ROOT", str(tmp_path / "var"))
    (tmp_path / "var").mkdir()
    after = 'echo "run ${RUN-none} $(umask)"\ntype confirm || echo no function\n'
    done = subprocess.run(
        ["sh", "-s"],
        input=f"umask 022\n{render_confirm(JOB, after)}",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "n0nce - reverted\n" in done.stdout
    assert "run none 0022\n" in done.stdout
    assert "no function" in done.stdout


@pytest.mark.parametrize(
    ("receipt", "confirmed"),
    [
        ('{"change":"01-x","state":"done"}\n{"change":"-","state":"confirmed","by":"me"}\n', True),
        ('{"change":"01-x","state":"done"}\n{"change":"-","state":"reverted","by":"me"}\n', False),
        ('{"change":"01-x","state":"confirmed"}\n', False),
        (None, False),
    ],
)
def test_a_host_that_was_confirmed_says_so_again(
    receipt: str | None, confirmed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer was lost on its way."""
    monkeypatch.setattr(script_module, "ROOT", str(tmp_path / "var"))
    folder = tmp_path / "var" / "runs" / JOB.run
    folder.mkdir(parents=True)
    if receipt is not None:
        (folder / "receipt.jsonl").write_text(receipt)
    done = subprocess.run(
        ["sh", "-s"], input=render_confirm(JOB), capture_output=True, text=True, check=False
    )
    assert "n0nce - " in done.stdout
    assert parse_confirmation(JOB, done.stdout) == confirmed


def test_a_confirmation_waits_for_the_run_that_is_still_at_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the timer is taken from a run that goes on changing, and another begins before it has ended."""
    root = tmp_path / "var"
    monkeypatch.setattr(script_module, "ROOT", str(root))
    (root / "runs" / JOB.run).mkdir(parents=True)
    (root / "pending").write_text(f"{JOB.run}\n")
    with (root / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        confirming = subprocess.Popen(
            ["sh", "-s"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert confirming.stdin is not None
        confirming.stdin.write(render_confirm(JOB))
        confirming.stdin.close()
        time.sleep(0.7)
        assert (confirming.poll(), (root / "pending").exists()) == (None, True)
    assert confirming.wait() == 0
    assert confirming.stdout is not None
    assert parse_confirmation(JOB, confirming.stdout.read())
    assert not (root / "pending").exists()


def test_a_confirmation_has_every_function_that_it_calls() -> None:
    parts = (files("remedy.apply") / "host").iterdir()
    texts = [part.read_text(encoding="utf-8") for part in parts]
    bodies = {match[1]: match[0] for text in texts for match in FUNCTION.finditer(text)}
    called: set[str] = set()
    calls = {"confirm"}
    while calls:
        called |= calls
        calls = {
            word for name in calls for word in COMMAND.findall(bodies[name]) if word in bodies
        } - called
    assert {"lock", "unguard", "note"} <= called
    there = {match[1] for match in FUNCTION.finditer(render_confirm(JOB))}
    assert called - there == set()


def change(name: str, title: str) -> Change:
    action = CommandAction(observe="uname -n", before="a", after="b", do="hostname b", undo="")
    return Change(
        id=name, host="gpu01", remedy="hostname", title=title, reason="r", label="l", action=action
    )


def test_the_change_at_which_a_host_was_ended_is_named() -> None:
    changes = tuple(change(f"0{number}-x", f"step {number}") for number in range(1, 5))
    wire: Any = Wire({})
    carrier = Carrier(wire, Guard(), lambda _: None)
    begun = "n0nce - begun\nn0nce 01-x done\n"
    report = carrier._report(JOB, "gpu01", changes, Output("gpu01", stdout=begun, exit_code=124))
    assert report.error is not None
    assert report.error.message.endswith("at their deadline, 120 s; at work then: step 2")
    lost = [key for key, result in report.results.items() if result.status is ChangeStatus.LOST]
    assert lost == ["02-x", "03-x", "04-x"]
    made = "".join(f"n0nce 0{number}-x done\n" for number in range(1, 5))
    report = carrier._report(
        JOB, "gpu01", changes, Output("gpu01", stdout=f"n0nce - begun\n{made}")
    )
    assert report.error is not None
    assert report.error.message.endswith("at work then: what comes after the changes")
