"""Logs whose clocks differ: ranks end a step together, so that the times of their steps show by how much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.text import counted

LEAST = 5.0  # seconds: less is the time that a rank takes to print
COMMON = 3  # steps that two logs report
MOST_SAID = 3  # logs whose clock is told


def on_one_clock(scans: Sequence[LogScan]) -> tuple[list[LogScan], tuple[str, ...]]:
    """Return the logs with the times of one of them, and sentences about those whose clock differs.

    Args:
        scans: of the logs of one run.
    """
    times = {scan.name: _times(scan) for scan in scans}
    if len(times) < 2:
        return list(scans), ()
    first = max(times, key=lambda name: len(times[name]))
    ahead = {name: _ahead(own, times[first]) for name, own in times.items()}
    notes = [
        f"{name}: its clock is {_seconds(abs(late))} {'ahead of' if late > 0 else 'behind'} that of {first}, "
        "by the steps of both; its times are put right here"
        for name, late in ahead.items()
        if late
    ]
    if more := notes[MOST_SAID:]:
        notes = [*notes[:MOST_SAID], f"so it is with {counted(len(more), 'more log')}"]
    return [_moved(scan, ahead[scan.name]) for scan in scans], tuple(notes)


def _times(scan: LogScan) -> Mapping[int, float]:
    """Return when a log reports each step; those that it counts twice, as of two epochs, are left out."""
    counts = Counter(step.count for step in scan.steps)
    return {
        step.count: step.time
        for step in scan.steps
        if step.count is not None and step.time is not None and counts[step.count] == 1
    }


def _ahead(own: Mapping[int, float], other: Mapping[int, float]) -> float:
    """Return by how many seconds one clock is ahead of another, 0 where the steps of both do not show it."""
    apart = sorted(own[count] - other[count] for count in own.keys() & other.keys())
    if len(apart) < COMMON:
        return 0.0
    usual = median(apart)
    spread = apart[-1] - apart[0]
    return usual if abs(usual) > max(LEAST, 2 * spread) else 0.0


def _moved(scan: LogScan, ahead: float) -> LogScan:
    if not ahead:
        return scan

    def at(time: float | None) -> float | None:
        return None if time is None else time - ahead

    def event_at(event: Event) -> Event:
        return replace(event, time=at(event.time), until=at(event.until), nearest=at(event.nearest))

    steps = tuple(replace(step, time=at(step.time)) for step in scan.steps)
    return replace(
        scan,
        events=[event_at(event) for event in scan.events],
        steps=steps,
        time=at(scan.time),
        begin=at(scan.begin),
    )


def _seconds(time: float) -> str:
    if time < 120:
        return f"{time:.0f} seconds"
    return f"{time / 60:.0f} minutes" if time < 7200 else f"{time / 3600:.1f} hours"
