"""Which causes the events speak for, and how clearly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from remedy.diagnose.catalogue import CLEAR, Role, fact_of
from remedy.diagnose.course.behind import WAITING
from remedy.diagnose.diagnosis import CERTAIN, LIKELY, Candidate, Quote
from remedy.diagnose.lines import Process
from remedy.diagnose.scanner.exceptions import EXCEPTION
from remedy.diagnose.scanner.log_scan import Event

# A later failure, of another kind, counts less: the first leads.
LATER = 0.93
# A text that is firm is a failure whatever follows, and not explained by a vague one before it.
FIRM, VAGUE = 0.95, 0.7
# What follows an exception of the program on another rank, or seconds later, is most likely its consequence.
AFTER_EXCEPTION = 0.72
SECONDS = 2.0
SUPPORT = 0.03  # for each further entry that speaks for the same cause
SUPPORTING = 0.3  # the least weight of such an entry
WITNESS, WITNESSES = 0.01, 4  # for each further process that shows it, and how many count
CLOSE = 0.08  # two causes whose scores are as near as that are as likely
STEP = 0.001
SIGNS_WEIGH = 0.75
SHOWN = 5
_NUMBER = re.compile(r"\d+")
# What an event names that a user can use.
_DETAILS = frozenset(
    (
        *(
            "host",
            "peer",
            "rank",
            "local_rank",
            "address",
            "port",
            "interface",
            "device",
            "path",
            "version",
        ),
        *(
            "bus",
            "library",
            "module",
            "setting",
            "operation",
            "xid",
            "code",
            "pid",
            "sequence",
            "count",
        ),
    )
)


class RankedCause(NamedTuple):
    """A cause, with what speaks for it.

    Args:
        label: the cause.
        score: 0 to 0.99.
        events: the first failure first.
    """

    label: str
    score: float
    events: list[Event]

    def candidate(self) -> Candidate:
        """Return the cause as it is reported."""
        best = max(self.events, key=lambda event: _weight(event, self.label))
        return Candidate(
            label=self.label,
            score=round(max(self.score, 0.0), 3),
            reason=_reason(best, self.label),
            evidence=quotes(self.events),
        )


@dataclass
class _Tally:
    """What speaks for one cause."""

    score: float = 0.0
    events: list[Event] = field(default_factory=list)
    support: set[str] = field(default_factory=set)
    processes: set[tuple[str, Process]] = field(default_factory=set)

    @property
    def total(self) -> float:
        """The weight of the clearest text, with what else was counted: entries and processes."""
        entries = SUPPORT * max(0, len(self.support) - 1)
        # A log that names ranks names cards beside them, and not other processes.
        ranked = {source for source, process in self.processes if isinstance(process, int)}
        count = sum(
            isinstance(process, int) or source not in ranked for source, process in self.processes
        )
        witnesses = WITNESS * max(0, min(count, WITNESSES) - 1)
        return min(self.score + entries + witnesses, 0.99)


def ranked(leading: Sequence[Event], signs: Sequence[Event]) -> list[RankedCause]:
    """Return the causes that the events speak for, the likeliest first.

    Args:
        leading: the failures, in the order of time.
        signs: what speaks for a cause beside them; alone, where there are no failures.
    """
    tallies: dict[str, _Tally] = {}
    order: dict[str, int] = {}
    is_vague = bool(leading) and leading[0].weight < VAGUE
    for event in leading:
        place = order.setdefault(event.symptom, len(order))
        factor = LATER ** min(place, 5)
        if _follows_from(leading[0], event):
            factor *= AFTER_EXCEPTION
        factor = 1.0 if is_vague and event.weight >= FIRM else factor
        _count(event, factor, tallies)
    for event in signs:
        _count(event, SIGNS_WEIGH if leading else 1.0, tallies)
    causes = [RankedCause(label, tally.total, tally.events) for label, tally in tallies.items()]
    return sorted(causes, key=lambda cause: -cause.score)


def certainty(score: float, second: float) -> float:
    """Return how sure a cause is, 0 to 1.

    Args:
        score: of the cause: its clearest text, and each further entry and process that shows it.
        second: of the one after it; one that is as likely takes it down into the range below.
    """
    if score - second >= CLOSE:
        return score
    return min(score, next((end for end in (CERTAIN, LIKELY) if score >= end), 1.0) - STEP)


def quote(event: Event) -> Quote:
    """Return the line of an event as it is reported."""
    return Quote(
        file=event.source,
        line=event.line,
        text=event.text,
        meaning=event.meaning,
        symptom="" if event.symptom == EXCEPTION else event.symptom,
        rank=event.rank,
        host=event.host,
        time=event.time,
        details={key: value for key, value in event.details.items() if key in _DETAILS},
    )


def quotes(events: Sequence[Event]) -> tuple[Quote, ...]:
    """Return the lines of events as they are reported, one that many ranks print once.

    Args:
        events: in their order; at most so many kinds of line are returned as are shown.
    """
    kinds: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        kinds.setdefault((event.symptom, _kind(event)), []).append(event)
    return tuple(
        quote(alike[0]).model_copy(
            update={"copies": len({(event.source, event.process) for event in alike}) - 1}
        )
        for alike in list(kinds.values())[:SHOWN]
    )


def _kind(event: Event) -> str:
    # Ranks that wait print the same but for numbers; everywhere else a number can be what a line is about.
    return _NUMBER.sub("#", event.text) if event.symptom in WAITING else event.text.strip()


def _weight(event: Event, label: str) -> float:
    """Return how clearly an event speaks for a cause."""
    return max(cause.weight for cause in event.causes if cause.label == label)


def _reason(event: Event, label: str) -> str:
    reasons = (cause.because for cause in event.causes if cause.label == label and cause.because)
    return next(reasons, event.meaning)


def _count(event: Event, factor: float, tallies: dict[str, _Tally]) -> None:
    for cause in event.causes:
        tally = tallies.setdefault(cause.label, _Tally())
        tally.score = max(tally.score, cause.weight * factor)
        tally.events.append(event)
        # A sign with several causes bears out the clearest of them, no other.
        is_clear = event.role is not Role.SIGN or cause.weight == event.weight
        if cause.weight >= SUPPORTING and is_clear:
            tally.support.add(fact_of(event.symptom))
            tally.processes.add((event.source, event.process))


def _follows_from(first: Event, later: Event) -> bool:
    """Return whether a failure most likely follows from the program's own, which came first."""
    if first.role is not Role.APPLICATION or later.role is Role.APPLICATION:
        return False
    if first.weight < CLEAR:  # it may itself follow from the other
        return False
    if first.source != later.source or first.process != later.process:
        return True
    if first.time is None or later.time is None:
        return False
    return later.time - first.time > SECONDS
