"""How fast each host is by itself, and which are much slower than their like. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remedy.values import Record
from remedy.verify.allreduce.answers import Result
from remedy.verify.allreduce.blame import names
from remedy.verify.allreduce.outliers import outliers
from remedy.verify.allreduce.plan import RankPlan

# Below this share of the median a host is called slow: less is lost in the noise of busy machines.
SHARE = 0.7


class Pace(Record):
    """What a host exchanges with the best of its partners, in GB/s each way, and as a share of the median."""

    host: str
    gbps: float
    share: float


def pace_of(plan: RankPlan, results: Sequence[Result]) -> dict[str, float]:
    """What each host exchanged with the best of its partners, over all its ranks, in GB/s each way."""
    hosts = plan.rank_hosts
    rates: dict[str, dict[str, float]] = {}
    for result in results:
        for one in result.pairs:
            if result.rank < len(hosts) and one.rank < len(hosts) and one.seconds > 0:
                with_partner = rates.setdefault(hosts[result.rank], {})
                other = hosts[one.rank]
                with_partner[other] = with_partner.get(other, 0.0) + one.bytes / one.seconds / 1e9
    return {host: max(partners.values()) for host, partners in rates.items()}


def slow(rates: Mapping[str, float]) -> tuple[Pace, ...]:
    """The hosts that are far below the median, the slowest first."""
    found = outliers(rates, tolerance=1 - SHARE)
    return tuple(
        Pace(host=host, gbps=rates[host], share=share)
        for host, share in sorted(found.items(), key=lambda item: item[1])
    )


def told(found: Sequence[Pace]) -> str:
    """Slow hosts in words; empty where there is none."""
    listed = names(
        f"{one.host} ({one.gbps:.3g} GB/s, {one.share:.0%} of the median)" for one in found
    )
    return f"slow: {listed}" if found else ""
