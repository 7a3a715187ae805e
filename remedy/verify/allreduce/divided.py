"""One verdict of the all-reduces of a divided fleet: its groups, and across them where these passed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from remedy.text import counted, listed
from remedy.verify.accusations import names_of, summary
from remedy.verify.allreduce.bandwidth import achieved
from remedy.verify.allreduce.checks import shared_machines
from remedy.verify.allreduce.division import Division, HostGroup
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.allreduce.run import GroupRun
from remedy.verify.allreduce.slow import slow_hosts, slow_message
from remedy.verify.verdict import (
    Backend,
    Culprit,
    DividedProof,
    HostVerdict,
    PartVerdict,
    Rung,
    Verdict,
    because_of,
    culprit,
)

Outcome = Literal["pass", "fail", "not-tested"]
WORST: tuple[Outcome, ...] = ("pass", "not-tested", "fail")
_APART = (
    "its hosts work with each other, and with none of other groups",
    "hosts work in their own group, and not with those of the other",
)
ALONE = "its group has no other host: only the all-reduce across the groups tests it"


@dataclass(frozen=True)
class PartRuns:
    """What was run of a division.

    Args:
        groups: by the name of the group; one of a single rank has none of its own.
        crossings: by name; empty where a group failed.
    """

    groups: Mapping[str, GroupRun]
    crossings: Mapping[str, GroupRun]

    @property
    def all(self) -> tuple[GroupRun, ...]:
        """All of them, the groups first."""
        return (*self.groups.values(), *self.crossings.values())

    @property
    def failed(self) -> tuple[GroupRun, ...]:
        """Those that did not pass."""
        return tuple(run for run in self.all if not run.verdict.passed)


def combined(plan: RankPlan, division: Division, runs: PartRuns) -> Verdict:
    """Work out what the parts prove together.

    Args:
        plan: of all hosts.
        division: what was to be run.
        runs: what was.
    """
    failures = [*_failures(runs), *_across(plan, runs)]
    verdicts = [run.verdict for run in runs.groups.values()]
    verdict = _measured(plan, runs).model_copy(
        update={
            "passed": not failures,
            "possible": any(verdict.possible for verdict in verdicts),
            "outcomes": tuple(_outcomes(plan, runs, failures)),
            "divided": _proof(division, runs),
        }
    )
    if not failures:
        everybody = {"world_size": plan.world, "hosts": len(plan.hosts)}
        verdict = verdict.model_copy(update=everybody)
        return verdict.model_copy(update={"reason": _success(plan, division, verdict)})
    more = f"; and {counted(len(failures) - 1, 'other part')}" if len(failures) > 1 else ""
    reason = failures[0].reason + more
    if not verdict.possible:
        reason = f"not possible: {reason.replace('not possible: ', '')}"
    return verdict.model_copy(update={"reason": reason})


def _measured(plan: RankPlan, runs: PartRuns) -> Verdict:
    """The figures of all parts: counts of the groups, the bandwidth of the slowest part."""
    verdicts = [run.verdict for run in runs.all]
    of_groups = [run.verdict for run in runs.groups.values()]
    pace = {host: rate for verdict in of_groups for host, rate in verdict.pace.items()}
    slowest = _slowest(verdicts)
    return Verdict(
        passed=False,
        reason="",
        engine=plan.engine,
        backend=_backend(verdicts),
        world_size=sum(verdict.world_size for verdict in of_groups),
        expected_world_size=plan.world,
        hosts=sum(verdict.hosts for verdict in of_groups),
        expected_hosts=len(plan.hosts),
        sum_exact=all(verdict.sum_exact for verdict in verdicts),
        bandwidth=slowest.bandwidth if slowest else (),
        busbw_gbps=slowest.busbw_gbps if slowest else None,
        torch=_versions(verdicts, "torch"),
        nccl=_versions(verdicts, "nccl"),
        software=_versions(verdicts, "software"),
        evidence=tuple(_evidence(runs)),
        seconds=sum(_seconds(parts) for parts in (runs.groups, runs.crossings)),
        limit_gbps=plan.limit,
        min_busbw_gbps=plan.min_busbw,
        pace=pace,
        slow=slow_hosts(pace),
        logs={name: lines for run in runs.failed for name, lines in run.verdict.logs.items()},
    )


def parts_rung(name: Literal["each group", "across groups"], parts: Mapping[str, GroupRun]) -> Rung:
    """Return the rung of all-reduces that ran side by side; without any it was not climbed."""
    if not parts:
        return Rung(name=name, passed=None, message="not climbed because a group failed")
    failed = {part: run for part, run in parts.items() if not run.verdict.passed}
    good = f"the sum is exact in {counted(len(parts), 'all-reduce')}"
    sizes = [len(run.hosts) for run in parts.values()]
    good += (
        f" of {min(sizes)} to {max(sizes)} hosts"
        if min(sizes) < max(sizes)
        else f" of {counted(sizes[0], 'host')}"
    )
    bad = "; ".join(f"{part}: {run.verdict.reason}" for part, run in [*failed.items()][:3])
    more = f"; and {len(failed) - 3} more" if len(failed) > 3 else ""
    return Rung(
        name=name,
        passed=not failed,
        message=bad + more if failed else good,
        seconds=_seconds(parts),
    )


def between_groups(verdict: Verdict, division: Division) -> Verdict:
    """Have a verdict on all-reduces across the groups name whole groups, where every one accuses the same.

    Args:
        verdict: with the culprits of the isolation; each host of them worked in its own group.
        division: the groups.
    """
    owner = {host: part.name for part in division.groups for host in part.hosts}
    alike: dict[tuple[str, ...], list[Culprit]] = {}
    for known in verdict.culprits:
        alike.setdefault(tuple(dict.fromkeys(owner[host] for host in known.hosts)), []).append(
            known
        )
    culprits: list[Culprit] = []
    for names, several in alike.items():
        if len(several) > 1 and len(several) == _crossing(division, owner, names):
            hosts = tuple(host for known in several for host in known.hosts)
            reason = f"{listed(names)}: {_APART[len(names) > 1]}: {several[0].reason}"
            culprits.append(Culprit(name=" <-> ".join(names), hosts=hosts, reason=reason))
            continue
        good = f"each worked in the all-reduce of its own group ({listed(names)})"
        culprits += (known.model_copy(update={"facts": (*known.facts, good)}) for known in several)
    update = {"culprits": tuple(culprits), "reason": summary(culprits)} if culprits else {}
    return verdict.model_copy(update=update)


def _crossing(division: Division, owner: Mapping[str, str], names: Sequence[str]) -> int:
    """In how many all-reduces across the groups each of these groups has a host."""
    return sum(set(names) <= {owner[host] for host in part.hosts} for part in division.crossings)


def _seconds(parts: Mapping[str, GroupRun]) -> float:
    """How long runs took that were side by side."""
    return max((run.verdict.seconds for run in parts.values()), default=0.0)


def _versions(verdicts: Sequence[Verdict], field: str) -> tuple[str, ...]:
    return tuple(sorted({version for verdict in verdicts for version in getattr(verdict, field)}))


def _backend(verdicts: Sequence[Verdict]) -> Backend | None:
    backends = {verdict.backend for verdict in verdicts if verdict.backend}
    return next(iter(backends)) if len(backends) == 1 else None


def _slowest(verdicts: Sequence[Verdict]) -> Verdict | None:
    measured = [verdict for verdict in verdicts if verdict.busbw_gbps is not None]
    return min(measured, key=lambda verdict: verdict.busbw_gbps or 0.0, default=None)


def _evidence(runs: PartRuns) -> Iterator[str]:
    """The lines of the parts that failed, or of all where none did."""
    for run in runs.failed or runs.all:
        yield from run.verdict.evidence


def _failures(runs: PartRuns) -> Iterator[Culprit]:
    """The parts that failed, each with its reason."""
    for kind, parts in (("group ", runs.groups), ("", runs.crossings)):
        for name, run in parts.items():
            if not run.verdict.passed:
                accused = [h.host for h in run.verdict.outcomes if h.outcome == "fail"]
                yield culprit(f"{kind}{name}: {run.verdict.reason}", *accused)


def _across(plan: RankPlan, runs: PartRuns) -> Iterator[Culprit]:
    """What no part can see by itself: machines that are in several of them, and versions that differ."""
    if runs.failed:
        return
    yield from shared_machines(plan, chain.from_iterable(run.machines for run in runs.all))
    for subject in ("nccl", "software"):
        seen: dict[str, list[str]] = {}
        for name, run in runs.groups.items():
            seen.setdefault(listed(getattr(run.verdict, subject)), []).append(name)
        if len(seen) > 1:
            words = "; ".join(f"{version or 'none'}: {listed(of)}" for version, of in seen.items())
            title = {"nccl": "NCCL versions", "software": "versions"}[subject]
            yield culprit(f"mixed {title} between groups: {words}")


def _outcomes(plan: RankPlan, runs: PartRuns, failures: Sequence[Culprit]) -> Iterator[HostVerdict]:
    """How each host ended: by the worst of the parts that it was in."""
    worst: dict[str, HostVerdict] = {}
    for run in runs.all:
        for entry in run.verdict.outcomes:
            known = worst.get(entry.host)
            if known is None or WORST.index(entry.outcome) > WORST.index(known.outcome):
                worst[entry.host] = entry
    across = [failure for failure in failures if failure.hosts]
    named = {h: failure.reason for failure in across for h in failure.hosts}
    parts = because_of(names_of(across)) if across else ALONE
    for host in plan.hosts:
        ended = worst.get(host.name)
        if ended is None:
            yield HostVerdict(host=host.name, outcome="not-tested", reason=parts)
        elif ended.outcome == "pass" and host.name in named:
            yield HostVerdict(host=host.name, outcome="fail", reason=named[host.name])
        else:
            yield ended


def _proof(division: Division, runs: PartRuns) -> DividedProof:
    skipped = "not run, because a group failed"
    return DividedProof(
        by=division.by,
        groups=tuple(_part(part, runs.groups.get(part.name), ALONE) for part in division.groups),
        crossings=tuple(
            _part(part, runs.crossings.get(part.name), skipped) for part in division.crossings
        ),
        pairs=division.pairs,
        together=division.together,
        unproved=division.unproved,
    )


def _part(part: HostGroup, run: GroupRun | None, why_not: str) -> PartVerdict:
    if run is None:
        return PartVerdict(name=part.name, hosts=part.hosts, passed=None, reason=why_not)
    return PartVerdict(
        name=part.name,
        hosts=part.hosts,
        passed=run.verdict.passed,
        reason=run.verdict.reason,
        busbw_gbps=run.verdict.busbw_gbps,
    )


def _success(plan: RankPlan, division: Division, verdict: Verdict) -> str:
    """The sentence of a proof in parts, with what it does not prove."""
    speed = achieved(verdict.busbw_gbps or 0.0, plan.min_busbw, plan.limit)
    across = counted(len(division.crossings), "all-reduce")
    reason = (
        f"{plan.world} ranks on {verdict.hosts} hosts over {verdict.backend or 'several backends'}:"
        f" the sum is exact in each of {len(division.groups)} groups and in {across} across them,"
        f" {speed} in the slowest"
    )
    by = f"started by Slurm in job {plan.job}" if plan.job else ""
    parts = (reason, by, slow_message(verdict.slow), division.unproved)
    return "; ".join(filter(None, parts))
