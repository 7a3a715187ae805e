"""What takes certainty from an answer: a cause is certain where nothing else can be meant.

Four things have to be there: a text that is as good as proof by itself, or two that each name the cause, and
that are more than the state of a service; no line before it by which something else had failed; no other
failure long before it; and a job that came no further after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from remedy.diagnose.catalogue import CLEAR, Role, fact_of
from remedy.diagnose.course.levels import INFORMS
from remedy.diagnose.course.outlived import only_warns
from remedy.diagnose.course.waits import all_wait, waits_of
from remedy.diagnose.diagnosis import CERTAIN, HEALTHY, UNKNOWN, Diagnosis, Quote, sure
from remedy.diagnose.endings.ends import line_of_good_end
from remedy.diagnose.endings.progress import failure_lines, numbered_failures, reports_failure
from remedy.diagnose.judgement.hangs import PEER
from remedy.diagnose.judgement.ranking import STEP
from remedy.diagnose.judgement.words import says_otherwise
from remedy.diagnose.scanner.events import speaks_clearly_for
from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.diagnose.scanner.parts import is_of_hosts
from remedy.diagnose.scanner.rows import numbered_rows
from remedy.diagnose.scanner.steps import goes_on_after

# Causes by which somebody suffers from another: what the line itself says in the system's words comes first.
OF_OTHERS = frozenset((PEER, "hccl-timeout"))
_FAILURES = frozenset((Role.CAUSE, Role.APPLICATION, Role.CONSEQUENCE))
_FAILED = frozenset((Role.CAUSE, Role.APPLICATION))
FAR = 40  # lines between a failure and what follows at once from it
LATE = 20.0  # and seconds
FEW = 8  # collectives that set up a job
WIDE = 120  # characters of a line that are shown
# A service that does not run proves nothing: many hosts have units that they do not need.
_UNIT = re.compile(r"\.service\b|\bsystemd\[\d+\]: Failed to start ")


def without_doubt(
    diagnosis: Diagnosis, events: Sequence[Event], scans: Sequence[LogScan]
) -> Diagnosis:
    """Return a diagnosis that is certain only where nothing else can be meant.

    Args:
        diagnosis: of the logs.
        events: that count, in the order of time.
        scans: the logs.
    """
    lead = diagnosis.lead
    if diagnosis.certainty < CERTAIN or lead is None or diagnosis.label in (HEALTHY, UNKNOWN):
        return diagnosis
    reason = next(_doubts(diagnosis.label, lead, events, scans), None)
    if reason is None:
        return diagnosis
    notes = (*diagnosis.notes, f"not certain: {reason}")
    return diagnosis.model_copy(update={"notes": notes, **sure(CERTAIN - STEP)})


def _doubts(
    label: str, lead: Quote, events: Sequence[Event], scans: Sequence[LogScan]
) -> Iterator[str]:
    """Yield what speaks against certainty, the clearest first."""
    if not _is_distinct(label, events):
        yield "no line names this cause and no other"
    if INFORMS.search(lead.text) and not reports_failure(lead.text):
        if not any(failure_lines(scan.tail) for scan in scans):
            yield "the line reports no failure, and none follows"
        elif not _is_reported(label, events):
            yield "the line only informs, and no other names this cause"
    if _only_warns(label, lead, events, scans):
        yield "the line only warns, and no failure follows"
    if any(
        scan.name == lead.file and goes_on_after(lead.line, scan.steps, lead.rank) for scan in scans
    ):
        yield "the job went on after it"
    if any(scan.name == lead.file and line_of_good_end(scan) > lead.line for scan in scans):
        yield "a line below it says that all went well"
    is_of_others = label in OF_OTHERS
    labels = OF_OTHERS if is_of_others else (label,)
    if says_otherwise(scans, lead, labels, of_others=is_of_others):
        yield "a line before it reports that something else had failed"
    if other := _in_the_job(label, lead, events):
        yield f"{other.source}:{other.line} reports something else, and only a host's log names this"
    if label == PEER:
        yield from _doubts_of_a_loss(lead, events, scans)
    if earlier := _earlier(label, lead, events):
        yield f"{earlier.source}:{earlier.line} reports something else that failed long before it"


def _doubts_of_a_loss(
    lead: Quote, events: Sequence[Event], scans: Sequence[LogScan]
) -> Iterator[str]:
    """Yield what speaks against it that a process is gone, and nothing else is wrong, where others miss it."""
    waits = waits_of(events)
    if all_wait(waits, scans):
        yield "every rank waits in a collective, so that none of them is gone"
    were_together = any(wait.number > FEW for wait in waits.values()) or any(
        step.line < lead.line or scan.name != lead.file for scan in scans for step in scan.steps
    )
    if not were_together:
        yield "no step was made before it: who is missing may never have been reached"
    if text := _unexplained(lead, scans):
        yield f"nothing here explains a failure before it: {text[:WIDE]}"


def _unexplained(lead: Quote, scans: Iterable[LogScan]) -> str:
    """Return the first line before an answer, after the last progress, whose failure no event is about."""
    for scan in scans:
        if scan.name != lead.file:
            continue
        first, rows = numbered_rows(scan)
        about = {event.line - first for event in scan.events}
        for number, line in numbered_failures(rows[: max(0, lead.line - first)]):
            if number not in about:
                return line.strip()
    return ""


def _only_warns(label: str, lead: Quote, events: Iterable[Event], scans: Iterable[LogScan]) -> bool:
    """Return whether only warnings name a cause, and the log goes on after them and reports no failure."""
    if any(speaks_clearly_for(event, label) and not only_warns(event) for event in events):
        return False
    return any(
        scan.name == lead.file
        and (scan.lines - lead.line > FAR or any(step.line > lead.line for step in scan.steps))
        and all(lead.text in line for line in failure_lines(scan.tail))
        for scan in scans
    )


def _is_reported(label: str, events: Iterable[Event]) -> bool:
    """Return whether a line that does more than inform names a cause clearly."""
    return any(
        speaks_clearly_for(event, label) and not INFORMS.search(event.text) for event in events
    )


def _is_distinct(label: str, events: Iterable[Event]) -> bool:
    """Return whether one text is as good as proof of a cause, or two of different entries name it clearly."""
    clear: set[str] = set()
    for event in events:
        if _UNIT.search(event.text):
            continue
        weight = max((c.weight for c in event.causes if c.label == label), default=0.0)
        if weight >= CERTAIN:
            return True
        if weight >= CLEAR:
            clear.add(fact_of(event.symptom))
    return len(clear) > 1


def _in_the_job(label: str, lead: Quote, events: Iterable[Event]) -> Event | None:
    """Return what failed in the job's own log, where only what its hosts said speaks for an answer."""
    if not is_of_hosts(lead.file):
        return None
    own = [
        e for e in events if not is_of_hosts(e.source) and e.role in _FAILED and e.weight >= CLEAR
    ]
    if any(cause.label == label for event in own for cause in event.causes):
        return None
    return next(iter(own), None)


def _earlier(label: str, lead: Quote, events: Iterable[Event]) -> Event | None:
    """Return the first event of the same log that speaks for other causes only, long before an answer."""
    for event in events:
        if event.source != lead.file or event.line >= lead.line or event.role not in _FAILURES:
            continue
        if event.weight < CLEAR or any(cause.label == label for cause in event.causes):
            continue
        is_timed = event.time is not None and lead.time is not None
        seconds = (lead.time or 0.0) - (event.time or 0.0)
        if seconds > LATE if is_timed else lead.line - event.line > FAR:
            return event
    return None
