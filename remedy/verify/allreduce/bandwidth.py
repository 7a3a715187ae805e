"""The bandwidth that the user asks for, and whether a run reached it. Pure.

It is GB/s of bus bandwidth, or a share of what the links of the slowest host can carry. Where that is not
known a share cannot be judged, and what cannot be judged has not passed.
"""

from __future__ import annotations

from collections.abc import Sequence

from remedy.text import listed

SHOWN = 4  # hosts in a sentence


def in_gbps(minimum: float | str | None, limit: float | None) -> float | None:
    """Convert the minimum to GB/s; None where there is none, or where it is a share of an unknown limit."""
    if not isinstance(minimum, str):
        return minimum
    return None if limit is None else float(minimum.rstrip("%")) / 100 * limit


def unjudged(minimum: float | str | None, limit: float | None, unknown: Sequence[str] = ()) -> str:
    """Say why a minimum cannot be judged, as a sentence, or an empty text.

    Args:
        minimum: as the user gave it.
        limit: GB/s that the slowest host's links can carry; None where it is not known.
        unknown: the hosts whose links are not known.
    """
    if not isinstance(minimum, str) or limit is not None:
        return ""
    where = f" on {listed(unknown, SHOWN)}" if unknown else ""
    return (
        f"min_busbw is {minimum} of what the links can carry, and their speed is not known{where}: "
        "give it in GB/s"
    )


def shortfall(reached: float, minimum: float | None, why_not: str) -> str:
    """Say what is wrong with the bandwidth that a run reached, as a sentence, or an empty text.

    Args:
        reached: GB/s.
        minimum: GB/s, or None.
        why_not: from ``unjudged``.
    """
    if why_not:
        return f"bus bandwidth {reached:.3g} GB/s cannot be judged: {why_not}"
    if minimum is not None and reached < minimum:
        return f"bus bandwidth {reached:.3g} GB/s is below {minimum:.4g} GB/s"
    return ""


def achieved(reached: float, minimum: float | None, limit: float | None) -> str:
    """Put a bandwidth that is good enough beside the limit and the minimum, where there are any."""
    share = f", {reached / limit:.0%} of what the links can carry" if limit else ""
    goal = f" (at least {minimum:.4g} was asked for)" if minimum is not None else ""
    return f"bus bandwidth {reached:.3g} GB/s{share}{goal}"
