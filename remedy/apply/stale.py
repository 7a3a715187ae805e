"""What changed since: the lines of a stale file that are other ones than the plan, or the run, knew.

Asked of a host after it has refused, and shown, not kept: the lines are of others.
"""

from __future__ import annotations

import base64
import difflib
import shlex
from collections.abc import Iterator, Mapping, Sequence

from remedy.apply.job import Job
from remedy.plan.change import Change, FileAction
from remedy.plan.plan import Plan
from remedy.plan.seal import LINES
from remedy.secret import MARK_DIGITS, Seal, looks_secret

# What a person still reads; of the rest it is told how much there is.
SHOWN = 20
WIDTH = 160
# Longer files are told by their digests alone.
BYTES = 64 << 10
WITHHELD = "(not shown: it looks like a secret)"


def question(job: Job, changes: Sequence[Change], root: str, of: str) -> str:
    """Return the sh text that prints stale files as they are now, and as run ``of`` left them if it kept that.

    A file that not everybody on its host can read is left out.

    Args:
        job: whose nonce marks the answer.
        changes: the stale ones.
        root: where runs are kept on the host.
        of: the run that is taken back, "" for none.
    """
    lines = [f"nonce={shlex.quote(job.nonce)} most={BYTES}", *_PRINT.splitlines()]
    for change in changes:
        if isinstance(change.action, FileAction):
            kept = f"{root}/runs/{of}/new/{change.action.before}" if of else ""
            lines.append(shlex.join(["tell", change.id, change.action.real_path, kept]))
    return "\n".join([*lines, ""])


_PRINT = """\
tell() { # id path kept
    case $(stat -L -c %a -- "$2" 2>/dev/null) in *[4567]) ;; *) return 0 ;; esac
    [ "$(stat -L -c %s -- "$2")" -le "$most" ] || return 0
    printf '%s %s now %s\\n' "$nonce" "$1" "$(base64 <"$2" | tr -d '\\n')"
    [ -z "$3" ] || [ ! -e "$3" ] || printf '%s %s was %s\\n' "$nonce" "$1" "$(base64 <"$3" | tr -d '\\n')"
}
"""


def answers(job: Job, stdout: str) -> dict[str, dict[str, bytes]]:
    """Return, for each change that the host told of, the file as it is "now" and as it "was"."""
    told: dict[str, dict[str, bytes]] = {}
    for line in stdout.splitlines():
        words = line.split(" ")
        if len(words) == 4 and words[0] == job.nonce:
            try:
                told.setdefault(words[1], {})[words[2]] = base64.b64decode(words[3], validate=True)
            except ValueError:
                continue
    return told


def differences(
    change: Change, plan: Plan, told: Mapping[str, bytes], seal: Seal | None
) -> tuple[str, ...]:
    """Return what changed in a stale file, as lines to be shown; none where that cannot be known.

    Args:
        change: the stale one.
        plan: its plan.
        told: what ``answers`` has of it.
        seal: the key of the plan's line marks, None where there is none.
    """
    action = change.action
    if not isinstance(action, FileAction) or "now" not in told:
        return ()
    now = told["now"]
    texts = now.splitlines()
    before = b"" if action.before is None else told.get("was", plan.contents.get(action.before))
    if before is not None:
        old = before.splitlines()
        return _cut(_changed(old, texts, dict(enumerate(old)), texts))
    if not action.lines or seal is None or seal.id != plan.sealed_by or len(texts) > 2 * LINES:
        return ()
    marks = _each(action.lines), _each(seal.lines(now))
    return _cut(_changed(*marks, _known(action, plan), texts))


def _each(marks: str) -> list[str]:
    return [marks[at : at + MARK_DIGITS] for at in range(0, len(marks), MARK_DIGITS)]


def _known(action: FileAction, plan: Plan) -> dict[int, bytes]:
    """Return the lines of the former file that the plan has, by their index: those that it would take out."""
    found: dict[int, bytes] = {}
    for splice in action.splices or ():
        text = plan.blobs.get(splice.before or "", b"")
        if text.endswith(b"\n"):
            found |= dict(enumerate(text.splitlines(), splice.line - 1))
    return found


def _changed(
    old: Sequence[bytes] | Sequence[str],
    new: Sequence[bytes] | Sequence[str],
    known: Mapping[int, bytes],
    texts: Sequence[bytes],
) -> Iterator[str]:
    """Yield a unified difference without context.

    Args:
        old: the lines as they were, or what stands for them.
        new: the lines as they are, in the same terms.
        known: the text of lines as they were, by index.
        texts: the text of the lines as they are.
    """
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            continue
        yield f"@@ line {(a if b > a else c) + 1} @@"
        lacking = [at for at in range(a, b) if at not in known]
        yield from (f"-{visible(known[at])}" for at in range(a, b) if at in known)
        if lacking:
            yield f"-({len(lacking)} lines that the plan does not hold)"
        yield from (f"+{visible(line)}" for line in texts[c:d])


def _cut(lines: Iterator[str]) -> tuple[str, ...]:
    """Return the first lines, and how many more there are."""
    every = tuple(lines)
    more = (f"and {len(every) - SHOWN} more lines",) if len(every) > SHOWN else ()
    return every[:SHOWN] + more


def visible(line: bytes) -> str:
    """Return a line of a host for a terminal: nothing in it acts there, and no secret is shown.

    >>> visible(b"\\x1b[2Jgone")
    '\\\\x1b[2Jgone'
    """
    text = line.decode("utf-8", "backslashreplace")
    if looks_secret(text):
        return WITHHELD
    text = "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in text)
    return f"{text[:WIDTH]} ..." if len(text) > WIDTH else text
