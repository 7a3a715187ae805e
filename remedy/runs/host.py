"""How one host ended: from its error, its findings, or what it reported of its changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from remedy.apply.report import ChangeStatus, HostReport
from remedy.apply.start import run_named
from remedy.errors import LockedError, RefusedError, RemedyError, StaleError, UnreachableError
from remedy.plan import Finding, FindingKind, Plan
from remedy.runs.outcome import HostOutcome, HostStatus
from remedy.text import counted, to_paste

GOOD = frozenset((ChangeStatus.DONE, ChangeStatus.ALREADY))
BAD = frozenset((ChangeStatus.STALE, ChangeStatus.FAILED, ChangeStatus.LOST))


def unread(error: RemedyError) -> HostOutcome:
    """Return the outcome of a host that could not be read."""
    return HostOutcome(_status(error), error=error)


def unread_after(error: RemedyError, report: HostReport) -> HostOutcome:
    """Return the outcome of a host that could not be read again after its changes.

    Args:
        error: why it could not be read.
        report: what it reported of its changes, which is the last that is known of it.
    """
    results = tuple(report.results.values())
    made = sum(result.status is ChangeStatus.DONE for result in results)
    if report.reverted:
        last = "its guarded changes were not confirmed before, so it takes them back"
    elif any(result.status is ChangeStatus.LOST for result in results):
        last = "its changes had begun, and how they ended is not known"
    elif made:
        last = f"{counted(made, 'change')} had been made there"
    elif (holder := _holder(report)) is not None:
        last = f"this run changed nothing there: locked by another run: {holder}"
    elif report.refused:
        last = "this run changed nothing there"
    else:
        return unread(error)
    whole = type(error)(f"{error.message}; {last}", next_step=error.next_step)
    return HostOutcome(_status(error), results, error=whole)


def not_reached(name: str, run: str, inventory: str) -> HostOutcome:
    """Return the outcome of a host whose turn never came in ``run``; ``inventory`` as it is typed."""
    error = RemedyError(
        f"{name}: not reached, because more hosts failed before it than apply.max_failures allows",
        next_step=f"Repair those, then resume this plan: remedy apply {inventory} --resume {run}",
    )
    return HostOutcome(HostStatus.NOT_REACHED, error=error)


def after_red_wave(name: str, show: str) -> RemedyError:
    """Return why a host was not changed after a wave that is not proved; ``show`` shows the run."""
    return RemedyError(
        f"{name}: not reached, because an earlier wave is not proved; nothing was changed here",
        next_step=f"See why, and which changes are suspected: {show}",
    )


def probed(name: str, plan: Plan) -> HostOutcome:
    """Return the outcome of a host that was only read, from the plan for it."""
    status = HostStatus.PENDING if plan.for_host(name) else HostStatus.OK
    return _with_findings(name, plan, HostOutcome(status))


def changed(name: str, report: HostReport, remaining: Plan, inventory: str) -> HostOutcome:
    """Return the outcome of a host that was changed and probed again.

    Args:
        name: the host.
        report: what it reported of its changes.
        remaining: what the second probe still finds there.
        inventory: as it is typed.
    """
    results = tuple(report.results.values())
    failed = bool(
        report.refused
        or report.reverted
        or remaining.for_host(name)
        or any(result.status not in GOOD for result in results)
    )
    is_changed = any(result.status is ChangeStatus.DONE for result in results)
    status = HostStatus.FAILED if failed else HostStatus.CHANGED if is_changed else HostStatus.OK
    error = refusal(name, report, inventory)
    if error is None and report.error is not None:
        # The host could be probed afterwards: what failed is the change, not the connection.
        error = RemedyError(report.error.message, next_step=report.error.next_step)
    return _with_findings(name, remaining, HostOutcome(status, results, error=error))


def reported(name: str, report: HostReport, inventory: str) -> HostOutcome:
    """Return the outcome of a host from its report alone, where no second probe follows.

    Args:
        name: the host.
        report: what it reported of its changes.
        inventory: as it is typed.
    """
    results = tuple(report.results.values())
    statuses = {result.status for result in results}
    error = refusal(name, report, inventory) or report.error
    if error is not None:
        status = HostStatus.FAILED if statuses & (GOOD | BAD) else _status(error)
    elif statuses & BAD:
        status = HostStatus.FAILED
    elif ChangeStatus.DONE in statuses:
        status = HostStatus.CHANGED
    else:
        status = HostStatus.READY if ChangeStatus.READY in statuses else HostStatus.OK
    return HostOutcome(status, results, error=error)


def with_claims(
    outcomes: Mapping[str, HostOutcome], findings: Iterable[Finding]
) -> dict[str, HostOutcome]:
    """Return the outcomes, with that of each host refused at whose address another entry's machine answers.

    Args:
        outcomes: how the hosts would end otherwise.
        findings: that say so, with both ways out.
    """
    hosts = dict(outcomes)
    for finding in findings:
        if finding.host is not None:
            error = RefusedError(f"{finding.host}: {finding.title}", next_step=finding.fix)
            before = hosts.get(finding.host, HostOutcome(HostStatus.OK))
            hosts[finding.host] = replace(before, status=HostStatus.FAILED, error=error)
    return hosts


def refusal(name: str, report: HostReport, inventory: str) -> RemedyError | None:
    """Return why a host refused or took back its changes as a whole; None where it did not.

    Args:
        name: the host.
        report: what it reported.
        inventory: as it is typed.
    """
    error = report.error
    if report.reverted and error is not None and not isinstance(error, UnreachableError):
        # The connection held: what keeps this machine out is not to be looked for.
        return RemedyError(
            f"{error.message}; nothing was confirmed, so it took its guarded changes back by itself",
            next_step=error.next_step,
        )
    if report.reverted:
        return RemedyError(
            f"{name}: after a change no new login got through, so the host took it back by itself: "
            f"{report.reverted}",
            next_step="The host is as it was before that change. Find the rule, address or setting in the plan "
            "that keeps this machine out.",
        )
    if not report.refused:
        return None
    if (holder := _holder(report)) is not None:
        run = run_named(holder)
        unlock = f" If it does not end: remedy unlock {run} {inventory}" if run else ""
        return LockedError(
            f"{name}: locked by another run: {holder}",
            next_step=f"Wait until it ends, then run the command again.{unlock}",
        )
    if report.refused.startswith("USED "):
        words = report.refused.removeprefix("USED ")
        run = run_named(words)
        command = f"remedy apply {inventory} --resume {run}"
        resume = f" If that run stopped before its end, resume it: {command}" if run else ""
        return StaleError(
            f"{name}: this plan was carried out here before, by run {words}; a plan is used once",
            next_step=f"Make a new one: remedy plan {inventory} -o plan.json{'.' * bool(resume)}{resume}",
        )
    return RemedyError(
        f"{name}: nothing was changed: {report.refused}",
        next_step="Remove the obstacle and run the command again.",
    )


def _holder(report: HostReport) -> str | None:
    """Return who has the lock because of which a host refused a run; None where that is not why."""
    is_locked = report.refused.startswith("LOCKED")
    return report.refused.removeprefix("LOCKED ") if is_locked else None


def _status(error: RemedyError) -> HostStatus:
    """Return where a host ended without an answer: unreachable means that no script ran there."""
    if isinstance(error, LockedError):
        return HostStatus.UNSETTLED
    if isinstance(error, StaleError):
        return HostStatus.FAILED
    no_contact = error.exit_code == 5 or isinstance(error, RefusedError)
    return HostStatus.UNREACHABLE if no_contact else HostStatus.FAILED


def _with_findings(name: str, plan: Plan, outcome: HostOutcome) -> HostOutcome:
    """Return an outcome with the host's findings; a host with a blocked or unknown finding is not ok.

    Where changes are pending as well, it stays pending, and what is unknown counts for the exit code.
    """
    findings = plan.findings_of(name)
    blocked = plan.blocked(name)
    status, error = outcome.status, outcome.error
    if status is HostStatus.PENDING:
        blocked = tuple(f for f in blocked if f.kind is FindingKind.UNKNOWN)
    if blocked:
        status = HostStatus.FAILED if status is not HostStatus.PENDING else status
        reason = f": {blocked[0].evidence[0]}" if blocked[0].evidence else ""
        error = error or RemedyError(
            f"{name}: {blocked[0].title}{reason}",
            next_step=to_paste(blocked[0].fix, plan.inventory_argument)
            or "Repair that on the host, then run the command again.",
        )
    return HostOutcome(status, outcome.results, findings, error)
