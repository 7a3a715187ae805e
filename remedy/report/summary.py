"""A plan in a few lines: changes by risk, what nothing takes back, what restarts, and which remedy where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from remedy.plan import UNKNOWN_PROGRAM, Change, FindingKind, Plan, Risk, guarded_for
from remedy.report.folding import by_text
from remedy.text import counted, fold

TAKEN_BACK = "the host takes them back unless a new connection confirms them"
_LEFT = {
    FindingKind.UNKNOWN: "facts that could not be read",
    FindingKind.BLOCKED: "what remedy cannot or may not change",
}
NAMED = 4
"""Titles and services that are named; more are counted."""


def tally(plan: Plan, unread: int = 0, file: Plan | None = None) -> Text:
    """Return the last line: the changes, and the hosts of which something is not known or stays wrong.

    Args:
        plan: what is carried out.
        unread: how many hosts could not be read.
        file: the plan that it is of, whose digest is the one that was signed; None where that is ``plan``.
    """
    doubts = [f"{counted(unread, 'host')} could not be read"] if unread else []
    for kind, words in _LEFT.items():
        hosts = {finding.host for finding in plan.findings if finding.kind is kind}
        if hosts:
            have = "has" if len(hosts) == 1 else "have"
            doubts.append(f"{counted(len(hosts), 'host')} {have} {words}")
    doubt = "; ".join(doubts)
    if not plan.changes:
        if doubt:
            return Text(f"{doubt}; no changes are planned", style="yellow")
        return Text("Nothing to change.", style="green")
    line = Text(changes_on_hosts(plan.changes), style="bold")
    whole = file or plan
    part = "part of " if whole.changes != plan.changes else ""
    digests = f"plan {whole.digest[:12]}, content {whole.content_digest[:12]}"
    line.append(f"  ({part}{digests})", style="dim")
    return line.append(f"; {doubt}", style="yellow") if doubt else line


def changes_on_hosts(changes: Iterable[Change]) -> str:
    """Return how many changes there are, on how many hosts."""
    every = list(changes)
    hosts = {change.host for change in every}
    return f"{counted(len(every), 'change')} on {counted(len(hosts), 'host')}"


def weighed(plan: Plan) -> RenderableType:
    """Return what to know before agreeing: risks, what cannot be undone, what restarts."""
    *lines, restarts = risk_lines(plan)
    undone = ((change.host, change.title) for change in plan.changes if not change.reversible)
    return Group(*lines, line("cannot be undone", places(undone, plan), "red"), restarts)


def risk_lines(plan: Plan) -> tuple[Text, ...]:
    """Return a line about risks, one about what is guarded, where there is any, and one about what restarts."""
    risks = Counter(change.risk for change in plan.changes)
    known = [f"{risks[risk]} {risk.value}" for risk in reversed(Risk) if risks[risk]]
    style = "bold red" if risks[Risk.HIGH] else "yellow" if risks[Risk.MEDIUM] else "default"
    lines = [line("risk", ", ".join(known), style)]
    guarded = [change for change in plan.changes if change.guarded]
    if guarded:
        words = f"{changes_on_hosts(guarded)}, {_reasons(guarded)}; {TAKEN_BACK}"
        lines.append(line("guarded", words, "yellow"))
    restarts = ((change.host, change.restarts) for change in plan.changes if change.restarts)
    return (*lines, line("restarts", places(restarts, plan), "yellow"))


def _reasons(guarded: Iterable[Change]) -> str:
    """Return why changes are guarded: for what they touch, or only because nobody can say that they are safe.

    >>> _reasons([])
    ''
    """
    kinds = Counter(map(guarded_for, guarded))
    unknown, by_word = kinds.pop(UNKNOWN_PROGRAM, 0), kinds.pop("", 0)
    touched = ", ".join(f"{kind} {number}" for kind, number in kinds.most_common())
    reasons = (
        f"for what they touch: {touched}" if touched else "",
        f"{unknown} only because of {UNKNOWN_PROGRAM}" if unknown else "",
        f"{by_word} because the remedy says so" if by_word else "",
    )
    return "; ".join(filter(None, reasons))


def line(name: str, words: str, style: str) -> Text:
    """Return a line of what to know before agreeing; without words it says that there is nothing."""
    return Text(f"  {name:<17}", style="dim").append(words or "nothing", style=words and style)


def places(words: Iterable[tuple[str, str]], plan: Plan) -> str:
    """Return what changes do, each once with its hosts."""
    every = by_text(words, plan.addresses)
    places = [f"{text} ({hosts})" for hosts, text in every[:NAMED]]
    more = [f"and {len(every) - NAMED} more"] if len(every) > NAMED else []
    return "; ".join([*places, *more])


@dataclass(frozen=True)
class RemedyRow:
    """How many changes a remedy makes, and on which hosts, folded."""

    remedy: str
    changes: int
    hosts: str


def remedies_of(plan: Plan) -> tuple[RemedyRow, ...]:
    """Return which remedy changes which hosts."""
    groups: dict[str, list[Change]] = {}
    for change in plan.changes:
        groups.setdefault(change.remedy, []).append(change)
    return tuple(
        RemedyRow(remedy, len(changes), fold(change.host for change in changes))
        for remedy, changes in groups.items()
    )


def by_remedy(plan: Plan) -> Table:
    """Return which remedy changes which hosts, as a table."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("  remedy", min_width=17)
    table.add_column("changes", justify="right")
    table.add_column("hosts", overflow="fold")
    for row in remedies_of(plan):
        table.add_row(Text(f"  {row.remedy}"), str(row.changes), Text(row.hosts))
    return table
