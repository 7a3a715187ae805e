"""What keeps a run from being a proof: everything that is missing from it, or contradicts itself.

The sum's digest and the list of members are worked out here, from the plan and the nonce and from what each
host reported over its own ssh connection, and compared with what came through the group. A flaw is a
``Culprit``; one that speaks against no host by itself names none.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from remedy.text import counted, folded, listed
from remedy.verify.allreduce.answers import AgentReport, Measurement, RankReport, RankResult
from remedy.verify.allreduce.bandwidth import shortfall
from remedy.verify.allreduce.engines import ENGINES
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.allreduce.slow import pace_of, slow_hosts, slow_message
from remedy.verify.verdict import Culprit, culprit

# By host name: the result of a rank that came to its end, in rank order.
Results = list[tuple[str, RankResult]]


def expected_sum(plan: RankPlan) -> str:
    """Compute the digest that every rank must have: SHA-256 of the numbers of ``rank.proof.prove_sum``."""
    base = int(plan.nonce, 16) % 2**40
    numbers = [base + rank for rank in range(plan.world)]
    numbers.append(plan.world * (plan.world + 1) // 2)
    return hashlib.sha256(",".join(map(str, numbers)).encode("ascii")).hexdigest()


def bus_bandwidth(row: Measurement, world: int) -> float:
    """Compute GB/s: algbw * 2(n-1)/n with algbw = S/t, as nccl-tests have it (doc/PERFORMANCE.md)."""
    return row.bytes / row.seconds / 1e9 * 2 * (world - 1) / world if row.seconds > 0 else 0.0


def flaws(plan: RankPlan, reports: Mapping[str, AgentReport]) -> Iterator[Culprit]:
    """Yield everything that keeps the run from being a proof, but for its speed."""
    first, expected = 0, _expected(plan)
    for host in plan.hosts:
        report = reports[host.name]
        yield from bad_ends(host.name, report)
        ranks = {rank.local_rank: rank for rank in report.ranks}
        for local in range(host.ranks):
            if lack := _lack(expected, ranks.get(local), first + local, local):
                yield culprit(f"{host.name}: {lack}")
        if set(ranks) - set(range(host.ranks)):
            yield culprit(f"{host.name}: ranks that were not asked for", host.name)
        first += host.ranks
    results = complete_results(plan, reports)
    if len(results) == expected.world:
        yield from _strange_members(results)
        yield from shared_machines(plan, ((name, r.identity.boot_id) for name, r in results))
        yield from _mixtures(results)
        yield from _not_asked(plan, results)
        yield from _without_nccl(plan, results)


def speed_flaw(plan: RankPlan, reports: Mapping[str, AgentReport]) -> Culprit | None:
    """Find out why the bandwidth is too low or unjudged; None where it is good or not measured by all."""
    results = complete_results(plan, reports)
    if len(results) != plan.world:
        return None
    reached = bus_bandwidth(results[0][1].sweep[-1], plan.world)
    reason = shortfall(reached, plan.min_busbw, plan.unjudged)
    if not reason:
        return None
    # A minimum that cannot be judged is nobody's fault.
    slow = () if plan.unjudged else slow_hosts(pace_of(plan, [result for _, result in results]))
    more = f"; {slow_message(slow)}" if slow else ""
    return culprit(reason + more, *(host.host for host in slow))


def complete_results(plan: RankPlan, reports: Mapping[str, AgentReport]) -> Results:
    """Collect the results of the ranks that lack nothing."""
    results: Results = []
    first, expected = 0, _expected(plan)
    for host in plan.hosts:
        for rank in reports[host.name].ranks:
            known = rank.local_rank < host.ranks
            if known and not _lack(expected, rank, first + rank.local_rank, rank.local_rank):
                assert rank.result is not None
                results.append((host.name, rank.result))
        first += host.ranks
    return results


def bad_ends(name: str, report: AgentReport) -> Iterator[Culprit]:
    """Yield what is wrong with how a host's part ended."""
    end = report.end
    if end is None:
        yield culprit(f"{name}: {report.silence}")
    elif end.how != "exited":
        yield culprit(f"{name}: ended by {end.how} {end.detail}".rstrip())
    if end and end.remaining:
        yield culprit(f"{name}: processes {end.remaining} could not be ended")


def shared_machines(plan: RankPlan, boot_ids: Iterable[tuple[str, str]]) -> Iterator[Culprit]:
    """Yield hosts that are one machine, and a host that is several.

    Args:
        plan: what was run.
        boot_ids: of each rank, with the name of its host.
    """
    machines: dict[str, dict[str, None]] = {}
    for name, boot_id in boot_ids:
        machines.setdefault(boot_id, {})[name] = None
    for hosts in machines.values():
        if len(hosts) > 1:
            reason = "run on one machine (same boot-id): no network between them was tested"
            yield culprit(f"{folded(hosts)} {reason}", *hosts).model_copy(
                update={"next_step": "Give the inventory one host of each machine."}
            )
    if len(machines) > len(plan.hosts):
        yield culprit(f"{len(machines)} boot-ids on {counted(len(plan.hosts), 'host')}")


def outside_the_job(plan: RankPlan, reports: Mapping[str, AgentReport]) -> Iterator[Culprit]:
    """Yield hosts with ranks that are in no step of the job that was to start them."""
    if not plan.job:
        return
    for host in plan.hosts:
        for rank in reports[host.name].ranks:
            identity = rank.result.identity if rank.result else rank.process
            if identity is None or identity.step.partition(".")[0] == plan.job:
                continue
            actual = (
                f"is in the step {identity.step}" if identity.step else "is in no step of Slurm"
            )
            yield culprit(
                f"{host.name}: local rank {rank.local_rank} {actual}, expected one of job {plan.job}",
                host.name,
            )


class _Expected(NamedTuple):
    """What every rank of a run has to report; worked out once, and not for each of thousands."""

    nonce: str
    world: int
    digest: str
    engine_check: bool


def _expected(plan: RankPlan) -> _Expected:
    checked = ENGINES[plan.engine].engine_check
    return _Expected(plan.nonce, plan.world, expected_sum(plan), checked)


def _lack(expected: _Expected, rank: RankReport | None, number: int, local: int) -> str:
    """What one rank's report lacks, or an empty text."""
    if rank is None:
        return f"no report of local rank {local}"
    result = rank.result
    if result is None:
        return f"rank {number} came to {rank.phase or 'nothing'!r}, not to a result"
    checks = {
        "the nonce is from a different run": result.nonce != expected.nonce,
        f"it is rank {result.rank}, expected {number}": result.rank != number,
        f"its world has {counted(result.world, 'rank')}, expected {expected.world}": (
            result.world != expected.world
        ),
        "the sum is not exact": result.sum.digest != expected.digest or bool(result.sum.missing),
        "nothing was measured": not result.sweep,
        "the engine's own check is missing": expected.engine_check and not result.engine_check,
        "a measured sum is wrong": not all(row.exact and row.seconds > 0 for row in result.sweep),
    }
    return "; ".join(text for text, is_so in checks.items() if is_so)


def _strange_members(results: Results) -> Iterator[Culprit]:
    """Ranks that saw other members than those that reported."""
    members = [[r.rank, r.identity.hostname, r.identity.boot_id] for _, r in results]
    digest = hashlib.sha256(json.dumps(members).encode("ascii")).hexdigest()
    odd = [name for name, result in results if result.members_digest != digest]
    if odd:
        yield culprit(f"the members that {folded(odd)} saw are not those that reported", *odd)


def _mixtures(results: Results) -> Iterator[Culprit]:
    """What is to be the same on all ranks, and is not."""
    compared: dict[str, list[str]] = {
        "backends": [result.backend for _, result in results],
        "NCCL versions": [result.identity.nccl for _, result in results],
        "versions": [result.identity.software for _, result in results],
        "measured sizes": [str([row.bytes for row in result.sweep]) for _, result in results],
    }
    for subject, values in compared.items():
        usual = Counter(values).most_common(1)[0][0]
        ranks = zip(results, values, strict=True)
        odd = {name: value for (name, _), value in ranks if value != usual}
        if odd:
            words = listed(f"{name} {value or 'none'}" for name, value in odd.items())
            yield culprit(f"mixed {subject}: {words}, others {usual}", *odd)


def _not_asked(plan: RankPlan, results: Results) -> Iterator[Culprit]:
    """What was measured without being asked for: a sweep may stop early, but it starts as it was asked to."""
    odd: dict[str, str] = {}
    for name, result in results:
        measured, planned = [row.bytes for row in result.sweep], plan.sizes_on(result.backend)
        if measured != list(planned[: len(measured)]):
            odd[name] = f"{name} measured {measured}, not the beginning of {list(planned)}"
        elif plan.backend not in ("auto", "nccl", result.backend):
            odd[name] = f"{name} reports {result.backend}, and {plan.backend} was asked for"
        elif result.backend == "nccl" and (plan.backend == "gloo" or not result.identity.nccl):
            odd[name] = f"{name} reports NCCL, which could not have been used"
    if odd:
        yield culprit(listed(odd.values()), *odd)


def _without_nccl(plan: RankPlan, results: Results) -> Iterator[Culprit]:
    """Hosts for whose sake the group did without NCCL, which was planned."""
    first = results[0][1]
    if plan.backend == "nccl" and first.backend != "nccl":
        why = {plan.rank_hosts[rank]: text for rank, text in first.unusable.items()}
        words = listed(f"{name}: {text}" for name, text in why.items())
        yield culprit(f"NCCL could not be used ({words})", *why)
