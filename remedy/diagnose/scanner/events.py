"""Which events of all logs count, and in what order they happened."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from remedy.diagnose.catalogue import CLEAR, Role, Symptom, catalogue
from remedy.diagnose.scanner.exceptions import EXCEPTION
from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.diagnose.scanner.parts import is_of_hosts

LAST_LINES = 3  # at the end of a log
OF_AN_EXCEPTION = 6  # lines of its message after its first by which an entry explains it

# Who supervises a program says nothing of what the program says.
_OF_A_SUPERVISOR = re.compile(
    r"(?:slurmstepd|srun|mpirun|mpiexec|orterun|prterun|flux-job): |=>> PBS: "
)
_EXCEPTION_TEXT = re.compile(r"[\w.]*(?:Error|Exception)\b")
# The clock of dmesg -T: who prints it looked for what had happened before.
_OF_DMESG = re.compile(r"\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d 20\d\d\] ")
# A launcher's exceptions report that something failed, not what.
_LAUNCHERS = re.compile(
    r"SystemExit|invoke\.exceptions\.UnexpectedExit|[\w.]*(?:ChildFailed|CalledProcess|RendezvousClosed|RendezvousGracefulExit)Error\b"
    r"|[\w.]*(?:Signal|ProcessExited|ProcessRaised)Exception\b"
    r"|RuntimeError: Distributed job exited with exception"  # msrun
    # vLLM: of a worker, which has its own
    r"|Exception: WorkerProc initialization failed"
    r"|FatalError: `(?:Termination|Process abort) signal`"  # Paddle's handlers of signals
    r"|RuntimeError: reentrant call inside"  # a handler that prints while something else does
)


def events_that_count(scans: Sequence[LogScan]) -> list[Event]:
    """Return the events in the order of time, without those that other logs or entries take the meaning of."""
    entries = {entry.id: entry for entry in catalogue()}
    jobs = sum(not is_of_hosts(scan.name) for scan in scans)
    same: dict[str, list[Event]] = {}
    for scan in scans:
        for event in scan.events:
            same.setdefault(event.symptom, []).append(event)
    counting = {
        name for name, events in same.items() if _counts_across(entries.get(name), events, jobs)
    }
    harmless = {
        (event.source, event.line)
        for scan in scans
        for event in scan.events
        if event.role is Role.HARMLESS and event.symptom in counting
    }
    valid = [
        event
        for scan in scans
        for event in scan.events
        # What an entry knows to be harmless is no exception of its program.
        if not (event.symptom == EXCEPTION and (event.source, event.line) in harmless)
        and event.symptom in counting
        and _is_in_place(event, scan, entries.get(event.symptom))
    ]
    symptoms = {event.symptom for event in valid}
    return _in_order(
        [event for event in valid if _is_in_company(entries.get(event.symptom), symptoms)]
    )


def speaks_clearly_for(event: Event, label: str) -> bool:
    """Return whether an event names a cause clearly.

    Args:
        event: of a log.
        label: of the cause.
    """
    return any(cause.label == label and cause.weight >= CLEAR for cause in event.causes)


def is_misplaced(event: Event) -> bool:
    """Return whether the place of an event says nothing: its time is not known, or dmesg was asked for it."""
    return event.time is None or bool(_OF_DMESG.match(event.text))


def is_of_launcher(text: str) -> bool:
    """Return whether an exception is a launcher's: it reports that something failed, not what."""
    return bool(_LAUNCHERS.match(text))


def without_echoes(
    failures: Sequence[Event], effects: Sequence[Event], killed: Sequence[Event]
) -> list[Event]:
    """Leave out exceptions whose text an entry explains already, as a cause or as a consequence.

    Args:
        failures: causes, and exceptions among them.
        effects: what ranks print that suffer from another.
        killed: what says that a process was killed: after an exception that is news, on its line the same.
    """
    known = [
        event
        for event in [*effects, *failures]
        if event.symptom != EXCEPTION and not _OF_A_SUPERVISOR.match(event.text)
    ]
    processes = {(event.source, event.line): event.process for event in known}
    same_line = {(event.source, event.line): event.process for event in killed}
    # The lines after an exception are its message, unless they are an exception of their own.
    exceptions = {(e.source, e.line) for e in known if _EXCEPTION_TEXT.match(e.text)}

    def is_echo(event: Event) -> bool:
        extent = min(event.extent, OF_AN_EXCEPTION)
        following = [(event.source, event.line + n) for n in range(1, extent + 1)]
        places = [
            (event.source, event.line),
            *(place for place in following if place not in exceptions),
        ]
        explains = any(processes.get(place, -1) in (event.process, None) for place in places)
        explains |= same_line.get((event.source, event.line), -1) in (event.process, None)
        return explains or is_of_launcher(event.text)

    return [event for event in failures if event.symptom != EXCEPTION or not is_echo(event)]


def _is_in_place(event: Event, log: LogScan, entry: Symptom | None) -> bool:
    """Return whether an event stands where it counts in its log."""
    return entry is None or not entry.last or log.lines - event.line < LAST_LINES


def _is_in_company(entry: Symptom | None, symptoms: Collection[str]) -> bool:
    """Return whether no other entry takes the meaning away, and the one that gives it was seen."""
    if entry is None:
        return True
    if entry.when_seen and entry.when_seen not in symptoms:
        return False
    return entry.unless_seen not in symptoms


def _counts_across(entry: Symptom | None, same: Sequence[Event], logs: int) -> bool:
    """Return whether events of one entry count, by what the logs hold of them."""
    if entry is None or not entry.across:
        return True
    if entry.across == "some":
        return logs > 1 and len({event.source for event in same}) < logs
    if entry.across == "differs":
        places: dict[tuple[str | None, ...], set[str | None]] = {}
        for event in same:
            place = tuple(event.details.get(name) for name in entry.within.split(",") if name)
            places.setdefault(place, set()).add(event.details.get(entry.by))
        return any(len(values) > 1 for values in places.values())
    return len(same) > 1


def _in_order(events: Sequence[Event]) -> list[Event]:
    """Sort the events of all logs by time.

    Within a log the order is that of its lines: one without a time has that of the line before it, and before
    the first time of its log that one. A log without times comes after those that have them: nothing shows
    where it belongs.
    """
    latest: dict[str, float] = {}
    for event in events:
        if event.time is not None:
            latest.setdefault(event.source, event.time)
    keyed = []
    for event in events:
        before = latest.get(event.source, float("inf"))
        time = before if event.time is None else max(before, event.time)
        if event.source in latest:
            latest[event.source] = time
        keyed.append((time, event.source, event.line, event))
    return [event for *_, event in sorted(keyed, key=lambda key: key[:3])]
