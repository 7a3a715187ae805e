"""Reading plan files, which anybody may have written: nothing of one is shown or run that is not whole.

The digest says that a file is as it was signed, not that it is harmless: whoever changes a file can write the
digest anew. What must hold of any plan, whoever made it, is checked here, before anything else sees it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from remedy.errors import PlanFileError
from remedy.files import STANDARD, begins_with, name_of, read_regular, read_standard
from remedy.plan.change import UNDO, Change, FileAction, Finding, Splice, sha256
from remedy.plan.plan import Plan, inventory_named
from remedy.plan.shared import FORMAT, LARGE_FORMAT, format_for, unfolded
from remedy.text import counted, quoted

# A plan of 10,000 hosts with a dozen changes each is smaller.
MOST_BYTES = 128 << 20
# Objects, lists and their elements; a change has about twenty, and each is some hundred bytes in memory.
MOST_PARTS = 4_000_000
MOST_TEXT, MOST_COMMAND = 16 << 10, 1 << 20
MOST_SHOWN = 200  # of a place in a file, in a message
MOST_CHANGES = 999  # of a host
MOST_EVIDENCE = 10_000  # lines of a finding, each of which a reader is shown
MOST_OFFSET = 1 << 40
# Changes and findings of single hosts that what several have alike stands for: 10,000 hosts with a hundred.
MOST_COPIES = 1_000_000

# What is to be done where the copy that a run left is no good: a new plan is none of that run's.
BACKUP = (
    "Bring the file back from a backup of the folder .remedy: without it the run can be neither resumed "
    "nor taken back."
)

# The purpose of a plan that takes a run back; its changes are a part of that run's, its contents on the hosts.
ROLLBACK = "rollback "

_DIGEST = re.compile(r"[0-9a-f]{64}")
_MARK = re.compile(r"[0-9a-f]{32}")
# It is the name of files on a host, and a word in lines there.
_NUMBERED = re.compile(r"([0-9]{2,3})-[A-Za-z0-9_]{1,64}")
_REMEDY = re.compile(r"[A-Za-z0-9_]{0,64}")
_HOST = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9-]+)*")
_LABEL = re.compile(r"[a-z0-9-]{0,64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def read_plan(path: Path, *, of_journal: bool = False) -> Plan:
    """Read a plan file.

    Args:
        path: the file; ``-`` is standard input.
        of_journal: whether it is the copy that a run left beside the journal, which names its digest; one that
            takes a run back has a part of that run's changes, and its contents are on the hosts.

    Raises:
        PlanFileError: it is missing, torn, edited by hand, of a version this remedy does not know, or holds
            what no plan may hold.
    """
    again = BACKUP if of_journal else f"Make a new one: remedy plan INVENTORY -o {_place(path)}"
    name, inventory = name_of(path), ""

    def refusal(words: str, step: str = again) -> PlanFileError:
        return PlanFileError(f"{name}{words}", next_step=step, inventory=inventory)

    try:
        document = json.loads(_text(path), object_pairs_hook=_once, parse_constant=_no_constant)
        body, digest = document["plan"], document["digest"]
        version = body["format_version"]
        inventory = inventory_named(body.get("inventory"))
    except OSError as error:
        raise refusal(f": {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise refusal(" is not a whole plan file") from error
    if version not in (FORMAT, LARGE_FORMAT):
        raise refusal(
            f" is of format {version!r:.40}; this remedy reads formats {FORMAT} and {LARGE_FORMAT}",
            "Use the remedy that made it, or make a new plan with this one.",
        )
    try:
        for key in {"contents", "addresses", "inventory_argument"} & set(body):
            raise refusal(f": {key}: only where it was made is that known")
        plan = _plan(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise refusal(f": {place[:MOST_SHOWN]}: {first['msg'][:MOST_SHOWN]}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise refusal(" is not a whole plan file") from error
    if plan.digest != digest and version == FORMAT:
        # What `show --json` prints of a large plan has each change by itself, and the digest of its file.
        plan = plan.model_copy(update={"format_version": LARGE_FORMAT})
    if plan.digest != digest:
        raise refusal(" was changed after it was made: its digest does not match")
    fault = next(faults(plan, of_journal=of_journal), None)
    if fault is not None:
        raise refusal(f" is no plan that remedy made: {fault}", "Find out who wrote it. " + again)
    return plan


def _place(path: Path) -> str:
    """Return where a plan goes that is made in place of one: elsewhere, where the file is of another kind."""
    with suppress(OSError):
        if path != STANDARD and not begins_with(path, b"{"):
            return "plan.json"
    return quoted(path)


def _plan(body: dict[str, Any]) -> Plan:
    """Return the plan that a document is.

    Raises:
        ValueError: it is none; a ``ValidationError`` where a field is not as it should be.
    """
    if body["format_version"] == FORMAT:
        return Plan.model_validate_json(json.dumps(body))
    order = body.get("order", [])
    plan = Plan.model_validate_json(json.dumps({k: v for k, v in body.items() if k != "order"}))
    items = (*body.get("changes", ()), *body.get("findings", ()))
    copies = sum(len(item.get("hosts", ())) for item in items)
    if copies > MOST_COPIES or not all(isinstance(host, str) for host in order):
        raise ValueError("too many hosts")
    of_changes = (change.host for change in plan.changes)
    of_findings = (finding.host for finding in plan.findings if finding.host is not None)
    every = [*order, *of_changes, *of_findings]
    hosts = list(dict.fromkeys(every))
    update = {kind: unfolded(getattr(plan, kind), hosts) for kind in ("changes", "findings")}
    return plan.model_copy(update=update)


def faults(plan: Plan, *, of_journal: bool = False) -> Iterator[str]:
    """Yield what makes a plan one that remedy cannot have made, in words.

    Args:
        plan: as it was read.
        of_journal: as for ``read_plan``.
    """
    of_journal = of_journal or plan.purpose.startswith(ROLLBACK)
    texts = (
        plan.purpose,
        plan.tool_version,
        plan.created,
        plan.author,
        plan.inventory,
        plan.sealed_by,
    )
    digests = (plan.inventory_digest, plan.spec_digest)
    if any(len(text) > MOST_TEXT or _CONTROL.search(text) for text in (*texts, *digests)):
        yield "who made it, when and for what is not text of one line"
    for pattern, values, fault in (
        (_REMEDY, (*plan.only, *plan.skip), "what it names in `only` or `skip` is no remedy"),
        (
            _DIGEST,
            (*plan.observed.values(), *plan.secrets.values()),
            "a digest is not 64 hexadecimal digits",
        ),
        (_MARK, plan.machines.values(), "what stands for a machine is not 32 hexadecimal digits"),
    ):
        if not all(map(pattern.fullmatch, values)):
            yield fault
    for digest, content in plan.blobs.items():
        if sha256(content) != digest:
            yield f"the content {digest:.12} has a different digest"
    yield from _faults_of_changes(plan, of_journal=of_journal)
    yield from _faults_of_findings(plan)
    if not of_journal and plan.format_version != format_for(len(plan.order)):
        yield f"it is of format {plan.format_version}, which no plan of so many hosts has"
    used = set(_used(shared.item for shared in plan.shared_changes))
    if not of_journal and (spare := plan.blobs.keys() - used):
        yield f"no change uses the content {min(spare):.12}"
    named = {*plan.observed, *plan.machines, *(place.partition(" ")[0] for place in plan.secrets)}
    if not of_journal and (strange := named.difference(plan.hosts)):
        yield f"it knows a state or a secret of {min(strange)!r}, which it does not change"


def _faults_of_changes(plan: Plan, *, of_journal: bool) -> Iterator[str]:
    sound: set[tuple[tuple[str, str], ...]] = set()
    for host in plan.hosts:
        if not _HOST.fullmatch(host):
            yield f"{host!r:.80} is no host name"
        # Of a large fleet most hosts have the same.
        numbering = tuple((change.id, change.remedy) for change in plan.for_host(host))
        if numbering not in sound:
            wrong = list(_numbering_faults(host, numbering, of_journal=of_journal))
            yield from wrong
            if not wrong:
                sound.add(numbering)
    for shared in plan.shared_changes:
        change = shared.item
        faults_of = _change_faults(change, plan, of_journal=of_journal)
        yield from (f"{change.host}: {change.id}: {fault}" for fault in faults_of)


def _faults_of_findings(plan: Plan) -> Iterator[str]:
    for shared in plan.shared_findings:
        for host in shared.hosts:
            if host is not None and not _HOST.fullmatch(host):
                yield f"a finding is about {host!r:.80}, which is no host name"
        yield from _finding_faults(shared.item)


def _text(path: Path) -> bytes:
    most = MOST_BYTES + 1
    text = read_standard(most) if path == STANDARD else read_regular(path, most)
    if len(text) > MOST_BYTES or sum(map(text.count, (b"{", b"[", b","))) > MOST_PARTS:
        raise ValueError("too large")
    return text


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of which each key is there once: readers differ in which of two they take."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key is there twice")
    return result


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _numbering_faults(
    host: str, changes: Sequence[tuple[str, str]], *, of_journal: bool
) -> Iterator[str]:
    """Yield what is wrong with the ids of a host's changes, which become names of files.

    Args:
        host: whose they are.
        changes: the id of each, and its remedy.
        of_journal: as for ``read_plan``.
    """
    if len(changes) > MOST_CHANGES:
        yield f"{host}: more than {MOST_CHANGES} changes"
    for place, (number, remedy) in enumerate(changes, 1):
        match = _NUMBERED.fullmatch(number.removeprefix(UNDO) if of_journal else number)
        if match is None or not _REMEDY.fullmatch(remedy):
            yield f"{host}: {number!r:.80} is no id of a change"
        elif not of_journal and int(match[1]) != place:
            yield f"{host}: {number} is change number {place} there"
    if len({number for number, _ in changes}) != len(changes):
        yield f"{host}: two changes have one id"


def _change_faults(change: Change, plan: Plan, *, of_journal: bool) -> Iterator[str]:
    texts = (change.title, change.reason, change.disrupts)
    if any(len(text) > MOST_TEXT for text in texts) or not change.title.strip():
        yield "its title, its reason or its note is missing or too long"
    if not _LABEL.fullmatch(change.label):
        yield "its cause is no label"
    action = change.action
    if isinstance(action, FileAction):
        yield from _file_faults(action, plan, of_journal=of_journal)
    else:
        parts = (action.observe, action.before, action.after, action.do, action.undo)
        if any(len(part) > MOST_COMMAND or "\0" in part for part in parts):
            yield "its command is too long, or holds a zero byte"
        if not action.observe.strip() or not action.do.strip():
            yield "a command is missing"
        if action.before == action.after:
            yield "its command changes nothing that could be observed"


def _file_faults(action: FileAction, plan: Plan, *, of_journal: bool) -> Iterator[str]:
    if not (is_normal(action.path) and is_normal(action.real_path)):
        yield "its path is not absolute, or not in its shortest form"
    ends = [digest for digest in (action.before, action.after) if digest is not None]
    if not ends or not all(map(_DIGEST.fullmatch, ends)):
        yield "what is in the file before or after is not a digest"
    if action.before == action.after:
        yield "the file is the same before and after"
    if not 0 <= action.mode <= 0o777:
        yield f"{action.mode:o} is no mode of a file"
    if action.splices is None:
        # The bytes of a file that is put back are on its host.
        if action.after is not None and action.after not in plan.blobs and not of_journal:
            yield "its new content is not in the plan"
    elif len(ends) != 2 or not action.splices:
        yield "it has parts of a file, and no file that they are of"
    else:
        yield from _splice_faults(action.splices, plan)


def _splice_faults(splices: Iterable[Splice], plan: Plan) -> Iterator[str]:
    """Yield what is wrong with splices."""
    end, line = 0, 1
    for splice in splices:
        old, new = splice.before, splice.after
        if any(digest is not None and digest not in plan.blobs for digest in (old, new)):
            yield "its bytes are not in the plan"
            continue
        size = len(plan.blobs[old]) if old is not None else 0
        if splice.length != size or (old is not None and size == 0):
            yield f"removes {counted(splice.length, 'byte')} at {splice.offset}, and the plan shows {size}"
        if old == new:
            yield "a part of the file is the same before and after"
        if not end <= splice.offset <= MOST_OFFSET or not line <= splice.line <= splice.offset + 1:
            yield "its parts overlap, or are not in order"
        end, line = splice.offset + splice.length, splice.line


def _finding_faults(finding: Finding) -> Iterator[str]:
    if not _REMEDY.fullmatch(finding.remedy) or not _LABEL.fullmatch(finding.label):
        yield "a finding is of no remedy, or its cause is no label"
    too_many = len(finding.evidence) > MOST_EVIDENCE
    texts = (finding.title, finding.fix, *finding.evidence)
    if too_many or any(len(text) > MOST_TEXT for text in texts):
        yield "a finding is too long"


def is_normal(path: str) -> bool:
    """Say whether a path is absolute, names no folder twice (``//``, ``.``, ``..``) and has no controls."""
    parts = path.split("/")
    return (
        len(path) < 4096
        and parts[0] == ""
        and len(parts) > 1
        and not {"", ".", ".."} & set(parts[1:])
        and not _CONTROL.search(path)
    )


def _used(changes: Iterable[Change]) -> Iterator[str]:
    """Yield the digest of each content that a change is made of."""
    for change in changes:
        action = change.action
        if isinstance(action, FileAction):
            yield from (digest for digest in (action.before, action.after) if digest)
            for splice in action.splices or ():
                yield from (digest for digest in (splice.before, splice.after) if digest)
