"""What a run survived: a failure amid its work, after which it worked on, or was started again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from remedy.diagnose.catalogue import Role
from remedy.diagnose.ends import line_of_good_end
from remedy.diagnose.scan import Event, LogScan
from remedy.diagnose.steps import OWN_STEPS, goes_on_after

RESTARTED, TESTED = "restarted", "tests-passed"

_NO_FAILURES = frozenset((Role.GOOD, Role.HARMLESS))


def survival_in(events: Sequence[Event], scans: Sequence[LogScan]) -> Callable[[Event], bool]:
    """Return what says of an event whether its run survived it.

    It did where its launcher started the ranks again and they made steps; and where a log that says in the end
    that all went well has steps on both sides of it. A host that fails before the first step is survived by
    nobody: others that end well are other runs. What tests provoked, they say by themselves.

    Args:
        events: of all logs.
        scans: the logs.
    """
    logs = {scan.name: scan for scan in scans}
    starts = _new_starts(events, logs)
    tested = {event.source: event.line for event in events if event.symptom == TESTED}
    ends = {name: line_of_good_end(scan) for name, scan in logs.items()}

    def is_survived(event: Event) -> bool:
        if event.role in _NO_FAILURES:
            return False
        if event.line < max(starts.get(event.source, 0), tested.get(event.source, 0)):
            return True
        steps = [step.line for step in logs[event.source].steps]
        after = sum(event.line < line <= ends[event.source] for line in steps)
        return after >= OWN_STEPS and min(steps) < event.line

    return is_survived


def _new_starts(events: Iterable[Event], logs: Mapping[str, LogScan]) -> Mapping[str, int]:
    """Return by log the first step after its last restart."""
    return {
        event.source: min(s.line for s in logs[event.source].steps if s.line > event.line)
        for event in events
        if event.symptom == RESTARTED
        and goes_on_after(event.line, logs[event.source].steps, event.process)
    }
