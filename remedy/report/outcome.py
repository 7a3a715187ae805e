"""How a run ended, as text for people: hosts by their status, what went wrong and what to do, the proof."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.text import Text

from remedy.apply.report import ChangeStatus
from remedy.audit.survival import Boot, Survival
from remedy.errors import RemedyError
from remedy.plan import FindingKind
from remedy.report.results import NOTHING, host_result, problem_lines, result_lines
from remedy.runs.outcome import HostStatus, RunOutcome
from remedy.runs.unread import unread_words
from remedy.sentences import by_sentence, in_a_line, notes_folded
from remedy.text import clipped, counted, folded, quoted

STATUS_STYLE = {
    HostStatus.OK: "green",
    HostStatus.CHANGED: "green",
    HostStatus.READY: "green",
    HostStatus.PENDING: "yellow",
    HostStatus.FAILED: "red",
    HostStatus.NOT_REACHED: "yellow",
    HostStatus.UNSETTLED: "red",
    HostStatus.UNREACHABLE: "red",
}
REPORTS = 4
"""Reports that are named where no plan was shown; more are counted."""
WIDTH = 260
"""Characters of a line about a wave."""
UNKNOWN_HOSTS = "nothing is known there"
SURVIVAL = {
    Boot.SURVIVED: ("booted since the last run; every applied change is still there", "green"),
    Boot.LOST: ("booted since the last run, and NOT every applied change is still there", "red"),
    Boot.NOT_BOOTED: ("not booted since the last run, so a boot is not tested", "yellow"),
    Boot.NO_RUN: ("no run is on record", "yellow"),
    Boot.UNKNOWN: ("unknown: not read, or without a boot id", "red"),
}


def render_outcome(
    outcome: RunOutcome, earlier_errors: Mapping[str, RemedyError] = NOTHING
) -> RenderableType:
    """Return how a run ended: hosts by status, what went wrong with the next step, and the verdict.

    Args:
        outcome: how it ended.
        earlier_errors: by host, the error that was shown with the plan.
    """
    parts: list[RenderableType] = [render_hosts(outcome, earlier_errors)]
    if outcome.verdict is not None:
        from remedy.report.ladder import render_verdict

        parts.append(render_verdict(outcome.verdict, outcome.explanation))
    if outcome.views:
        from remedy.report.look import render_views

        parts.append(render_views(outcome.views))
    parts += last_lines(outcome)
    return Group(*parts)


def render_hosts(
    outcome: RunOutcome, earlier_errors: Mapping[str, RemedyError] = NOTHING
) -> RenderableType:
    """Return how the hosts of a run ended, as ``render_outcome`` does, without what was proved."""
    parts: list[RenderableType] = []
    by_status = _by_status(outcome)
    for status in HostStatus:
        if by_status[status]:
            line = Text(f"{status.value:<12}", style=STATUS_STYLE[status])
            parts.append(line.append(_listing(by_status[status]), style="default"))
    parts += _messages(outcome)
    if outcome.mode == "rehearsal":
        parts += result_lines(
            (
                host_result(name, result)
                for name, host in outcome.hosts.items()
                for result in host.results
                if result.status.value in ("ready", "already")
            ),
            outcome.plan,
        )
    parts += problem_lines(outcome.hosts, outcome.plan, earlier_errors)
    parts += _survival_lines(outcome.survival)
    if outcome.converged is not None:
        parts.append(_convergence(outcome))
    parts += [Text(f"  {clipped(line, WIDTH)}", style=_wave_style(line)) for line in outcome.waves]
    return Group(*parts)


def _listing(names: Sequence[str]) -> str:
    """Return the hosts of a line; where they are too many to be read, how all are seen."""
    text = folded(names)
    return f"{text} (--json)" if text.endswith((" more host", " more hosts")) else text


def _wave_style(line: str) -> str:
    if "NOT" in line or line.startswith("suspected"):
        return "red"
    return "green" if "proved" in line and "not proved" not in line else "yellow"


def _by_status(outcome: RunOutcome) -> dict[HostStatus, list[str]]:
    by_status: dict[HostStatus, list[str]] = defaultdict(list)
    for name, host in outcome.hosts.items():
        by_status[host.status].append(name)
    return by_status


def _messages(outcome: RunOutcome) -> Iterator[Text]:
    """Yield what was done on hosts beside the changes of a plan, hosts that share it together."""
    messages = ((name, host.message) for name, host in outcome.hosts.items() if host.message)
    for hosts, message in by_sentence(messages):
        yield Text(f"  {in_a_line(hosts, message)}", style="green")


def _convergence(outcome: RunOutcome) -> Text:
    """Return what the second probe showed, in one line that is true of every host."""
    by_status = _by_status(outcome)
    bad = [*by_status[HostStatus.FAILED], *by_status[HostStatus.NOT_REACHED]]
    if bad:
        return Text(
            f"not right    {folded(bad)}: see above for the reason and the fix", style="red"
        )
    if by_status[HostStatus.UNSETTLED]:
        names = by_status[HostStatus.UNSETTLED]
        itself = "itself" if len(names) == 1 else "themselves"
        words = f"{folded(names)}: about to change by {itself}, so not judged"
        return Text(f"not all      {words}", style="red")
    if by_status[HostStatus.UNREACHABLE]:
        unread = [outcome.hosts[name].error for name in by_status[HostStatus.UNREACHABLE]]
        words = unread_words(error for error in unread if error is not None)
        changed = any(outcome.hosts[name].results for name in by_status[HostStatus.UNREACHABLE])
        known = "how they are after their changes is not known" if changed else UNKNOWN_HOSTS
        return Text(f"not all      {words}: {known}", style="red")
    if not outcome.converged:
        return Text("drift        a second probe found something left to change", style="red")
    if by_status[HostStatus.CHANGED]:
        message = "a second probe of every changed host found nothing left to change"
        return Text(f"zero drift   {message}", style="green")
    return Text("no change    every host is as the inventory and the spec require", style="green")


def _survival_lines(survival: Mapping[str, Survival]) -> Iterator[Text]:
    """Yield what the last boot left of the applied changes, hosts that share it together."""
    for boot, (message, style) in SURVIVAL.items():
        names = [name for name, host in survival.items() if host.boot is boot]
        if names:
            yield Text(f"{folded(names)}: {message}", style=style)
        lost = ((name, title) for name in names for title in survival[name].changes)
        for hosts, title in by_sentence(lost):
            yield Text(f"  {in_a_line(hosts, title)}", style=style)


def last_lines(outcome: RunOutcome) -> Iterator[Text]:
    """Yield what there is to know of the run as a whole."""
    if outcome.mode == "apply" and outcome.verdict is None:
        yield Text("not verified: --no-verify", style="yellow")
    elif outcome.mode == "rehearsal":
        yield Text("rehearsed: nothing was written on any host")
    elif outcome.mode == "rollback" and outcome.hosts:
        results = (result for host in outcome.hosts.values() for result in host.results)
        if any(result.status is ChangeStatus.DONE for result in results):
            yield Text(f"taken back by run {outcome.run}, which can itself be taken back")
        else:
            yield Text("nothing was taken back", style="yellow")
    yield from (Text(note, style="yellow") for note in notes_folded(outcome.warnings))
    unknown = {
        name: len(facts)
        for name, host in outcome.hosts.items()
        if (facts := [f for f in host.findings if f.kind is FindingKind.UNKNOWN])
    }
    if unknown:
        number = counted(sum(unknown.values()), "fact")
        yield Text(
            f"unknown      {folded(unknown)}: {number} could not be read or judged", style="magenta"
        )
    yield from _strict_lines(outcome)


def _strict_lines(outcome: RunOutcome) -> Iterator[Text]:
    """Yield why the exit code is not 0 where only --strict makes it so."""
    reports = outcome.reports
    if not (outcome.strict and reports) or replace(outcome, strict=False).exit_code:
        return
    number = counted(len(reports), "finding")
    counts = "is" if len(reports) == 1 else "are"
    line = Text(
        f"strict       exit code {outcome.exit_code}: {number} that {counts} only reported",
        style="yellow",
    )
    yield line
    if outcome.mode != "verify":  # all others have shown a plan, with each of them
        return
    titles = by_sentence((finding.host or "", finding.title) for finding in reports)
    for hosts, title in titles[:REPORTS]:
        yield Text(f"             {in_a_line(hosts, title)}", style="yellow")
    more = f"and {len(titles) - REPORTS} more; " if len(titles) > REPORTS else ""
    step = f"remedy check {quoted(outcome.inventory)}"
    yield Text(f"             {more}each with what was seen: {step}", style="cyan")
