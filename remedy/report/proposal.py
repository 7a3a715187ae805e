"""What a command would do, as text for whoever is asked to agree to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from remedy.plan import Plan, vouched_findings
from remedy.report.failures import error_lines
from remedy.report.plan import render_plan
from remedy.report.rollback import render_rollback
from remedy.report.whole import render_body, render_commands, render_head, render_whole
from remedy.sentences import notes_folded

if TYPE_CHECKING:  # who only reads hosts passes no gate
    from remedy.runs.gate import Proposal
    from remedy.runs.probe import ProbeResult


def render_proposal(proposal: Proposal, *, commands: bool = False) -> RenderableType:
    """Return a proposal for reading: the plan, the hosts that it knows nothing of, and what prevents it.

    Args:
        proposal: what would be done.
        commands: whether every command and file is shown whole, also of changes that remedy itself made.
    """
    notes = [Text(note, style="yellow") for note in notes_folded(proposal.notes)]
    if proposal.probe is None:
        return Group(*notes, render_rollback(proposal, commands=commands))
    plan = _plan(proposal, proposal.probe, len(proposal.unread), commands=commands)
    return Group(*notes, *plan, *error_lines(proposal.probe.errors))


def render_own(plan: Plan, unread: int, *, commands: bool) -> RenderableType:
    """Return a plan that remedy just made: in words, or with ``commands`` to the last byte."""
    return (render_commands if commands else render_plan)(plan, unread)


def _plan(
    proposal: Proposal, probe: ProbeResult, unread: int, *, commands: bool
) -> Iterator[RenderableType]:
    """Yield the plan; in words is only what remedy made for these hosts as they were just read."""
    plan, authorship = proposal.plan, proposal.authorship
    if authorship is None:
        yield render_own(plan, unread, commands=commands)
    elif commands:
        yield render_whole(plan, authorship, proposal.agreement.plan)
    else:
        known = vouched_findings(plan, probe.plan)
        own = {place for place, is_own in authorship.items() if is_own}
        strange = plan.model_copy(
            update={
                "changes": tuple(c for c in plan.changes if (c.host, c.id) not in own),
                "findings": tuple(
                    f for f, is_own in zip(plan.findings, known, strict=True) if not is_own
                ),
            }
        )
        yield render_head(plan)
        if strange.changes or strange.findings:
            yield render_body(strange, authorship)
        part = _own_part(plan, probe.plan, own, known)
        yield render_plan(part, unread, of=plan, file=proposal.agreement.plan)


def _own_part(
    plan: Plan, current: Plan, own: set[tuple[str, str]], known: tuple[bool, ...]
) -> Plan:
    """Return the part of a plan that remedy makes itself, with what it knows of the hosts besides."""
    return plan.model_copy(
        update={
            "changes": tuple(c for c in plan.changes if (c.host, c.id) in own),
            "findings": tuple(f for f, is_own in zip(plan.findings, known, strict=True) if is_own),
            "contents": current.contents,
            "addresses": current.addresses,
            "inventory_argument": current.inventory_argument,
        }
    )
