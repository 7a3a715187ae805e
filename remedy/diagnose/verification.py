"""A failed verification, explained: its own logs, and what it saw of the ways, go through the matcher."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from remedy.diagnose.confirm import explain
from remedy.diagnose.diagnosis import HEALTHY, UNKNOWN, Explained
from remedy.diagnose.run import diagnose_lines
from remedy.plan import Plan
from remedy.verify.reach.result import WORDS

if TYPE_CHECKING:
    from remedy.verify.verdict import Verdict

OWN = "remedy verify"
"""The name of the log that holds what the verification itself saw."""


def explain_verdict(
    verdict: Verdict, plan: Plan, read: Iterable[str], inventory: str
) -> Explained | None:
    """Name the cause of a failed verification and the command against it; None where it passed. Pure.

    Args:
        verdict: what was proved, with the logs of what ran.
        plan: what would be changed now, with all findings.
        read: the hosts that could be read.
        inventory: as it is to be typed.
    """
    if verdict.passed:
        return None
    diagnosis = diagnose_lines(logs_of(verdict))
    if diagnosis.label == HEALTHY:
        # What was proved to fail is not well, whatever its logs say.
        diagnosis = diagnosis.model_copy(update={"label": UNKNOWN, "confidence": "none"})
    return explain(diagnosis, plan, read, inventory)


def logs_of(verdict: Verdict) -> dict[str, list[str]]:
    """Return what ran and what was seen, as logs: one for each process, and one of the verification itself."""
    ways = [
        f"{way.source} -> {way.target} port {way.port or 'any'} {WORDS[way.outcome]}: {way.detail}"
        for way in verdict.dead_ways
    ]
    # The ways say by themselves what the culprits of an ended ladder sum up.
    said = [one.reason for one in verdict.causes] or [verdict.reason]
    logs = {name: list(lines) for name, lines in verdict.logs.items()}
    return {OWN: [*said, *ways], **logs}
