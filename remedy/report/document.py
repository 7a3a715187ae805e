"""The JSON documents that ``--json`` prints; their shape is a promise, which ``remedy schema`` publishes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field

from remedy.apply.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.apply.report import ChangeResult
from remedy.plan import Change, Finding
from remedy.values import Document
from remedy.verify.verdict import Verdict


class PlannedChange(Change):
    """A change of the plan, with the exact command."""

    command: str


class PlanSummary(Document):
    """The plan of a run: its digest and its changes."""

    digest: str
    changes: tuple[PlannedChange, ...]


class HostDocument(Document):
    """How a run ended for one host."""

    status: HostStatus
    changes: tuple[ChangeResult, ...]
    findings: tuple[Finding, ...]
    error: str | None
    next_step: str | None


class RunDocument(Document):
    """What ``check``, ``plan``, ``apply`` and ``verify`` print with ``--json``.

    ``run`` is None where nothing was to be changed or proved; ``converged`` whether a second look found nothing
    left to change; ``verdict`` what verification proved, None where it was not asked for.
    """

    model_config = ConfigDict(populate_by_name=True)

    schema_: Literal["remedy.run/1"] = Field(default="remedy.run/1", alias="schema")
    run: str | None
    inventory: str
    hosts: Mapping[str, HostDocument]
    findings: tuple[Finding, ...]
    plan: PlanSummary
    converged: bool | None
    verdict: Verdict | None
    exit_code: int


def run_document(outcome: RunOutcome) -> dict[str, Any]:
    """Return the document of a run: ``{"schema": "remedy.run/1", ...}``, as ``RunDocument`` has it."""
    return {
        "schema": "remedy.run/1",
        "run": outcome.run or None,
        "inventory": outcome.inventory,
        "hosts": {name: _host(host) for name, host in outcome.hosts.items()},
        "findings": [_finding(f) for f in outcome.plan.findings if f.host is None],
        "plan": {
            "digest": outcome.plan.digest,
            "changes": [_change(change) for change in outcome.plan.changes],
        },
        "converged": outcome.converged,
        "verdict": None if outcome.verdict is None else verdict_document(outcome.verdict),
        "exit_code": outcome.exit_code,
    }


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    """Return what verification proved, as plain values."""
    return verdict.model_dump(mode="json")


def _host(host: HostOutcome) -> dict[str, Any]:
    return {
        "status": host.status.value,
        "changes": [result.model_dump(mode="json") for result in host.results],
        "findings": [_finding(finding) for finding in host.findings],
        "error": None if host.error is None else host.error.message,
        "next_step": None if host.error is None else host.error.next_step,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return finding.model_dump(mode="json")


def _change(change: Change) -> dict[str, Any]:
    return {**change.model_dump(mode="json"), "command": change.action.describe()}
