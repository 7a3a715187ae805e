"""How a run ended: for each host, and as one exit code."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from remedy.apply.report import ChangeResult, ChangeStatus, HostReport
from remedy.errors import RemedyError
from remedy.plan.change import Finding
from remedy.plan.plan import Plan

if TYPE_CHECKING:
    from remedy.verify.verdict import Verdict

OK, FAILED, REFUSED, NOT_PROVED, UNREACHABLE, PENDING = 0, 1, 4, 3, 5, 10
# The most severe first; the exit code of a command is the first of these that applies.
PRECEDENCE = (FAILED, REFUSED, NOT_PROVED, UNREACHABLE, PENDING)


class HostStatus(str, enum.Enum):
    """Where a host ended."""

    OK = "ok"
    CHANGED = "changed"
    PENDING = "pending"  # changes are planned and were not asked to be made
    FAILED = "failed"
    NOT_REACHED = "not reached"  # the run stopped before it was this host's turn
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class HostOutcome:
    """How a run ended for one host.

    Args:
        status: where it ended.
        results: what became of its changes.
        findings: what is still wrong, unknown or worth knowing.
        error: why it ended there, when it was not by a change.
    """

    status: HostStatus
    results: tuple[ChangeResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    error: RemedyError | None = None

    @property
    def exit_code(self) -> int:
        """The exit code that this host alone would give."""
        if self.error is not None:
            return self.error.exit_code
        if any(result.status is ChangeStatus.STALE for result in self.results):
            return REFUSED
        return {HostStatus.FAILED: FAILED, HostStatus.PENDING: PENDING}.get(self.status, OK)


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended.

    Args:
        run: its id.
        inventory: the inventory file's name.
        hosts: by host.
        plan: what was planned.
        converged: whether a probe after the changes found nothing left to change; None when nothing was asked
            to be changed.
        verdict: what verification proved; None when it was not asked for.
        pending_counts: whether planned changes count for the exit code (``--exit-code``).
    """

    run: str
    inventory: str
    hosts: Mapping[str, HostOutcome]
    plan: Plan
    converged: bool | None = None
    verdict: Verdict | None = None
    pending_counts: bool = False
    details: Mapping[str, str] = field(default_factory=dict)

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
        return most_severe(codes)


def most_severe(codes: Iterable[int]) -> int:
    """Return the exit code that wins over the others; 0 when none is bad."""
    present = set(codes)
    return next((code for code in PRECEDENCE if code in present), OK)


def exit_code_of(reports: Iterable[HostReport]) -> int:
    """Return the exit code of what hosts said of their changes, where no second look follows."""
    codes = []
    for report in reports:
        if report.refused:
            codes.append(REFUSED if report.refused.startswith("LOCKED") else FAILED)
        if report.error is not None:
            codes.append(report.error.exit_code)
        for result in report.results.values():
            if result.status is ChangeStatus.STALE:
                codes.append(REFUSED)
            elif result.status is ChangeStatus.FAILED or (
                result.status is ChangeStatus.LOST and report.error is None
            ):
                codes.append(FAILED)
    return most_severe(codes)
