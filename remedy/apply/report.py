"""What hosts report of their changes.

Only lines that begin with the job's nonce count, so that nothing else that a host prints passes for an outcome.
"""

from __future__ import annotations

import base64
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from remedy.answers import read_answer
from remedy.apply.job import Job
from remedy.errors import RemedyError
from remedy.plan.change import Change
from remedy.values import Record

# Of a host's words about one change, which are shown and kept: some screens of what a failing command printed.
LONGEST_DETAIL = 4000
# Answers to an attempt to open a lock after which the run that it was of holds none.
RELEASED = frozenset(("free", "removed", "fenced", "reverted"))


class ChangeStatus(str, enum.Enum):
    """How a change ended."""

    DONE = "done"
    ALREADY = "already"
    STALE = "stale"
    FAILED = "failed"
    SKIPPED = "skipped"
    READY = "ready"  # of a rehearsal: it could be made
    LOST = "lost"  # the host stopped answering; whether it was made is not known


class ChangeResult(Record):
    """How one change ended.

    Args:
        id: of the change.
        status: how it ended.
        detail: the host's own words, where it was not made.
    """

    id: str
    status: ChangeStatus
    detail: str = ""


@dataclass(frozen=True)
class HostReport:
    """What a script reported.

    Args:
        refused: why nothing at all was done; "" when the script began.
        results: by change id.
        finished: whether the script came to its end.
        armed: whether a timer on the host waits for the confirmation that the host can still be reached.
        reverted: why the guarded changes are taken back by the host itself; "" when they are not.
        error: why the script reported less than it should; None when it reported all.
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

    @property
    def changed(self) -> bool:
        """Whether any change was made."""
        return any(result.status is ChangeStatus.DONE for result in self.results.values())

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
    """What an attempt to open the lock of a host showed.

    Args:
        state: free, other, alive, removed, fenced, pending, reverted, refused or unknown.
        holder: who holds it.
        error: why the host could not be asked; None where it answered.
    """

    state: str
    holder: str = ""
    error: RemedyError | None = None


@dataclass(frozen=True)
class Settled:
    """What became of changes that waited for their confirmation.

    Args:
        state: confirmed, reverted, gone (nothing waits any more), refused or unknown.
        detail: why it was refused or is not known.
    """

    state: str
    detail: str = ""


def parse_report(job: Job, changes: Sequence[Change], stdout: str) -> HostReport:
    """Read the report of a script; a change that is not in it is ``LOST``.

    Only lines that begin with the nonce count, so that nothing a host prints can pass for an outcome.
    """
    results: dict[str, ChangeResult] = {}
    refused, finished, armed = "", False, False
    for subject, status, *rest in _reported(job, stdout):
        detail = _decode(rest[0]) if rest else ""
        if subject == "-":
            finished |= status == "finished"
            armed |= status == "armed"
            refused = detail if status == "refused" else refused
        elif status in ChangeStatus._value2member_map_:
            results[subject] = ChangeResult(id=subject, status=ChangeStatus(status), detail=detail)
    missing = ChangeStatus.SKIPPED if refused or finished else ChangeStatus.LOST
    every = {c.id: results.get(c.id, ChangeResult(id=c.id, status=missing)) for c in changes}
    return HostReport(refused, every, finished, armed)


def parse_unlocked(job: Job, stdout: str) -> Unlocked:
    """Read the answer about a lock; "unknown" where there is none."""
    for _, state, *rest in _reported(job, stdout):
        if state != "begun":
            return Unlocked(state, _decode(rest[0]) if rest else "")
    return Unlocked("unknown", "no answer from the host")


def parse_settled(job: Job, stdout: str) -> Settled:
    """Read the answer of a script that confirms or takes back; "unknown" where there is none."""
    for _, state, *rest in _reported(job, stdout):
        if state != "begun":
            return Settled(state, _decode(rest[0]) if rest else "")
    return Settled("unknown", "no answer from the host")


def parse_confirmation(job: Job, stdout: str) -> bool:
    """Read from a confirmation's output whether it reached the host in time."""
    return ("-", "confirmed") in _reported(job, stdout)


def parse_refusal(job: Job, stdout: str) -> str:
    """Read why a host did not take a confirmation; "" where it says nothing of it."""
    refusals = (words for words in _reported(job, stdout) if words[:2] == ("-", "refused"))
    return next((_decode(words[2]) for words in refusals if len(words) > 2), "")


def _reported(job: Job, stdout: str) -> list[tuple[str, ...]]:
    """Return the words of each line: the change or "-", its status, and for some a text in base64."""
    return [words for words in read_answer(stdout, job.nonce).words if len(words) > 1]


def _decode(text: str) -> str:
    """Return a host's words, up to their bound; a multiple of four letters of base64 stands for whole bytes."""
    try:
        words = base64.b64decode(text[: LONGEST_DETAIL * 4], validate=True).decode(
            "utf-8", "replace"
        )
    except ValueError:
        return ""
    words = words.strip()
    return words if len(words) <= LONGEST_DETAIL else f"{words[:LONGEST_DETAIL]} ..."
