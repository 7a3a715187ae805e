"""The plan of one all-reduce: which ranks run where, on which port and backend. Pure but for what is drawn."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from random import SystemRandom
from typing import Literal

from pydantic import Field

from remedy.spec import EngineName, VerifySpec
from remedy.spec.verify import PORTS
from remedy.values import Record
from remedy.verify.allreduce.bandwidth import in_gbps, unjudged
from remedy.verify.allreduce.engines import ENGINES, Engine
from remedy.verify.hosts import Participant
from remedy.verify.verdict import Backend

PlannedBackend = Backend | Literal["auto"]
# Bytes that are measured where the user names none: to a size that fills the links of the day.
CPU_SIZES = (8, 65_536, 1_048_576, 16_777_216)
GPU_SIZES = (8, 1_048_576, 33_554_432, 268_435_456, 1_073_741_824)


class RankHost(Record):
    """One host of a plan: where it is, how many ranks it runs and by which interpreter."""

    name: str
    address: str
    ranks: int
    python: str | None = None


class RankPlan(Record):
    """Who takes part in one verification, and how it is started.

    Args:
        nonce: 16 hexadecimal digits, new for each run: results with a different one are not this run's.
        hosts: in rank order; the first holds the rendezvous.
        port: TCP port of the rendezvous.
        deadline: seconds after which each host ends its part by itself.
        backend: what the proof must run on; "nccl" where every host has GPUs.
        engine: what runs it.
        job: the job of Slurm in whose steps its ranks have to be; empty where ssh starts them.
        secret: known to this run's hosts alone; what one of them sends to another is signed with it.
        sizes: bytes to measure; None fits them to the device.
        min_busbw: GB/s that the largest size must reach.
        all_reduce_perf: where nccl-tests' program is; "" looks for it.
        unjudged: why the bandwidth cannot be judged, although the user gave a mark; a run then fails.
        limit: GB/s that the slowest host's links can carry, where it is known.
    """

    nonce: str
    hosts: tuple[RankHost, ...]
    port: int
    deadline: float
    backend: PlannedBackend
    engine: EngineName = "torch"
    job: str = ""
    secret: str = Field(default="", repr=False)
    all_reduce_perf: str = ""
    sizes: tuple[int, ...] | None = None
    min_busbw: float | None = None
    unjudged: str = ""
    limit: float | None = None

    @property
    def world(self) -> int:
        """How many ranks there are in all."""
        return sum(host.ranks for host in self.hosts)

    def sizes_on(self, backend: Backend) -> tuple[int, ...]:
        """List the bytes that are measured, rising: whole float32 numbers, so multiples of four."""
        sizes = self.sizes or (GPU_SIZES if backend == "nccl" else CPU_SIZES)
        return tuple(sorted({size - size % 4 for size in sizes}))

    @property
    def rank_hosts(self) -> tuple[str, ...]:
        """The host name of each rank."""
        return tuple(host.name for host in self.hosts for _ in range(host.ranks))


def default_deadline(hosts: int) -> float:
    """Return seconds that a healthy run of this many hosts never needs: importing torch twice dominates.

    A healthy run of 3 hosts on 2 shared cores takes about 12 s; four that were starved of processor time had
    not imported it after 45. A broken one ends only at the deadline.
    """
    return min(90.0 + hosts, 300.0)


def join_seconds(deadline: float) -> float:
    """Return seconds that ranks wait for each other: less than the deadline, so that torch still reports."""
    return max(8.0, deadline * 0.5)


def plan_ranks(
    participants: Sequence[Participant],
    spec: VerifySpec | None = None,
    limit: float | None = None,
    unknown: Sequence[str] = (),
) -> RankPlan:
    """Decide how many ranks run where, on which port and backend.

    Args:
        participants: in the order of the ranks.
        spec: the section ``verify``.
        limit: GB/s that the slowest host can carry, where it is known.
        unknown: the hosts whose limit is not known.
    """
    spec = spec or VerifySpec()
    engine = ENGINES[spec.engine]
    counts = [host.gpus for host in participants]
    backend = _backend(spec, engine, counts)
    return RankPlan(
        nonce=secrets.token_hex(8),
        hosts=tuple(
            RankHost(
                name=host.name,
                address=host.address,
                ranks=max(1, ranks),
                python=host.python or spec.python,
            )
            for host, ranks in zip(participants, _ranks(spec, backend, counts), strict=True)
        ),
        port=spec.port or SystemRandom().choice(PORTS),
        deadline=spec.deadline or default_deadline(len(participants)) + engine.patience,
        backend=backend,
        engine=spec.engine,
        secret=secrets.token_hex(16),
        all_reduce_perf=spec.all_reduce_perf or "",
        sizes=spec.sizes,
        min_busbw=in_gbps(spec.min_busbw, limit),
        unjudged=unjudged(spec.min_busbw, limit, unknown),
        limit=limit,
    )


def _backend(spec: VerifySpec, engine: Engine, gpus: Sequence[int]) -> PlannedBackend:
    backend: PlannedBackend = engine.backend or spec.backend
    if backend != "auto":
        return backend
    # Where some hosts have GPUs and some have none, the ranks agree among themselves.
    return "nccl" if gpus and all(gpus) else "auto" if any(gpus) else engine.cpu


def _ranks(spec: VerifySpec, backend: PlannedBackend, gpus: Sequence[int]) -> list[int]:
    if spec.ranks_per_host != "auto":
        return [spec.ranks_per_host] * len(gpus)
    # One rank a host wherever the world is not all GPUs: CPU ranks prove nothing more by number.
    return [count if backend == "nccl" else 1 for count in gpus]


def part(plan: RankPlan, members: Collection[str], seconds: float) -> RankPlan:
    """Plan a part of a fleet, in the order of the fleet, with a deadline of its own.

    Args:
        plan: of the fleet.
        members: of the part.
        seconds: that torch may take, never more than the fleet had; other engines get what they need beyond
            that.
    """
    # A single size shows what is asked; the largest only where slowness is what may fail.
    sizes = plan.sizes or (None if plan.min_busbw else (65_536,))
    # What cannot be judged of the whole says nothing of its parts.
    return group(plan, members, seconds).model_copy(update={"sizes": sizes, "unjudged": ""})


def group(plan: RankPlan, members: Collection[str], seconds: float) -> RankPlan:
    """Plan the same proof for a group of a fleet; arguments as for ``part``."""
    names = set(members)
    return plan.model_copy(
        update={
            "nonce": secrets.token_hex(8),
            "hosts": tuple(host for host in plan.hosts if host.name in names),
            "deadline": min(seconds + ENGINES[plan.engine].patience, plan.deadline),
        }
    )
