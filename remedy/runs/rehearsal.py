"""``remedy apply --rehearse``: ask the hosts whether a plan can be carried out; nothing is written there."""

from __future__ import annotations

from dataclasses import replace

from remedy.apply.start import new_run_id
from remedy.audit.agreement import titles
from remedy.runs import host
from remedy.runs.gate import Proposal
from remedy.runs.note import note
from remedy.runs.outcome import RunOutcome
from remedy.runs.session import Session
from remedy.text import counted


def rehearse(session: Session, proposal: Proposal) -> RunOutcome:
    """Go through everything that an apply does up to the first write, and record what it would meet.

    The exit code is that of an apply of this plan, as far as it is known before.
    """
    plan, run = proposal.plan, new_run_id()
    with session.progress.stage(f"Rehearsing on {counted(len(plan.hosts), 'host')}"):
        reports = session.carrier.rehearse(plan, run)
    errors = {} if proposal.probe is None else proposal.probe.errors
    hosts = {name: host.unread(error) for name, error in errors.items()}
    hosts |= {name: host.reported(name, report) for name, report in reports.items()}
    outcome = RunOutcome(
        mode="rehearsal",
        run=run,
        inventory=session.inventory.path.name,
        hosts={name: hosts[name] for name in session.inventory.names if name in hosts},
        plan=plan,
        unread=len(errors),
    )
    warnings = note(
        session,
        "rehearsal",
        "rehearsed",
        run=run,
        digest=proposal.agreement.plan.digest,
        changes=titles(plan),
        hosts={name: report.record() for name, report in reports.items()},
        exit_code=outcome.exit_code,
    )
    return replace(outcome, warnings=warnings)
