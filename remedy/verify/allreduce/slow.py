"""How fast each host is by itself, and which are much slower than their like. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import log
from statistics import median
from typing import TypeVar

from remedy.text import listed
from remedy.verify.allreduce.answers import RankResult
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.verdict import SlowHost

# Below this share of the median a host is called slow: less is lost in the noise of busy machines.
SHARE = 0.7
# With fewer values there is no telling who is the odd one.
FEWEST = 4
# The median absolute deviation times this estimates the standard deviation of normal noise.
MAD_TO_SIGMA = 1.4826
SIGMAS = 4.0
LEAST = 1e-9  # of the median: nothing at all has no logarithm

Key = TypeVar("Key", bound=Hashable)


def pace_of(plan: RankPlan, results: Sequence[RankResult]) -> dict[str, float]:
    """Find what each host exchanged with the best of its partners, over all its ranks, in GB/s each way."""
    hosts = plan.rank_hosts
    rates: dict[str, dict[str, float]] = {}
    for result in results:
        for pair in result.pairs:
            if result.rank < len(hosts) and pair.rank < len(hosts) and pair.seconds > 0:
                by_partner = rates.setdefault(hosts[result.rank], {})
                partner = hosts[pair.rank]
                by_partner[partner] = by_partner.get(partner, 0.0) + pair.bytes / pair.seconds / 1e9
    return {host: max(partners.values()) for host, partners in rates.items()}


def slow_hosts(rates: Mapping[str, float]) -> tuple[SlowHost, ...]:
    """Find the hosts that are far below the median, the slowest first."""
    shares = outliers(rates, tolerance=1 - SHARE)
    return tuple(
        SlowHost(host=host, gbps=rates[host], share=share)
        for host, share in sorted(shares.items(), key=lambda item: item[1])
    )


def slow_message(hosts: Sequence[SlowHost]) -> str:
    """Name slow hosts with their figures; empty where there is none."""
    words = listed(
        f"{slow.host} ({slow.gbps:.3g} GB/s, {slow.share:.0%} of the median)" for slow in hosts
    )
    return f"slow: {words}" if hosts else ""


def outliers(rates: Mapping[Key, float], tolerance: float = 0.2) -> dict[Key, float]:
    """Find those whose rate is far below what is usual.

    Args:
        rates: GB/s, or anything of which more is better; measured under like conditions.
        tolerance: the share below the median that is never called slow, however alike the others are.

    Returns:
        the slow ones, each with its share of the median.
    """
    if len(rates) < FEWEST:
        return {}
    middle = median(rates.values())
    if middle <= 0:
        return {}
    # It is ratios that noise spreads alike on both sides: a busy machine halves a rate, or doubles it.
    away = {key: log(max(rate, LEAST * middle) / middle) for key, rate in rates.items()}
    spread = MAD_TO_SIGMA * median(map(abs, away.values()))
    floor = min(log(1 - tolerance), -SIGMAS * spread)
    return {key: rates[key] / middle for key, distance in away.items() if distance < floor}
