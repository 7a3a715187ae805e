"""What a command would do, as text for whoever is asked to agree to it."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from remedy.report.plan import render_plan
from remedy.report.results import error_lines, problem_lines
from remedy.report.whole import render_whole
from remedy.runs.gate import Proposal


def render_proposal(proposal: Proposal) -> RenderableType:
    """Return a proposal for reading: the plan, the hosts that it knows nothing of, and what prevents it."""
    unread = {} if proposal.probe is None else proposal.probe.errors
    return Group(
        *(Text(note, style="yellow") for note in proposal.notes),
        render_plan(proposal.plan, len(unread))
        if proposal.authorship is None
        else render_whole(proposal.plan, proposal.authorship),
        *(
            Text(f"{change.host}: CANNOT be taken back: {change.title}", style="red")
            for change in proposal.irreversible
        ),
        *(line for error in unread.values() for line in error_lines(error)),
        *problem_lines(proposal.obstacles, proposal.plan),
    )
