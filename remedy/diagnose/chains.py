"""Exceptions that were raised from another one: they report it to their caller, and say nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from remedy.diagnose.scan import Event, LogScan

# What Python prints between an exception and the one that was raised from it.
_FROM = "The above exception was the direct cause of the following exception"
INNER = 4  # lines before it in which the inner exception ends
OUTER = 60  # lines after it in which the outer one ends


def without_wrappers(
    failures: Sequence[Event], effects: Sequence[Event], scans: Sequence[LogScan]
) -> list[Event]:
    """Leave out the exceptions that were raised from one by which a process suffers from another.

    Args:
        failures: what the logs report.
        effects: what processes print that suffer from another.
        scans: the logs.
    """
    if not effects:
        return list(failures)
    spans = {
        scan.name: [
            (at, at + OUTER)
            for at in _marks(scan)
            if any(
                effect.source == scan.name and at - INNER <= effect.line < at for effect in effects
            )
        ]
        for scan in scans
    }
    return [
        event
        for event in failures
        if not any(begin < event.line <= end for begin, end in spans.get(event.source, ()))
    ]


def _marks(scan: LogScan) -> list[int]:
    """Return the lines at the end of a log that stand between two exceptions."""
    ending = scan.tail.rstrip("\n").split("\n")
    return [
        scan.lines - after
        for after, line in enumerate(reversed(ending))
        if _FROM in line and scan.lines > after
    ]
