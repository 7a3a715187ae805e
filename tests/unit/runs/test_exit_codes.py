"""The exit code of every way in which a command can end, and which of several wins."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from click.testing import CliRunner

from remedy import errors
from remedy.apply.report import ChangeResult, ChangeStatus, HostReport
from remedy.audit import Journal
from remedy.cli.main import main
from remedy.plan import Finding, FindingKind, Plan
from remedy.runs.host import changed, probed, reported, unread_after, with_claims
from remedy.runs.outcome import (
    PRECEDENCE,
    HostOutcome,
    HostStatus,
    RunOutcome,
    most_severe,
)
from remedy.verify.verdict import Verdict
from tests.unit.build import record

OK = HostOutcome(HostStatus.OK)
CHANGED = HostOutcome(HostStatus.CHANGED, (ChangeResult(id="1", status=ChangeStatus.DONE),))
FAILED = HostOutcome(HostStatus.FAILED, (ChangeResult(id="1", status=ChangeStatus.FAILED),))
STALE = HostOutcome(HostStatus.FAILED, (ChangeResult(id="1", status=ChangeStatus.STALE),))
LOCKED = HostOutcome(HostStatus.FAILED, error=errors.LockedError("held"))
KEY = HostOutcome(HostStatus.UNREACHABLE, error=errors.HostKeyError("changed"))
GONE = HostOutcome(HostStatus.UNREACHABLE, error=errors.UnreachableError("silent"))
PENDING = HostOutcome(HostStatus.PENDING)
NOT_REACHED = HostOutcome(HostStatus.NOT_REACHED, error=errors.RemedyError("not reached"))
PROVED = Verdict(passed=True, reason="the sum is exact")
UNPROVED = Verdict(passed=False, reason="the sum is wrong")


def code(
    *hosts: HostOutcome,
    converged: bool | None = True,
    verdict: Verdict | None = None,
    pending: bool = False,
) -> int:
    return RunOutcome(
        mode="apply",
        run="r",
        inventory="inventory.py",
        hosts={str(number): host for number, host in enumerate(hosts)},
        plan=record(Plan),
        converged=converged,
        verdict=verdict,
        pending_counts=pending,
    ).exit_code


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (0, code(OK, CHANGED, verdict=PROVED)),
        (0, code(OK, CHANGED)),  # --no-verify: the record says not verified
        (1, code(OK, FAILED, verdict=PROVED)),
        (1, code(OK, NOT_REACHED)),
        (1, code(OK, converged=False)),  # a second look found something left to change
        (3, code(OK, verdict=UNPROVED)),
        (3, code(OK, verdict=UNPROVED.model_copy(update={"possible": False}))),
        (4, code(OK, STALE)),
        (4, code(OK, LOCKED)),
        (4, code(OK, KEY)),
        (5, code(OK, GONE, converged=False)),
        (0, code(OK, PENDING, converged=None)),
        (10, code(OK, PENDING, converged=None, pending=True)),
        # several at once
        (1, code(FAILED, STALE, GONE, PENDING, verdict=UNPROVED, pending=True)),
        (4, code(STALE, GONE, PENDING, verdict=UNPROVED, pending=True)),
        (3, code(GONE, PENDING, verdict=UNPROVED, pending=True)),
        (5, code(GONE, PENDING, converged=None, pending=True)),
    ],
)
def test_how_a_run_ended_is_its_exit_code(expected: int, found: int) -> None:
    assert found == expected


def test_the_most_severe_wins_in_any_order() -> None:
    assert PRECEDENCE == (1, 4, 3, 5, 10)
    for size in range(1, len(PRECEDENCE) + 1):
        for codes in permutations(PRECEDENCE, size):
            assert most_severe([0, *codes]) == min(codes, key=PRECEDENCE.index)
    assert most_severe([]) == most_severe([0, 0]) == 0


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.RemedyError, 1),
        (errors.UsageError, 2),
        (errors.InventoryError, 2),
        (errors.SpecError, 2),
        (errors.PlanFileError, 2),
        (errors.RefusedError, 4),
        (errors.HostKeyError, 4),
        (errors.StaleError, 4),
        (errors.LockedError, 4),
        (errors.UnreachableError, 5),
        (errors.ProbeError, 1),
        (errors.LabError, 1),
    ],
)
def test_an_error_is_an_exit_code(error: type[errors.RemedyError], expected: int) -> None:
    assert error.exit_code == expected


def report(
    *statuses: ChangeStatus,
    refused: str = "",
    reverted: str = "",
    error: errors.RemedyError | None = None,
) -> HostReport:
    results = {str(n): ChangeResult(id=str(n), status=status) for n, status in enumerate(statuses)}
    return HostReport(refused, results, finished=True, reverted=reverted, error=error)


@pytest.mark.parametrize(
    ("expected", "reports"),
    [
        (0, [report(ChangeStatus.DONE, ChangeStatus.ALREADY)]),
        (1, [report(ChangeStatus.DONE), report(ChangeStatus.FAILED)]),
        (1, [report(ChangeStatus.LOST)]),
        (1, [report(refused="no room")]),
        (4, [report(ChangeStatus.STALE, ChangeStatus.SKIPPED)]),
        (4, [report(refused="LOCKED run r")]),
        (1, [report(ChangeStatus.DONE, reverted="not confirmed")]),
        (5, [report(ChangeStatus.LOST, error=errors.UnreachableError("silent"))]),
        (1, [report(ChangeStatus.FAILED), report(ChangeStatus.STALE)]),
        (0, []),
    ],
)
def test_how_a_rollback_ended_is_its_exit_code(expected: int, reports: list[HostReport]) -> None:
    outcomes = [reported("gpu01", report, "inventory.py") for report in reports]
    assert most_severe(outcome.exit_code for outcome in outcomes) == expected


@pytest.mark.parametrize("kind", [FindingKind.UNKNOWN, FindingKind.BLOCKED])
def test_what_is_unknown_or_blocked_is_not_fine(kind: FindingKind) -> None:
    finding = Finding(host="0", remedy="r", kind=kind, label="l", title="could not be read")
    plan = record(Plan, findings=(finding,))
    done = HostReport("", {}, finished=True)
    for outcome in (probed("0", plan), changed("0", done, plan, "inventory.py")):
        assert outcome.status is HostStatus.FAILED
        assert outcome.error is not None
        assert "could not be read" in outcome.error.message
        assert code(OK, outcome) == 1
    assert code(probed("0", record(Plan)), changed("0", done, record(Plan), "inventory.py")) == 0


def run(*words: str | Path) -> int:
    return CliRunner().invoke(main, [str(word) for word in words]).exit_code


def test_commands_without_hosts(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.py"
    inventory.write_text('hosts = [("gpu01", {"ssh_hostname": "127.0.0.1", "ssh_port": 1})]\n')
    assert run("history", inventory) == 0
    assert run("history", tmp_path / "nowhere.py") == 2
    assert run("apply", inventory, "--plan", tmp_path / "nowhere.json") == 2
    assert run("apply", inventory, "--require-approval") == 4
    assert run("check", inventory) == 5
    journal = Journal(tmp_path / ".remedy", run="r1", mode="apply")
    journal.write("planned")
    assert run("audit", "verify", inventory) == 0
    journal.path.write_text("no journal")
    assert run("audit", "verify", inventory) == 1


def of(status: ChangeStatus, reverted: str = "") -> HostReport:
    results = {"1": ChangeResult(id="1", status=status)}
    return HostReport("", results, finished=True, reverted=reverted)


def refusing(words: str) -> HostReport:
    results = {"1": ChangeResult(id="1", status=ChangeStatus.SKIPPED)}
    return HostReport(words, results, finished=False)


@pytest.mark.parametrize(
    ("report", "known"),
    [
        (of(ChangeStatus.DONE), "; 1 change had been made there"),
        (of(ChangeStatus.LOST), "; its changes had begun, and how they ended is not known"),
        (of(ChangeStatus.DONE, "cut"), "; its guarded changes were not confirmed before"),
        (of(ChangeStatus.ALREADY), ""),
        (
            refusing("LOCKED run r2 waits for its confirmation"),
            "; this run changed nothing there: locked by another run: run r2 waits for its confirmation",
        ),
        (refusing("the host has no base64"), "; this run changed nothing there"),
    ],
)
def test_a_host_that_is_lost_after_its_changes_ends_with_what_is_known_of_them(
    report: HostReport, known: str
) -> None:
    error = errors.ChangedKeyError("gpu01: the key has CHANGED", next_step="trust it")
    outcome = unread_after(error, report)
    assert (outcome.status, outcome.exit_code) == (HostStatus.UNREACHABLE, 4)
    assert type(outcome.error) is errors.ChangedKeyError
    assert outcome.error.message.startswith(f"{error.message}{known}")
    assert outcome.error.next_step == "trust it"


def test_a_machine_of_another_entry_is_refused_whatever_else_is_known_of_the_host() -> None:
    finding = record(
        Finding, host="gpu01", kind=FindingKind.BLOCKED, title="a stranger", fix="Either. Or."
    )
    hosts = with_claims({"gpu01": PENDING, "gpu02": OK}, [finding])
    assert hosts["gpu02"] is OK
    assert (hosts["gpu01"].status, hosts["gpu01"].exit_code) == (HostStatus.FAILED, 4)
    assert str(hosts["gpu01"].error) == "gpu01: a stranger\nEither. Or."


@pytest.mark.parametrize("kind", [FindingKind.REPORT, FindingKind.DRIFT])
@pytest.mark.parametrize("fleet", [True, False])
def test_with_strict_a_report_counts(kind: FindingKind, fleet: bool) -> None:
    finding = Finding(
        host=None if fleet else "a", remedy="clock", kind=kind, label="clock-skew", title="t"
    )
    host = HostOutcome(HostStatus.OK, findings=() if fleet else (finding,))
    outcome = RunOutcome(
        mode="check",
        run="",
        inventory="inventory.py",
        hosts={"a": host},
        plan=record(Plan, findings=(finding,) if fleet else ()),
    )
    assert outcome.exit_code == 0
    assert replace(outcome, strict=True).exit_code == (kind is FindingKind.REPORT)


def test_a_change_that_did_not_end_is_no_lockout() -> None:
    overdue = errors.RemedyError(
        "gpu01: the host ended the changes; at work then: set the name", next_step="Check the load."
    )
    lost = (ChangeStatus.DONE, ChangeStatus.LOST)
    hanging = changed(
        "gpu01", report(*lost, reverted="too late", error=overdue), record(Plan), "inventory.py"
    )
    assert hanging.error is not None
    assert "at work then: set the name; nothing was confirmed" in hanging.error.message
    assert hanging.error.next_step == "Check the load."
    cut_off = errors.UnreachableError("gpu01: the connection broke")
    for error in (None, cut_off):
        locked_out = changed(
            "gpu01", report(*lost, reverted="too late", error=error), record(Plan), "inventory.py"
        )
        assert locked_out.error is not None
        assert "no new login got through" in locked_out.error.message
