"""The mark: the bandwidth that counts as good, as the user gives it, and whether a run reached it. Pure.

An absolute mark is GB/s of bus bandwidth. A share is of what the links of the slowest host can carry, where
that is known; where it is not, a share cannot be judged, and what cannot be judged has not passed.
"""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 4  # hosts in a sentence


def in_gbps(wanted: float | str | None, limit: float | None) -> float | None:
    """The mark in GB/s; None where there is none, or where it is a share of what is not known."""
    if not isinstance(wanted, str):
        return wanted
    return None if limit is None else float(wanted.rstrip("%")) / 100 * limit


def unjudged(wanted: float | str | None, limit: float | None, unknown: Sequence[str] = ()) -> str:
    """Why a mark cannot be judged, as a sentence, or an empty text.

    Args:
        wanted: as the user gave it.
        limit: GB/s that the slowest host's links can carry; None where it is not known.
        unknown: the hosts whose links are not known.
    """
    if not isinstance(wanted, str) or limit is not None:
        return ""
    some = ", ".join(unknown[:SHOWN]) + (" and more" if len(unknown) > SHOWN else "")
    where = f" on {some}" if unknown else ""
    return (
        f"min_busbw is {wanted} of what the links can carry, and their speed is not known{where}: "
        "give the mark in GB/s"
    )


def missed(reached: float, mark: float | None, why_not: str) -> str:
    """What is wrong with the bandwidth that a run reached, as a sentence, or an empty text.

    Args:
        reached: GB/s.
        mark: GB/s, or None.
        why_not: from ``unjudged``.
    """
    if why_not:
        return f"bus bandwidth {reached:.3g} GB/s cannot be judged: {why_not}"
    if mark is not None and reached < mark:
        return f"bus bandwidth {reached:.3g} GB/s is below {mark:.4g} GB/s"
    return ""


def praised(reached: float, mark: float | None, limit: float | None) -> str:
    """What to say of a bandwidth that is good enough: beside the limit and the mark, where there are any."""
    share = f", {reached / limit:.0%} of what the links can carry" if limit else ""
    wanted = f" (at least {mark:.4g} was asked for)" if mark is not None else ""
    return f"bus bandwidth {reached:.3g} GB/s{share}{wanted}"
