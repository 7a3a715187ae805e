"""The verdict: what one verification proved, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from remedy.spec import EngineName
from remedy.values import Record
from remedy.verify.allreduce.blame import names
from remedy.verify.allreduce.engines import Backend
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.allreduce.slow import Pace
from remedy.verify.reach.result import DeadWay


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
        "facts",
        "engine",
        "reachability",
        "new hosts",
        "inside each host",
        "whole fleet",
        "isolation",
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

    @property
    def why(self) -> str:
        """The reason, to be read after ``what``, which it may begin with."""
        return self.reason.removeprefix(self.what).lstrip(": ") or self.reason


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
        engine: what ran it.
        backend: what it ran on; None when no rank came that far.
        world_size: ranks whose part in the sum is proved.
        hosts: distinct machines (by boot-id) among them.
        sum_exact: whether every rank that reported has exactly the sum of the whole world.
        bandwidth: of each size; empty where the group itself is not proved.
        busbw_gbps: of the largest size.
        torch, nccl, software: versions that took part; the last of an engine that is not torch.
        reason: one sentence; on failure it names the host or the way, where it can be told.
        evidence: lines that bear the reason out.
        seconds: wall clock, from the start of the scripts to the last report.
        fingerprints: of each host's state, which the verdict holds for.
        pace: GB/s each way that each host exchanges with the best of a few partners.
        slow: hosts far below the median of these.
        limit_gbps: what the slowest host's links can carry, where it is known.
        min_busbw_gbps: what was asked for; None where nothing was, or where it could not be told.
        rungs: the ladder, as far as it was climbed.
        causes: who is to blame, as far as it could be told.
        dead_ways: the pairs of hosts that do not reach each other; a part of them where they are very many.
        dead_count: how many there are in all, a port each.
        tests: the groups that were tested to find the causes.
        logs: the lines of each process of a run that failed, by its name; they are not kept.
    """

    passed: bool
    possible: bool = True
    engine: EngineName = "torch"
    backend: Backend | None = None
    world_size: int = 0
    expected_world_size: int = 0
    hosts: int = 0
    expected_hosts: int = 0
    sum_exact: bool = False
    bandwidth: tuple[Bandwidth, ...] = ()
    busbw_gbps: float | None = None
    torch: tuple[str, ...] = ()
    nccl: tuple[str, ...] = ()
    software: tuple[str, ...] = ()
    reason: str
    outcomes: tuple[HostOutcome, ...] = ()
    evidence: tuple[str, ...] = ()
    seconds: float = 0.0
    fingerprints: Mapping[str, str] = Field(default_factory=dict)
    pace: Mapping[str, float] = Field(default_factory=dict)
    slow: tuple[Pace, ...] = ()
    limit_gbps: float | None = None
    min_busbw_gbps: float | None = None
    rungs: tuple[Rung, ...] = ()
    causes: tuple[Culprit, ...] = ()
    dead_ways: tuple[DeadWay, ...] = ()
    dead_count: int = 0
    tests: tuple[GroupTest, ...] = ()
    logs: Mapping[str, tuple[str, ...]] = Field(default_factory=dict, exclude=True)

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
        engine=plan.engine,
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
