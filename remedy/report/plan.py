"""Plans as text for people.

Hosts that share a finding or a change are listed together (``gpu[01-64]``). Text that came from a host is
printed as it is, never read as markup.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice

from rich.console import Group, RenderableType
from rich.text import Text

from remedy.plan import Change, CommandAction, FileAction, Finding, FindingKind, Plan, Risk
from remedy.text import counted, fold

# Longer diffs are cut in the summary; the plan file has them whole.
DIFF_LINES = 40
COMMAND_LINES = 4
# A command may compare its object by digest; two of those mean nothing to a reader.
DIGEST = re.compile(r"[0-9a-f]{128}")
EVIDENCE_LINES = 4

KIND_STYLE = {
    FindingKind.DRIFT: "yellow",
    FindingKind.BLOCKED: "red",
    FindingKind.UNKNOWN: "magenta",
    FindingKind.REPORT: "cyan",
}


def render_plan(plan: Plan, unread: int = 0) -> RenderableType:
    """Return a plan for reading: findings, then each change once with the hosts that share it, then a tally.

    Args:
        plan: what is to be shown.
        unread: how many hosts could not be read, so that what they need is unknown.
    """
    parts: list[RenderableType] = []
    findings = list(_folded_findings(plan.findings))
    if findings:
        parts += [Text("Findings", style="bold"), *findings, Text("")]
    if plan.changes:
        parts += [Text("Changes", style="bold"), *_folded_changes(plan), Text("")]
    parts.append(tally(plan, unread))
    return Group(*parts)


def _folded_findings(findings: tuple[Finding, ...]) -> Iterator[RenderableType]:
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for f in findings:
        groups[(f.kind, f.remedy, f.title, f.evidence, f.fix)].append(f.host or "")
    for (kind, _, title, evidence, fix), hosts in groups.items():
        assert isinstance(kind, FindingKind)
        assert isinstance(evidence, tuple)
        where = fold(h for h in hosts if h) or "the inventory"
        line = Text(f"  {kind.value:<8}", style=KIND_STYLE[kind])
        line.append(f"{where}: ", style="bold").append(str(title), style="default")
        yield line
        for text in evidence[:EVIDENCE_LINES]:
            yield Text(f"            {text}", style="dim")
        if len(evidence) > EVIDENCE_LINES:
            yield Text(f"            and {len(evidence) - EVIDENCE_LINES} more", style="dim")
        if fix:
            yield Text(f"            {fix}", style="cyan")


def _folded_changes(plan: Plan) -> Iterator[RenderableType]:
    """Yield each change once, with all hosts that it is made on."""
    for changes in _alike(plan):
        first = changes[0]
        differ_by_name = len({(c.title, _difference(c, plan)) for c in changes}) > 1
        title = (
            first.title.replace(repr(first.host), "its own name") if differ_by_name else first.title
        )
        line = Text("  ~ ", style="yellow")
        line.append(fold(c.host for c in changes), style="bold").append(f": {title}")
        if first.risk is not Risk.LOW:
            line.append(f"  [{first.risk.value} risk]", style="red")
        if not first.reversible:
            line.append("  [cannot be undone]", style="red")
        yield line
        yield Text(f"      why: {first.reason}", style="dim")
        if first.disrupts:
            yield Text(f"      note: {first.disrupts}", style="dim")
        difference = _difference(first, plan)
        for text in difference[:DIFF_LINES]:
            yield Text(f"      {text}", style={"+": "green", "-": "red"}.get(text[:1], "dim"))
        if len(difference) > DIFF_LINES:
            yield Text(f"      and {len(difference) - DIFF_LINES} more lines", style="dim")
        if differ_by_name:
            yield Text(
                f"      (as on {first.host}; on the others with their own names)", style="dim"
            )


def _alike(plan: Plan) -> list[list[Change]]:
    """Return the changes in groups that read the same; changes that differ by the host's own name do."""
    groups: dict[tuple[object, ...], list[Change]] = defaultdict(list)
    for change in plan.changes:
        groups[(change.remedy, change.title, _difference(change, plan))].append(change)
    merged: dict[tuple[object, ...], list[Change]] = defaultdict(list)
    for key, changes in groups.items():
        first = changes[0]
        blurred = (first.remedy, *(_without_name(part, first.host) for part in key[1:]))
        merged[blurred if len(changes) == 1 else key] += changes
    return list(merged.values())


def _without_name(part: object, host: str) -> object:
    if isinstance(part, tuple):
        return tuple(_without_name(piece, host) for piece in part)
    return str(part).replace(host, "{host}")


def _difference(change: Change, plan: Plan) -> tuple[str, ...]:
    """Return what a change alters, as lines."""
    action = change.action
    if isinstance(action, CommandAction):
        states = (
            *(f"-{line}" for line in action.before.split("\n")),
            *(f"+{line}" for line in action.after.split("\n")),
        )
        shown = () if DIGEST.fullmatch(action.before + action.after) else states
        return (*shown, *_command_lines(action.do))
    return tuple(_file_difference(action, plan))


def _command_lines(text: str) -> Iterator[str]:
    """Yield a command for reading; of a long one the end, where it acts after it has defined its terms."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > COMMAND_LINES:
        yield f"$ ({len(lines) - COMMAND_LINES} lines more: --json, or the plan file, has the whole command)"
    for line in lines[-COMMAND_LINES:]:
        yield f"$ {line}"


def _file_difference(action: FileAction, plan: Plan) -> Iterator[str]:
    if action.before is None:
        yield f"new file {action.path}"
    elif action.after is None:
        yield f"remove {action.path}"
    if action.path != action.real_path:
        yield f"{action.path} is a link; the file that changes is {action.real_path}"
    if action.splices is None:
        before, after = (_text(plan, digest) for digest in (action.before, action.after))
        lines = difflib.unified_diff(before, after, lineterm="", n=0)
        yield from islice(lines, 2, None)  # the first two lines name files, which are shown already
        return
    for splice in action.splices:
        yield f"@@ line {splice.line} @@"
        before, after = (_text(plan, digest) for digest in (splice.before, splice.after))
        lines = difflib.unified_diff(before, after, lineterm="", n=0)
        yield from (line for line in islice(lines, 2, None) if not line.startswith("@@ "))


def _text(plan: Plan, digest: str | None) -> list[str]:
    """Return the bytes that a digest stands for, as lines; none where the plan does not have them."""
    content = plan.blobs.get(digest or "", b"") if digest else b""
    return content.decode("utf-8", "backslashreplace").splitlines()


def tally(plan: Plan, unread: int = 0) -> Text:
    """Return the last line: the changes, and the hosts for which nobody can say that this is all."""
    unknown = {f.host for f in plan.findings if f.kind is FindingKind.UNKNOWN}
    doubts = [f"{counted(unread, 'host')} could not be read"] if unread else []
    if unknown:
        have = "has" if len(unknown) == 1 else "have"
        doubts.append(f"{counted(len(unknown), 'host')} {have} facts that could not be read")
    doubt = "; ".join(doubts)
    if not plan.changes:
        if doubt:
            return Text(f"{doubt}; nothing to change elsewhere", style="yellow")
        return Text("Nothing to change.", style="green")
    tally = f"{counted(len(plan.changes), 'change')} on {counted(len(plan.hosts), 'host')}"
    line = Text(tally, style="bold").append(f"  (plan {plan.digest[:12]})", style="dim")
    return line.append(f"; {doubt}", style="yellow") if doubt else line
