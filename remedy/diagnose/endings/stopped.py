"""What is left when a run is over: clients of a service that was stopped on request seek it in vain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from remedy.diagnose import lines
from remedy.diagnose.catalogue import Role
from remedy.diagnose.scanner.log_scan import Event, LogScan

STOPPED = "service-stopped"
LAST = (
    4  # lines with text at the end of a log that show whether its program still seeks the service
)

_FAILURES = frozenset(
    (Role.CAUSE, Role.APPLICATION, Role.CONSEQUENCE, Role.KILLED, Role.TRACE, Role.SIGN)
)
_OF_A_CONNECTION = re.compile(r"(?i)\bconnect|broker")
# It seeks the service still, or was ended by request itself: it did not fail.
_SEEKS = re.compile(
    r"(?i)\b(?:retry|retries|retrying|trying again|reconnect\w*)\b|\b(?:warm|graceful\w*) shut ?down\b"
)


def without_aftermath(scans: Sequence[LogScan]) -> list[LogScan]:
    """Return the logs without what clients print after a service was stopped on request, while they seek it.

    Args:
        scans: the logs of a run.
    """
    stops = [
        event.time
        for scan in scans
        for event in scan.events
        if event.symptom == STOPPED and event.time is not None
    ]
    if not stops:
        return list(scans)
    return [_until(min(stops), scan) for scan in scans]


def _until(stop: float, scan: LogScan) -> LogScan:
    """Return a log up to a time, where it only seeks a service from then on."""
    if any(event.symptom == STOPPED for event in scan.events):
        return scan
    after = [e for e in scan.events if e.time is not None and e.time >= stop]
    first = next((event for event in after if event.role in _FAILURES), None)
    if first is None or not _OF_A_CONNECTION.search(first.text) or not _still_seeks(scan.tail):
        return scan
    ending = scan.tail.splitlines()
    kept = next((n for n, line in enumerate(ending) if _is_after(stop, line)), len(ending))
    last = scan.lines - len(ending) + kept
    return replace(
        scan,
        events=[event for event in scan.events if _is_kept(event, after, last)],
        tail="\n".join(ending[:kept]),
        lines=last,
        steps=tuple(step for step in scan.steps if step.line <= last),
    )


def _still_seeks(tail: str) -> bool:
    ending = [line for line in tail.splitlines() if line.strip()][-LAST:]
    return any(map(_SEEKS.search, ending))


def _is_after(stop: float, line: str) -> bool:
    time = lines.time_of(line)
    return time is not None and time >= stop


def _is_kept(event: Event, after: Iterable[Event], last: int) -> bool:
    return event.line <= last and not any(event is later for later in after)
