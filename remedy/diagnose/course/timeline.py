"""What failed first, and where: one line for each kind of failure, over all logs of a job."""

from __future__ import annotations

from collections.abc import Sequence

from remedy.diagnose.catalogue import Role
from remedy.diagnose.diagnosis import NEAR, Moment
from remedy.diagnose.scanner.exceptions import EXCEPTION
from remedy.diagnose.scanner.log_scan import Event
from remedy.text import counted

MOST = 10  # lines; the others are later, and a screen has no more
_CAUSES = frozenset((Role.CAUSE, Role.APPLICATION))


def timeline(
    failures: Sequence[Event], consequences: Sequence[Event], logs: int
) -> tuple[tuple[Moment, ...], tuple[str, ...]]:
    """Return when which log first failed, and how, and a sentence of what is left out; nothing of one log.

    Args:
        failures: those of all logs that can be a cause.
        consequences: what follows from failures: consequences, killed processes, what launchers report.
        logs: how many there are.
    """
    if logs < 2:
        return (), ()
    first: dict[str, Event] = {}
    where: dict[str, set[str]] = {}
    seen: set[str] = set()
    for event in sorted((*failures, *consequences), key=_place):
        # What a log prints after its own first failure follows from that.
        if event.source in seen:
            continue
        seen.add(event.source)
        kind = event.text if event.symptom == EXCEPTION else event.symptom
        first.setdefault(kind, event)
        where.setdefault(kind, set()).add(event.source)
    shown, rest = list(first.items())[:MOST], list(first)[MOST:]
    moments = tuple(_moment(event, len(where[kind])) for kind, event in shown)
    if not rest:
        return moments, ()
    more = len(set().union(*(where[kind] for kind in rest)))
    kinds = counted(len(rest), "more kind")
    return moments, (
        f"not in the order of time: {kinds} of failure, first in {counted(more, 'log')}",
    )


def _place(event: Event) -> tuple[float, bool, float, str, int]:
    time = float("inf") if event.nearest is None else event.nearest
    return (time // NEAR, event.role not in _CAUSES, time, event.source, event.line)


def _moment(event: Event, logs: int) -> Moment:
    return Moment(
        file=event.source,
        line=event.line,
        text=event.text,
        symptom="" if event.symptom == EXCEPTION else event.symptom,
        rank=event.rank,
        host=event.host,
        time=event.time,
        until=event.until,
        logs=logs,
    )
