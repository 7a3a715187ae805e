"""The verdict: what was proved, recomputed from the facts that the ranks left.

An exit code proves nothing, and neither does a rank that says it passed. The sum's digest and the list of
members are worked out here, from the plan and the nonce and from what each host said over its own ssh
connection, and compared with what came through the group.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from remedy.values import Record
from remedy.verify import culprit
from remedy.verify.culprit import names
from remedy.verify.launch import RankPlan
from remedy.verify.reach import DeadWay
from remedy.verify.report import HostReport, Measured, RankReport, Result, read

if TYPE_CHECKING:
    from remedy.transport import Output

_NO_TORCH = ("no-torch", "no-python")
EVIDENCE_LINES = 6  # of each host that is named; the whole logs went with the run


class Bandwidth(Record):
    """One size: bytes a rank, seconds a round on the slowest rank, GB/s as nccl-tests define them.

    Args:
        spread: largest less smallest of the parts that were timed, as a share of their median.
        out_of_place_busbw: where the data is copied first, as a caller that keeps its input has to.
    """

    bytes: int
    seconds: float
    algbw: float
    busbw: float
    spread: float = 0.0
    out_of_place_busbw: float | None = None


class HostOutcome(Record):
    """How one host ended; "not-tested" is one that may be sound, but others kept it from showing it."""

    host: str
    outcome: Literal["pass", "fail", "not-tested"]
    reason: str = ""


class Rung(Record):
    """One rung of the ladder; ``passed`` is None where it was not climbed, and ``said`` then says why."""

    name: Literal[
        "facts", "reachability", "new hosts", "inside each host", "whole fleet", "isolation"
    ]
    passed: bool | None
    said: str = ""
    seconds: float = 0.0


class Culprit(Record):
    """A host, or a way between two, that is to blame.

    Args:
        what: "gpu07", or "gpu07 -> gpu19".
        hosts: that it concerns.
        reason: a sentence.
        facts: what is known of the state of these hosts that explains it.
        next_step: the command to type, or what to do.
    """

    what: str
    hosts: tuple[str, ...]
    reason: str
    facts: tuple[str, ...] = ()
    next_step: str = ""


class GroupTest(Record):
    """A group that was tested while looking for the causes."""

    round: int
    purpose: str
    hosts: tuple[str, ...]
    passed: bool
    seconds: float = 0.0


class Verdict(Record):
    """What one verification proved.

    Args:
        passed: world size, distinct hosts, exact sum and every size, all proved.
        possible: False where nothing could be tested at all, which is not the same as failed.
        backend: what it ran on; None when no rank came that far.
        world_size: ranks whose part in the sum is proved.
        hosts: distinct machines (by boot-id) among them.
        sum_exact: whether every rank that reported has exactly the sum of the whole world.
        busbw_gbps: of the largest size.
        reason: one sentence; on failure it names the host or the way, where it can be told.
        evidence: lines that bear the reason out.
        seconds: wall clock, from the start of the scripts to the last report.
        fingerprints: of each host's state, which the verdict holds for.
        limit_gbps: what the slowest host's links can carry, where it is known.
        rungs: the ladder, as far as it was climbed.
        causes: who is to blame, as far as it could be told.
        dead_ways: the pairs of hosts that do not reach each other.
        tests: the groups that were tested to find the causes.
    """

    passed: bool
    possible: bool = True
    backend: Literal["nccl", "gloo"] | None = None
    world_size: int = 0
    expected_world_size: int = 0
    hosts: int = 0
    expected_hosts: int = 0
    sum_exact: bool = False
    bandwidth: tuple[Bandwidth, ...] = ()
    busbw_gbps: float | None = None
    torch: tuple[str, ...] = ()
    nccl: tuple[str, ...] = ()
    reason: str
    outcomes: tuple[HostOutcome, ...] = ()
    evidence: tuple[str, ...] = ()
    seconds: float = 0.0
    fingerprints: Mapping[str, str] = Field(default_factory=dict)
    limit_gbps: float | None = None
    rungs: tuple[Rung, ...] = ()
    causes: tuple[Culprit, ...] = ()
    dead_ways: tuple[DeadWay, ...] = ()
    tests: tuple[GroupTest, ...] = ()

    @property
    def share(self) -> float | None:
        """The bus bandwidth as a share of what the links can carry."""
        if self.busbw_gbps is None or not self.limit_gbps:
            return None
        return self.busbw_gbps / self.limit_gbps

    def excusing(self, hosts: Mapping[str, str]) -> Verdict:
        """The same verdict, saying also which hosts were left out of the run, and why.

        Args:
            hosts: reason by host name.
        """
        if not hosts:
            return self
        first, why = next(iter(hosts.items()))
        left_out = f"not tested: {names(hosts)} ({why.removeprefix(first + ': ')})"
        return self.model_copy(
            update={
                "reason": f"{self.reason}; {left_out}",
                "outcomes": (
                    *self.outcomes,
                    *(
                        HostOutcome(host=name, outcome="not-tested", reason=reason)
                        for name, reason in hosts.items()
                    ),
                ),
            }
        )


def impossible(plan: RankPlan, reason: str, failed: Mapping[str, str] | None = None) -> Verdict:
    """The verdict on a run that could not be had.

    Args:
        plan: what should have run.
        reason: why it could not.
        failed: hosts that are the reason, and what each of them lacks.
    """
    failed = failed or {}
    return Verdict(
        passed=False,
        possible=False,
        expected_world_size=plan.world,
        expected_hosts=len(plan.hosts),
        reason=f"not possible: {reason}",
        outcomes=tuple(
            HostOutcome(host=host.name, outcome="fail", reason=failed[host.name])
            if host.name in failed
            else HostOutcome(host=host.name, outcome="not-tested", reason=reason)
            for host in plan.hosts
        ),
    )


def expected_sum(plan: RankPlan) -> str:
    """The digest that every rank must have: SHA-256 of the numbers of ``worker.prove_sum``."""
    base = int(plan.nonce, 16) % 2**40
    numbers = [base + rank for rank in range(plan.world)]
    numbers.append(plan.world * (plan.world + 1) // 2)
    return hashlib.sha256(",".join(map(str, numbers)).encode("ascii")).hexdigest()


def bus_bandwidth(row: Measured, world: int) -> float:
    """GB/s: algbw * 2(n-1)/n with algbw = S/t, as nccl-tests have it (doc/PERFORMANCE.md)."""
    return row.bytes / row.seconds / 1e9 * 2 * (world - 1) / world if row.seconds > 0 else 0.0


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
            name: report.lost or f"no torch: {report.end.detail}" if report.end else report.lost
            for name, report in reports.items()
            if report.end is None or report.end.how in _NO_TORCH
        }
        return impossible(plan, hopeless, failed).model_copy(update={"seconds": seconds})
    results = [result for report in reports.values() for result in _results(report)]
    problems = list(_problems(plan, reports))
    passed = not problems
    rows = results[0].sweep if results else ()
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
        torch=tuple(sorted({result.identity.torch for result in results})),
        nccl=tuple(sorted({result.identity.nccl for result in results} - {""})),
        reason="",
        seconds=seconds,
        limit_gbps=plan.limit,
    )
    if passed:
        return verdict.model_copy(
            update={
                "reason": f"{plan.world} ranks on {verdict.hosts} hosts over {verdict.backend}: the sum "
                f"is exact, bus bandwidth {verdict.busbw_gbps:.3g} GB/s",
                "outcomes": tuple(HostOutcome(host=name, outcome="pass") for name in reports),
                "evidence": tuple(_good_signs(reports)),
            }
        )
    accused, reason = _reason(plan, reports, problems)
    return verdict.model_copy(
        update={
            "reason": reason,
            "outcomes": tuple(_outcomes(reports, accused, reason)),
            "evidence": tuple(_evidence(reports, accused, problems)),
        }
    )


class Problem(Record):
    """Something that is missing from the proof; ``hosts`` are those it speaks against by itself."""

    text: str
    hosts: tuple[str, ...] = ()


def _results(report: HostReport) -> list[Result]:
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
    if all(end.how in _NO_TORCH for end in ends):
        return "no host that reported has torch"
    return ""


def _problems(plan: RankPlan, reports: Mapping[str, HostReport]) -> Iterator[Problem]:
    """Everything that keeps the run from being a proof."""
    first = 0
    complete: list[tuple[str, Result]] = []
    for host in plan.hosts:
        report = reports[host.name]
        by_rank = {rank.local_rank: rank for rank in report.ranks}
        if report.end is None:
            yield Problem(text=f"{host.name}: {report.lost}")
        elif report.end.how != "exited":
            yield Problem(
                text=f"{host.name}: ended by {report.end.how} {report.end.detail}".rstrip()
            )
        if report.end and report.end.left:
            yield Problem(text=f"{host.name}: processes {report.end.left} could not be ended")
        for local in range(host.ranks):
            trouble = _rank_trouble(plan, by_rank.get(local), first + local, local)
            if trouble:
                yield Problem(text=f"{host.name}: {trouble}")
            else:
                result = by_rank[local].result
                assert result is not None
                complete.append((host.name, result))
        if set(by_rank) - set(range(host.ranks)):
            yield Problem(text=f"{host.name}: ranks that were not asked for", hosts=(host.name,))
        first += host.ranks
    if len(complete) == plan.world:
        yield from _disagreements(plan, complete)


def _rank_trouble(plan: RankPlan, rank: RankReport | None, number: int, local: int) -> str:
    """What one rank's report lacks, or an empty text."""
    result = rank.result if rank else None
    if rank is None:
        return f"no report of local rank {local}"
    if result is None:
        return f"rank {number} came to {rank.phase or 'nothing'!r}, not to a result"
    wrong = {
        "the nonce is another run's": result.nonce != plan.nonce,
        f"it is rank {result.rank}, not {number}": result.rank != number,
        f"its world has {result.world} ranks, not {plan.world}": result.world != plan.world,
        "the sum is not exact": result.sum.digest != expected_sum(plan) or bool(result.sum.missing),
        "nothing was measured": not result.sweep,
        "a measured sum is wrong": not all(row.exact and row.seconds > 0 for row in result.sweep),
    }
    return "; ".join(text for text, is_so in wrong.items() if is_so)


def _disagreements(plan: RankPlan, complete: list[tuple[str, Result]]) -> Iterator[Problem]:
    """What is wrong between ranks that are each complete."""
    told = [[r.rank, r.identity.hostname, r.identity.boot_id] for _, r in complete]
    digest = hashlib.sha256(json.dumps(told).encode("ascii")).hexdigest()
    odd = [name for name, result in complete if result.members_digest != digest]
    if odd:
        yield Problem(
            text=f"the members that {names(odd)} saw are not those that reported", hosts=tuple(odd)
        )
    machines: dict[str, list[str]] = {}
    for name, result in complete:
        machines.setdefault(result.identity.boot_id, []).append(name)
    for shared in (tuple(dict.fromkeys(found)) for found in machines.values()):
        if len(shared) > 1:
            yield Problem(text=f"{names(shared)} are one machine (same boot-id)", hosts=shared)
    if len(machines) > len(plan.hosts):
        yield Problem(text=f"{len(machines)} boot-ids on {len(plan.hosts)} hosts")
    compared: dict[str, list[str]] = {
        "backends": [result.backend for _, result in complete],
        "NCCL versions": [result.identity.nccl for _, result in complete],
        "measured sizes": [str([row.bytes for row in result.sweep]) for _, result in complete],
    }
    for what, values in compared.items():
        usual = Counter(values).most_common(1)[0][0]
        odd_ones = {
            name: value for (name, _), value in zip(complete, values, strict=True) if value != usual
        }
        if odd_ones:
            listed = names(f"{name} {value or 'none'}" for name, value in odd_ones.items())
            yield Problem(text=f"mixed {what}: {listed}, others {usual}", hosts=tuple(odd_ones))
    yield from _not_asked(plan, complete)
    backend = complete[0][1].backend
    if plan.backend == "nccl" and backend != "nccl":
        why = {plan.rank_hosts[rank]: text for rank, text in complete[0][1].unusable.items()}
        listed = names(f"{name}: {text}" for name, text in why.items())
        yield Problem(text=f"NCCL could not be used ({listed})", hosts=tuple(why))
    reached = bus_bandwidth(complete[0][1].sweep[-1], plan.world)
    if plan.min_busbw is not None and reached < plan.min_busbw:
        yield Problem(text=f"bus bandwidth {reached:.3g} GB/s is below {plan.min_busbw:g} GB/s")


def _not_asked(plan: RankPlan, complete: list[tuple[str, Result]]) -> Iterator[Problem]:
    """What was measured without being asked for: a sweep may stop early, but it starts as it was told to."""
    odd: dict[str, str] = {}
    for name, result in complete:
        measured, asked = [row.bytes for row in result.sweep], plan.sizes_on(result.backend)
        if measured != list(asked[: len(measured)]):
            odd[name] = f"{name} measured {measured}, not the beginning of {list(asked)}"
        elif result.backend == "nccl" and (plan.backend == "gloo" or not result.identity.nccl):
            odd[name] = f"{name} speaks of NCCL, which could not have been used"
    if odd:
        yield Problem(text=names(odd.values()), hosts=tuple(odd))


def _reason(
    plan: RankPlan, reports: Mapping[str, HostReport], problems: list[Problem]
) -> tuple[tuple[str, ...], str]:
    """Who is accused, and the sentence."""
    whole = sum(len(_results(report)) for report in reports.values()) == plan.world
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
        assert result is not None
        used = sorted({own for own, peer in report.end.links if own != peer})
        via = f" via {', '.join(used)}" if used else ""
        yield (
            f"{name}: {result.identity.hostname}, {result.identity.device}, "
            f"torch {result.identity.torch}{via} ({report.end.python})"
        )
        yield from (f"{name}: {line}" for line in report.ranks[0].network)
