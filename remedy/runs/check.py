"""``remedy check``: read the hosts and report what is wrong; nothing is changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from remedy.apply.start import new_run_id
from remedy.audit.agreement import titles
from remedy.audit.survival import survival
from remedy.plan import Plan, identities
from remedy.runs import host
from remedy.runs.note import note
from remedy.runs.outcome import RunOutcome
from remedy.runs.probe import ProbeResult, probe
from remedy.runs.session import Session


def check(session: Session, *, pending_counts: bool, after_reboot: bool) -> RunOutcome:
    """Read the hosts, report what is wrong, and record that it was done.

    Args:
        session: the hosts.
        pending_counts: whether planned changes count for the exit code.
        after_reboot: whether to compare each host with what its last run left there.
    """
    result = probe(session)
    outcome = preview(session, result, result.plan, mode="check")
    outcome = replace(outcome, pending_counts=pending_counts)
    if after_reboot:
        survivals = survival(
            session.stories().values(), result.fleet.states, result.plan, session.hosts
        )
        outcome = replace(outcome, survival=survivals)
    record: dict[str, Any] = {
        "changes": titles(result.plan),
        **session.choice.record,
        "hosts": outcome.statuses,
        "exit_code": outcome.exit_code,
    }
    if after_reboot:
        record["after_reboot"] = {name: host.boot.value for name, host in outcome.survival.items()}
    run = new_run_id()
    warnings = note(session, "check", "checked", run=run, **record)
    return replace(outcome, run="" if warnings else run, warnings=warnings)


def preview(session: Session, result: ProbeResult, plan: Plan, *, mode: str) -> RunOutcome:
    """Return the outcome of a command that only reads: its changes are pending.

    Args:
        session: the hosts.
        result: the hosts as they were read.
        plan: what is to be changed there.
        mode: what the command does.
    """
    hosts = {name: host.probed(name, plan) for name in result.fleet.states}
    hosts |= {name: host.unread(error) for name, error in result.errors.items()}
    hosts = host.with_claims(hosts, identities.findings(session.inventory, result.claims))
    return RunOutcome(
        mode=mode,
        run="",
        inventory=session.inventory.full_path,
        hosts={name: hosts[name] for name in session.inventory.names if name in hosts},
        plan=plan,
        strict=session.strict,
        unread=len(result.errors),
    )
