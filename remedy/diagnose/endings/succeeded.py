"""Runs that state their own success: they survived what stands before it, and end with what follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from remedy.diagnose.catalogue import Role
from remedy.diagnose.endings.ends import FATAL
from remedy.diagnose.scanner.log_scan import Event, LogScan

SUCCEEDED = "run-succeeded"
SUMMARY = 20  # lines after a success in which a run sums up its steps
AFTER = 0.8  # a text of this weight after a success is a failure, of another run in the same log


def successes(events: Sequence[Event], scans: Sequence[LogScan]) -> tuple[Event, ...]:
    """Return the lines by which a run states its success; () where another one may have followed in its log.

    Args:
        events: of all logs.
        scans: the logs.
    """
    success = {event.source: event.line for event in events if event.symptom == SUCCEEDED}
    if not success or any(event.role is Role.KILLED for event in events):
        return ()
    if _goes_on(scans, success) or not all(_is_excused(event, success) for event in events):
        return ()
    return tuple(event for event in events if event.symptom == SUCCEEDED)


def _goes_on(scans: Iterable[LogScan], success: Mapping[str, int]) -> bool:
    """Return whether a log has steps after a success: those of another run."""
    return any(
        step.line > success[scan.name] + SUMMARY
        for scan in scans
        if scan.name in success
        for step in scan.steps
    )


def _is_excused(event: Event, success: Mapping[str, int]) -> bool:
    if event.role not in (Role.CAUSE, Role.APPLICATION, Role.CONSEQUENCE):
        return True
    is_before = event.line < success.get(event.source, 0)
    return event.weight < (FATAL if is_before else AFTER)
