"""Results of changes as text: each once, with the hosts that share it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from rich.text import Text

from remedy.apply.report import ChangeResult, ChangeStatus
from remedy.errors import RemedyError
from remedy.plan import FindingKind, Plan
from remedy.report import folding
from remedy.report.failures import error_lines
from remedy.report.folding import Specimen
from remedy.runs.outcome import HostOutcome, HostStatus
from remedy.text import counted, first_few, fold, folded

STYLES = {"done": "green", "already": "green", "ready": "green", "skipped": "yellow"}
MADE = (ChangeStatus.DONE, ChangeStatus.ALREADY)
REPAIR = (
    "Repair that on the host, then run the same command again: changes that were made are kept."
)
INDENT = 14
_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
_SECONDS = re.compile(r"(\d\d:\d\d:\d\d)\.\d+")
QUOTES = 8
"""Lines of a host's own words about a change that failed."""
LEFT = "still there: "
NOTHING: Mapping[str, RemedyError] = MappingProxyType({})
QUOTED = "| "
"""Before a host's own words that are lines of their own: none of them passes for a line of ours."""


class HostResult(NamedTuple):
    """The result of one change on one host, in words: also of a journal of a later version."""

    host: str
    change: str
    status: str
    detail: str


def result_lines(results: Iterable[HostResult], plan: Plan | None = None) -> Iterator[Text]:
    """Yield a line for each result, and the rest of a long reason below it.

    Args:
        results: in any order.
        plan: gives the titles of the changes; None for the ids alone.
    """
    titles = {(c.host, c.id): c.title for c in plan.changes} if plan else {}
    every = list(results)
    words = folding.own_words((result.host for result in every), plan.addresses if plan else {})
    specimens = (
        Specimen(
            result,
            result.host,
            (result.status, result.change),
            (titles.get((result.host, result.change), ""), result.detail),
        )
        for result in every
    )
    for group in folding.alike(specimens, words):
        title, detail = (folding.folded_text(group, place, words) for place in (0, 1))
        yield from _result(group.items[0]._replace(detail=detail), title, group.hosts)


def _result(result: HostResult, title: str, hosts: Sequence[str]) -> Iterator[Text]:
    """Yield how a change ended on hosts."""
    _, change, status, detail = result
    style = STYLES.get(status, "red")
    line = Text(f"  {status:<{INDENT - 2}}", style=style)
    line.append(f"{fold(hosts)}: ", style="default")
    line.append(title or change, style="default")
    if status == ChangeStatus.FAILED.value and not detail:
        detail = "no reason was given"
    first, *rest = _shortened(detail).rstrip("\n").split("\n")
    yield line.append(f": {first}" if first else "", style=style)
    quoted_lines, more = first_few(rest, QUOTES)
    yield from (Text(f"{'':{INDENT}}{QUOTED}{text}", style=style) for text in quoted_lines)
    if more:
        yield Text(f"{'':{INDENT}}and {counted(more, 'more line')} (--json)", style=style)


def _shortened(detail: str) -> str:
    """Return a host's words without the tails of digests and of seconds, by which nobody acts.

    >>> _shortened("last written 2026-11-25 19:10:08.167884616 +0000: sha256 " + "0a" * 32)
    'last written 2026-11-25 19:10:08 +0000: sha256 0a0a0a0a0a0a'
    """
    return _SECONDS.sub(r"\1", _DIGEST.sub(r"\1", detail))


def host_result(host: str, result: ChangeResult) -> HostResult:
    """Return a result with its host."""
    return HostResult(host, result.id, result.status.value, result.detail)


def problem_lines(
    hosts: Mapping[str, HostOutcome],
    plan: Plan | None,
    earlier_errors: Mapping[str, RemedyError] = NOTHING,
) -> Iterator[Text]:
    """Yield what is wrong on hosts, each with the next step: errors, changes not made, drift that is left.

    Args:
        hosts: how they ended.
        plan: what was to be changed there.
        earlier_errors: by host, the error that its user has read already: it is not shown a second time.
    """
    errors = {name: host.error for name, host in hosts.items() if host.error is not None}
    same = [name for name, error in errors.items() if error is earlier_errors.get(name)]
    yield from error_lines({name: error for name, error in errors.items() if name not in same})
    if same:
        yield Text(f"  {folded(same)}: see above for the reason and the next step", style="red")
    yield from result_lines(
        (
            host_result(name, result)
            for name, host in hosts.items()
            for result in host.results
            if _is_problem(result)
        ),
        plan,
    )
    yield from _consequences(hosts)


def _is_problem(result: ChangeResult) -> bool:
    """Whether a change was not made for a reason of its own; one that was only skipped has none."""
    if result.status in (*MADE, ChangeStatus.READY):
        return False
    return bool(result.detail) or result.status is not ChangeStatus.SKIPPED


def _consequences(hosts: Mapping[str, HostOutcome]) -> Iterator[Text]:
    """Yield what was not tried because a change failed, what the second probe still finds, and what to do."""
    lines: list[tuple[str, str]] = []
    any_failed = False
    for name, host in hosts.items():
        if host.status is not HostStatus.FAILED:
            continue
        statuses = [result.status for result in host.results]
        failed, skipped = ChangeStatus.FAILED in statuses, statuses.count(ChangeStatus.SKIPPED)
        any_failed |= failed and host.error is None
        if failed and skipped:
            lines.append((name, f"{counted(skipped, 'change')} after it not tried"))
        if host.results:
            for finding in host.findings:
                if finding.kind is FindingKind.DRIFT:
                    lines.append((name, f"{LEFT}{finding.title}"))
    for names, text in folding.by_text(lines):
        yield Text(f"  {names}: {text}", style="yellow" if text.startswith(LEFT) else "red")
    if any_failed:
        yield Text(f"    {REPAIR}", style="cyan")
