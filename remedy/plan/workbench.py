"""What a remedy's decision works with: it looks at a host, says what is wrong, and says what makes it right.

>>> def dev_shm(bench):
...     memory = bench.need(bench.host.shared_memory, "the size of /dev/shm")
...     if memory.size < 1 << 30:
...         finding = bench.drift("/dev/shm is too small", f"size: {memory.size}")
...         bench.write("/etc/fstab", b"...", "give /dev/shm 1 GiB after a reboot", because=finding)

Nothing here reads or changes a host: the outcome is data, from which the plan is made.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Generic, TypedDict, TypeVar

from remedy.errors import UsageError
from remedy.plan.change import (
    Change,
    CommandAction,
    FileAction,
    Finding,
    FindingKind,
    Risk,
    sha256,
)
from remedy.plan.fleet import Fleet
from remedy.plan.lockout import SSHD_READS_AGAIN, is_known, sshd_reads, touches
from remedy.plan.obstacle import obstacle as obstacle_of
from remedy.probe import File, HostState
from remedy.spec import SpecSection
from remedy.values import Fact, Unknown

T = TypeVar("T")
S = TypeVar("S", bound=SpecSection)


class Undecided(Exception):  # noqa: N818 - the quiet end of a decision, no error
    """Ends a decision: what it needs is not known."""


class _Words(TypedDict, total=False):
    """What may be said of a command besides."""

    does: str
    undoes: str


class Command(_Words):
    """What ``Workbench.run`` needs to know of a command, where a function makes it.

    ``observe`` is read-only sh text that must print ``before`` now and ``after`` once it is done; ``do`` makes
    the change and ``undo`` takes it back ("" when nothing can). ``does`` and ``undoes`` say in a sentence what
    these two do.
    """

    observe: str
    before: str
    after: str
    do: str
    undo: str


class FleetBench(Generic[S]):
    """The fleet as a whole, for what belongs to no single host.

    Args:
        fleet: all hosts.
        settings: the remedy's section of ``remedy.yaml``.
        remedy: the remedy's name.
        label: the cause that its findings have unless they name another.
    """

    def __init__(self, fleet: Fleet, settings: S, remedy: str, label: str) -> None:
        self.fleet = fleet
        self.settings = settings
        self.remedy = remedy
        self.label = label
        self.findings: list[Finding] = []

    @property
    def _name(self) -> str | None:
        """The host that findings are about."""
        return None

    def report(
        self, title: str, evidence: str | Iterable[str] = (), fix: str = "", *, label: str = ""
    ) -> Finding:
        """Note what is worth knowing, and what nobody asked remedy to change.

        Args:
            title: one sentence, without a full stop.
            evidence: what was seen, literally, a line each.
            fix: what the user can do about it.
            label: the cause, one of those that the remedy declares; by default the first of them.
        """
        return self._note(FindingKind.REPORT, title, evidence, fix, label)

    def _note(
        self, kind: FindingKind, title: str, evidence: str | Iterable[str], fix: str, label: str
    ) -> Finding:
        finding = Finding(
            host=self._name,
            remedy=self.remedy,
            kind=kind,
            label=label or self.label,
            title=title,
            evidence=(evidence,) if isinstance(evidence, str) else tuple(evidence),
            fix=fix,
        )
        self.findings.append(finding)
        return finding


class Workbench(FleetBench[S]):
    """One host, what is wrong with it and what makes it right.

    Args:
        fleet: all hosts, for decisions that look at the others.
        host: what the probe found on this one.
        settings: the remedy's section of ``remedy.yaml``.
        remedy: the remedy's name.
        label: the cause that its findings have unless they name another.
        only_reports: whether the remedy cures nothing, so that it may not plan a change.
    """

    def __init__(
        self,
        fleet: Fleet,
        host: HostState,
        settings: S,
        remedy: str,
        label: str,
        *,
        only_reports: bool = False,
    ) -> None:
        super().__init__(fleet, settings, remedy, label)
        self.host = host
        self.only_reports = only_reports
        self.changes: list[Change] = []
        self.contents: dict[str, bytes] = {}

    @property
    def _name(self) -> str:
        return self.host.host

    # ---- what is known

    def need(self, fact: Fact[T], name: str, *, label: str = "") -> T:
        """Return the value of a fact; where it is not known, say so and end the decision.

        Args:
            fact: what the probe found.
            name: the fact in words, such as "the size of /dev/shm".
            label: the cause that cannot be ruled out.

        A part that the probe does not read is as unknown as one that it failed to read.
        """
        if not isinstance(fact, Unknown):
            return fact
        self.unknown(f"could not read {name}", fact.reason, label=label)
        raise Undecided

    def known(self, fact: Fact[T]) -> T:
        """Return the value of a fact; where it is not known, end the decision without a word.

        For reports about things that most hosts do not have. Whoever changes hosts ``need``s.
        """
        if isinstance(fact, Unknown):
            raise Undecided
        return fact

    def file(self, path: str) -> File:
        """Return the file at ``path``, which need not exist; where it could not be read, end the decision."""
        return self.need(self.host.file(path), path)

    def part(self) -> contextlib.AbstractContextManager[None]:
        """Open a part of the decision that may end alone: ``need`` in it ends the part."""
        return contextlib.suppress(Undecided)

    # ---- what is wrong

    def drift(
        self, title: str, evidence: str | Iterable[str] = (), fix: str = "", *, label: str = ""
    ) -> Finding:
        """Note what is wrong and what the plan changes; the arguments are those of ``report``."""
        return self._note(FindingKind.DRIFT, title, evidence, fix, label)

    def blocked(
        self, title: str, evidence: str | Iterable[str] = (), fix: str = "", *, label: str = ""
    ) -> Finding:
        """Note what is wrong and what remedy cannot or will not change; ``fix`` says what the user can do."""
        return self._note(FindingKind.BLOCKED, title, evidence, fix, label)

    def unknown(
        self, title: str, evidence: str | Iterable[str] = (), fix: str = "", *, label: str = ""
    ) -> Finding:
        """Note what could not be found out, so that the host cannot be called right."""
        return self._note(FindingKind.UNKNOWN, title, evidence, fix, label)

    # ---- what makes it right

    def can_write(self, *paths: str, because: Finding) -> bool:
        """Return whether nothing keeps these files from being changed; where something does, say so.

        ``write`` and ``remove`` ask this themselves; a command that writes a file has to.
        """
        obstacles = [obstacle_of(self.file(path), self.remedy) for path in paths]
        known = [obstacle for obstacle in obstacles if obstacle is not None]
        for title, fix in known:
            self.blocked(title, fix=fix, label=because.label)
        return not known

    def write(
        self,
        path: str,
        content: bytes,
        title: str,
        *,
        because: Finding,
        mode: int = 0o644,
        risk: Risk = Risk.LOW,
        guarded: bool = False,
        disrupts: str = "",
    ) -> bool:
        """Plan to give a file another content; return whether that can be done.

        A file is written once: a second step that gives it the same content is none.

        Args:
            path: the file; links are followed, owner and mode of one that is there are kept.
            content: all its bytes.
            title: the step in one line.
            because: the finding that it mends.
            mode: permission bits of a file that is made new.
            risk: how much it can hurt.
            guarded: True where it can cut the connection, and what it touches does not show that (``lockout``);
                the host takes it back unless a new one confirms it.
            disrupts: what else notices.
        """
        if not self.can_write(path, because=because):
            return False
        file = self.file(path)
        after = sha256(content)
        earlier = self._planned(file)
        if earlier is not None:
            if earlier == after:
                return True
            raise UsageError(
                f"the remedy {self.remedy} plans two contents for {path}: {title!r}",
                next_step="Write each file once, with all that is to be in it.",
            )
        self.contents |= {sha256(data): data for data in (file.content, content)}
        action = FileAction(
            path=path,
            real_path=file.real_path,
            before=sha256(file.content) if file.exists else None,
            after=after,
            mode=mode,
        )
        contents = (file.content, content)
        self._step(action, title, because, risk, guarded, disrupts, contents=contents)
        return True

    def _planned(self, file: File) -> str | None:
        """Return the digest of what a file is to become by a step that is planned already; None for no step."""
        for change in self.changes:
            action = change.action
            if isinstance(action, FileAction) and action.real_path == file.real_path:
                return action.after
        return None

    def remove(
        self,
        path: str,
        title: str,
        *,
        because: Finding,
        risk: Risk = Risk.LOW,
        guarded: bool = False,
        disrupts: str = "",
    ) -> bool:
        """Plan to remove a file that is there; return whether that can be done, as ``write`` does."""
        if not self.can_write(path, because=because):
            return False
        file = self.file(path)
        before = sha256(file.content)
        self.contents[before] = file.content
        action = FileAction(path=path, real_path=file.real_path, before=before, after=None)
        self._step(action, title, because, risk, guarded, disrupts, contents=(file.content,))
        return True

    def run(
        self,
        title: str,
        *,
        because: Finding,
        observe: str,
        before: str,
        after: str,
        do: str,
        undo: str,
        risk: Risk = Risk.LOW,
        guarded: bool = False,
        disrupts: str = "",
        does: str = "",
        undoes: str = "",
        restarts: str = "",
    ) -> None:
        """Plan to run a command between two looks at what it changes.

        Args:
            title: the step in one line.
            because: the finding that it mends.
            observe: read-only sh text; the remedy's ``observes`` says the same of a state.
            before: what ``observe`` must print now.
            after: what ``observe`` must print when it is done.
            do: sh text that makes the change.
            undo: sh text that takes it back; "" when nothing can, and then ``disrupts`` says what is lost.
            risk: how much it can hurt.
            guarded: True where it can cut the connection, and what it touches does not show that (``lockout``);
                the host takes it back unless a new one confirms it.
            disrupts: what else notices.
            does: what ``do`` does and what it checks by itself, in a sentence that a plan shows in its place;
                without it the plan shows ``do`` whole, as is right for a command of one line.
            undoes: the same of ``undo``, for the plan that takes the run back.
            restarts: the service that is restarted, stopped, or made to read its files again; "" for none.
        """
        action = CommandAction(observe=observe, before=before, after=after, do=do, undo=undo)
        self._step(
            action, title, because, risk, guarded, disrupts, (does, undoes), restarts=restarts
        )

    def withdraw(self) -> None:
        """Plan nothing after all; what was noted stays."""
        self.changes.clear()

    def _step(
        self,
        action: FileAction | CommandAction,
        title: str,
        because: Finding,
        risk: Risk,
        guarded: bool,
        disrupts: str,
        sentences: tuple[str, str] = ("", ""),
        *,
        contents: tuple[bytes, ...] = (),
        restarts: str = "",
    ) -> None:
        if self.only_reports:
            raise UsageError(
                f"the remedy {self.remedy} cures nothing, and plans a change: {title!r}",
                next_step="Name in its @remedy(...) what its changes end: cures=(...).",
            )
        touched = touches(action, *contents)
        reversible = isinstance(action, FileAction) or bool(action.undo)
        if (guarded or is_known(touched)) and not reversible:
            kind = f" ({touched})" if is_known(touched) else ""
            raise UsageError(
                f"the remedy {self.remedy} plans what can lock this machine out{kind}, and nothing takes "
                f"it back: {title!r}",
                next_step="Give the command an undo=, so that the host can take it back by itself.",
            )
        self.changes.append(
            Change(
                id="",
                host=self.host.host,
                remedy=self.remedy,
                title=title,
                reason=because.title,
                label=because.label,
                risk=risk,
                disrupts=disrupts,
                reversible=reversible,
                guarded=guarded or (bool(touched) and reversible),
                restarts=restarts or (SSHD_READS_AGAIN if sshd_reads(action) else ""),
                does=sentences[0],
                undoes=sentences[1],
                action=action,
            )
        )
