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
from remedy.report.failures import error_lines
from remedy.runs.outcome import HostOutcome, HostStatus
from remedy.sentences import NAMES, WIDTH, Sentence, as_one, by_sentence, host_names, in_a_line
from remedy.text import clipped, counted, first_few, folded

STYLES = {"done": "green", "already": "green", "ready": "green", "skipped": "yellow"}
MADE = (ChangeStatus.DONE, ChangeStatus.ALREADY)
REPAIR = (
    "Repair that on the host, then run the same command again: changes that were made are kept."
)
INDENT = 14
_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
_SECONDS = re.compile(r"(\d\d:\d\d:\d\d)\.\d+")
WORDS = 150
"""Characters of a title with the hosts before it, and of a host's own words."""
PROBLEMS = 4
"""Results of changes that were not made, and kinds of what is left, that are shown; the others are counted."""
_NUMBER = re.compile(r"^\d+-")
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


def result_lines(
    results: Iterable[HostResult], plan: Plan | None = None, most: int = 0
) -> Iterator[Text]:
    """Yield a line for each result, and the rest of a long reason below it.

    Args:
        results: in any order.
        plan: gives the titles of the changes; None for the ids alone.
        most: how many are shown, those of most hosts; 0 for all.
    """
    titles = {(c.host, c.id): c.title for c in plan.changes} if plan else {}
    every = list(results)
    names = host_names(result.host for result in every)
    groups: dict[tuple[object, ...], list[_Ended]] = {}
    for result in every:
        ended = _Ended(
            result,
            Sentence.of(result.host, titles.get((result.host, result.change), ""), names),
            Sentence.of(result.host, result.detail.rstrip("\n"), names),
        )
        groups.setdefault(ended.shape, []).append(ended)
    order = list(groups.values())
    if 0 < most < len(order):
        order.sort(key=len, reverse=True)
    shown = order[:most] if most else order
    for group in shown:
        yield from _result(group, max(1, QUOTES // len(shown)))
    if rest := order[len(shown) :]:
        hosts = folded((ended.result.host for group in rest for ended in group), NAMES)
        yield Text(f"  {hosts}: {counted(len(rest), 'more result')} (--json has each)", style="red")


class _Ended(NamedTuple):
    """How a change ended on a host, with its title and the host's own words."""

    result: HostResult
    title: Sentence
    detail: Sentence

    @property
    def shape(self) -> tuple[object, ...]:
        """What is equal for results that are shown as one; the number of a change differs with those before."""
        change = _NUMBER.sub("", self.result.change)
        return (self.result.status, change, self.title.shape, self.detail.shape)


def _result(group: Sequence[_Ended], quotes: int) -> Iterator[Text]:
    """Yield how a change ended on hosts."""
    _, change, status, _ = group[0].result
    if len({ended.result.change for ended in group}) > 1:
        change = _NUMBER.sub("", change)
    title, detail = as_one([e.title for e in group]), as_one([e.detail for e in group])
    style = STYLES.get(status, "red")
    line = Text(f"  {status:<{INDENT - 2}}", style=style)
    hosts = folded((ended.result.host for ended in group), NAMES)
    title = clipped(title, max(WORDS // 2, WORDS - len(hosts)))
    line.append(f"{hosts}: ", style="default")
    line.append(title or change, style="default")
    if status == ChangeStatus.FAILED.value and not detail:
        detail = "no reason was given"
    first, *rest = _shortened(detail).split("\n")
    first = clipped(first, max(WORDS // 2, WIDTH - len(line.plain)))
    yield line.append(f": {first}" if first else "", style=style)
    quoted_lines, more = first_few(rest, quotes)
    for text in quoted_lines:
        yield Text(f"{'':{INDENT}}{QUOTED}{clipped(text, WORDS)}", style=style)
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
    problems = (
        host_result(name, result)
        for name, host in hosts.items()
        for result in host.results
        if _is_problem(result)
    )
    yield from result_lines(_lost_together(problems), plan, PROBLEMS)
    yield from _consequences(hosts)


def _lost_together(results: Iterable[HostResult]) -> Iterator[HostResult]:
    """Yield results, those that were lost with a host as one: the reason is the host's, not the change's."""
    lost: dict[tuple[str, str], list[HostResult]] = {}
    for result in results:
        if result.status == ChangeStatus.LOST.value:
            lost.setdefault((result.host, result.detail), []).append(result)
        else:
            yield result
    for first, *rest in lost.values():
        changes = f"{1 + len(rest)} changes, each of which may have been made"
        yield first._replace(change=changes) if rest else first


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
    alike = by_sentence(lines)
    for names, text in alike[:PROBLEMS]:
        style = "yellow" if text.startswith(LEFT) else "red"
        yield Text(f"  {in_a_line(names, text)}", style=style)
    if rest := alike[PROBLEMS:]:
        yield Text(
            f"  and {len(rest)} more of what is left there (--json has each)", style="yellow"
        )
    if any_failed:
        yield Text(f"    {REPAIR}", style="cyan")
