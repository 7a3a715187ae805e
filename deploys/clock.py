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

from remedy.plan import Fleet, Workbench, once_a_fleet, remedy
from remedy.probe import Clock, HostState
from remedy.spec import SpecSection
from remedy.values import Unknown

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


@once_a_fleet
def usual(fleet: Fleet) -> Offset | None:
    """Return the offset that most hosts share; None where fewer than two are known."""
    clocks = (state.clock for state in fleet.states.values())
    offsets = [offset(clock) for clock in clocks if isinstance(clock, Clock)]
    known = [interval for interval in offsets if interval is not None]
    return common(known) if len(known) > 1 else None


@remedy("Clocks", ClockSpec, finds=("clock-skew",), order=90)
def clock(bench: Workbench[ClockSpec]) -> None:
    """Find a clock that is certainly away from that of most hosts."""
    middle, local = usual(bench.fleet), offset(bench.known(bench.host.clock))
    if middle is None or local is None:
        return
    ahead, behind = local.low - middle.high, middle.low - local.high
    seconds = max(ahead, behind)
    if seconds > bench.settings.tolerance_seconds:
        relation = "ahead of" if ahead > behind else "behind"
        bench.report(
            f"the clock is at least {seconds:.0f} s {relation} that of most hosts",
            (
                f"`date` was {local.low:+.1f} to {local.high:+.1f} s from the controller's clock",
                f"time service: {time_service(bench.host)}",
            ),
            "Run chrony on every host, step the clock once (chronyc makestep), and write it to the hardware "
            "clock (hwclock --systohc).",
        )


def time_service(state: HostState) -> str:
    """Return which service keeps the clock, in words."""
    if isinstance(state.units, Unknown):
        return f"unknown: {state.units.reason}"
    units = state.units
    running = [name for name in SERVICES if name in units and units[name].running]
    return ", ".join(name.removesuffix(".service") for name in running) or "none runs"
