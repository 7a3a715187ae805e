"""Exceptions that were raised from another one, or while it was handled: they report it to their caller."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import islice, takewhile

from remedy.diagnose.diagnosis import APPLICATION
from remedy.diagnose.scanner.exceptions import EXCEPTION
from remedy.diagnose.scanner.log_scan import Event, LogScan

# What Python prints between an exception and the one that was raised from it.
_FROM = "The above exception was the direct cause of the following exception"
_WHILE = "During handling of the above exception, another exception occurred"
ABORT = "mpi-abort"
INNER = 4  # lines before it in which the inner exception ends
OUTER = 60  # lines after it in which the outer one ends


def without_wrappers(
    failures: Sequence[Event], effects: Sequence[Event], scans: Sequence[LogScan]
) -> list[Event]:
    """Leave out the exceptions that were raised from one by which a process suffers from another.

    Args:
        failures: what the logs report.
        effects: what processes print that suffer from another.
        scans: the logs.
    """
    if not effects:
        return list(failures)
    lines: dict[str, list[int]] = defaultdict(list)
    for effect in effects:
        lines[effect.source].append(effect.line)
    spans = {
        scan.name: [
            (at, at + OUTER)
            for at in _marks(scan, _FROM)
            if any(at - INNER <= line < at for line in lines[scan.name])
        ]
        for scan in scans
    }
    return [
        event
        for event in failures
        if not any(begin < event.line <= end for begin, end in spans.get(event.source, ()))
    ]


def without_short_copies(failures: Sequence[Event]) -> list[Event]:
    """Leave out exceptions of which another log has the same with more words: a caller repeats its worker's.

    Args:
        failures: what the logs report.
    """
    sources: dict[str, set[str]] = defaultdict(set)
    for event in failures:
        if event.symptom == EXCEPTION:
            sources[event.text].add(event.source)
    texts = sorted(sources)  # those that begin alike stand together

    def is_copy(event: Event) -> bool:
        beginning = f"{event.text}:"
        longer = takewhile(
            lambda text: text.startswith(beginning),
            islice(texts, bisect_left(texts, beginning), None),
        )
        return any(sources[text] - {event.source} for text in longer)

    return [event for event in failures if event.symptom != EXCEPTION or not is_copy(event)]


def without_repeated_blame(failures: Sequence[Event], scans: Sequence[LogScan]) -> list[Event]:
    """Leave out the exceptions that name nothing and were raised from one that names what failed.

    Args:
        failures: what the logs report.
        scans: the logs.
    """
    named = {
        (event.source, event.line)
        for event in failures
        if event.causes and max(event.causes, key=lambda c: c.weight).label != APPLICATION
    }
    spans = {
        scan.name: [
            (at, at + OUTER)
            for at in _marks(scan, _FROM, _WHILE)
            if any((scan.name, at - before) in named for before in range(1, INNER + 1))
        ]
        for scan in scans
    }
    outer = {
        id(next((event for event in failures if _is_within(event, name, span)), None))
        for name, ends in spans.items()
        for span in ends
    }
    return [
        event
        for event in failures
        if not (id(event) in outer and _names_nothing(event)) and not _is_abort_after(event, named)
    ]


def _is_abort_after(event: Event, named: Collection[tuple[str, int]]) -> bool:
    """Return whether a rank ended its job (MPI_Abort) after something that names what failed."""
    return event.symptom == ABORT and any(
        source == event.source and line < event.line <= line + OUTER for source, line in named
    )


def _is_within(event: Event, name: str, span: tuple[int, int]) -> bool:
    return event.source == name and span[0] < event.line <= span[1]


def _names_nothing(event: Event) -> bool:
    return event.symptom == EXCEPTION and {cause.label for cause in event.causes} == {APPLICATION}


def _marks(scan: LogScan, *texts: str) -> list[int]:
    """Return the lines at the end of a log that stand between two exceptions."""
    ending = scan.tail.rstrip("\n").split("\n")
    return [
        scan.lines - after
        for after, line in enumerate(reversed(ending))
        if any(text in line for text in texts) and scan.lines > after
    ]
