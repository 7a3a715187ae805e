"""The cause of a failed verification: its logs, and the links that it saw fail, are diagnosed like any log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from remedy.diagnose.advice import look
from remedy.diagnose.confirm import confirmed, explain
from remedy.diagnose.cures import command_for, remedy_for
from remedy.diagnose.diagnosis import (
    APPLICATION,
    HEALTHY,
    UNKNOWN,
    Candidate,
    ConfirmationStatus,
    Explanation,
    sure,
)
from remedy.diagnose.logs import diagnose_lines
from remedy.plan import Finding, FindingKind, Plan, all_causes
from remedy.text import limited
from remedy.verify.hosts import apply_step, hosts_of_step
from remedy.verify.verdict import DeadLink, Verdict

VERIFICATION_LOG = "remedy verify"
"""The name of the log that holds what the verification itself saw."""
SHOWN = 0.8
"""How sure a cause is that a host shows and no line speaks for."""
# What keeps hosts from meeting, whatever is printed of it then.
_OF_MEETING = frozenset(("Names", "Network path"))
_WRONG = (FindingKind.DRIFT, FindingKind.BLOCKED)


def explain_verdict(
    verdict: Verdict,
    plan: Plan,
    hosts_read: Iterable[str],
    inventory: str,
    addresses: Mapping[str, str] | None = None,
) -> Explanation | None:
    """Name the cause of a failed verification and the command against it. Pure.

    Args:
        verdict: what was proved, with the logs of what ran.
        plan: what would be changed now, with all findings.
        hosts_read: the hosts that could be read.
        inventory: as it is to be typed.
        addresses: the host of each cluster address.

    Returns:
        None where it passed, or nothing failed and every culprit says what to do, as of hosts that are one
        machine.
    """
    if verdict.passed:
        return None
    diagnosis = diagnose_lines(logs_of(verdict))
    # What was proved to fail is not healthy, whatever its logs show; and the program is remedy's own.
    left = tuple(c for c in diagnosis.candidates if c.label != APPLICATION)
    diagnosis = diagnosis.model_copy(update={"candidates": left})
    if diagnosis.label in (HEALTHY, APPLICATION):
        # Nor does anybody have to be asked how it ended.
        notes = () if diagnosis.label == HEALTHY else diagnosis.notes
        diagnosis = diagnosis.model_copy(update={"label": UNKNOWN, "notes": notes, **sure(0.0)})
    explanation = explain(diagnosis, plan, hosts_read, inventory, addresses, now=True)
    if explanation.diagnosis.label == UNKNOWN:
        explanation = _by_culprits(explanation, verdict, plan, inventory)
    steps = [culprit.next_step for culprit in verdict.culprits]
    is_told = bool(steps) and not any(step.startswith("remedy ") or not step for step in steps)
    if explanation.diagnosis.label == UNKNOWN and verdict.sum_exact and is_told:
        return None
    if explanation.command and explanation.command.startswith("remedy apply"):
        return explanation.model_copy(
            update={"command": _for_all(verdict, explanation, inventory) or explanation.command}
        )
    # What only reads the hosts again says no more than stands here: the step of the first culprit does.
    step = next((step for step in steps if step.endswith("--explain")), None)
    return explanation.model_copy(update={"command": step})


def _by_culprits(
    explanation: Explanation, verdict: Verdict, plan: Plan, inventory: str
) -> Explanation:
    """Return what the state of the culprits explains, where no line speaks for a cause that hosts bear out."""
    by_label: dict[str, list[Finding]] = {}
    hosts = {host for culprit in verdict.culprits for host in culprit.hosts}
    for finding in plan.findings:
        cause = all_causes().get(finding.label)
        if (
            finding.host in hosts
            and finding.kind in _WRONG
            and cause
            and cause.group in _OF_MEETING
        ):
            by_label.setdefault(finding.label, []).append(finding)
    if not by_label:
        return explanation
    shown = {label: confirmed(label, each, plan.changes) for label, each in by_label.items()}
    order = sorted(shown, key=lambda label: -len(shown[label].hosts))
    reason = "the hosts that are named show it"
    candidates = (
        *(Candidate(label=label, score=SHOWN, reason=reason) for label in order),
        *(c for c in explanation.diagnosis.candidates if c.label not in shown),
    )
    update = {"label": order[0], "candidates": candidates, **sure(SHOWN)}
    diagnosis = explanation.diagnosis.model_copy(update=update)
    confirmations = (
        *(shown[label] for label in order),
        *(c for c in explanation.confirmations if c.label not in shown),
    )
    return Explanation(
        diagnosis=diagnosis,
        confirmations=confirmations,
        remedy=remedy_for(order[0]),
        command=command_for(inventory, confirmations, diagnosis),
        look=look(diagnosis),
    )


def _for_all(verdict: Verdict, explanation: Explanation, inventory: str) -> str:
    """Return the command that also changes the other culprits which a plan would change; "" for none.

    The proof fails until all of them are changed, for whatever cause.
    """
    apply = apply_step(inventory)
    culprits = {
        host: None
        for culprit in verdict.culprits
        if culprit.next_step.startswith(apply)
        for host in hosts_of_step(culprit.next_step)
    }
    confirmed = {
        host: None
        for confirmation in explanation.confirmations
        if confirmation.curable and confirmation.status is ConfirmationStatus.CONFIRMED
        for host in confirmation.hosts
    }
    if not culprits or f"{apply}{limited(confirmed)}" != explanation.command:
        return ""
    return f"{apply}{limited({**confirmed, **culprits})}"


def logs_of(verdict: Verdict) -> dict[str, list[str]]:
    """Return the logs of what ran, one a process, and one of what the verification itself saw."""
    links = [link.message for link in _in_turns(verdict.dead_links)]
    # The links show by themselves what the culprits of an ended ladder sum up.
    reasons = [culprit.reason for culprit in verdict.culprits] or [verdict.reason]
    logs = {name: list(lines) for name, lines in verdict.logs.items()}
    return {VERIFICATION_LOG: [*reasons, *links], **logs}


def _in_turns(links: Iterable[DeadLink]) -> list[DeadLink]:
    """Return a link of each host and ending, then a second of each, and so on.

    Of the lines that speak for a cause the first few are compared with the hosts.
    """
    count: Counter[tuple[str, str]] = Counter()
    turns: list[tuple[int, DeadLink]] = []
    for link in links:
        count[link.target, link.outcome] += 1
        turns.append((count[link.target, link.outcome], link))
    return [link for _, link in sorted(turns, key=lambda turn: turn[0])]
