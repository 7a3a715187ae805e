"""``remedy plan``: decide what would be changed, and keep it in a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from remedy.apply.start import new_run_id
from remedy.audit.agreement import titles
from remedy.errors import RemedyError
from remedy.plan import Plan, write_plan
from remedy.plan.seal import sealed
from remedy.runs.check import preview
from remedy.runs.note import note
from remedy.runs.outcome import RunOutcome
from remedy.runs.probe import probe
from remedy.runs.session import Session
from remedy.runs.settle import Purpose, settle
from remedy.secret import make_seal


def plan(session: Session, *, output: Path | None, pending_counts: bool) -> RunOutcome:
    """Read the hosts and return what would be changed there.

    Args:
        session: the hosts.
        output: where the plan is saved, which is recorded; None for nowhere.
        pending_counts: whether planned changes count for the exit code.

    Raises:
        RemedyError: the plan cannot be written.
    """
    settled = settle(session, probe(session), Purpose.READ)
    result, warnings = settled.result, settled.notes
    target, run = result.plan, ""
    if output is not None:
        target, unsealed = _sealed(session, result.marked(target))
        warnings += unsealed
        write_plan(target, output)
        record: dict[str, Any] = {
            "digest": target.digest,
            "changes": titles(target),
            **session.choice.record,
        }
        run = new_run_id()
        unrecorded = note(session, "plan", "saved", run=run, file=output.name, **record)
        warnings += unrecorded
        run = "" if unrecorded else run
    outcome = preview(session, result, target, mode="plan")
    return replace(outcome, run=run, pending_counts=pending_counts, warnings=warnings)


def _sealed(session: Session, plan: Plan) -> tuple[Plan, tuple[str, ...]]:
    """Return a plan with keyed digests of the inventory's secrets, and why it has none."""
    if not plan.changes:
        return plan, ()
    try:
        return sealed(plan, session.inventory, make_seal(session.home)), ()
    except RemedyError as error:
        return plan, (f"not sealed: {error.message}",)
