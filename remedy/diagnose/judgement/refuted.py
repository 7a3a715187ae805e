"""Which warnings are refuted by what the same processes did later."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from remedy.diagnose.catalogue import CLEAR, Role
from remedy.diagnose.course.outlived import only_warns
from remedy.diagnose.diagnosis import APPLICATION
from remedy.diagnose.endings.progress import failure_lines
from remedy.diagnose.endings.survived import TESTED, survival_in
from remedy.diagnose.judgement.ranking import FIRM
from remedy.diagnose.lines import Process
from remedy.diagnose.scanner.exceptions import EXCEPTION
from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.diagnose.scanner.rows import numbered_rows
from remedy.diagnose.scanner.steps import goes_on_after

COMPLETE = "nccl-init-complete"
DASK_CLOSED = "dask-closed"
REACHED, SERVES = "reached-later", "server-up"
MOST_SAID = 3  # sentences about what a run outlived
PROGRAMS_OWN = 0.7  # the least weight of an exception that is the program's alone

# What reports that the ranks met: the first collective is still to come.
_SET_UP = frozenset((COMPLETE, "paddle-ready"))
_WARNINGS = frozenset((Role.CAUSE, Role.SIGN, Role.CONSEQUENCE))
_NOT_REACHED = re.compile(r"(?i)\bconnect")
# By the entry that answers: what is refuted by it, where it stands before it in the same log.
_ANSWERED = {
    REACHED: _NOT_REACHED,
    "link-came-back": re.compile(r"port error|Link (?:is )?[Dd]own|link status definitely down"),
    "server-came-up": re.compile(r"is DOWN, reason"),
    "name-was-found": re.compile(r"resolve|can.t find"),
    "storage-came-back": re.compile(
        r"nfs: server \S+ not responding|Lustre: .*(?:lost|timed out for)"
    ),
    "image-was-pulled": re.compile(r"[Ff]ailed to pull image|ImagePullBackOff|ErrImagePull"),
    "xla-was-late": re.compile(r"This thread has been waiting"),
    "ray-grew": re.compile(r"No available node types|cannot be scheduled|resource request"),
    "slurmdbd-came": re.compile(r"slurmdbd|PersistInit"),
    "slurm-allocated": re.compile(
        r"Required node not available|ReqNodeNotAvail|queued and waiting"
    ),
    "clock-was-set": re.compile(r"System clock wrong by"),
    "c10d-connected": re.compile(r"\[c10d\]"),
    "ssh-came-up": re.compile(r"ssh: connect to host|Could not resolve hostname"),
    "kubernetes-placed": re.compile(r"FailedScheduling|pod group is not ready|unused quota"),
    "condor-reconnected": re.compile(r"disconnected|closed unexpectedly"),
    "clock-source": re.compile(r"no selectable sources"),
    "lightning-requeue": re.compile(r"SIGTERM|CANCELLED AT"),
    "exit-barrier-missed": re.compile(r"TCPStore|recv"),
    "spark-job-finished": re.compile(
        r"Lost (?:task|executor)|TaskSetManager|YarnScheduler|FetchFailed|ExecutorLost"
        r"|java\.(?:io|net|nio)\.|Transport\w+Handler|loopback address"
    ),
    DASK_CLOSED: re.compile(
        r"\bmemory (?:budget|usage)\. |Removing worker|Restarting worker|StreamClosed|CommClosed"
        r"|Failed to communicate with scheduler during heartbeat"
    ),
    "c10d-tried": re.compile(r"network addresses of .* cannot be retrieved"),
    TESTED: re.compile(""),
    SERVES: re.compile(""),
}
# These answer exceptions, too, of tasks that were done again.
_OF_TASKS = frozenset((DASK_CLOSED, "spark-job-finished"))
# Seconds after which an answer comes too late for those who wait in a collective.
_TOO_LATE = {"storage-came-back": 300.0}
# These answer only what warns, or names no cause clearly.
_OF_TIME = frozenset((REACHED, SERVES))
ANSWERS = frozenset(_ANSWERED)
# Raised by what a program does, and not by what it runs on.
_LOGIC = re.compile(
    r"(?:[\w.]+\.)?(?:Key|Value|Type|Index|Attribute|Name|UnboundLocal|ZeroDivision|FloatingPoint|JSONDecode"
    r"|NotImplemented)Error\b"
)
_EXCEPTION_TEXT = re.compile(r"[\w.]*(?:Error|Exception)\b(?! caught\b)")


def standing(events: Iterable[Event], scans: Sequence[LogScan]) -> list[Event]:
    """Return the events without those that later steps, an answer or a set-up that was completed refute.

    Args:
        events: of all logs.
        scans: the logs.
    """
    events = list(events)
    logs = {scan.name: scan for scan in scans}
    completed = _completed(events)
    answers = [event for event in events if event.symptom in ANSWERS]
    own = _programs_own(events)
    is_survived = survival_in(events, scans)
    return [
        event
        for event in events
        if not (
            _goes_on(event, logs[event.source])
            or _was_set_up(event, completed)
            or _was_answered(event, answers)
            or _failed_later(event, own)
            or is_survived(event)
        )
    ]


def outlived_causes(reported: Sequence[Event], standing: Sequence[Event]) -> tuple[Event, ...]:
    """Return what could be a cause and was outlived, the first of each cause: a run can be slower for it.

    Args:
        reported: the events of all logs.
        standing: those that nothing refutes.
    """
    left = {id(event) for event in standing}
    outlived: dict[str, Event] = {}
    for event in sorted(reported, key=lambda event: event.line):
        if id(event) not in left and event.role is Role.CAUSE and event.weight >= CLEAR:
            outlived.setdefault(event.causes[0].label, event)
    return tuple(outlived.values())[:MOST_SAID]


def answered_in(scan: LogScan) -> Callable[[int, str], bool]:
    """Return what says of a line of a log whether a later one answers it: a service reached, a name found.

    Args:
        scan: the log.
    """
    latest: dict[str, int] = {}
    for event in scan.events:
        if event.symptom in ANSWERS:
            latest[event.symptom] = max(event.line, latest.get(event.symptom, 0))

    def is_answered(line: int, text: str) -> bool:
        return any(line < last and _ANSWERED[name].search(text) for name, last in latest.items())

    return is_answered


def failures_of(scan: LogScan) -> list[str]:
    """Return the last lines of a log that report a failure which no later line answers.

    Args:
        scan: the log.
    """
    failures = failure_lines(scan.tail)
    if not failures:
        return []
    is_answered = answered_in(scan)
    first, rows = numbered_rows(scan)
    numbers = {row: number for number, row in enumerate(rows, first)}
    return [line for line in failures if not is_answered(numbers.get(line, scan.lines), line)]


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
    until = min((line for line in log.commands if line > event.line), default=log.lines + 1)
    steps = [step for step in log.steps if step.line < until]
    return goes_on_after(event.line, steps, event.process)


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


def _was_answered(event: Event, answers: Iterable[Event]) -> bool:
    """Return whether what was missing came later: a service, a link, a name, another GPU."""
    is_raised = event.symptom == EXCEPTION
    if not is_raised and event.role not in (*_WARNINGS, Role.APPLICATION):
        return False
    return any(
        answer.source == event.source
        and answer.line > event.line
        and (not is_raised or answer.symptom in _OF_TASKS)
        # That one rank reaches what another does not is no answer.
        and (None in (answer.process, event.process) or answer.process == event.process)
        and answer.details.get("host", "") in event.text
        and not _is_too_late(event, answer)
        and (answer.symptom not in _OF_TIME or _is_open(event))
        and _ANSWERED[answer.symptom].search(event.text)
        for answer in answers
    )


def _is_too_late(event: Event, answer: Event) -> bool:
    """Return whether jobs can have ended between a failure and its answer, by their clock."""
    if event.time is None or answer.time is None:
        return False
    return answer.time - event.time > _TOO_LATE.get(answer.symptom, float("inf"))


def _is_open(event: Event) -> bool:
    """Return whether a line only warns, or names no cause clearly: then it may be a matter of time."""
    is_unclear = event.role is Role.SIGN or event.weight < CLEAR
    return is_unclear or only_warns(event)


def _programs_own(events: Sequence[Event]) -> list[Event]:
    """Return the exceptions of a program's logic, in logs that report no failure but such and warnings."""
    logic = [event for event in events if event.symptom == EXCEPTION and _LOGIC.match(event.text)]
    places = {(event.source, event.line) for event in logic}
    others = {
        event.source
        for event in events
        if event.role in (*_WARNINGS, Role.APPLICATION)
        and not any(event is known for known in logic)
        and ((event.source, event.line) in places or not only_warns(event))
    }
    return [
        event
        for event in logic
        if event.source not in others
        and all(c.label == APPLICATION and c.weight >= PROGRAMS_OWN for c in event.causes)
    ]


def _failed_later(event: Event, own: Iterable[Event]) -> bool:
    """Return whether a program only warned, or a command before it failed, and it failed of its own."""
    if event.role not in _WARNINGS or not only_warns(event):
        return False
    if event.weight >= FIRM:
        return False
    return any(
        later.source == event.source and later.line > event.line and later.process == event.process
        for later in own
    )
