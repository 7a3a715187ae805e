"""The one script that carries all changes of a host out.

The shell text that does the work is in the folder ``host``; here its calls are written, each argument quoted.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import PurePosixPath
from types import MappingProxyType

from remedy.apply.job import DEFAULT_GUARD, NOT_KEPT, Guard, Job
from remedy.plan import sshd_reads
from remedy.plan.change import Change, CommandAction, FileAction, inverse, undo_id

ROOT = "/var/lib/remedy"
LOG = "/var/log/remedy.jsonl"
# See host/guard.sh: the folders that it is in are looked at with those of files.
GUARD_LINK = "/etc/systemd/system/multi-user.target.wants/remedy-guard.service"
# The library that every script begins with, in this order: the first part sets what the others use.
PARTS = (
    "base",
    "owner",
    "acting",
    "lock",
    "keep",
    "files",
    "put",
    "commands",
    "steps",
    "guard",
    "run",
)
# What a confirmation needs of it.
CONFIRM_PARTS = ("base", "owner", "lock", "guard")
# What runs as a user, in that user's folders: the other parts have it as a text.
THEIRS = "theirs"
# What is sent where no new content is known as a whole.
NOTHING_WHOLE: Mapping[str, bytes] = MappingProxyType({})
# In the folder of a run: the library, for the scripts that stay there.
LIBRARY = "library"

# What every sh takes as it is, in quotes: printable ASCII, tabs and line ends.
_PLAIN = re.compile(rb"[\t\n -~]*")
_COMMENT = re.compile(r"^ *#.*\n", re.MULTILINE)
# A name becomes part of a JSON line on the host, so it is limited to what needs no escaping.
_UNPLAIN = re.compile(r"[^A-Za-z0-9 ._:/@+=-]")


def render_changes(
    job: Job,
    changes: Sequence[Change],
    blobs: Mapping[str, bytes],
    guard: Guard = DEFAULT_GUARD,
    whole: Mapping[str, bytes] = NOTHING_WHOLE,
) -> str:
    """Return the sh text that makes ``changes`` on their host, in order.

    The new contents, the changes in JSON and a script that takes everything back (``undo``) are on the host
    before the first change is made, so that its own root can undo the run without the controller.

    Args:
        job: what is done.
        changes: of one host, in order.
        blobs: the bytes that they put into files.
        guard: how changes that can cut the connection are guarded.
        whole: new contents that their splices make (``plan.splice.whole``), by digest; the host puts the others
            together itself, which takes it half a dozen programs each.
    """
    made = [_with_whole(change, whole) for change in changes]
    contents = [
        _store(f"new/{digest}", whole[digest] if digest in whole else blobs[digest])
        for digest in _new_contents(made)
    ]
    records = _records(job, changes)
    return _keeping(job, [_begin(made), *contents, *records, *_steps(job, made, guard), "finish"])


def _with_whole(change: Change, whole: Mapping[str, bytes]) -> Change:
    """Return a change without splices where what they make is sent as a whole."""
    action = change.action
    if not isinstance(action, FileAction) or action.splices is None or action.after not in whole:
        return change
    return change.model_copy(update={"action": action.model_copy(update={"splices": None})})


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
    records = [*_restores(back, of), *_records(job, back)]
    return _keeping(
        job, [_since(of), _begin(back), *records, *_steps(job, back, guard, of), "finish"]
    )


def render_look(job: Job, back: Sequence[Change], of: str) -> str:
    """Return the sh text that only looks which of a run's changes can be taken back; it writes nothing."""
    checks = [_gated(change, of) for change in back]
    return _program(job, ["DRY=1", _since(of), _begin(back), *checks, "finish"])


def render_rehearsal(job: Job, changes: Sequence[Change], guard: Guard = DEFAULT_GUARD) -> str:
    """Return the sh text that looks whether ``changes`` could be made; it writes nothing."""
    guarded = "guarded" if any(change.guarded for change in changes) else ""
    calls = [
        shlex.join(["rehearse", guarded, "strict" if guard.needs_systemd else ""]),
        *(_call("check", change) for change in changes),
        *(_call("would", change) for change in changes),
    ]
    return _program(job, ["DRY=1", _begin(changes), *calls, "finish"], _text("rehearse"))


def render_unlock(job: Job, run: str, *, force: bool) -> str:
    """Return the sh text that opens the lock of a run; of a run that is at work only with ``force``."""
    calls = [shlex.join(["unlock", run, "force" if force else ""])]
    return _program(job, calls, _text("unlock"))


def render_take_back(job: Job) -> str:
    """Return the sh text that has the host take back now what the timer of a run would take back."""
    return _program(job, ["take_back"], _text("back"))


def _records(job: Job, changes: Sequence[Change]) -> list[str]:
    """Return the calls that keep on the host what ``changes`` are, and what takes them back there."""
    return [
        _STORE_LIBRARY,
        _store("changes.json", _record(changes)),
        _store("undo", _by_hand(job, changes)),
    ]


def _by_hand(job: Job, changes: Sequence[Change]) -> bytes:
    """Return the script that takes ``changes`` back without a controller.

    It speaks to a person at a terminal of the host, who needs no guard against being locked out.
    """
    back = [c.model_copy(update={"guarded": False}) for c in inverse(changes)]
    local = replace(job, nonce="remedy:", head="", keep_days=None, once=NOT_KEPT)
    steps = [*_restores(back, job.run), *_steps(local, back, DEFAULT_GUARD, job.run)]
    return _kept(local, ["PLAIN=1", _since(job.run), _begin(back), *steps, "finish"])


def _record(changes: Sequence[Change]) -> bytes:
    documents = [change.model_dump(mode="json") for change in changes]
    return json.dumps(documents, indent=1).encode()


def _begin(changes: Sequence[Change]) -> str:
    """Return the calls that begin a run.

    They name the folders on the way to files, and the files that are there: all are looked at together.
    """
    actions = [c.action for c in changes if isinstance(c.action, FileAction)]
    paths = [f"{ROOT}/runs", LOG, *(p for a in actions for p in (a.path, a.real_path))]
    paths += [GUARD_LINK] if any(change.guarded for change in changes) else []
    paths += [
        path for c in changes if isinstance(c.action, CommandAction) for path in _seen(c.action)
    ]
    folders = {
        str(folder) for path in paths for folder in PurePosixPath(path).parents if "\n" not in path
    }
    begin = shlex.join(["begin", *sorted(folders)])
    there = dict.fromkeys(action.real_path for action in actions if action.before is not None)
    return f"{begin}\n{shlex.join(['measure', *there])}" if there else begin


def _seen(action: CommandAction) -> list[str]:
    """Return the paths that a command looks at by its own function ``seen``, in its last line."""
    words = action.observe.rpartition("\n")[2].split()
    return [word for word in words[1:] if word.startswith("/")] if words[:1] == ["seen"] else []


def _since(run: str) -> str:
    return f"SINCE={shlex.quote(f'since run {run}')}"


def render_confirm(job: Job, then: str = "") -> str:
    """Return the sh text that confirms, over a new connection, that the host can still be reached.

    Args:
        job: what is confirmed.
        then: a whole script that runs afterwards, with nothing of this one around it; "" for none.
    """
    text = _text_of(job, [_library(CONFIRM_PARTS)], ["confirm"])
    return f"(\n{text}) </dev/null\n{then}" if then else text


def _render_guard(job: Job, changes: Sequence[Change]) -> bytes:
    """Return what the timer runs when nobody confirmed: the guarded changes are taken back."""
    back = inverse([change for change in changes if change.guarded])
    # What cannot be taken back keeps nothing else from it: the host is to be reached again.
    made = (line for c in back for line in ("ENDED=", _call("make", c)))
    calls = [*(_call("check", c) for c in back), "sound", *made, *_reread(back)]
    return _kept(job, ["guard_begin", *_restores(back, job.run), *calls, "guard_end"])


def _reread(changes: Sequence[Change]) -> list[str]:
    """Return the call that has sshd read its files again, where changes are of what it read at its start."""
    ids = [change.id for change in changes if sshd_reads(change.action)]
    return [shlex.join(["reread", *ids])] if ids else []


def _steps(job: Job, changes: Sequence[Change], guard: Guard, of: str = "") -> list[str]:
    """Return the calls that make ``changes``; the guard is armed before the first of them is made.

    Args:
        job: what is done.
        changes: in order.
        guard: how.
        of: the run that they take back, "" for none.
    """
    guarded = [change for change in changes if change.guarded]
    watched, armed = [], []
    if guarded:
        strict = "strict" if guard.needs_systemd else ""
        titles = "".join(f"{' '.join(change.title.split())}\n" for change in guarded)
        ids = [change.id for change in guarded]
        watched = [
            _store("guard", _render_guard(job, changes)),
            _store("guarded", titles.encode()),
            shlex.join(["watch", *ids]),
        ]
        armed = [shlex.join(["arm", str(guard.seconds), strict, *ids])]
    return [
        *(_gated(change, of) if of else _call("check", change) for change in changes),
        *([] if of else _splices(changes)),
        *watched,
        "settle",
        *armed,
        *(_call("make", change) for change in changes),
        *_reread(changes),
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


# The library is in what is sent once, as text: what stays on the host reads it from there.
_STORE_LIBRARY = f'store {LIBRARY} "$LIBRARY"'


def _keeping(job: Job, lines: Sequence[str]) -> str:
    """Return a program that also has the library as a text, for ``_STORE_LIBRARY``."""
    return _text_of(job, [_library_as_text()], lines)


@cache
def _library_as_text() -> str:
    return f'LIBRARY={shlex.quote(_library())}\neval "$LIBRARY"'


def _kept(job: Job, lines: Sequence[str]) -> bytes:
    """Return a program that stays in the folder of its run, beside the library."""
    library = shlex.quote(f"{ROOT}/runs/{job.run}/{LIBRARY}")
    return _text_of(job, [f". {library}"], lines).encode()


def _program(job: Job, lines: Sequence[str], more: str = "") -> str:
    """Return a program that leaves nothing on the host."""
    return _text_of(job, [_library(), more], lines)


def _text_of(job: Job, library: Sequence[str], lines: Sequence[str]) -> str:
    """Return a whole program: the library, and the lines as a function that runs when all has arrived."""
    by = _UNPLAIN.sub("", job.by)
    values = {"RUN": job.run, "NONCE": job.nonce, "ROOT": ROOT, "LOG": LOG, "BY": by}
    if job.head:
        values["HEAD"] = job.head
    if job.keep_days is not None:
        day = datetime.strptime(job.run[:8], "%Y%m%d") - timedelta(days=job.keep_days)
        values |= {"KEEP_DAYS": str(job.keep_days), "KEEP_SINCE": f"{day:%Y%m%d}"}
    if job.once.digest:
        values |= {"PLAN": job.once.digest, "EARLIER": " ".join(job.once.earlier)}
    head = [f"{name}={shlex.quote(value)}" for name, value in values.items()]
    return "\n".join([*head, *library, "main() {", *lines, "}", "main", ""])


@cache
def _library(parts: tuple[str, ...] = PARTS) -> str:
    theirs = [f"THEIRS={shlex.quote(_text(THEIRS))}"] if "acting" in parts else []
    return "\n".join([*theirs, *map(_text, parts)])


@cache
def _text(name: str) -> str:
    """Return a part without its comments, which would be sent to each host and parsed there in every run."""
    text = (files("remedy.apply") / "host" / f"{name}.sh").read_text(encoding="utf-8")
    return _COMMENT.sub("", text)


# All hosts of a fleet may get one content, and each of them its own script.
@lru_cache(maxsize=16)
def _store(name: str, content: bytes) -> str:
    """Return the call that keeps a content on the host: as text where any shell takes it as it is."""
    if _PLAIN.fullmatch(content):
        return shlex.join(["store", name, content.decode("ascii")])
    return shlex.join(["store64", name, base64.b64encode(content).decode()])


def _new_contents(changes: Sequence[Change]) -> tuple[str, ...]:
    """Return the digests of the bytes that come into files, whole contents and splices, each once."""
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
            for splice in action.splices:
                words += [str(splice.offset), str(splice.length), splice.after or "-"]
                words += [splice.before or "-", str(splice.line)]
            calls.append(shlex.join(words))
    return calls


def _call(step: str, change: Change) -> str:
    """Return the call of ``check``, ``make`` or ``would`` for a change; they take the same arguments."""
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
