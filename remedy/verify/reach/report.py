"""What one host prints of its calls, read strictly. Pure."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from remedy.answers import EXCERPT, read_answer
from remedy.transport import Output
from remedy.verify.onhost.knock import MARK
from remedy.verify.scripts import why_silent
from remedy.verify.verdict import LinkOutcome

NO_PYTHON = "no Python 3.8 or newer runs there"
# A call: the number of the host that makes it, of the host that it goes to, and the port.
Call = tuple[int, int, int]


class Retried(NamedTuple):
    """How a call ended that was made a second time.

    Args:
        outcome: None where it was answered.
        detail: what was seen.
        seconds: until it was answered.
    """

    outcome: LinkOutcome | None
    detail: str = ""
    seconds: float = 0.0


class MtuAnswer(BaseModel):
    """What packets that must not be cut showed: peers and sizes, peers who answer none, why none were sent."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    narrow: tuple[tuple[int, int], ...]
    mute: tuple[int, ...]
    reason: str


class ReachAnswer(BaseModel):
    """What one host printed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    good: int
    bad: tuple[tuple[int, int, str, str], ...]
    times: tuple[tuple[int, int, float], ...]
    slowest: float
    listening: tuple[int, ...]
    busy: tuple[tuple[int, str], ...]
    ended: Literal["answered", "time"]
    mtu: MtuAnswer
    seconds: float


class ReachLack(BaseModel):
    """What a host printed that has no Python to answer with: what is wrong with each that it has."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    lacks: str


def read_report(nonce: str, output: Output | None) -> ReachAnswer | str:
    """Read what a host printed, or return why that counts for nothing.

    Args:
        nonce: of the run.
        output: None where nothing came back.
    """
    printed = read_answer(output.stdout if output else "", nonce, mark=MARK)
    if printed.fault or not printed.lines:
        return printed.fault or why_silent(output)
    try:
        if printed.lines[0].startswith('{"lacks"'):
            lack = ReachLack.model_validate_json(printed.lines[0]).lacks.strip(" ;")[:EXCERPT]
            return f"{NO_PYTHON}: {lack}"
        return ReachAnswer.model_validate_json(printed.lines[0])
    except ValueError:
        return "its report cannot be read"


def outcome_of(ending: str, *, listening: bool, silent: bool) -> LinkOutcome | None:
    """Say what a call's end means; None where the link is good after all.

    Where something else on the target holds the port, its answer, or that it only took the connection, shows
    that packets come through.

    Args:
        ending: what the caller saw.
        listening: whether the target's own program listened on the port.
        silent: whether the target reported nothing.
    """
    if ending in ("dropped", "rejected", "stalled"):
        return ending  # type: ignore[return-value]
    if ending == "refused":
        return "refused" if listening else "no listener"
    if ending in ("foreign", "mute"):
        return ending if listening or silent else None  # type: ignore[return-value]
    return "not tested"
