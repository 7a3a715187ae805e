"""The JSON documents that ``--json`` prints; their shape is a promise."""

from __future__ import annotations

from typing import Any

from remedy.apply.outcome import HostOutcome, RunOutcome
from remedy.plan import Change, Finding
from remedy.verify import Verdict

RUN_SCHEMA = "remedy.run/1"


def run_document(outcome: RunOutcome) -> dict[str, Any]:
    """Return the document of a run: ``{"schema": "remedy.run/1", ...}``."""
    return {
        "schema": RUN_SCHEMA,
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
