"""``remedy verify``: prove the fleet as it is, changing nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from remedy.apply.start import new_run_id
from remedy.audit import Journal
from remedy.plan import EVERY, FindingKind, Plan
from remedy.runs.check import preview
from remedy.runs.note import note, unrecorded
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.runs.probe import ProbeResult, probe
from remedy.runs.proof import Scene, prove, record
from remedy.runs.session import Session
from remedy.runs.settle import Purpose, settle
from remedy.text import folded, limited, quoted

# The cause that deploys/schedule.py finds.
SCHEDULED = "change-scheduled"


def verify(session: Session, *, incremental: bool, closer: bool = False) -> RunOutcome:
    """Verify every host that can be read, and record the verdict.

    The verdict and its cause rest on all remedies: a cause whose remedy was left out would count as refuted.
    A choice of remedies says whose findings are reported beside that, and count for the exit code.

    Args:
        session: the hosts.
        incremental: whether the last verdict is built on, where only a few hosts changed since.
        closer: whether each host is looked at closely before and after.
    """
    session.check_launcher()
    settled = settle(session, probe(session), Purpose.READ)
    result = settled.result
    hosts = preview(session, result, result.plan, mode="verify")
    readable = dict.fromkeys(result.fleet.states, HostOutcome(HostStatus.OK))
    whole = _by_all_remedies(result)
    scene = Scene(result.fleet, whole, {**hosts.hosts, **readable})
    run, warnings = new_run_id(), [*settled.notes, *passing(whole, session.inventory.path)]
    activity = session.activity
    activity.mode, activity.run = "verify", run
    with unrecorded(warnings):
        activity.journal = Journal(session.home, run=run, mode="verify")
    with session.progress.stage("Verifying"):
        proof = prove(session, scene, incremental=incremental, closer=closer)
    with unrecorded(warnings):
        record(proof, Journal(session.home, run=run, mode="verify"), session.home)
    outcome = replace(hosts, run=run, verdict=proof.verdict, explanation=proof.explanation)
    outcome = replace(outcome, views=proof.views)
    code, statuses = outcome.exit_code, outcome.statuses
    activity.ended = True
    end: dict[str, Any] = {**session.choice.record, "hosts": statuses, "exit_code": code}
    ended = note(session, "verify", "ended", run=run, **end)
    return replace(outcome, warnings=(*warnings, *ended))


def _by_all_remedies(result: ProbeResult) -> Plan:
    """Return the plan that all remedies make of hosts, whichever of them were chosen."""
    if not result.fleet.choice:
        return result.plan
    return replace(result, fleet=replace(result.fleet, choice=EVERY)).plan


def passing(plan: Plan, inventory: Path) -> tuple[str, ...]:
    """Return what a verdict does not outlast: hosts that something is set to change by itself.

    Args:
        plan: what was found on the hosts that are verified.
        inventory: as it was typed.

    Returns:
        a sentence for each thing that is to happen, with its hosts.
    """
    hosts: dict[str, list[str]] = {}
    for finding in plan.findings:
        if finding.label == SCHEDULED and finding.kind is FindingKind.UNKNOWN and finding.host:
            hosts.setdefault(finding.title, []).append(finding.host)
    return tuple(
        f"{folded(names)}: {title}; the verdict holds until then. What to do: remedy check {quoted(inventory)} "
        f"--limit {limited(names)}"
        for title, names in hosts.items()
    )
