"""What people read at the end of a run: of every host that is not right, what is wrong and what to do."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from remedy.apply.report import ChangeResult, ChangeStatus
from remedy.plan import Change, CommandAction, Finding, FindingKind, Plan
from remedy.report.ladder import bandwidth_table
from remedy.report.outcome import render_outcome
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from tests.unit.build import record
from tests.unit.report.first import lines
from tests.unit.report.pages.samples import good

ACTION = CommandAction(observe="a", before="b", after="c", do="d", undo="e")


def change(number: int) -> Change:
    title = f"step {number}"
    made: Change = record(
        Change, id=f"0{number}-firewall", host="gpu01", title=title, action=ACTION
    )
    return made


def finding(kind: FindingKind, title: str) -> Finding:
    made: Finding = record(Finding, host="gpu01", kind=kind, title=title)
    return made


def told(*results: ChangeResult, findings: tuple[Finding, ...] = ()) -> str:
    """What is printed of a run in which one host failed."""
    plan = record(Plan, changes=(change(1), change(2), change(3)))
    outcome = RunOutcome(
        mode="apply",
        run="r",
        inventory="inventory.py",
        hosts={"gpu01": HostOutcome(HostStatus.FAILED, results, findings)},
        plan=plan,
        converged=False,
    )
    text = io.StringIO()
    Console(file=text, width=200).print(render_outcome(outcome))
    return text.getvalue()


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ("no such zone\nsee the log", ": no such zone\n              | see the log\n"),
        ("", ": no reason was given\n"),
    ],
)
def test_a_change_that_failed_is_never_told_without_a_word(detail: str, words: str) -> None:
    text = told(ChangeResult(id="01-firewall", status=ChangeStatus.FAILED, detail=detail))
    assert f"  failed      gpu01: step 1{words}" in text
    assert "then run the same command again" in text


def test_changes_that_were_lost_with_their_host_share_its_reason() -> None:
    ids = ("01-firewall", "02-firewall", "03-firewall")
    lost = [ChangeResult(id=name, status=ChangeStatus.LOST, detail="no sign") for name in ids]
    reasons = [line for line in told(*lost).splitlines() if "no sign" in line]
    assert reasons == ["  lost        gpu01: 3 changes, each of which may have been made: no sign"]
    assert "  lost        gpu01: step 1: no sign" in told(lost[0])


def test_what_a_failure_kept_from_being_done_and_what_is_left_is_told() -> None:
    text = told(
        ChangeResult(id="01-firewall", status=ChangeStatus.DONE),
        ChangeResult(id="02-firewall", status=ChangeStatus.FAILED, detail="no"),
        ChangeResult(id="03-firewall", status=ChangeStatus.SKIPPED),
        findings=(
            finding(FindingKind.DRIFT, "the firewall is closed"),
            finding(FindingKind.REPORT, "the clock is late"),
        ),
    )
    assert "01-firewall" not in text
    assert "  gpu01: 1 change after it not tried\n" in text
    assert "  gpu01: still there: the firewall is closed\n" in text
    assert "the clock is late" not in text


def test_drift_that_outlived_its_change_is_told() -> None:
    text = told(
        ChangeResult(id="01-firewall", status=ChangeStatus.DONE),
        findings=(finding(FindingKind.DRIFT, "the firewall is closed"),),
    )
    assert "  gpu01: still there: the firewall is closed\n" in text


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_figure_is_cut_on_a_narrow_terminal(width: int) -> None:
    text = lines(bandwidth_table(good(2)), width)
    words = " ".join(text).split()
    for word in ("out-of-place", "12.5", "268,435,456", "29,846", "86%"):
        assert word in words
    assert "\u2026" not in "".join(text)


@pytest.mark.parametrize("mode", ["verify", "apply"])
def test_an_exit_code_that_only_strict_makes_bad_has_its_reason(mode: str) -> None:
    """A verification shows no plan, so that what is reported stands nowhere else."""
    reports = [finding(FindingKind.REPORT, f"{word} differs") for word in "abcde"]
    outcome = RunOutcome(
        mode=mode,
        run="r",
        inventory="/a b/inventory.py",
        hosts={"gpu01": HostOutcome(HostStatus.OK, findings=tuple(reports))},
        strict=True,
    )
    text = " ".join(lines(render_outcome(outcome)))
    assert "strict       exit code 1: 5 findings that are only reported" in text
    assert ("gpu01: a differs" in text) is (mode == "verify")
    step = "and 1 more; each with what was seen: remedy check '/a b/inventory.py'"
    assert (step in text) is (mode == "verify")
    assert "strict" not in " ".join(lines(render_outcome(replace(outcome, strict=False))))
    failed = {"gpu01": HostOutcome(HostStatus.FAILED, findings=tuple(reports))}
    assert "strict" not in " ".join(lines(render_outcome(replace(outcome, hosts=failed))))
