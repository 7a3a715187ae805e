"""Runs as text for people, from what the journal tells of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from remedy.audit.story import Story
from remedy.plan import Plan
from remedy.report.console import render_plan
from remedy.text import fold

PROVED = {True: "proved", False: "NOT proved", None: "not verified"}
# What only looks proves nothing, and is not expected to.
LOOKED = {"check": "looked at", "rehearsal": "rehearsed"}
STYLES = {"done": "green", "already": "green", "ready": "green", "skipped": "yellow"}


def run_line(story: Story) -> str:
    """Return a run in one line."""
    ended = f"exit {story.exit_code}" if story.exit_code is not None else "not ended"
    if story.mode == "plan":
        return f"{story.run}  {story.mode:<10}{f'{story.count} changes':<13}{'saved':<24}{story.by}"
    count = f"{story.count} changes"
    proved = LOOKED.get(story.mode, PROVED[story.proved])
    line = f"{story.run}  {story.mode:<10}{count:<13}{ended:<11}{proved:<13}{story.by}"
    of = (
        f"  (of {story.of})"
        if story.of
        else f"  (goes on with {story.resumes})"
        if story.resumes
        else ""
    )
    return f"{line}{of}".rstrip()


def render_run(story: Story, plan: Plan | None, problem: str) -> RenderableType:
    """Return a run for reading: who, what was planned, what became of it, whether it was proved.

    Args:
        story: what the journal tells.
        plan: what was carried out, None where it is not there any more.
        problem: what is wrong with the plan that is kept, "" for nothing.
    """
    parts: list[RenderableType] = [
        Text(f"run {story.run}: {story.mode}, begun {story.time} by {story.by or 'unknown'}")
    ]
    if story.of:
        parts.append(Text(f"takes back run {story.of}"))
    if story.resumes:
        parts.append(Text(f"goes on with run {story.resumes}"))
    if story.approvals:
        parts.append(Text(f"approved by {', '.join(story.approvals)}"))
    if problem:
        parts.append(Text(problem, style="red"))
    if plan is not None:
        parts += [Text(""), render_plan(plan.restricted(story.planned))]
    parts += [Text(""), Text("What became of it", style="bold"), *_results(story)]
    if story.exit_code is None:
        parts.append(
            Text("  the run did not come to its end: no record tells how it went on", style="red")
        )
    if story.proved is not None:
        style = "green" if story.proved else "red"
        parts.append(Text(f"  {PROVED[story.proved]}: {story.reason}", style=style))
    elif story.exit_code is not None and story.mode not in LOOKED:
        parts.append(Text(f"  {PROVED[None]}", style="yellow"))
    return Group(*parts)


def _results(story: Story) -> Iterator[Text]:
    """Yield what became of the changes, hosts that share it together; then where the hosts ended."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for host, told in story.results.items():
        for change, status in told.items():
            groups[(change, status)].append(host)
    for (change, status), hosts in sorted(groups.items()):
        line = Text(f"  {status:<8}", style=STYLES.get(status, "red"))
        yield line.append(f"{fold(hosts)}: {change}", style="default")
        for host in hosts:
            words = story.words.get(host, {}).get(change)
            if words:
                yield Text(f"            {host}: {words}", style="dim")
    for host, reason in story.refused.items():
        yield Text(f"  refused   {host}: {reason}", style="red")
    if story.mode == "apply" and story.began is not None and (rest := story.unfinished):
        yield Text(f"  not made  {fold(rest)}", style="yellow")
    by_status: dict[str, list[str]] = defaultdict(list)
    for host, status in story.hosts.items():
        by_status[status].append(host)
    for status, hosts in by_status.items():
        yield Text(f"  {status:<12}{fold(hosts)}")
