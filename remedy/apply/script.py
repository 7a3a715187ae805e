"""The one script that carries all changes of a host out, and reading what it says.

The shell text that does the work is ``host.sh``; here its calls are written, each argument quoted.
"""

from __future__ import annotations

import base64
import enum
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from remedy.errors import RemedyError
from remedy.plan.change import Change, CommandAction, FileAction, inverse, undo_id
from remedy.values import Record

ROOT = "/var/lib/remedy"
LOG = "/var/log/remedy.jsonl"

# What every sh takes as it is, in quotes: printable ASCII, tabs and line ends.
_PLAIN = re.compile(rb"[\t\n -~]*")
# A name becomes part of a JSON line on the host, so it is limited to what needs no escaping.
_UNPLAIN = re.compile(r"[^A-Za-z0-9 ._:/@+=-]")


class ChangeStatus(str, enum.Enum):
    """What became of a change."""

    DONE = "done"
    ALREADY = "already"
    STALE = "stale"
    FAILED = "failed"
    SKIPPED = "skipped"
    LOST = "lost"  # the host stopped answering; whether it was made is not known


class ChangeResult(Record):
    """What became of one change, with the host's own words where it was not made."""

    id: str
    status: ChangeStatus
    detail: str = ""


@dataclass(frozen=True)
class Job:
    """What a script is rendered for.

    Args:
        run: the run's id, which names the folder of receipts on the host.
        nonce: marks the script's own lines among whatever else a host prints.
        by: who does it, user@machine.
        head: what the host shall keep of the controller's journal, "" for nothing.
    """

    run: str
    nonce: str
    by: str
    head: str = ""


@dataclass(frozen=True)
class Guard:
    """How a change that can cut the connection is guarded.

    Args:
        seconds: after which the host takes it back unless a new connection confirmed it; more than
            two attempts to connect need.
        needs_systemd: whether a host without systemd, where a reboot is not covered, is refused.
    """

    seconds: int = 60
    needs_systemd: bool = False


DEFAULT_GUARD = Guard()


@dataclass(frozen=True)
class HostReport:
    """What a script said.

    Args:
        refused: why nothing at all was done; "" when the script began.
        results: by change id.
        finished: whether the script came to its end.
        armed: whether a timer on the host waits to be told that the host can still be reached.
        reverted: why the guarded changes are taken back by the host itself; "" when they are not.
        error: why the script said less than it should; None when it said all.
    """

    refused: str
    results: Mapping[str, ChangeResult]
    finished: bool
    armed: bool = False
    reverted: str = ""
    error: RemedyError | None = None

    def record(self) -> dict[str, object]:
        """Return the report as the journal holds it."""
        return {
            "refused": self.refused,
            "reverted": self.reverted,
            "results": [
                r.model_dump(mode="json", exclude_defaults=True) for r in self.results.values()
            ],
        }

    def without_answer(self, error: RemedyError, *, began: bool) -> HostReport:
        """Return the report with ``error`` as the reason of each change whose outcome is not known.

        Where the script did not even begin, they are known: nothing was done.
        """
        status = ChangeStatus.LOST if began else ChangeStatus.SKIPPED
        results = {
            key: result.model_copy(update={"status": status, "detail": error.message})
            if result.status is ChangeStatus.LOST
            else result
            for key, result in self.results.items()
        }
        return replace(self, results=results, error=error)


@dataclass(frozen=True)
class Unlocked:
    """What became of the lock of a host.

    Args:
        state: free, other, alive, removed, fenced, pending, reverted, refused or unknown.
        who: who holds it, or why it is not known.
    """

    state: str
    who: str = ""


def render_changes(
    job: Job, changes: Sequence[Change], blobs: Mapping[str, bytes], guard: Guard = DEFAULT_GUARD
) -> str:
    """Return the sh text that makes ``changes`` on their host, in order.

    The new contents, the changes in JSON and a script that takes everything back (``undo``) are on the host
    before the first change is made, so that its own root can undo the run without the controller.
    """
    prepare = [_store(f"new/{digest}", blobs[digest]) for digest in _new_contents(changes)]
    prepare += [
        _store("changes.json", _record(changes)),
        _store("undo", _by_hand(job, changes)),
    ]
    return _program(job, ["begin", *prepare, *_steps(job, changes, guard), "finish"])


def render_undo(job: Job, back: Sequence[Change], of: str, guard: Guard = DEFAULT_GUARD) -> str:
    """Return the sh text that takes a run's changes back, from the pre-images that it left on the host.

    It does nothing to an object that is no longer what the run left there, nor to one that the run did not
    change. It leaves pre-images and an ``undo`` of its own.

    Args:
        job: what is done now.
        back: the changes that take back (``inverse``), in order.
        of: the run that is taken back.
        guard: how changes that can cut the connection are guarded.
    """
    kept = [
        *_restores(back, of),
        _store("changes.json", _record(back)),
        _store("undo", _by_hand(job, back)),
    ]
    return _program(job, [_since(of), "begin", *kept, *_steps(job, back, guard, of), "finish"])


def render_look(job: Job, back: Sequence[Change], of: str) -> str:
    """Return the sh text that only looks which of a run's changes can be taken back; it writes nothing."""
    checks = [_gated(change, of) for change in back]
    return _program(job, ["DRY=1", _since(of), "begin", *checks, "finish"])


def render_unlock(job: Job, wanted: str, *, force: bool) -> str:
    """Return the sh text that opens the lock of run ``wanted``; of one that is at work only with ``force``."""
    calls = [shlex.join(["unlock", wanted, "force" if force else ""])]
    return _program(job, calls, _text("unlock.sh"))


def _by_hand(job: Job, changes: Sequence[Change]) -> bytes:
    """Return the script that takes ``changes`` back without a controller.

    It speaks to a person at a terminal of the host, who needs no guard against being locked out.
    """
    back = [c.model_copy(update={"guarded": False}) for c in inverse(changes)]
    own = replace(job, nonce="remedy:", head="")
    steps = [*_restores(back, job.run), *_steps(own, back, DEFAULT_GUARD, job.run)]
    return _program(own, ["PLAIN=1", _since(job.run), "begin", *steps, "finish"]).encode()


def _record(changes: Sequence[Change]) -> bytes:
    return json.dumps([change.model_dump(mode="json") for change in changes], indent=1).encode()


def _since(run: str) -> str:
    return f"SINCE={shlex.quote(f'since run {run}')}"


def render_confirm(job: Job) -> str:
    """Return the sh text that confirms, over a new connection, that the host can still be reached."""
    return _program(job, ["confirm"])


def _render_guard(job: Job, changes: Sequence[Change]) -> str:
    """Return what the timer runs when nobody confirmed: the guarded changes are taken back."""
    back = inverse([change for change in changes if change.guarded])
    calls = [*(_call("check", c) for c in back), *(_call("make", c) for c in back)]
    return _program(job, ["guard_begin", *_restores(back, job.run), *calls, "guard_end"])


def _steps(job: Job, changes: Sequence[Change], guard: Guard, of: str = "") -> list[str]:
    """Return the calls that make ``changes``; the guard is armed before the first of them is made.

    Args:
        job: what is done.
        changes: in order.
        guard: how.
        of: the run that they take back, "" for none.
    """
    guarded = [change.id for change in changes if change.guarded]
    armed = []
    if guarded:
        strict = "strict" if guard.needs_systemd else ""
        armed = [
            _store("guard", _render_guard(job, changes).encode()),
            shlex.join(["arm", str(guard.seconds), strict, *guarded]),
        ]
    return [
        *(_gated(change, of) if of else _call("check", change) for change in changes),
        *([] if of else _splices(changes)),
        "settle",
        *armed,
        *(_call("make", change) for change in changes),
    ]


def _gated(change: Change, of: str) -> str:
    """Return the check of a change that takes one of a run back, if that run had begun to make it."""
    return f"{shlex.join(['took', of, undo_id(change.id), change.id])} && {_call('check', change)}"


def _restores(back: Sequence[Change], of: str) -> list[str]:
    """Return the calls that make the pre-images of a run ready to be put back."""
    return [
        shlex.join(["restore", of, undo_id(change.id), change.action.after])
        for change in back
        if isinstance(change.action, FileAction) and change.action.after is not None
    ]


def _program(job: Job, lines: Sequence[str], more: str = "") -> str:
    """Return a whole program: the library, and the lines as a function that runs when all has arrived."""
    by = _UNPLAIN.sub("", job.by)
    values = {"RUN": job.run, "NONCE": job.nonce, "ROOT": ROOT, "LOG": LOG, "BY": by}
    if job.head:
        values["HEAD"] = job.head
    head = [f"{name}={shlex.quote(value)}" for name, value in values.items()]
    return "\n".join([*head, _text("host.sh"), more, "main() {", *lines, "}", "main", ""])


def parse_report(job: Job, changes: Sequence[Change], stdout: str) -> HostReport:
    """Read what a script said; a change that it said nothing of is ``LOST``.

    Only lines that begin with the nonce count, so that nothing a host prints can pass for an outcome.
    """
    told: dict[str, ChangeResult] = {}
    refused, finished, armed = "", False, False
    for line in stdout.splitlines():
        nonce, *words = line.split(" ")
        if nonce != job.nonce or len(words) < 2:
            continue
        detail = _decode(words[2]) if len(words) > 2 else ""
        if words[:2] == ["-", "finished"]:
            finished = True
        elif words[:2] == ["-", "armed"]:
            armed = True
        elif words[:2] == ["-", "refused"]:
            refused = detail
        elif words[1] in ChangeStatus._value2member_map_:
            told[words[0]] = ChangeResult(id=words[0], status=ChangeStatus(words[1]), detail=detail)
    missing = ChangeStatus.SKIPPED if refused or finished else ChangeStatus.LOST
    results = {c.id: told.get(c.id, ChangeResult(id=c.id, status=missing)) for c in changes}
    return HostReport(refused, results, finished, armed)


def parse_unlocked(job: Job, stdout: str) -> Unlocked:
    """Read what became of a lock; "unknown" where the host did not say."""
    for line in stdout.splitlines():
        nonce, *words = line.split(" ")
        if nonce == job.nonce and len(words) > 1 and words[1] != "begun":
            return Unlocked(words[1], _decode(words[2]) if len(words) > 2 else "")
    return Unlocked("unknown", "the host did not say")


def parse_confirmation(job: Job, stdout: str) -> bool:
    """Whether the host says that it was told in time."""
    return f"{job.nonce} - confirmed" in stdout.splitlines()


@cache
def _text(name: str) -> str:
    return (files("remedy.apply") / name).read_text(encoding="utf-8")


def _store(name: str, content: bytes) -> str:
    """Return the call that keeps a content on the host: as text where any shell takes it as it is."""
    if _PLAIN.fullmatch(content):
        return shlex.join(["store", name, content.decode("ascii")])
    return shlex.join(["store64", name, base64.b64encode(content).decode()])


def _new_contents(changes: Sequence[Change]) -> tuple[str, ...]:
    """Return the digests of what files shall get, whole contents and splices, each once."""
    actions = [c.action for c in changes if isinstance(c.action, FileAction)]
    digests = [
        digest
        for action in actions
        for digest in (
            (action.after,)
            if action.splices is None
            else tuple(splice.after for splice in action.splices)
        )
    ]
    return tuple(dict.fromkeys(digest for digest in digests if digest is not None))


def _splices(changes: Sequence[Change]) -> list[str]:
    """Return the calls that make new contents from what is there, for the changes that hold splices."""
    calls = []
    for change in changes:
        action = change.action
        if isinstance(action, FileAction) and action.splices is not None and action.after:
            words = ["splice", change.id, action.after]
            for one in action.splices:
                words += [str(one.offset), str(one.length), one.after or "-"]
            calls.append(shlex.join(words))
    return calls


def _call(step: str, change: Change) -> str:
    """Return the call of ``check`` or ``make`` for a change; both take the same arguments."""
    action = change.action
    if isinstance(action, CommandAction):
        arguments = [action.observe, action.before, action.after, action.do]
    else:
        arguments = [
            action.path,
            action.real_path,
            action.before or "absent",
            action.after or "absent",
            f"{action.mode:o}",
        ]
    return shlex.join([step, action.kind, change.id, *arguments])


def _decode(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "replace").strip()
    except ValueError:
        return ""
