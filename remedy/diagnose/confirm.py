"""Comparing a diagnosis with real hosts: what the probe found there confirms a candidate, or speaks against it.

The remedies are what knows how a cause is seen in a host's state; their findings and changes carry the same
labels as the catalogue. So nothing is looked for here a second time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from remedy.causes import NO_HOST_FIX
from remedy.diagnose.diagnosis import (
    UNKNOWN,
    Candidate,
    Confirmation,
    Diagnosis,
    Explained,
    Verdict,
)
from remedy.plan import Finding, FindingKind, Plan, Remedy, all_causes, remedies
from remedy.text import counted

__all__ = ["Confirmation", "Verdict", "command_for", "confirm", "explain", "remedy_for", "settled"]


def remedy_for(label: str) -> str | None:
    """Return the remedy that cures a cause, else the one that reports it, None where there is none."""
    if label not in all_causes() or all_causes()[label].group == NO_HOST_FIX:
        return None
    for those in (_curing(label), _reporting(label)):
        if those:
            # Several can deal with one cause: the one that is called like it comes first.
            words = set(label.split("-"))
            return max(those, key=lambda one: len(words & set(one.name.split("_")))).name
    return None


def confirm(diagnosis: Diagnosis, plan: Plan, read: Iterable[str]) -> tuple[Confirmation, ...]:
    """Hold every candidate against a plan. Pure.

    Args:
        diagnosis: of the logs.
        plan: what would be changed now, with all findings.
        read: the hosts that could be read.
    """
    hosts = list(read)
    return tuple(_confirmed(candidate, plan, hosts) for candidate in diagnosis.candidates)


def settled(
    diagnosis: Diagnosis, confirmations: Iterable[Confirmation]
) -> tuple[Diagnosis, Confirmation | None]:
    """Put the candidates that hosts confirm first, and return the first of those.

    A clear text stays what it is, also where the state of the hosts is fine by now.
    """
    by_label = {one.label: one for one in confirmations}

    def place(candidate: Candidate) -> tuple[int, float]:
        verdict = by_label[candidate.label].verdict
        order = (Verdict.CONFIRMED, Verdict.NOT_TOLD, Verdict.REFUTED).index(verdict)
        return order, -candidate.score

    ranked = tuple(sorted(diagnosis.candidates, key=place))
    first = by_label[ranked[0].label] if ranked else None
    if first is None or first.verdict is not Verdict.CONFIRMED:
        return diagnosis, None
    best = ranked[0]
    lead = best.evidence[0] if best.evidence else diagnosis.lead
    settled_on = diagnosis.model_copy(
        update={"label": best.label, "confidence": "certain", "lead": lead, "candidates": ranked}
    )
    return settled_on, first


def command_for(inventory: str, confirmations: Iterable[Confirmation], label: str) -> str | None:
    """Return the very command to type against a cause.

    What else the hosts confirm is put right by the same command: training fails until all of it is.

    Args:
        inventory: as it is to be typed.
        confirmations: of the hosts; none where they were not asked.
        label: the cause.
    """
    asked = list(confirmations)
    own = next((one for one in asked if one.label == label), None)
    curable = [one for one in asked if one.verdict is Verdict.CONFIRMED and one.curable]
    if own in curable or (label == UNKNOWN and curable):
        hosts = dict.fromkeys(host for one in curable for host in one.hosts)
        return f"remedy apply {inventory} --limit {','.join(hosts)}"
    if own is not None and own.verdict is Verdict.REFUTED:
        return None  # nothing would be changed
    name = remedy_for(label)
    if name is None:
        return None
    return f"remedy apply {inventory}" if _curing(label) else f"remedy check {inventory}"


def explain(diagnosis: Diagnosis, plan: Plan, read: Iterable[str], inventory: str) -> Explained:
    """Hold a diagnosis against the hosts, and say what is to be typed. Pure.

    Args:
        diagnosis: of the logs.
        plan: what would be changed now, with all findings.
        read: the hosts that could be read.
        inventory: as it is to be typed.
    """
    confirmations = confirm(diagnosis, plan, read)
    decided, _ = settled(diagnosis, confirmations)
    return Explained(
        diagnosis=decided,
        confirmations=confirmations,
        remedy=remedy_for(decided.label),
        command=command_for(inventory, confirmations, decided.label),
    )


def _confirmed(candidate: Candidate, plan: Plan, hosts: list[str]) -> Confirmation:
    label = candidate.label
    mine = [finding for finding in plan.findings if finding.label == label]
    seen = [finding for finding in mine if finding.kind is not FindingKind.UNKNOWN]
    curing = {remedy.name for remedy in _curing(label)}
    changed = [change for change in plan.changes if change.remedy in curing]
    if seen or (changed and not mine):
        where = dict.fromkeys(
            [finding.host for finding in seen if finding.host] + [change.host for change in changed]
        )
        told = [_told(finding) for finding in seen] or [change.title for change in changed]
        return Confirmation(
            label=label,
            verdict=Verdict.CONFIRMED,
            hosts=tuple(where),
            evidence=tuple(told[:6]),
            curable=bool(changed),
        )
    unknown = [finding for finding in mine if finding.kind is FindingKind.UNKNOWN]
    if unknown or not hosts or not (_curing(label) or _reporting(label)):
        return Confirmation(
            label=label, verdict=Verdict.NOT_TOLD, evidence=tuple(_told(one) for one in unknown[:3])
        )
    return Confirmation(
        label=label,
        verdict=Verdict.REFUTED,
        evidence=(f"nothing of it is found on {counted(len(hosts), 'host')}",),
    )


def _told(finding: Finding) -> str:
    where = f"{finding.host}: " if finding.host else ""
    evidence = f" ({finding.evidence[0]})" if finding.evidence else ""
    return f"{where}{finding.title}{evidence}"


def _curing(label: str) -> list[Remedy[Any]]:
    return [remedy for remedy in remedies() if label in remedy.cures]


def _reporting(label: str) -> list[Remedy[Any]]:
    return [remedy for remedy in remedies() if label in remedy.finds]
