"""A plan file as text for whoever answers for it: everything that it does, exactly, and nothing shortened.

Whoever wrote the file may want a reader to see something else. Each character of it shows, and no line of it
can pass for one of remedy's own: text of the file begins at a mark, also where a terminal breaks its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from pydantic import BaseModel
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text

from remedy.plan import Change, CommandAction, FileAction, Plan, guarded_for, sha256
from remedy.plan.seal import secret_lines
from remedy.report import folding
from remedy.report.folding import Specimen
from remedy.report.plan import KIND_STYLE, render_plan
from remedy.report.summary import tally
from remedy.text import counted, fold

# What a terminal shows as it is: printable ASCII without blanks at the end.
_PLAIN = re.compile(r"(?!\$')([ -~]*[!-~])?")
_ESCAPES = {"\t": r"\t", "\n": r"\n", "\r": r"\r", "\\": r"\\", "'": r"\'", "\x1b": r"\e"}
NARROWEST = 20
# A host that is called like a word of a command could hide one; names of hosts have digits.
_DIGIT = re.compile(r"[0-9]")

OWN = {
    True: ("remedy makes the same change for the host as it is now", "green"),
    False: ("NOT what remedy makes for the host as it is now: read every line", "bold red"),
}
VOUCHED = {
    True: ("takes back what remedy itself made, as the host keeps it on record", "green"),
    False: ("the host does not vouch for it: read every line", "bold red"),
}


def exact(text: str) -> str:
    """Return one line as printable ASCII from which it can be told exactly: plain, or as ``$'...'`` of sh.

    >>> exact("uname -n"), exact("uname -n "), exact("caf\\u00e9\\t")
    ('uname -n', "$'uname -n '", "$'caf\\\\u00e9\\\\t'")
    """
    if _PLAIN.fullmatch(text):
        return text
    return f"$'{''.join(map(_exact, text))}'"


def _exact(character: str) -> str:
    code = ord(character)
    if character in _ESCAPES:
        return _ESCAPES[character]
    if 0x20 <= code < 0x7F:
        return character
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


@dataclass(frozen=True)
class Quoted:
    """Lines of a plan, exactly, each behind a mark that also shows where a terminal breaks it.

    Args:
        lead: what stands before the mark.
        text: one line or several.
        style: of the text.
        mark: between the two; "" where the lead ends in words of remedy's own.
    """

    lead: str
    text: str
    style: str = "default"
    mark: str = "| "

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield each line, broken only where it is shown on a terminal."""
        lead = self.lead
        for line in map(exact, self.text.split("\n")):
            width = max(NARROWEST, options.max_width - len(lead) - 3) if console.is_terminal else 0
            for place in range(0, max(1, len(line)), width or max(1, len(line))):
                piece = line[place : place + width] if width else line
                before = lead + self.mark if place == 0 else " " * len(lead) + ": "
                yield Text(before, style="dim").append(piece, style=self.style)
                lead = lead if lead[-1:] in ("+", "-") else " " * len(lead)


def render_whole(
    plan: Plan,
    authorship: Mapping[tuple[str, str], bool] | None = None,
    file: Plan | None = None,
) -> RenderableType:
    """Return a plan for reading whole, as ``remedy approve`` signs it.

    Args:
        plan: from a file.
        authorship: for each change, by host and id, whether remedy makes the same for the host as it is now;
            None where the hosts were not read.
        file: the plan that it is a part of, as ``tally`` has it.
    """
    return Group(render_head(plan), render_body(plan, authorship), tally(plan, file=file))


def render_commands(plan: Plan, unread: int = 0) -> RenderableType:
    """Return a plan that remedy just made, with every command and file of it (``--commands``).

    Args:
        plan: what is to be shown.
        unread: how many hosts could not be read, so that what they need is unknown.
    """
    return render_plan(plan, unread, action=exact_action)


def exact_action(change: Change, plan: Plan) -> Iterator[RenderableType]:
    """Yield what a change does, to the last byte."""
    action = change.action
    yield from _command(action) if isinstance(action, CommandAction) else _file(action, plan)


def render_head(plan: Plan) -> RenderableType:
    """Return who made a plan, when, and for what."""
    return Group(Text("Plan file", style="bold"), *_head(plan), Text(""))


def render_body(
    plan: Plan, authorship: Mapping[tuple[str, str], bool] | None = None
) -> RenderableType:
    """Return all findings and changes of a plan; ``authorship`` as for ``render_whole``."""
    parts: list[RenderableType] = []
    if plan.findings:
        parts += [Text("Findings", style="bold"), *_findings(plan), Text("")]
    if plan.changes:
        parts += [Text("Changes", style="bold"), *_changes(plan, authorship), Text("")]
    return Group(*parts)


def _head(plan: Plan) -> Iterator[RenderableType]:
    made = f"{plan.date} by {plan.author} for {plan.inventory}"
    yield Quoted("  made ", made, mark="")
    if plan.purpose:
        yield Quoted("  purpose    ", plan.purpose, "bold yellow")
    if plan.choice:
        yield Quoted("  made with  ", plan.choice.words, "bold yellow")
    yield Quoted("  remedy     ", plan.tool_version, "dim")
    yield Quoted("  inventory  ", plan.inventory_digest, "dim")
    yield Quoted("  settings   ", plan.spec_digest, "dim")
    if plan.observed:
        states = sha256(json.dumps(dict(plan.observed), sort_keys=True).encode())
        yield Text(f"  state      of {fold(plan.observed)} as read: sha256 {states}", style="dim")
    if plan.machines:
        marks = sha256(json.dumps(dict(plan.machines), sort_keys=True).encode())
        yield Text(f"  machines   of {fold(plan.machines)}: sha256 {marks}", style="dim")
    for line in secret_lines(plan):
        yield Quoted("  ", line, "dim")
    if plan.sealed_by:
        yield Quoted("  sealed by  ", plan.sealed_by, "dim")
    yield from _unread(plan, "  ")


def _findings(plan: Plan) -> Iterator[RenderableType]:
    """Yield each finding once, with the hosts of which it is the same but for their own names."""
    words = folding.own_words(filter(_DIGIT.search, {f.host for f in plan.findings if f.host}), {})
    texts = [(part.item.model_dump_json(exclude={"host"}),) for part in plan.shared_findings]
    kinds, shapes = plan.finding_kinds, ((False,), (True,))
    specimens = (
        Specimen(f, f.host or "", shapes[f.host is None], texts[kinds[id(f)]])
        for f in plan.findings
    )
    for group in folding.alike(specimens, words):
        alike, first = group.items, group.items[0]
        where = fold(group.hosts) or "the inventory"
        if len(alike) != len({f.host for f in alike}):
            where += f" ({len(alike)} times)"
        line = Text(f"  {first.kind.value:<8} ", style=KIND_STYLE[first.kind])
        yield line.append(f"{where}  [{first.remedy}{_label(first.label)}]", style="bold")
        if not group.is_same:
            every = sha256("\0".join(f.model_dump_json() for f in alike).encode())
            yield Text(f"           as on {first.host}, with their own names; all: sha256 {every}")
        yield Quoted("           ", first.title)
        for text in first.evidence:
            yield Quoted("      seen ", text, "dim")
        if first.fix:
            yield Quoted("       fix ", first.fix, "cyan")
        yield from _unread(first, "           ")
    # What was signed shows as it is, and an inventory is named where it is typed.
    typed = plan.inventory_typed
    if typed and any("INVENTORY" in finding.fix for finding in plan.findings):
        yield Text(f"  In a fix, INVENTORY stands for {typed}", style="dim")


def _label(label: str) -> str:
    return f", cause {label}" if label else ""


def _changes(
    plan: Plan, authorship: Mapping[tuple[str, str], bool] | None
) -> Iterator[RenderableType]:
    """Yield each change once, with the hosts on which it is the same but for their own names."""
    words = folding.own_words(filter(_DIGIT.search, plan.hosts), plan.addresses)
    parts = _Parts(plan, authorship)
    for group in folding.alike(map(parts.of, plan.changes), words):
        changes, first = group.items, group.items[0]
        mark, number = group.specimens[0].shape[:2]
        yield Quoted(f"  ~ {fold(group.hosts)}: ", first.title, "bold", mark="")
        if parts.differ(changes):
            every = sha256("\0".join(f"{c.host}\0{parts.text(c)}" for c in changes).encode())
            yield Text(
                f"      as on {first.host}; on {counted(len(changes) - 1, 'other host')} with their own"
            )
            yield Text(f"      names in its place; all of them together: sha256 {every}")
        line = Text(f"      [{first.remedy}{_label(first.label)}]  [{first.risk.value} risk]")
        line.append("" if first.reversible else "  [cannot be undone]", style="red")
        kind = guarded_for(first)
        yield line.append(f"  [guarded{': ' * bool(kind)}{kind}]" if first.guarded else "")
        if mark is not None:
            text, style = (VOUCHED if plan.purpose else OWN)[bool(mark)]
            yield Text(f"      {text}", style=style)
        if number:
            yield Quoted("      id        ", str(number))
        yield Quoted("      why       ", first.reason)
        if first.disrupts:
            yield Quoted("      note      ", first.disrupts)
        if first.does:
            yield Quoted("      does      ", first.does)
        if first.undoes:
            yield Quoted("      undoes    ", first.undoes)
        if first.restarts:
            yield Quoted("      restarts  ", first.restarts)
        yield from exact_action(first, plan)
        yield from _unread(first, "      ")


class _Parts:
    """The changes of a plan, as they are compared; what many hosts have alike is written once."""

    def __init__(self, plan: Plan, authorship: Mapping[tuple[str, str], bool] | None) -> None:
        self._plan = plan
        self._authorship = authorship
        self._compared: dict[
            tuple[int, bool | None], tuple[tuple[object, ...], tuple[str, ...]]
        ] = {}
        self._texts: dict[int, str] = {}

    def of(self, change: Change) -> Specimen[Change]:
        """Return a change as it is compared with those of other hosts: with bytes in place of their digests."""
        own, key = self._authorship, self._plan.change_kinds[id(change)]
        mark = None if own is None else own.get((change.host, change.id), False)
        if (key, mark) not in self._compared:
            number = change.id if self._plan.purpose else _number(change)
            texts = _compared(change, self._plan)
            self._compared[key, mark] = (mark, number, len(texts)), texts
        return Specimen(change, change.host, *self._compared[key, mark])

    def differ(self, changes: Iterable[Change]) -> bool:
        """Say whether changes are not all the same, but for their hosts and numbers."""
        kinds = self._plan.change_kinds
        one_each = {kinds[id(change)]: change for change in changes}
        return len(set(map(self.text, one_each.values()))) > 1

    def text(self, change: Change) -> str:
        """Return a change as its JSON, without its host and its number."""
        key = self._plan.change_kinds[id(change)]
        if key not in self._texts:
            self._texts[key] = change.model_dump_json(exclude={"host", "id"})
        return self._texts[key]


def _compared(change: Change, plan: Plan) -> tuple[str, ...]:
    """Return all that a change says, but for its host and its number, and the bytes that it is about."""
    action = change.action
    document = change.model_dump(mode="json", exclude={"host", "id"})
    contents: list[str] = []
    if isinstance(action, FileAction):
        bounds = [name for name in ("before", "after") if document["action"].pop(name) is not None]
        document["action"]["bounds"] = bounds
        contents = [] if action.splices is not None else _contents(plan, action.after)
        for splice, values in zip(
            action.splices or (), document["action"]["splices"] or (), strict=True
        ):
            # The place and the length depend on how long a name is.
            for name in ("before", "after", "offset", "length"):
                values[name] = values[name] is not None
            contents += _contents(plan, splice.before) + _contents(plan, splice.after)
    return (json.dumps(document, sort_keys=True), *contents)


def _contents(plan: Plan, digest: str | None) -> list[str]:
    """Return the bytes that a digest stands for as text, the digest where the plan does not have them."""
    content = None if digest is None else plan.blobs.get(digest)
    return [str(digest) if content is None else _decoded(content)]


# Thousands of hosts may get one block, which as a text of each would fill the memory.
@lru_cache(maxsize=16)
def _decoded(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _number(change: Change) -> str:
    """Return the id of a change where it says more than its place and its remedy, which show."""
    return "" if change.id.partition("-")[2] == change.remedy else change.id


def _command(action: CommandAction) -> Iterator[RenderableType]:
    yield Quoted("      asks $    ", action.observe, "cyan")
    yield Quoted("      now       ", action.before)
    yield Quoted("      runs $    ", action.do, "bold cyan")
    yield Quoted("      then      ", action.after)
    if action.undo:
        yield Quoted("      undo $    ", action.undo, "cyan")
    else:
        yield Text("      undo      nothing takes it back", style="red")
    yield from _unread(action, "      ")


def _file(action: FileAction, plan: Plan) -> Iterator[RenderableType]:
    yield Quoted("      file      ", action.path, "bold")
    if action.path != action.real_path:
        yield Quoted("      a link to ", action.real_path, "bold")
    before = f"sha256 {action.before}" if action.before else "there is none"
    after = f"sha256 {action.after}" if action.after else "it is removed"
    yield Text(f"      now       {before}", style="dim")
    yield Text(f"      then      {after}", style="dim" if action.after else "red")
    if action.before is None or action.mode != FileAction.model_fields["mode"].default:
        yield Text(f"      mode      {action.mode:04o}, where it is made new")
    for splice in action.splices or ():
        yield Text(
            f"      @@ line {splice.line}, byte {splice.offset}, {splice.length} bytes go @@",
            style="dim",
        )
        yield from _bytes("-", plan, splice.before)
        yield from _bytes("+", plan, splice.after)
        yield from _unread(splice, "      ")
    if action.splices is None and action.after is not None:
        yield from _bytes("+", plan, action.after)
    yield from _unread(action, "      ")


def _bytes(sign: str, plan: Plan, digest: str | None) -> Iterator[RenderableType]:
    """Yield the bytes that a digest stands for, where the plan has them."""
    if digest is None:
        return
    if digest not in plan.blobs:
        yield Text(f"      {sign} from the host: sha256 {digest}", style="dim")
        return
    content = plan.blobs[digest].decode("utf-8", "surrogateescape")
    style = {"+": "green", "-": "red"}[sign]
    yield Quoted(f"      {sign}", content.removesuffix("\n"), style, mark="")
    if not content.endswith("\n"):
        yield Text("       (no end of line)", style="dim")


def _unread(model: BaseModel, lead: str) -> Iterator[RenderableType]:
    """Yield the fields that this remedy does not know, and does not act by; a later one may."""
    for name, value in sorted((model.model_extra or {}).items()):
        text = f"{name}: {json.dumps(value, sort_keys=True)}"
        yield Quoted(f"{lead}not known to this remedy ", text, "bold red")
