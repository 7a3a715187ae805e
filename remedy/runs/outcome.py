"""How a run ended: for each host, and as one exit code."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from remedy.apply.report import ChangeResult, ChangeStatus
from remedy.audit.survival import Boot, Survival
from remedy.errors import RemedyError
from remedy.plan.change import Finding, FindingKind
from remedy.plan.plan import Plan

if TYPE_CHECKING:  # most commands prove and explain nothing
    from remedy.diagnose.diagnosis import Explanation
    from remedy.verify.look.compare import HostView
    from remedy.verify.verdict import Verdict

OK, FAILED, REFUSED, NOT_PROVED, UNREACHABLE, PENDING = 0, 1, 4, 3, 5, 10
# The most severe first; the exit code of a command is the first of these that applies.
PRECEDENCE = (FAILED, REFUSED, NOT_PROVED, UNREACHABLE, PENDING)


class HostStatus(str, enum.Enum):
    """Where a host ended."""

    OK = "ok"
    CHANGED = "changed"
    READY = "ready"  # rehearsed: each of its changes can be made
    PENDING = "pending"  # changes are planned and were not asked to be made
    FAILED = "failed"
    NOT_REACHED = "not reached"  # the run stopped before it was this host's turn
    UNSETTLED = "unsettled"  # about to change by itself, so it was not judged
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class HostOutcome:
    """How a run ended for one host.

    Args:
        status: where it ended.
        results: of its changes.
        findings: what is still wrong, unknown or worth knowing.
        error: why it ended there, when it was not by a change.
        message: what was done there, where that is no change of the plan.
    """

    status: HostStatus
    results: tuple[ChangeResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    error: RemedyError | None = None
    message: str = ""

    @property
    def exit_code(self) -> int:
        """The exit code that this host alone would give."""
        statuses = {result.status for result in self.results}
        codes = [] if self.error is None else [self.error.exit_code]
        codes += [FAILED] * (ChangeStatus.FAILED in statuses)
        codes += [REFUSED] * (ChangeStatus.STALE in statuses)
        if codes:
            return most_severe(codes)
        return {HostStatus.FAILED: FAILED, HostStatus.PENDING: PENDING}.get(self.status, OK)


@dataclass(frozen=True)
class RunOutcome:
    """How a command that acts on hosts ended.

    Args:
        mode: what the run did, as the journal has it: check, plan, apply, rehearsal, rollback, verify, unlock.
        run: its id; "" for a command that has none of its own.
        inventory: the inventory file, from the root and with links followed.
        hosts: by host.
        plan: what was planned; None where nothing was planned.
        of: the run that was taken back, resumed or unlocked; "" for none.
        converged: whether a probe after the changes found nothing left to change; None where there was no
            such probe.
        verdict: of the verification; None where there was none.
        explanation: the cause of a verdict that is NOT PROVED, where one can be named.
        views: what a close look at each host of a failed verification showed (``--explain``).
        survival: what survived the last boot; empty where it was not asked for.
        pending_counts: whether planned changes count for the exit code (``--exit-code``).
        strict: whether what remedies only report counts for the exit code, too (``--strict``).
        unread: how many hosts could not be read, so that what they need is unknown.
        waves: what is known of each wave, in sentences; empty where all hosts were changed at a time.
        warnings: what the user has to know beside the hosts: a record that could not be written.
    """

    mode: str
    run: str
    inventory: str
    hosts: Mapping[str, HostOutcome]
    plan: Plan | None = None
    of: str = ""
    converged: bool | None = None
    verdict: Verdict | None = None
    explanation: Explanation | None = None
    views: tuple[HostView, ...] = ()
    survival: Mapping[str, Survival] = field(default_factory=dict)
    pending_counts: bool = False
    strict: bool = False
    unread: int = 0
    waves: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        codes = [host.exit_code for host in self.hosts.values()]
        if not self.pending_counts:
            codes = [code for code in codes if code != PENDING]
        if self.converged is False and not any(codes):
            codes.append(FAILED)
        if self.verdict is not None and not self.verdict.passed:
            codes.append(NOT_PROVED)
        if any(host.boot in (Boot.LOST, Boot.UNKNOWN) for host in self.survival.values()):
            codes.append(FAILED)
        if self.strict and self.reports:
            codes.append(FAILED)
        return most_severe(codes)

    @property
    def reports(self) -> tuple[Finding, ...]:
        """What remedies only report of the hosts, and of the fleet, each once."""
        reports = (finding for finding in self._findings if finding.kind is FindingKind.REPORT)
        return tuple(dict.fromkeys(reports))

    @property
    def _findings(self) -> Iterator[Finding]:
        """Yield what is wrong, unknown or worth knowing of the hosts, and of the fleet."""
        for host in self.hosts.values():
            yield from host.findings
        yield from () if self.plan is None else self.plan.findings

    def noting(self, before: Iterable[str] = (), after: Iterable[str] = ()) -> RunOutcome:
        """Return the outcome with what was known before its hosts were asked, and since, as warnings."""
        return replace(self, warnings=(*before, *self.warnings, *after))

    @property
    def statuses(self) -> dict[str, str]:
        """Where each host ended, in a word, as the journal has it."""
        return {name: host.status.value for name, host in self.hosts.items()}


def most_severe(codes: Iterable[int]) -> int:
    """Return the exit code that wins over the others; 0 when none is bad."""
    present = set(codes) - {OK}
    # A code without a rank is an error too, such as a setting that one host alone cannot use.
    return next((code for code in PRECEDENCE if code in present), min(present, default=OK))
