"""The next step of a host is a command that can be pasted: with the inventory as it was typed, quoted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from remedy.apply.report import HostReport
from remedy.plan import Finding, FindingKind, Plan
from remedy.report.document import run_document
from remedy.report.outcome import render_outcome
from remedy.report.plan import render_plan
from remedy.runs.host import not_reached, probed, reported
from remedy.runs.outcome import RunOutcome
from remedy.runs.probe import ProbeResult
from remedy.runs.session import show_command
from tests.unit.build import record
from tests.unit.report.first import first_look, lines

TYPED = "'my hosts.py'"
RUN = "20260131T120000Z-0123abcd"


def step_of(refused: str) -> str:
    """Return what is to be done about a host that refused a run."""
    outcome = reported("gpu01", HostReport(refused, {}, finished=True), TYPED)
    assert outcome.error is not None
    return outcome.error.next_step


@pytest.mark.parametrize(
    ("refused", "command"),
    [
        (f"LOCKED run {RUN} by you@there since 12:00", f"remedy unlock {RUN} {TYPED}"),
        (f"LOCKED run {RUN} waits for its confirmation", f"remedy unlock {RUN} {TYPED}"),
        (f"USED {RUN}", f"remedy apply {TYPED} --resume {RUN}"),
        (f"USED {RUN}", f"Make a new one: remedy plan {TYPED} -o plan.json. "),
    ],
)
def test_who_refuses_a_run_is_dealt_with_by_a_whole_command(refused: str, command: str) -> None:
    assert command in step_of(refused)
    assert not {"INVENTORY", "RUN", "FILE"} & set(step_of(refused).split())


@pytest.mark.parametrize("words", ["run $(reboot) by x", "another run is taking it over"])
def test_what_is_no_run_comes_into_no_command(words: str) -> None:
    assert step_of(f"LOCKED {words}") == "Wait until it ends, then run the command again."
    assert "--resume" not in step_of(f"USED {words}")


def test_a_host_that_was_not_reached_is_come_to_by_a_whole_command() -> None:
    error = not_reached("gpu01", RUN, TYPED).error
    assert error is not None
    assert f"remedy apply {TYPED} --resume {RUN}" in error.next_step


def test_what_a_host_remembers_is_accepted_by_a_whole_command() -> None:
    fleet = first_look(2)
    fleet = replace(fleet, inventory=replace(fleet.inventory, path=Path("my hosts.py")))
    plan = ProbeResult(fleet, {}, forgotten={"gpu001": "record 7 of the journal"}).plan
    plan = plan.restricted([])  # else the host is pending, and that is no error
    outcome = RunOutcome(
        "check", "", "my hosts.py", {n: probed(n, plan) for n in fleet.states}, plan
    )
    shown = " ".join(" ".join(lines(part)) for part in (render_plan(plan), render_outcome(outcome)))
    assert shown.count(f"remedy audit accept {TYPED}") == 2
    assert "INVENTORY" not in shown
    document = json.dumps(run_document(outcome))
    assert document.count(f"remedy audit accept {TYPED}") == 2
    assert "INVENTORY" not in document
    # In a file it is not: whoever reads that has an inventory of their own.
    assert "inventory_argument" not in json.dumps(plan.model_dump(mode="json"))


def test_a_plan_of_a_file_names_no_inventory() -> None:
    fix = "remedy audit accept INVENTORY"
    found = record(Finding, host="gpu01", kind=FindingKind.BLOCKED, title="t", fix=fix)
    assert fix in "\n".join(lines(render_plan(record(Plan, findings=(found,)))))


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("inventory.py", f"remedy show {RUN}"),
        ("my site/inventory.py", f"remedy show {RUN} --home 'my site/.remedy'"),
    ],
)
def test_a_run_is_shown_by_a_command_from_where_one_is(path: str, command: str) -> None:
    assert show_command(RUN, Path(path)) == command
