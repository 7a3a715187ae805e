"""Hosts that were only slow: alive, and not ready to meet others in the time that these wait.

A group that fails because of such a host says nothing of it: on a busy machine torch takes long to start.
"""

from __future__ import annotations

from remedy.verify.allreduce.answers import AgentReport, RankReport
from remedy.verify.allreduce.blame import STUCK, FailedRun, is_starting
from remedy.verify.allreduce.engines import ENGINES
from remedy.verify.allreduce.plan import join_seconds

# How the part of a host ends when its time is up, or when others have given up.
_ENDINGS = ("deadline", "exited")


def late_hosts(case: FailedRun) -> frozenset[str]:
    """Find the hosts of a failed group that might have joined it, given more time.

    Only where each host starts its ranks by itself; elsewhere one that is broken keeps all from starting.
    """
    if not ENGINES[case.plan.engine].inside:
        return frozenset()
    return frozenset(name for name, report in case.reports.items() if _is_late(case, report))


def _is_late(case: FailedRun, report: AgentReport) -> bool:
    if report.end is None or report.end.how not in _ENDINGS:
        return False
    code = report.launcher.exit_code if report.launcher else None
    if code and not any(rank.phase for rank in report.ranks):
        return False  # it gave up by itself, waiting for others
    if any(rank.state in STUCK or (rank.exit_code or 0) < 0 for rank in report.ranks):
        return False
    return any(_rank_is_late(case, rank) for rank in report.ranks)


def _rank_is_late(case: FailedRun, rank: RankReport) -> bool:
    """Whether a rank was still starting at the end, or was ready only when others no longer waited."""
    if rank.error is None and rank.exit_code is None and is_starting(case, rank.phase):
        return True
    return rank.times.get("inside", 0.0) > join_seconds(case.plan.deadline)
