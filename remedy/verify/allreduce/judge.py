"""Judging a run: from what its hosts reported to the verdict.

An exit code proves nothing, and neither does a rank that reports success: see ``checks``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from remedy.text import counted, folded
from remedy.transport import Output
from remedy.verify.allreduce import blame, nccl_tests
from remedy.verify.allreduce.answers import AgentReport, Measurement, RankResult, read_reports
from remedy.verify.allreduce.bandwidth import achieved
from remedy.verify.allreduce.checks import (
    bus_bandwidth,
    expected_sum,
    flaws,
    outside_the_job,
    speed_flaw,
)
from remedy.verify.allreduce.engines import ENGINES
from remedy.verify.allreduce.logs import logs_of
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.allreduce.slow import pace_of, slow_hosts, slow_message
from remedy.verify.verdict import Bandwidth, Culprit, HostVerdict, Verdict, because_of

_NO_ENGINE = ("no-torch", "no-engine", "no-python")
EVIDENCE_LINES = 6  # of each host that is named; the whole logs went with the run


def impossible(plan: RankPlan, reason: str, lacks: Mapping[str, str] | None = None) -> Verdict:
    """Return the verdict on a run that could not be had.

    Args:
        plan: what was to run.
        reason: why it could not.
        lacks: hosts that are the reason, and what each of them lacks.
    """
    lacks = lacks or {}
    return Verdict(
        passed=False,
        possible=False,
        engine=plan.engine,
        expected_world_size=plan.world,
        expected_hosts=len(plan.hosts),
        reason=f"not possible: {reason}",
        outcomes=tuple(
            HostVerdict(host=host.name, outcome="fail", reason=lacks[host.name])
            if host.name in lacks
            else HostVerdict(host=host.name, outcome="not-tested", reason=reason)
            for host in plan.hosts
        ),
    )


def judge(plan: RankPlan, outputs: Mapping[str, Output], seconds: float = 0.0) -> Verdict:
    """Work out what outputs prove; pure, and never raises on what a host printed.

    Args:
        plan: what was run.
        outputs: by host name; a host that is missing here has failed.
        seconds: wall clock of the run.
    """
    return judge_reports(plan, read_reports(plan, outputs), seconds)


def judge_reports(plan: RankPlan, reports: Mapping[str, AgentReport], seconds: float) -> Verdict:
    """Work out what the reports of a run prove."""
    hopeless = _hopeless(plan, reports)
    if hopeless:
        failed = {name: lack for name, report in reports.items() if (lack := _lack(plan, report))}
        update = {"seconds": seconds, "logs": logs_of(reports)}
        return impossible(plan, hopeless, failed).model_copy(update=update)
    if ENGINES[plan.engine].printed:
        measured, wrong, too_slow = nccl_tests.judge_table(plan, reports)
        whole = measured.busbw_gbps is not None
    else:
        measured, wrong = _measured(plan, reports), [*flaws(plan, reports)]
        too_slow = speed_flaw(plan, reports)
        whole = sum(len(report.results) for report in reports.values()) == plan.world
    wrong += outside_the_job(plan, reports)
    passed = not wrong and too_slow is None
    verdict = measured.model_copy(update={"passed": passed, "seconds": seconds})
    if passed:
        return _proved(plan, reports, verdict)
    # What ranks measured that are not proved to be one group is no bandwidth of the fleet.
    unproved = {"bandwidth": (), "busbw_gbps": None} if wrong else {}
    missing = [*wrong, *([too_slow] if too_slow else [])]
    return _not_proved(plan, reports, verdict.model_copy(update=unproved), missing, whole=whole)


def _measured(plan: RankPlan, reports: Mapping[str, AgentReport]) -> Verdict:
    """The figures of a run whose ranks leave results."""
    results = [result for report in reports.values() for result in report.results]
    rows = results[0].sweep if results else ()
    digest, world = expected_sum(plan), plan.world
    exact = [result for result in results if result.sum.digest == digest]
    pace = pace_of(plan, results)
    return Verdict(
        passed=False,
        reason="",
        engine=plan.engine,
        backend=results[0].backend if results else None,
        world_size=len({result.rank for result in exact}),
        expected_world_size=world,
        hosts=len({result.identity.boot_id for result in exact}),
        expected_hosts=len(plan.hosts),
        sum_exact=bool(results) and len(exact) == len(results),
        bandwidth=tuple(_bandwidth(row, world) for row in rows if row.seconds > 0),
        busbw_gbps=bus_bandwidth(rows[-1], world) if rows else None,
        torch=_versions(results, "torch"),
        software=_versions(results, "software"),
        nccl=_versions(results, "nccl"),
        limit_gbps=plan.limit,
        pace=pace,
        slow=slow_hosts(pace),
        min_busbw_gbps=plan.min_busbw,
    )


def _versions(results: list[RankResult], field: str) -> tuple[str, ...]:
    return tuple(sorted({getattr(result.identity, field) for result in results} - {""}))


def _bandwidth(row: Measurement, world: int) -> Bandwidth:
    copied = row.model_copy(update={"seconds": row.out_of_place})
    return Bandwidth(
        bytes=row.bytes,
        seconds=row.seconds,
        algbw=row.bytes / row.seconds / 1e9,
        busbw=bus_bandwidth(row, world),
        spread=row.spread,
        out_of_place_busbw=bus_bandwidth(copied, world) if row.out_of_place > 0 else None,
    )


def _proved(plan: RankPlan, reports: Mapping[str, AgentReport], verdict: Verdict) -> Verdict:
    """The verdict on a run from which nothing is missing, with its sentence and its evidence."""
    slow = {host.host: f"{host.share:.0%} of the median's speed" for host in verdict.slow}
    speed = achieved(verdict.busbw_gbps or 0.0, plan.min_busbw, plan.limit)
    where = (
        f"{counted(plan.world, 'rank')} on {counted(verdict.hosts, 'host')} over {verdict.backend}"
    )
    reason = f"{where}: the sum is exact, {speed}"
    by = f"started by Slurm in job {plan.job}" if plan.job else ""
    return verdict.model_copy(
        update={
            "reason": "; ".join(filter(None, [reason, by, slow_message(verdict.slow)])),
            "outcomes": tuple(
                HostVerdict(host=name, outcome="pass", reason=slow.get(name, ""))
                for name in reports
            ),
            "evidence": tuple(_good_signs(reports)),
        }
    )


def _not_proved(
    plan: RankPlan,
    reports: Mapping[str, AgentReport],
    verdict: Verdict,
    missing: list[Culprit],
    *,
    whole: bool,
) -> Verdict:
    """The verdict on a run that proves nothing, with its sentence, how each host ended, and the evidence.

    Args:
        plan, reports: of the run.
        verdict: without these.
        missing: what keeps the run from being a proof.
        whole: whether every rank came to its end, so that what is missing speaks for itself.
    """
    culprit = None if whole else blame.find(blame.FailedRun(plan, reports))
    if culprit:
        accused, reason = culprit.hosts, blame.swap_ports(culprit.reason)
    else:
        accused = tuple(dict.fromkeys(host for flaw in missing for host in flaw.hosts))
        reason = missing[0].reason
    return verdict.model_copy(
        update={
            "reason": reason,
            "outcomes": tuple(_outcomes(reports, accused, reason)),
            "evidence": tuple(_evidence(reports, accused, missing)),
            "logs": logs_of(reports),
            # A flaw that says what to do is the culprit; where hosts are to blame, they are sought by tests.
            "culprits": tuple(missing) if all(flaw.next_step for flaw in missing) else (),
        }
    )


def _hopeless(plan: RankPlan, reports: Mapping[str, AgentReport]) -> str:
    """Why nothing could be tested, or an empty text."""
    ends = [report.end for report in reports.values() if report.end]
    if plan.world < 2:
        return "an all-reduce needs two ranks"
    if not ends:
        first = next(iter(reports.values()))
        return f"no host reported ({first.host}: {first.silence})"
    if len(ends) < 2 <= len(plan.hosts):
        absent_reports = [report for report in reports.values() if not report.end]
        reported = folded(report.host for report in reports.values() if report.end)
        absent = folded(report.host for report in absent_reports)
        return f"only {reported} reported; {absent} did not take part: {absent_reports[0].silence}"
    if all(end.how in _NO_ENGINE for end in ends):
        return f"no host that reported has {ENGINES[plan.engine].title}"
    return ""


def _lack(plan: RankPlan, report: AgentReport) -> str:
    """What a host lacks where nothing could be tested, or an empty text."""
    if report.end is None:
        return report.failure
    if report.end.how in _NO_ENGINE:
        return report.failure or f"no {ENGINES[plan.engine].title}: {report.end.detail}"
    return ""


def _outcomes(
    reports: Mapping[str, AgentReport], accused: tuple[str, ...], reason: str
) -> Iterator[HostVerdict]:
    for name, report in reports.items():
        if name in accused:
            yield HostVerdict(host=name, outcome="fail", reason=report.failure or reason)
        elif accused:
            yield HostVerdict(host=name, outcome="not-tested", reason=because_of(folded(accused)))
        else:
            yield HostVerdict(host=name, outcome="fail", reason=reason)


def _evidence(
    reports: Mapping[str, AgentReport], accused: tuple[str, ...], missing: list[Culprit]
) -> Iterator[str]:
    yield from (flaw.reason for flaw in missing[:20])
    for name, report in reports.items():
        for rank in report.ranks:
            if rank.error:
                yield f"{name}: {blame.swap_ports(rank.error.text)}"
        for address, port, waited in report.end.unanswered if report.end else ():
            yield f"{name}: no answer from {address} port {port} for {waited:g} s"
        if name in accused:
            yield from (f"{name}: {blame.swap_ports(line)}" for line in _last_lines(report))


def _last_lines(report: AgentReport) -> list[str]:
    lines = [line for rank in report.ranks if not rank.error for line in rank.log]
    lines += report.launcher.log if report.launcher and not report.ranks else ()
    return lines[-EVIDENCE_LINES:]


def _good_signs(reports: Mapping[str, AgentReport]) -> Iterator[str]:
    for name, report in reports.items():
        assert report.end is not None
        result = report.ranks[0].result
        used = sorted({local for local, peer in report.end.links if local != peer})
        via = f" via {', '.join(used)}" if used else ""
        if result is None:
            yield f"{name}: {report.end.hostname}{via}"
            continue
        yield (
            f"{name}: {result.identity.hostname}, {result.identity.device}, "
            f"{result.identity.software or f'torch {result.identity.torch}'}{via} ({report.end.python})"
            f"{f', step {result.identity.step}' if result.identity.step else ''}"
        )
        yield from (f"{name}: {line}" for line in report.ranks[0].network)
