"""Findings and changes: what is wrong with a host, and the exact steps that make it right.

A change is materialised: it holds the digest of what is there now and the digest (with the bytes beside
it, in the plan) of what is to be there, or the exact commands. What is applied is that and nothing else.
Every action has an inverse of the same kind, so undoing is applying.
"""

from __future__ import annotations

import enum
import hashlib
import shlex
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from remedy.values import Document


class FindingKind(str, enum.Enum):
    """What becomes of a finding."""

    DRIFT = "drift"  # wrong, and the plan changes it
    BLOCKED = "blocked"  # wrong, and remedy cannot or will not change it; says why
    UNKNOWN = "unknown"  # could not be found out, so it cannot be called right
    REPORT = "report"  # worth knowing; nobody asked remedy to change it


class Finding(Document):
    """Something wrong, unknown or worth knowing, with its evidence.

    Args:
        host: the host, or None for the fleet as a whole.
        remedy: the remedy that found it.
        kind: what becomes of it.
        label: the cause, one of the labels of ``remedy explain``.
        title: one sentence.
        evidence: what was seen, literally, one line each.
        fix: what to do about it, where remedy does not.
    """

    host: str | None
    remedy: str
    kind: FindingKind
    label: str
    title: str
    evidence: tuple[str, ...] = ()
    fix: str = ""

    @property
    def sentence(self) -> str:
        """The title with the first line of evidence, and how many more there are."""
        if not self.evidence:
            return self.title
        more = f"; and {len(self.evidence) - 1} more" if self.evidence[1:] else ""
        return f"{self.title} ({self.evidence[0]}{more})"


class Risk(str, enum.Enum):
    """How much a change can hurt."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"  # can cut the connection or stop a service


class Splice(Document):
    """One place in a file: the bytes there, and what comes in their place.

    Args:
        offset: of the first byte, in the file as it was.
        line: its line, from 1.
        length: bytes that go.
        before: SHA-256 (hex) of the bytes that go; None: none do.
        after: SHA-256 (hex) of the bytes that come; None: none do. The plan has the bytes of both.
    """

    offset: int
    line: int
    length: int
    before: str | None
    after: str | None


class FileAction(Document):
    """Make a file hold other bytes, keeping its owner, mode, label and links.

    Args:
        path: the file's name.
        real_path: where it really is; followed links must still lead there when the change is made.
        before: SHA-256 (hex) of the bytes that must be there now; None: there must be no file.
        after: SHA-256 (hex) of the bytes that are to be there; None: the file is removed.
        mode: permission bits for a file that is made new.
        splices: what turns the former bytes into the new ones, in order; None where the plan holds the new
            bytes as a whole, as it does for a file that is made new.
    """

    kind: Literal["file"] = "file"
    path: str
    real_path: str
    before: str | None
    after: str | None
    mode: int = 0o644
    splices: tuple[Splice, ...] | None = None

    def inverse(self) -> FileAction:
        """Return the action that puts the former bytes back, which the host has."""
        return self.model_copy(
            update={
                "before": self.after,
                "after": self.before,
                "splices": _turned(self.splices),
            }
        )

    def describe(self) -> str:
        """Return the action in one line, as exact as a command."""
        if self.after is None:
            return f"rm {shlex.quote(self.real_path)}"
        path = shlex.quote(self.real_path)
        return f"write {path} (sha256 {self.after[:12]}; temporary file, fsync, rename)"


class CommandAction(Document):
    """Run a command, between two looks at what it changes.

    Args:
        observe: read-only sh text that prints the state.
        before: what ``observe`` must print now.
        after: what ``observe`` must print when it is done.
        do: sh text that makes the change.
        undo: sh text that takes it back; "" when nothing can.
    """

    kind: Literal["command"] = "command"
    observe: str
    before: str
    after: str
    do: str
    undo: str

    def inverse(self) -> CommandAction:
        """Return the action that goes back to the former state."""
        return self.model_copy(
            update={"before": self.after, "after": self.before, "do": self.undo, "undo": self.do}
        )

    def describe(self) -> str:
        """Return the action in one line: the command itself."""
        return self.do


def _turned(splices: tuple[Splice, ...] | None) -> tuple[Splice, ...] | None:
    """Return the splices that go back, at the places that they have."""
    if splices is None:
        return None
    return tuple(
        splice.model_copy(update={"before": splice.after, "after": splice.before})
        for splice in splices
    )


Action = Annotated[FileAction | CommandAction, Field(discriminator="kind")]


class Change(Document):
    """One step on one host.

    Args:
        id: unique on its host and in order, such as ``01-hosts_file``.
        title: what it does, one line.
        reason: why, one line.
        label: the cause it cures.
        risk: how much it can hurt.
        disrupts: what else notices, "" for nothing.
        does: what its command does and what it checks by itself, in a sentence; "" where the title says it all.
        undoes: the same of the command that takes it back.
        restarts: the service that it restarts, stops or has read its files again; "" for none.
        reversible: whether the inverse brings the former state back.
        guarded: whether it can cut the connection, so that the host takes it back by itself unless a new
            connection confirms it in time.
        action: what is done.
    """

    id: str
    host: str
    remedy: str
    title: str
    reason: str
    label: str
    risk: Risk = Risk.LOW
    disrupts: str = ""
    does: str = ""
    undoes: str = ""
    restarts: str = ""
    reversible: bool = True
    guarded: bool = False
    action: Action


def sha256(content: bytes) -> str:
    """Return the SHA-256 of ``content`` in hex."""
    return hashlib.sha256(content).hexdigest()


def command(parts: Sequence[str]) -> str:
    """Return the sh text of one command, each part quoted."""
    return shlex.join(parts)


UNDO = "undo-"
TAKE_BACK = "take back: "


def undo_id(change: str) -> str:
    """Return the id of the change that takes ``change`` back; of one that takes back, the former one's."""
    return _toggled(change, UNDO)


def _toggled(text: str, prefix: str) -> str:
    return text.removeprefix(prefix) if text.startswith(prefix) else f"{prefix}{text}"


def inverse(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the changes that take ``changes`` back, last one first; what cannot be taken back is left out.

    Splices keep the places that they have: ``plan.splice.placed`` gives them those in the file as it is then.
    """
    return tuple(
        change.model_copy(
            update={
                "id": undo_id(change.id),
                "title": _toggled(change.title, TAKE_BACK),
                "does": change.undoes,
                "undoes": change.does,
                "action": change.action.inverse(),
            }
        )
        for change in reversed(changes)
        if change.reversible
    )
