"""Carrying out plans of a test's own, without the command line."""

from __future__ import annotations

from remedy.audit.agreement import Agreement
from remedy.plan import Plan
from remedy.runs.apply import apply
from remedy.runs.gate import Proposal
from remedy.runs.outcome import RunOutcome
from remedy.runs.probe import ProbeResult
from remedy.runs.session import Session


def carry_out(session: Session, plan: Plan, result: ProbeResult) -> RunOutcome:
    """Carry out a plan without asking and without verifying."""
    proposal = Proposal("apply", Agreement(plan), plan, result)
    return apply(session, proposal, consent=lambda _: None, prove=False)
