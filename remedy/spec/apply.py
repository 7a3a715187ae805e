"""The section ``apply``: how changes are made."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from remedy.spec.section import SpecSection

_WAVES = {
    "type": "string",
    "description": "numbers or percentages above 0, such as 1,10%,100%",
    "pattern": r"^ *[1-9][0-9 ]*%?( *, *[1-9][0-9 ]*%?)* *$",
}


def _wave_sizes(text: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]*%?(,[1-9][0-9]*%?)*", text.replace(" ", "")):
        raise ValueError
    return text


class ApplySpec(SpecSection):
    """How changes are made.

    Args:
        confirm_seconds: a change that can cut the connection is taken back by the host itself unless a new
            connection confirms it within this time.
        without_systemd: on a host without systemd the timer does not survive a reboot; "refuse" then refuses
            such changes, "fallback" makes them.
        waves: how many hosts are changed at a time, such as "1,10%,100%"; each wave is probed again before
            the next.
        prove_waves: each of several waves is proved by an all-reduce, with hosts whose last proof still holds;
            where that fails the wave is taken back and the run stops.
        max_failures: no further wave is begun once more hosts of the run have failed, unreachable ones
            included; null: go on.
        keep_days: what taking a run back needs, on the hosts and beside the inventory, is removed by the first
            run after this many days; the journal and the hosts' logs are not. null: it is kept.
    """

    confirm_seconds: int = Field(default=60, ge=10, le=3600)
    without_systemd: Literal["fallback", "refuse"] = "fallback"
    prove_waves: bool = True
    waves: Annotated[
        str, AfterValidator(_wave_sizes), WithJsonSchema(_WAVES, mode="validation")
    ] = "100%"
    max_failures: int | None = Field(default=None, ge=0)
    keep_days: int | None = Field(default=None, ge=7, le=36500)
