"""The JSON documents that ``--json`` prints; their shape is a promise, which ``remedy schema`` publishes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from remedy.apply.report import ChangeResult
from remedy.audit.survival import Boot, Survival
from remedy.diagnose.diagnosis import Explanation
from remedy.plan import Change, Finding, Plan, guarded_for
from remedy.plan.shared import FORMAT
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.text import to_paste
from remedy.values import Document, Headed
from remedy.verify.look.compare import HostView
from remedy.verify.verdict import Verdict


class PlannedChange(Change):
    """A change of the plan, with the exact command.

    Args:
        command: in one line.
        guarded_for: what it touches by which it can lock somebody out, such as network or login; "" where it is
            not guarded, or only its remedy says that it can.
    """

    command: str
    guarded_for: str


class PlanSummary(Document):
    """The plan of a run.

    Args:
        digest: of the plan as a whole.
        content_digest: of its changes alone, for comparing plans.
        only: the remedies that decided, or whose changes are taken back, where it was not all; ``skip``: those
            that were left out.
        changes: in their order.
    """

    digest: str
    content_digest: str
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    changes: tuple[PlannedChange, ...]


class HostDocument(Document):
    """How a run ended for one host.

    Args:
        status: ok, changed, ready, pending, failed, not reached, unsettled or unreachable.
        changes: the result of each of its changes.
        findings: what is still wrong, unknown or worth knowing.
        message: what was done there, where that is no change of the plan.
        error: why it ended there, where it was not by a change.
        next_step: what to do about the error.
    """

    status: HostStatus
    changes: tuple[ChangeResult, ...]
    findings: tuple[Finding, ...]
    message: str | None
    error: str | None
    next_step: str | None


class SurvivalDocument(Document):
    """What the last boot of a host left of the applied changes.

    Args:
        boot: survived, lost, not booted, no run or unknown.
        run: the last run that saw the host, "" for none.
        changes: those that would have to be made again.
    """

    boot: Boot
    run: str
    changes: tuple[str, ...]


class RunDocument(Headed):
    """What every command that acts on hosts prints with ``--json``.

    Args:
        mode: check, plan, apply, rehearsal, rollback, verify or unlock.
        of: the run that is taken back or resumed; None for none.
        hosts: by host.
        findings: of the fleet as a whole.
        plan: what was planned; None for a command without a plan.
        converged: whether a second probe found nothing left to change; None where there was none.
        verdict: of the verification; None where there was none.
        explanation: the cause of a verdict that is not passed; None where none can be named.
        views: what a close look at each host showed, with ``verify --explain``.
        after_reboot: by host, with ``check --after-reboot``; else None.
        waves: what is known of each wave, in sentences; empty where all hosts were changed at a time.
        warnings: what else the user has to know, such as what gateways do not use of the inventory.
        exit_code: of the command.
    """

    schema_: Literal["remedy.run/1"] = Field(default="remedy.run/1", alias="schema")
    mode: str
    of: str | None
    hosts: Mapping[str, HostDocument]
    findings: tuple[Finding, ...]
    plan: PlanSummary | None
    converged: bool | None
    verdict: Verdict | None
    explanation: Explanation | None
    views: tuple[HostView, ...]
    after_reboot: Mapping[str, SurvivalDocument] | None
    waves: tuple[str, ...]
    warnings: tuple[str, ...]
    exit_code: int


def plan_body(plan: Plan) -> dict[str, Any]:
    """Return the document of a plan: each change by itself, also of a large one, whose file has it once."""
    return {
        "digest": plan.digest,
        "content_digest": plan.content_digest,
        "plan": {**plan.model_dump(mode="json"), "format_version": FORMAT},
    }


def run_document(outcome: RunOutcome) -> dict[str, Any]:
    """Return the document of a run as ``RunDocument`` has it, but for what the command knows of itself."""
    explanation = outcome.explanation
    findings = () if outcome.plan is None else outcome.plan.findings
    typed = "" if outcome.plan is None else outcome.plan.inventory_argument
    return {
        "mode": outcome.mode,
        "run": outcome.run or None,
        "of": outcome.of or None,
        "inventory": outcome.inventory,
        "hosts": {name: _host(host, typed) for name, host in outcome.hosts.items()},
        "findings": [_finding(finding, typed) for finding in findings if finding.host is None],
        "plan": None if outcome.plan is None else _plan(outcome.plan),
        "converged": outcome.converged,
        "verdict": None if outcome.verdict is None else verdict_document(outcome.verdict),
        "explanation": explanation and explanation.model_dump(mode="json"),
        "views": [view.model_dump(mode="json") for view in outcome.views],
        "after_reboot": {name: _survival(host) for name, host in outcome.survival.items()} or None,
        "waves": list(outcome.waves),
        "warnings": list(outcome.warnings),
        "exit_code": outcome.exit_code,
    }


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    """Return what verification proved, as plain values."""
    return verdict.model_dump(mode="json")


def _host(host: HostOutcome, typed: str) -> dict[str, Any]:
    return {
        "status": host.status.value,
        "changes": [result.model_dump(mode="json") for result in host.results],
        "findings": [_finding(finding, typed) for finding in host.findings],
        "message": host.message or None,
        "error": None if host.error is None else host.error.message,
        "next_step": None if host.error is None else host.error.next_step,
    }


def _survival(host: Survival) -> dict[str, Any]:
    return {"boot": host.boot.value, "run": host.run, "changes": list(host.changes)}


def _plan(plan: Plan) -> dict[str, Any]:
    return {
        "digest": plan.digest,
        "content_digest": plan.content_digest,
        "only": list(plan.only),
        "skip": list(plan.skip),
        "changes": [_change(change) for change in plan.changes],
    }


def _finding(finding: Finding, typed: str) -> dict[str, Any]:
    return {**finding.model_dump(mode="json"), "fix": to_paste(finding.fix, typed)}


def _change(change: Change) -> dict[str, Any]:
    return {
        **change.model_dump(mode="json"),
        "command": change.action.describe(),
        "guarded_for": guarded_for(change),
    }
