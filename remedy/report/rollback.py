"""What takes a run back, as text for whoever is asked to agree: a plan like any other, and what stays.

The plan of that run lies in a file. Where its host vouches for it, and it was remedy's own, it is shown in
words; otherwise to the last byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from remedy.apply.report import ChangeStatus
from remedy.errors import HostKeyError, RefusedError, RemedyError
from remedy.plan import Plan
from remedy.report.plan import IN_FULL, render_body
from remedy.report.results import problem_lines
from remedy.report.summary import by_remedy, changes_on_hosts, line, places, risk_lines, tally
from remedy.report.whole import exact_action, render_head
from remedy.report.whole import render_body as render_exactly
from remedy.runs.outcome import HostOutcome, HostStatus
from remedy.sentences import NAMES
from remedy.text import counted, fold, folded

if TYPE_CHECKING:  # who only reads hosts passes no gate
    from remedy.runs.gate import Proposal


def render_rollback(proposal: Proposal, *, commands: bool) -> RenderableType:
    """Return what takes a run back: in words what is vouched for, and what prevents or outlasts it.

    Args:
        proposal: of a rollback.
        commands: whether every command and file is shown whole.
    """
    plan = proposal.plan
    parts: list[RenderableType] = []
    if proposal.agreement.by:  # somebody else's file, or one of before
        parts.append(render_head(proposal.agreement.plan))
    if plan.changes:
        head = f"Take back {proposal.agreement.of}: {changes_on_hosts(plan.changes)}"
        parts += [Text(head, style="bold"), *_weight(proposal), by_remedy(plan), Text("")]
        parts += _changes(proposal, commands=commands)
    else:
        parts += (Text(words, style="red") for words in proposal.final_words)
    parts += _left_alone(proposal)
    parts.append(_end(proposal))
    if plan.changes and not commands and proposal.is_vouched:
        parts.append(Text(f"  {IN_FULL}", style="dim"))
    return Group(*parts)


def _end(proposal: Proposal) -> Text:
    """Return the last line: how much is taken back, and of how many hosts nothing is known."""
    refused = sum(map(_was_read, proposal.unread.values()))
    unread = len(proposal.unread) - refused
    if proposal.plan.changes:
        return tally(proposal.plan, unread, proposal.agreement.plan)
    words = [f"{counted(unread, 'host')} could not be read"] * bool(unread)
    words += [f"{counted(refused, 'host')} left alone"] * bool(refused)
    if words:
        return Text("; ".join((*words, "nothing is taken back")), style="yellow")
    return Text("Nothing to take back.", style="green")


def _was_read(error: RemedyError) -> bool:
    """Say whether a host was read, and is left alone for what was seen there, such as a lock."""
    return isinstance(error, RefusedError) and not isinstance(error, HostKeyError)


def _weight(proposal: Proposal) -> Iterator[Text]:
    """Yield what to know before agreeing: the risks, what is not taken back, where nothing is done."""
    plan = proposal.plan
    risk, *others = risk_lines(plan)
    yield risk
    lost = ((change.host, change.title) for change in proposal.irreversible)
    yield line("not taken back", places(lost, plan), "red")
    left = folded(name for name, host in proposal.obstacles.items() if host.status in _STOPPED)
    if left:
        yield line("left alone", f"{left}: see below", "yellow")
    yield from others


_STOPPED = (HostStatus.FAILED, HostStatus.UNREACHABLE, HostStatus.UNSETTLED)


def _changes(proposal: Proposal, *, commands: bool) -> Iterator[RenderableType]:
    """Yield what is done: first, and to the last byte, what no host vouches for."""
    plan, vouched = proposal.plan, proposal.authorship
    strange = [c for c in plan.changes if vouched is not None and not vouched[c.host, c.id]]
    if strange:
        yield Text(
            f"{fold(change.host for change in strange)}: what was done there is known from a file alone, as it "
            "was not remedy's own, or the host keeps no record of it: read every line",
            style="bold red",
        )
        yield render_exactly(plan.model_copy(update={"changes": tuple(strange)}), vouched)
    own = tuple(c for c in plan.changes if vouched is None or vouched[c.host, c.id])
    if own:
        part = plan.model_copy(update={"changes": own})
        yield render_body(part, exact_action if commands else None)


def _left_alone(proposal: Proposal) -> Iterator[Text]:
    """Yield what keeps hosts from being taken back, and how the rest of them can be."""
    scope = proposal.scope or proposal.plan
    yield from problem_lines(proposal.obstacles, scope)
    stale = _stale(proposal.obstacles, scope)
    if not stale:
        return
    hosts = folded((name for names in stale.values() for name in names), NAMES)
    yield Text(
        f"    {hosts}: left alone. Put back what was changed since, or take the rest back without it: the "
        f"same command with --skip {','.join(stale)}",
        style="cyan",
    )
    yield Text("")


def _stale(obstacles: Mapping[str, HostOutcome], plan: Plan) -> Mapping[str, list[str]]:
    """Return the remedies whose objects somebody changed since, each with the hosts."""
    remedies = {(change.host, change.id): change.remedy for change in plan.changes}
    stale: dict[str, list[str]] = {}
    for name, host in obstacles.items():
        for result in host.results:
            if result.status is ChangeStatus.STALE and (name, result.id) in remedies:
                stale.setdefault(remedies[name, result.id], []).append(name)
    return stale
