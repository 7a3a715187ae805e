"""Clocks: hosts whose clocks differ.

Finds: c10d's rendezvous compares heart-beats with wall clocks and drops a host that is 15 seconds behind, and
the other hosts may then train on without it and exit with 0; munge and TLS refuse what comes from another
time.

How it is measured: `date` at the beginning of the probe. The controller notes when it asked and when it had
the answer, so a host's clock is known up to that interval, and only what lies outside of it counts: a slow
connection is never taken for a wrong clock. The clock that most hosts share is taken for the right one.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median_high, median_low

from pydantic import Field

from remedy.plan import Assessment, Finding, FindingKind, Fleet
from remedy.plan.legacy import old_remedy
from remedy.probe import Clock, HostState
from remedy.spec import SpecSection
from remedy.values import Unknown

NAME = "clock"
SERVICES = ("chrony.service", "chronyd.service", "systemd-timesyncd.service", "ntp.service")


class ClockSpec(SpecSection):
    """``tolerance_seconds``: how far a host's clock may be from that of most hosts."""

    tolerance_seconds: float = Field(default=5.0, ge=1, le=3600)


@dataclass(frozen=True)
class Offset:
    """How many seconds a host's clock is ahead of the controller's: something between the two."""

    low: float
    high: float


def offset(clock: Clock) -> Offset | None:
    """Return how far a clock is from the controller's; None when the controller's time was not noted."""
    if not clock.asked_at:
        return None
    return Offset((clock.epoch_ns - clock.heard_at) / 1e9, (clock.epoch_ns - clock.asked_at) / 1e9)


def common(offsets: list[Offset]) -> Offset:
    """Return the offset in the middle of all; of two, the one nearer to the controller's clock."""
    lows, highs = [o.low for o in offsets], [o.high for o in offsets]
    below = Offset(median_low(lows), median_low(highs))
    above = Offset(median_high(lows), median_high(highs))
    return min(below, above, key=lambda o: abs(o.low + o.high))


def assess_fleet(fleet: Fleet, spec: ClockSpec) -> tuple[Finding, ...]:
    """Find the hosts whose clock is certainly away from that of most hosts."""
    offsets = {
        host: found
        for host, state in fleet.states.items()
        if isinstance(state.clock, Clock) and (found := offset(state.clock)) is not None
    }
    if len(offsets) < 2:
        return ()
    middle = common(list(offsets.values()))
    findings = []
    for host, mine in offsets.items():
        ahead, behind = mine.low - middle.high, middle.low - mine.high
        seconds = max(ahead, behind)
        if seconds > spec.tolerance_seconds:
            way = "ahead of" if ahead > behind else "behind"
            findings.append(_finding(fleet.states[host], f"{seconds:.0f} s {way}", mine))
    return tuple(findings)


def _finding(state: HostState, how_far: str, mine: Offset) -> Finding:
    return Finding(
        host=state.host,
        remedy=NAME,
        kind=FindingKind.REPORT,
        label="clock-skew",
        title=f"the clock is at least {how_far} that of most hosts",
        evidence=(
            f"`date` was {mine.low:+.1f} to {mine.high:+.1f} s from the controller's clock",
            f"time service: {time_service(state)}",
        ),
        fix="Run chrony on every host, step the clock once (chronyc makestep), and write it to the hardware "
        "clock (hwclock --systohc).",
    )


def time_service(state: HostState) -> str:
    """Return which service keeps the clock, in words."""
    if isinstance(state.units, Unknown):
        return f"not known: {state.units.reason}"
    units = state.units
    running = [name for name in SERVICES if name in units and units[name].running]
    return ", ".join(name.removesuffix(".service") for name in running) or "none runs"


def assess(_fleet: Fleet, _host: HostState, _spec: ClockSpec) -> Assessment:
    """Nothing: one clock alone is neither right nor wrong."""
    return Assessment()


old_remedy(
    name=NAME,
    title="Clocks",
    text=__doc__,
    cures=(),
    finds=("clock-skew",),
    spec=ClockSpec,
    assess=assess,
    assess_fleet=assess_fleet,
    order=90,
)
