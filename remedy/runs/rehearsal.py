"""``remedy apply --rehearse``: ask the hosts whether a plan can be carried out; nothing is written there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from remedy.apply.report import ChangeResult, ChangeStatus, HostReport
from remedy.apply.start import new_run_id
from remedy.audit.agreement import titles
from remedy.plan import Change, CommandAction, Plan, identities
from remedy.runs import host
from remedy.runs.gate import Proposal
from remedy.runs.note import note
from remedy.runs.outcome import RunOutcome
from remedy.runs.session import Session
from remedy.text import counted


def rehearse(session: Session, proposal: Proposal) -> RunOutcome:
    """Go through everything that an apply does up to the first write, and record what it would meet.

    The exit code is that of an apply of this plan, as far as it is known before. Nobody has consented to the
    plan: a command is run only where it is remedy's own for the host as it is now.
    """
    plan, run = proposal.plan, new_run_id()
    with session.progress.stage(f"Rehearsing on {counted(len(plan.hosts), 'host')}"):
        foreign = _foreign(proposal)
        asked = [c for c in plan.changes if (c.host, c.id) not in foreign]
        part = plan.model_copy(update={"changes": tuple(asked)})
        reports = session.carrier.rehearse(part, run) if asked else {}
        reports = _with_foreign(proposal, reports, foreign.values())
    errors = {} if proposal.probe is None else proposal.probe.errors
    hosts = {name: host.unread(error) for name, error in errors.items()}
    hosts |= {name: host.reported(name, report, session.typed) for name, report in reports.items()}
    hosts = host.with_claims(hosts, identities.findings(session.inventory, proposal.claims))
    outcome = RunOutcome(
        mode="rehearsal",
        run=run,
        inventory=session.inventory.full_path,
        hosts={name: hosts[name] for name in session.inventory.names if name in hosts},
        plan=plan,
        strict=session.strict,
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


def _foreign(proposal: Proposal) -> dict[tuple[str, str], Change]:
    """Return the commands of a plan file that remedy would not make for their hosts as they are now."""
    own = proposal.authorship
    return {
        (change.host, change.id): change
        for change in proposal.plan.changes
        if isinstance(change.action, CommandAction)
        and own is not None
        and not own.get((change.host, change.id))
    }


def _with_foreign(
    proposal: Proposal, reports: Mapping[str, HostReport], foreign: Iterable[Change]
) -> dict[str, HostReport]:
    """Return the reports with what is known of commands that were not run."""
    plan, result = proposal.plan, proposal.probe
    assert result is not None, "a rehearsal is of hosts that were read"
    results: dict[str, dict[str, ChangeResult]] = {n: dict(r.results) for n, r in reports.items()}
    for change in foreign:
        if change.host in result.fleet.states:
            judged = _judged(change, result.plan)
            results.setdefault(change.host, {})[change.id] = judged
    complete = {}
    for name, of_host in results.items():
        stale = any(judged.status is ChangeStatus.STALE for judged in of_host.values())
        ordered = {
            c.id: _skipped(of_host[c.id]) if stale else of_host[c.id]
            for c in plan.for_host(name)
            if c.id in of_host
        }
        report = reports.get(name, HostReport("", {}, finished=True))
        complete[name] = replace(report, results=ordered)
    return complete


def _judged(change: Change, current: Plan) -> ChangeResult:
    """Return how a command would end by what remedy decides for the host as it was just read."""
    remaining = any(c.remedy == change.remedy for c in current.for_host(change.host))
    is_known = any(f.remedy == change.remedy for f in current.findings_of(change.host))
    if not remaining and not is_known:
        return ChangeResult(id=change.id, status=ChangeStatus.ALREADY)
    words = "not what remedy does for the host as it is now, so its command was not run"
    return ChangeResult(id=change.id, status=ChangeStatus.STALE, detail=words)


def _skipped(result: ChangeResult) -> ChangeResult:
    """Return the result on a host that is left alone as a whole."""
    ready = result.status is ChangeStatus.READY
    return result.model_copy(update={"status": ChangeStatus.SKIPPED}) if ready else result
