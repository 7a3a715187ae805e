"""Judging a run: from what its hosts said to the verdict.

An exit code proves nothing, and neither does a rank that says it passed: see ``doubts``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from remedy.verify.allreduce import bandwidth as mark
from remedy.verify.allreduce import blame as culprit
from remedy.verify.allreduce import checks as doubts
from remedy.verify.allreduce import nccl_tests as printed
from remedy.verify.allreduce.answers import HostReport, Result, read
from remedy.verify.allreduce.blame import names
from remedy.verify.allreduce.checks import Problem, bus_bandwidth, expected_sum
from remedy.verify.allreduce.engines import ENGINES
from remedy.verify.allreduce.logs import logs_of
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.allreduce.slow import pace_of, slow, told
from remedy.verify.verdict import Bandwidth, HostOutcome, Verdict, impossible

if TYPE_CHECKING:
    from remedy.transport import Output

_NO_ENGINE = ("no-torch", "no-engine", "no-python")
EVIDENCE_LINES = 6  # of each host that is named; the whole logs went with the run


def judge(plan: RankPlan, outputs: Mapping[str, Output], seconds: float = 0.0) -> Verdict:
    """Say what the outputs prove; pure, and never raises on what a host printed.

    Args:
        plan: what was run.
        outputs: by host name; a host that is missing here has failed.
        seconds: wall clock of the run.
    """
    reports = {
        host.name: read(host.name, plan.nonce, outputs.get(host.name)) for host in plan.hosts
    }
    hopeless = _hopeless(plan, reports)
    if hopeless:
        failed = {
            name: report.lost or f"no {ENGINES[plan.engine].title}: {report.end.detail}"
            if report.end
            else report.lost
            for name, report in reports.items()
            if report.end is None or report.end.how in _NO_ENGINE
        }
        update = {"seconds": seconds, "logs": logs_of(reports)}
        return impossible(plan, hopeless, failed).model_copy(update=update)
    if ENGINES[plan.engine].printed:
        verdict, missing = printed.judge(plan, reports)
        verdict = verdict.model_copy(update={"seconds": seconds})
        return _told(plan, reports, verdict, missing, whole=verdict.busbw_gbps is not None)
    results = [result for report in reports.values() for result in results_of(report)]
    missing = list(doubts.problems(plan, reports))
    passed = not missing
    rows = results[0].sweep if results else ()
    pace = pace_of(plan, results)
    slow_ones = slow(pace)
    right = [result for result in results if result.sum.digest == expected_sum(plan)]
    verdict = Verdict(
        passed=passed,
        backend=results[0].backend if results else None,
        world_size=len({result.rank for result in right}),
        expected_world_size=plan.world,
        hosts=len({result.identity.boot_id for result in right}),
        expected_hosts=len(plan.hosts),
        sum_exact=bool(results) and len(right) == len(results),
        bandwidth=tuple(
            Bandwidth(
                bytes=row.bytes,
                seconds=row.seconds,
                algbw=row.bytes / row.seconds / 1e9,
                busbw=bus_bandwidth(row, plan.world),
                spread=row.spread,
                out_of_place_busbw=bus_bandwidth(
                    row.model_copy(update={"seconds": row.out_of_place}), plan.world
                )
                if row.out_of_place > 0
                else None,
            )
            for row in rows
            if row.seconds > 0
        ),
        busbw_gbps=bus_bandwidth(rows[-1], plan.world) if rows else None,
        engine=plan.engine,
        torch=tuple(sorted({result.identity.torch for result in results} - {""})),
        software=tuple(sorted({result.identity.software for result in results} - {""})),
        nccl=tuple(sorted({result.identity.nccl for result in results} - {""})),
        reason="",
        seconds=seconds,
        limit_gbps=plan.limit,
        pace=pace,
        slow=slow_ones,
        min_busbw_gbps=plan.min_busbw,
    )
    whole = len(results) == plan.world
    return _told(plan, reports, verdict, missing, whole=whole)


def _told(
    plan: RankPlan,
    reports: Mapping[str, HostReport],
    verdict: Verdict,
    missing: list[Problem],
    *,
    whole: bool,
) -> Verdict:
    """The verdict with its sentence, how each host ended, and the evidence.

    Args:
        plan, reports: of the run.
        verdict: without these.
        missing: what keeps the run from being a proof.
        whole: whether every rank came to its end, so that what is missing speaks for itself.
    """
    if verdict.passed:
        slowly = {one.host: f"{one.share:.0%} of the median's speed" for one in verdict.slow}
        return verdict.model_copy(
            update={
                "reason": f"{plan.world} ranks on {verdict.hosts} hosts over {verdict.backend}: the sum "
                f"is exact, {mark.praised(verdict.busbw_gbps or 0.0, plan.min_busbw, plan.limit)}"
                + (f"; {told(verdict.slow)}" if verdict.slow else ""),
                "outcomes": tuple(
                    HostOutcome(host=name, outcome="pass", reason=slowly.get(name, ""))
                    for name in reports
                ),
                "evidence": tuple(_good_signs(reports)),
            }
        )
    accused, reason = _reason(plan, reports, missing, whole=whole)
    # What ranks measured that are not proved to be one group is no bandwidth of the fleet.
    unproved = {} if all(one.of_speed for one in missing) else {"bandwidth": (), "busbw_gbps": None}
    return verdict.model_copy(
        update={
            **unproved,
            "reason": reason,
            "outcomes": tuple(_outcomes(reports, accused, reason)),
            "evidence": tuple(_evidence(reports, accused, missing)),
            "logs": logs_of(reports),
        }
    )


def results_of(report: HostReport) -> list[Result]:
    return [rank.result for rank in report.ranks if rank.result is not None]


def ends_of(reports: Mapping[str, HostReport]) -> str:
    """The hosts that reported, as a list in a sentence."""
    return names(report.host for report in reports.values() if report.end)


def _hopeless(plan: RankPlan, reports: Mapping[str, HostReport]) -> str:
    """Why nothing could be tested, or an empty text."""
    ends = [report.end for report in reports.values() if report.end]
    if plan.world < 2:
        return "an all-reduce needs two ranks"
    if not ends:
        first = next(iter(reports.values()))
        return f"no host reported ({first.host}: {first.lost.removeprefix(first.host + ': ')})"
    if len(ends) < 2 <= len(plan.hosts):
        lost = [report for report in reports.values() if not report.end]
        others = names(report.host for report in lost)
        why = lost[0].lost.removeprefix(lost[0].host + ": ")
        return f"only {ends_of(reports)} reported; {others} did not take part: {why}"
    if all(end.how in _NO_ENGINE for end in ends):
        return f"no host that reported has {ENGINES[plan.engine].title}"
    return ""


def _reason(
    plan: RankPlan, reports: Mapping[str, HostReport], problems: list[Problem], *, whole: bool
) -> tuple[tuple[str, ...], str]:
    """Who is accused, and the sentence."""
    blame = None if whole else culprit.find(culprit.Case(plan, reports))
    if blame:
        return blame.hosts, culprit.swap_ports(blame.reason)
    accused = tuple(dict.fromkeys(host for problem in problems for host in problem.hosts))
    return accused, problems[0].text


def _outcomes(
    reports: Mapping[str, HostReport], accused: tuple[str, ...], reason: str
) -> Iterator[HostOutcome]:
    for name, report in reports.items():
        if name in accused:
            yield HostOutcome(host=name, outcome="fail", reason=report.lost or reason)
        elif accused:
            kept = f"the group could not be proved because of {names(accused)}"
            yield HostOutcome(host=name, outcome="not-tested", reason=kept)
        else:
            yield HostOutcome(host=name, outcome="fail", reason=reason)


def _evidence(
    reports: Mapping[str, HostReport], accused: tuple[str, ...], problems: list[Problem]
) -> Iterator[str]:
    yield from (problem.text for problem in problems[:20])
    for name, report in reports.items():
        for rank in report.ranks:
            if rank.error:
                yield f"{name}: {culprit.swap_ports(rank.error.text)}"
        for address, port, waited in report.end.unanswered if report.end else ():
            yield f"{name}: no answer from {address} port {port} for {waited:g} s"
        if name in accused:
            lines = [line for rank in report.ranks if not rank.error for line in rank.log]
            lines += report.launcher.log if report.launcher and not report.ranks else ()
            for line in lines[-EVIDENCE_LINES:]:
                yield f"{name}: {culprit.swap_ports(line)}"


def _good_signs(reports: Mapping[str, HostReport]) -> Iterator[str]:
    for name, report in reports.items():
        assert report.end is not None
        result = report.ranks[0].result
        used = sorted({own for own, peer in report.end.links if own != peer})
        via = f" via {', '.join(used)}" if used else ""
        if result is None:
            yield f"{name}: {report.end.hostname}{via}"
            continue
        yield (
            f"{name}: {result.identity.hostname}, {result.identity.device}, "
            f"{result.identity.software or f'torch {result.identity.torch}'}{via} ({report.end.python})"
        )
        yield from (f"{name}: {line}" for line in report.ranks[0].network)
