"""What a run survived: a failure amid its work, after which it worked on, or was started again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from remedy.diagnose.catalogue import Role
from remedy.diagnose.endings.ends import RESTARTED, line_of_good_end
from remedy.diagnose.endings.suspect import is_suspect
from remedy.diagnose.scanner.events import speaks_clearly_for
from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.diagnose.scanner.rows import numbered_rows
from remedy.diagnose.scanner.sessions import is_typed
from remedy.diagnose.scanner.steps import OWN_STEPS, goes_on_after

TESTED = "tests-passed"

_NAMES = re.compile(r"[\w.-]{1,253}")
_UNREACHED = frozenset(("ssh-launch-failure", "hostname-unresolvable"))
_NO_FAILURES = frozenset((Role.GOOD, Role.HARMLESS))


def survival_in(events: Sequence[Event], scans: Sequence[LogScan]) -> Callable[[Event], bool]:
    """Return what says of an event whether its run survived it.

    It did where its launcher started the ranks again, and they made steps or ended well; and where a log that
    says in the end that all went well has steps on both sides of it. A host that fails before the first step is
    survived by nobody, unless it is heard of later: others that end well are other runs. What tests provoked,
    they say by themselves.

    Args:
        events: of all logs.
        scans: the logs.
    """
    logs = {scan.name: scan for scan in scans}
    ends = {name: line_of_good_end(scan) for name, scan in logs.items()}
    starts = _new_starts(events, logs, ends)
    tested = {event.source: event.line for event in events if event.symptom == TESTED}

    def is_survived(event: Event) -> bool:
        if event.role in _NO_FAILURES:
            return False
        if event.line < max(starts.get(event.source, 0), tested.get(event.source, 0)):
            return True
        log, end = logs[event.source], ends[event.source]
        if event.line < end and _was_heard_of(event, log):
            return True
        steps = [step.line for step in log.steps]
        # Below another command they are those of another run.
        until = min((line for line in log.commands if line > event.line), default=log.lines + 1)
        after = sum(event.line < line <= min(end, until) for line in steps)
        return after >= OWN_STEPS and min(steps) < event.line

    return is_survived


def _was_heard_of(event: Event, log: LogScan) -> bool:
    """Return whether a host that could not be reached is named later by a line without a word of a failure."""
    host = event.details.get("host", "")
    if not host or not any(speaks_clearly_for(event, label) for label in _UNREACHED):
        return False
    first, rows = numbered_rows(log)
    after = rows[max(0, event.line + 1 - first) :]
    name = host.partition(".")[0]
    return any(
        name in (word.partition(".")[0] for word in _NAMES.findall(row))
        and not (is_suspect(row) or is_typed(row))
        for row in after
    )


def _new_starts(
    events: Iterable[Event], logs: Mapping[str, LogScan], ends: Mapping[str, int]
) -> Mapping[str, int]:
    """Return by log the first step after its last restart, or the good end after it."""
    starts: dict[str, int] = {}
    for event in events:
        if event.symptom != RESTARTED:
            continue
        steps = logs[event.source].steps
        if goes_on_after(event.line, steps, event.process):
            starts[event.source] = min(step.line for step in steps if step.line > event.line)
        elif event.line < ends[event.source]:
            starts[event.source] = ends[event.source]
    return starts
