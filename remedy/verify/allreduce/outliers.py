"""Who is slow: outliers against the median of their like."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import log
from statistics import median
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

# With fewer values there is no telling who is the odd one.
FEWEST = 4
# The median absolute deviation times this estimates the standard deviation of normal noise.
MAD_TO_SIGMA = 1.4826
SIGMAS = 4.0
LEAST = 1e-9  # of the median: nothing at all has no logarithm


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
