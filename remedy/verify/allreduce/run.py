"""Running all-reduces: plans of ranks in, verdicts out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from remedy.verify.allreduce.answers import AgentReport, read_reports
from remedy.verify.allreduce.blame import FailedRun, missing_hosts, unanswered_links
from remedy.verify.allreduce.judge import impossible, judge_reports
from remedy.verify.allreduce.late import late_hosts
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.allreduce.script import script_deadline, scripts
from remedy.verify.scripts import Run, run_texts
from remedy.verify.verdict import Verdict

TOO_FEW = "an all-reduce needs two ranks: two hosts, or one with two GPUs"


@dataclass(frozen=True)
class GroupRun:
    """One all-reduce that was run.

    Args:
        verdict: what it proved.
        missing: hosts that were absent, as the group itself reports it.
        unanswered: links on which a host got no answer.
        ready: seconds until all ranks of a host could meet others, of the hosts that came as far.
        late: hosts that were only slow, as far as can be seen; where there are any, a failure proves little.
        hosts: that took part.
        machines: the boot-id of each rank that gave one, with the name of its host.
    """

    verdict: Verdict
    missing: frozenset[str] = frozenset()
    unanswered: frozenset[tuple[str, str]] = frozenset()
    ready: Mapping[str, float] = field(default_factory=dict)
    late: frozenset[str] = frozenset()
    hosts: tuple[str, ...] = ()
    machines: tuple[tuple[str, str], ...] = ()


def verify(run: Run, plan: RankPlan) -> Verdict:
    """Run the plan on all its hosts and judge what comes back."""
    return launch([plan], run)[0].verdict


def launch(plans: Sequence[RankPlan], run: Run) -> list[GroupRun]:
    """Run plans that have no host in common, all at once, and judge each.

    Args:
        plans: from ``plan_ranks``.
        run: runs scripts on hosts.
    """
    started = time.monotonic()
    texts = {
        host: (text, script_deadline(plan))
        for plan in plans
        if plan.world > 1
        for host, text in scripts(plan).items()
    }
    outputs = run_texts(run, texts)
    seconds = round(time.monotonic() - started, 3)
    runs = []
    for plan in plans:
        names = tuple(host.name for host in plan.hosts)
        if plan.world < 2:
            runs.append(GroupRun(impossible(plan, TOO_FEW), hosts=names))
            continue
        reports = read_reports(plan, outputs)
        case = FailedRun(plan, reports)
        verdict = judge_reports(plan, reports, seconds)
        late = frozenset[str]() if verdict.passed else late_hosts(case)
        hints = missing_hosts(case), unanswered_links(case)
        machines = tuple(_machines(reports))
        runs.append(GroupRun(verdict, *hints, _ready(reports), late, names, machines))
    return runs


def _machines(reports: Mapping[str, AgentReport]) -> Iterator[tuple[str, str]]:
    """The boot-id that each rank gave, with its host."""
    for name, report in reports.items():
        for rank in report.ranks:
            identity = rank.result.identity if rank.result else rank.process
            if identity is not None:
                yield name, identity.boot_id


def _ready(reports: Mapping[str, AgentReport]) -> dict[str, float]:
    return {
        name: max(rank.times["inside"] for rank in report.ranks)
        for name, report in reports.items()
        if report.ranks and all("inside" in rank.times for rank in report.ranks)
    }
