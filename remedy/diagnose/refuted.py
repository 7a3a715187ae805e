"""Which warnings are refuted by what the same processes did later."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from remedy.diagnose.catalogue import Role
from remedy.diagnose.exceptions import EXCEPTION
from remedy.diagnose.lines import Process
from remedy.diagnose.scan import Event, LogScan
from remedy.diagnose.steps import Step

FIRM = 0.95  # a text of this weight is a failure whatever follows
OWN_STEPS = 2  # of the rank that warned
STEPS = 4  # of other ranks in the same log: a collective needs them all
COMPLETE = "nccl-init-complete"
REACHED = "reached-later"

# What reports that the ranks met: the first collective is still to come.
_SET_UP = frozenset((COMPLETE, "paddle-ready"))
_WARNINGS = frozenset((Role.CAUSE, Role.SIGN, Role.CONSEQUENCE))
_NOT_REACHED = re.compile(r"(?i)\bconnect")
_EXCEPTION_TEXT = re.compile(r"[\w.]*(?:Error|Exception)\b")


def standing(events: Iterable[Event], scans: Sequence[LogScan]) -> list[Event]:
    """Return the events without the warnings that later steps, or a set-up that was completed, refute.

    Args:
        events: of all logs.
        scans: the logs.
    """
    events = list(events)
    logs = {scan.name: scan for scan in scans}
    completed = _completed(events)
    reached = {scan.name: reached_at(scan) for scan in scans}
    return [
        event
        for event in events
        if not (
            _goes_on(event, logs[event.source])
            or _was_set_up(event, completed)
            or (
                event.role is Role.SIGN and seeks(event.text) and event.line < reached[event.source]
            )
        )
    ]


def reached_at(scan: LogScan) -> int:
    """Return the last line of a log on which a service was reached, 0 where none was."""
    return max((event.line for event in scan.events if event.symptom == REACHED), default=0)


def seeks(text: str) -> bool:
    """Return whether a line is about a connection: that somebody was not reached is refuted when it is."""
    return bool(_NOT_REACHED.search(text))


def goes_on_after(line: int, steps: Iterable[Step], process: Process = None) -> bool:
    """Return whether a job makes steps after a line: its own rank a few, or all together more.

    Args:
        line: its number in the log.
        steps: of the same log.
        process: that printed the line, None where that is not known.
    """
    after = [step for step in steps if step.line > line]
    return sum(step.process == process for step in after) >= OWN_STEPS or len(after) >= STEPS


def is_more_than_set_up(good: Sequence[Event]) -> bool:
    """Return whether something went well after a set-up: a log that ends with the set-up may be a hang.

    Args:
        good: the events that report that something went well.
    """
    return any(event.symptom not in _SET_UP for event in good)


def _goes_on(event: Event, log: LogScan) -> bool:
    if event.role not in _WARNINGS or event.weight >= FIRM or event.symptom == EXCEPTION:
        return False
    if _EXCEPTION_TEXT.match(event.text):
        return False
    return goes_on_after(event.line, log.steps, event.process)


def _completed(events: Iterable[Event]) -> Mapping[tuple[str, str, Process], int]:
    """Return the last line of each process on which NCCL reports that its set-up is complete."""
    return {
        (event.source, event.host, event.process): event.line
        for event in events
        if event.symptom == COMPLETE
    }


def _was_set_up(event: Event, completed: Mapping[tuple[str, str, Process], int]) -> bool:
    """Return whether NCCL warned of something and was set up nevertheless."""
    if event.role not in _WARNINGS or event.weight >= FIRM or "NCCL" not in event.text:
        return False
    return event.line < completed.get((event.source, event.host, event.process), 0)
