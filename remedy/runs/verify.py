"""``remedy verify``: prove the fleet as it is, changing nothing."""

from __future__ import annotations

from dataclasses import replace

from remedy.apply.start import new_run_id
from remedy.audit import Journal
from remedy.plan import FindingKind, Plan
from remedy.runs.check import preview
from remedy.runs.note import note, unrecorded
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.runs.probe import probe
from remedy.runs.proof import Scene, prove, record
from remedy.runs.session import Session
from remedy.runs.settle import Purpose, settle
from remedy.text import fold

# The cause that deploys/schedule.py finds.
SCHEDULED = "change-scheduled"


def verify(session: Session, *, incremental: bool, closer: bool = False) -> RunOutcome:
    """Verify every host that can be read, and record the verdict.

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
    scene = Scene(result.fleet, result.plan, {**hosts.hosts, **readable})
    run, warnings = new_run_id(), [*settled.notes, *passing(result.plan)]
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
    ended = note(session, "verify", "ended", run=run, hosts=statuses, exit_code=code)
    return replace(outcome, warnings=(*warnings, *ended))


def passing(plan: Plan) -> tuple[str, ...]:
    """Return what a verdict does not outlast: hosts that something is set to change by itself.

    Args:
        plan: what was found on the hosts that are verified.

    Returns:
        a sentence for each thing that is to happen, with its hosts.
    """
    hosts: dict[str, list[str]] = {}
    for finding in plan.findings:
        if finding.label == SCHEDULED and finding.kind is FindingKind.UNKNOWN and finding.host:
            hosts.setdefault(finding.title, []).append(finding.host)
    return tuple(
        f"{fold(names)}: {title}; the verdict holds until then. What to do: remedy check"
        for title, names in hosts.items()
    )
