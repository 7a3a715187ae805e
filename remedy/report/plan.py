"""Plans that remedy made itself, as text for people: to be read in a minute, whatever the number of hosts.

What is the same on many hosts, but for their own names and addresses, is shown once (``gpu[01-64]``). A command
is shown as the sentence that its remedy gives; ``remedy.report.whole`` shows everything to the last byte, and
alone may show what somebody else may have written. Text that came from a host is never read as markup.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from remedy.plan import Change, CommandAction, FileAction, Finding, FindingKind, Plan, Risk
from remedy.report import folding
from remedy.report.folding import Specimen, Words
from remedy.report.summary import by_remedy, changes_on_hosts, tally, weighed
from remedy.secret import may_hold_secret
from remedy.text import clipped, counted, first_few, fold, listed, to_paste

DIFF_LINES = 12
CONTEXT = 2
HIDDEN = " (a line that may hold a secret)"
EVIDENCE_LINES = 2
WIDTH = 160
"""Characters of what was seen that are shown: a line of a host may have 16,000."""
SHORT = 24
"""Characters of what was seen up to which it stands in one line with others."""
SENTENCES = 4
"""Of the texts of a change the first are its sentences: title, reason, what it disrupts, what it does."""
COMMAND = SENTENCES + 3
"""Among the texts of a change that runs a command, the command."""
LONG = 30
"""Lines of changes and findings from which on what stands above them is said again below."""

KIND_STYLE = {
    FindingKind.DRIFT: "yellow",
    FindingKind.BLOCKED: "red",
    FindingKind.UNKNOWN: "magenta",
    FindingKind.REPORT: "cyan",
}
LEGEND = {
    FindingKind.DRIFT: "wrong, without a change of its own: it goes with what else is wrong there",
    FindingKind.BLOCKED: "wrong, and remedy cannot or may not change it",
    FindingKind.UNKNOWN: "could not be read, so not called right",
    FindingKind.REPORT: "worth knowing",
}
Shown = Callable[[Change, Plan], Iterator[RenderableType]]
IN_FULL = "every command and file whole: the same command with --commands"


def render_plan(
    plan: Plan,
    unread: int = 0,
    of: Plan | None = None,
    action: Shown | None = None,
    file: Plan | None = None,
) -> RenderableType:
    """Return a plan that remedy made, for reading.

    Args:
        plan: what is to be shown.
        unread: how many hosts could not be read, so that what they need is unknown.
        of: the whole that it is a part of; None where it is all.
        action: shows what a change does to the last byte; None: in words.
        file: the plan file that it is from, as ``tally`` has it.
    """
    whole = plan if of is None else of
    if not plan.changes:
        return Group(*_unchanged(plan, plan.findings), tally(whole, unread, file))
    middle = [*_body(plan, action or _action)]
    head = [Text(f"Plan: {changes_on_hosts(plan.changes)}", style="bold"), weighed(plan)]
    again = [weighed(plan)] if len(middle) > LONG else []
    return Group(
        *head,
        by_remedy(plan),
        Text(""),
        *middle,
        tally(whole, unread, file),
        *again,
        *([] if action else [Text(f"  {IN_FULL}", style="dim")]),
    )


def render_body(plan: Plan, action: Shown | None = None) -> RenderableType:
    """Return the changes with what they cure, and what is not changed, without a head and a last line."""
    return Group(*_body(plan, action or _action))


def _body(plan: Plan, action: Shown) -> Iterator[RenderableType]:
    cured, others = _assigned(plan)
    yield from _changes(plan, cured, action)
    yield from _unchanged(plan, others)


def render_steps(plan: Plan) -> RenderableType:
    """Return the changes of a plan, whoever wrote it, by titles and reasons alone."""
    words = folding.own_words(plan.hosts, {})
    parts = (
        Specimen(c, c.host, (c.remedy, c.risk, c.reversible), (c.title, c.reason))
        for c in plan.changes
    )
    lines = [Text("Changes", style="bold")] * bool(plan.changes)
    for group in folding.alike(parts, words):
        reason = folding.folded_text(group, 1, words)
        lines += [_title(group.items[0], group, words), Text(f"      because  {reason}")]
    return Group(*lines, tally(plan))


def _title(first: Change, group: folding.Fold[Any], words: Words) -> Text:
    """Return the line of a change; the title is the first of the texts by which it was compared."""
    line = Text("  ~ ", style="yellow").append(fold(group.hosts) + _times(group), style="bold")
    line.append(f": {folding.folded_text(group, 0, words)}").append(
        f"  ({first.remedy})", style="dim"
    )
    if first.risk is not Risk.LOW:
        line.append(f"  [{first.risk.value} risk]", style="red")
    return line.append("" if first.reversible else "  [cannot be undone]", style="red")


def _words(plan: Plan) -> Words:
    hosts = {*plan.hosts, *(finding.host for finding in plan.findings if finding.host)}
    return folding.own_words(hosts, plan.addresses)


# ---- findings


def _assigned(plan: Plan) -> tuple[Mapping[int, list[Finding]], list[Finding]]:
    """Return the findings that changes cure, by the change's place in the plan, and all others."""
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, change in enumerate(plan.changes):
        places[change.host, change.remedy].append(place)
    cured: dict[int, list[Finding]] = defaultdict(list)
    others = []
    for finding in plan.findings:
        known = places.get((finding.host or "", finding.remedy), [])
        if finding.kind is not FindingKind.DRIFT or not known:
            others.append(finding)
            continue
        reasons = [place for place in known if plan.changes[place].reason == finding.title]
        cured[(reasons or known)[0]].append(finding)
    return cured, others


def _specimen_of_finding(finding: Finding) -> Specimen[Finding]:
    shape = (finding.kind, finding.remedy, finding.label)
    return Specimen(finding, finding.host or "", shape, (finding.title, finding.fix))


def _unchanged(plan: Plan, findings: Sequence[Finding]) -> Iterator[RenderableType]:
    """Yield what the plan does not change."""
    if not findings:
        return
    yield Text("Not changed by this plan", style="bold")
    for kind, meaning in LEGEND.items():
        if any(finding.kind is kind for finding in findings):
            yield Text(f"  {kind.value:<8}", style=KIND_STYLE[kind]).append(meaning, style="dim")
    words = _words(plan)
    for group in folding.alike(map(_specimen_of_finding, findings), words):
        first = group.items[0]
        where = (fold(group.hosts) or "the inventory") + _times(group)
        line = Text(f"  {first.kind.value:<8}", style=KIND_STYLE[first.kind])
        title = folding.folded_text(group, 0, words)
        line.append(f"{where}: ", style="bold").append(title, style="default")
        yield line.append(_label(first), style="dim")
        yield from _evidence(group.items, "            ")
        if first.fix:
            step = to_paste(first.fix, plan.inventory_typed)
            whose = f"  (as for {first.host})" if folding.differs(group, (1,)) else ""
            yield Text(f"            {step}{whose}", style="cyan")
    yield Text("")


def _times(group: folding.Fold[Any]) -> str:
    """Return how often there is something, where a host has it more than once."""
    return (
        f" ({len(group.specimens)} times)"
        if len(group.specimens) > max(1, len(group.hosts))
        else ""
    )


def _label(finding: Finding) -> str:
    return f"  ({finding.label})" if finding.label else ""


def _evidence(findings: Sequence[Finding], lead: str) -> Iterator[Text]:
    """Yield what was seen, in the words of the first host."""
    first = findings[0]
    whose = "" if all(f.evidence == first.evidence for f in findings) else f"{first.host}: "
    if max(map(len, first.evidence), default=0) <= SHORT and not whose:
        if first.evidence:  # names of hosts, say
            yield Text(f"{lead}{listed(first.evidence)}", style="dim")
        return
    lines, more = first_few(first.evidence, EVIDENCE_LINES)
    for text in lines:
        line = f"{'' if text.startswith(whose) else whose}{text}"
        yield Text(f"{lead}{clipped(line, WIDTH)}", style="dim")
    if more:
        yield Text(f"{lead}and {more} more", style="dim")


# ---- changes


def _changes(
    plan: Plan, cured: Mapping[int, list[Finding]], action: Shown
) -> Iterator[RenderableType]:
    """Yield each change once, with all hosts that it is made on and the findings that it cures."""
    words = _words(plan)
    parts = map(partial(_specimen_of_change, plan), range(len(plan.changes)))
    # One remedy after the other: what differs from host to host stands side by side.
    remedies = list(dict.fromkeys(change.remedy for change in plan.changes))
    groups = folding.alike(parts, words)
    for group in sorted(groups, key=lambda g: remedies.index(plan.changes[g.items[0]].remedy)):
        first = plan.changes[group.items[0]]
        yield _title(first, group, words)
        findings = [finding for place in group.items for finding in cured.get(place, ())]
        reason, disrupts, does = (folding.folded_text(group, place, words) for place in (1, 2, 3))
        if plan.purpose:  # it takes a run back, and this is what the run cured
            yield Text(f"      was for  {reason}")
        else:
            yield from _because(first.reason, reason, group.hosts, findings, words)
        if disrupts:
            when = "when it was made: " if plan.purpose else ""
            yield Text(f"      note     {when}{disrupts}", style="yellow")
        yield from action(first.model_copy(update={"does": does}), plan)
        if folding.differs(group, _examples(first, group, in_words=action is _action)):
            text = f"      as on {first.host}; on the others with their own names and addresses"
            yield Text(text, style="dim")
    yield Text("")


def _examples(first: Change, group: folding.Fold[Any], *, in_words: bool) -> Iterable[int]:
    """Return the places of those texts of a change that are shown as the first host has them.

    Args:
        first: of the group.
        group: of changes that are shown together.
        in_words: whether a command is shown as the sentence of its remedy, where it has one.
    """
    if in_words and isinstance(first.action, CommandAction):
        return () if first.does else (COMMAND,)
    return range(SENTENCES, len(group.specimens[0].texts))


def _specimen_of_change(plan: Plan, place: int) -> Specimen[int]:
    """Return a change as it is compared with those of other hosts."""
    change = plan.changes[place]
    head = (change.remedy, change.risk, change.reversible, change.guarded, change.restarts)
    texts = (change.title, change.reason, change.disrupts, change.does)
    action = change.action
    if isinstance(action, CommandAction):
        values = (action.observe, action.before, action.after, action.do, action.undo)
        return Specimen(place, change.host, (*head, "command"), (*texts, *values))
    pieces = [(action.after, 0)] if action.splices is None else []
    for splice in action.splices or ():
        pieces += [(splice.before, splice.line), (splice.after, 0)]
    contents = [_text(plan, digest) for digest, _ in pieces]
    bounds = (action.before is None, action.after is None, action.mode, len(pieces))
    lines = tuple(line for _, line in pieces)
    shape = (*head, "file", *bounds, lines)
    return Specimen(place, change.host, shape, (*texts, action.path, action.real_path, *contents))


def _because(
    first: str, reason: str, hosts: Sequence[str], findings: Sequence[Finding], words: Words
) -> Iterator[Text]:
    """Yield why a change is made: the findings that it cures, or the reason that stands above already.

    Args:
        first: the reason of the first of those that are shown together; ``reason``: of all of them.
        hosts: of all of these.
        findings: that they cure.
        words: of the hosts.
    """
    groups = folding.alike(map(_specimen_of_finding, findings), words)
    if first not in [group.items[0].title for group in groups]:
        yield Text(f"      because  {reason}")
    for group in groups:
        where = "" if set(group.hosts) == set(hosts) else fold(group.hosts)
        where = f"{where}{_times(group)}: " if where or _times(group) else ""
        line = Text(f"      because  {where}{folding.folded_text(group, 0, words)}")
        yield line.append(_label(group.items[0]), style="dim")
        yield from _evidence(group.items, "               ")


def _action(change: Change, plan: Plan) -> Iterator[Text]:
    """Yield what a change does."""
    action = change.action
    if isinstance(action, FileAction):
        yield from _file(action, plan)
    elif change.does:
        yield Text(f"      does     {change.does}")
    else:
        yield from (Text(f"      $ {line}", style="cyan") for line in action.do.splitlines())


def _file(action: FileAction, plan: Plan) -> Iterator[Text]:
    if action.before is None:
        yield Text(f"      new file {action.path}")
    elif action.after is None:
        yield Text(f"      remove   {action.path}")
    else:
        yield Text(f"      file     {action.path}")
    if action.path != action.real_path:
        yield Text(f"      {action.path} is a link; the file that changes is {action.real_path}")
    lines, more = first_few(list(_difference(action, plan)), DIFF_LINES)
    for text in lines:
        yield Text(f"      {text}", style={"+": "green", "-": "red"}.get(text[:1], "dim"))
    if more:
        yield Text(f"      and {counted(more, 'more line')}", style="dim")


def _difference(action: FileAction, plan: Plan) -> Iterator[str]:
    """Yield the lines that go and come, with those around them where the whole file is known."""
    ends = [_content(plan, digest) for digest in (action.before, action.after)]
    if None not in ends:
        yield from _unified(ends[0] or b"", ends[1] or b"", CONTEXT)
        return
    for splice in action.splices or ():
        yield f"@@ line {splice.line} @@"
        pieces = [_content(plan, digest) or b"" for digest in (splice.before, splice.after)]
        lines = _unified(pieces[0], pieces[1], 0)
        yield from (line for line in lines if not line.startswith("@@ "))


def _unified(before: bytes, after: bytes, context: int) -> Iterator[str]:
    old, new = _lines(before), _lines(after)
    # The first two lines name files, which are shown already.
    for line in islice(difflib.unified_diff(old, new, lineterm="", n=context), 2, None):
        match = re.match(r"@@ -(\d+)(?:,(\d+))? ", line)
        if not match:
            yield HIDDEN if line[:1] == " " and may_hold_secret(line) else line
        elif before and after:
            yield f"@@ line {match[1]} @@"


def _lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "backslashreplace").splitlines()


def _content(plan: Plan, digest: str | None) -> bytes | None:
    """Return the bytes that a digest stands for; None where they are not known."""
    if digest is None:
        return b""
    return plan.contents.get(digest, plan.blobs.get(digest))


def _text(plan: Plan, digest: str | None) -> str:
    return _decoded(_content(plan, digest) or b"")


# Thousands of hosts may get one block, which as a text of each would fill the memory.
@lru_cache(maxsize=16)
def _decoded(content: bytes) -> str:
    return content.decode("utf-8", "backslashreplace")
