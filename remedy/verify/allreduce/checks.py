"""What keeps a run from being a proof: everything that is missing from it, or contradicts itself.

The sum's digest and the list of members are worked out here, from the plan and the nonce and from what each
host said over its own ssh connection, and compared with what came through the group.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping

from remedy.values import Record
from remedy.verify.allreduce import bandwidth as mark
from remedy.verify.allreduce.answers import HostReport, Measured, RankReport, Result
from remedy.verify.allreduce.blame import names
from remedy.verify.allreduce.engines import ENGINES
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.allreduce.slow import pace_of, slow
from remedy.verify.allreduce.slow import told as told_slow


class Problem(Record):
    """Something that is missing from the proof.

    Args:
        text: a sentence.
        hosts: those it speaks against by itself.
        of_speed: whether it is about the bandwidth, and what was measured is therefore to be seen.
    """

    text: str
    hosts: tuple[str, ...] = ()
    of_speed: bool = False


def expected_sum(plan: RankPlan) -> str:
    """The digest that every rank must have: SHA-256 of the numbers of ``onhost.rank.rank.prove_sum``."""
    base = int(plan.nonce, 16) % 2**40
    numbers = [base + rank for rank in range(plan.world)]
    numbers.append(plan.world * (plan.world + 1) // 2)
    return hashlib.sha256(",".join(map(str, numbers)).encode("ascii")).hexdigest()


def bus_bandwidth(row: Measured, world: int) -> float:
    """GB/s: algbw * 2(n-1)/n with algbw = S/t, as nccl-tests have it (doc/PERFORMANCE.md)."""
    return row.bytes / row.seconds / 1e9 * 2 * (world - 1) / world if row.seconds > 0 else 0.0


def problems(plan: RankPlan, reports: Mapping[str, HostReport]) -> Iterator[Problem]:
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
        "the engine's own check is missing": ENGINES[plan.engine].own_check
        and not result.own_check,
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
        "versions": [result.identity.software for _, result in complete],
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
    if too_little := mark.missed(reached, plan.min_busbw, plan.unjudged):
        # A mark that cannot be judged is nobody's fault.
        slow_ones = () if plan.unjudged else slow(pace_of(plan, [one for _, one in complete]))
        more = f"; {told_slow(slow_ones)}" if slow_ones else ""
        slow_hosts = tuple(one.host for one in slow_ones)
        yield Problem(text=too_little + more, hosts=slow_hosts, of_speed=True)


def _not_asked(plan: RankPlan, complete: list[tuple[str, Result]]) -> Iterator[Problem]:
    """What was measured without being asked for: a sweep may stop early, but it starts as it was told to."""
    odd: dict[str, str] = {}
    for name, result in complete:
        measured, asked = [row.bytes for row in result.sweep], plan.sizes_on(result.backend)
        if measured != list(asked[: len(measured)]):
            odd[name] = f"{name} measured {measured}, not the beginning of {list(asked)}"
        elif plan.backend not in ("auto", "nccl", result.backend):
            odd[name] = f"{name} speaks of {result.backend}, and {plan.backend} was asked for"
        elif result.backend == "nccl" and (plan.backend == "gloo" or not result.identity.nccl):
            odd[name] = f"{name} speaks of NCCL, which could not have been used"
    if odd:
        yield Problem(text=names(odd.values()), hosts=tuple(odd))
