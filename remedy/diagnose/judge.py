"""From what the logs hold to the answer: which failure was the first, and what it speaks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from remedy.diagnose.catalogue import Role, Symptom, catalogue
from remedy.diagnose.diagnosis import (
    APPLICATION,
    HEALTHY,
    UNKNOWN,
    Candidate,
    Confidence,
    Diagnosis,
    Evidence,
)
from remedy.diagnose.scan import EXCEPTION, Event, Scanned, details_of

# A later failure, of another kind, counts less: the first leads.
LATER = 0.93
# What follows a program's own exception on another rank, or seconds later, is most likely its consequence.
AFTER_EXCEPTION = 0.72
SECONDS = 2.0
SUPPORT = 0.03
SIGNS_WEIGH = 0.75
LEAST = 0.55  # below it a cause is a candidate, and not an answer
SHOWN = 5
LAST = 3  # lines at the end of a log
MORE = "ask for more: the logs of all ranks, NCCL_DEBUG=INFO, TORCH_DISTRIBUTED_DEBUG=INFO, dmesg of the hosts"

_PROGRESS = re.compile(
    r"\b(?:step|iter(?:ation)?|epoch|(?<!packet )loss|lr|it/s|s/it|samples|tokens|throughput|busbw|algbw"
    r"|acc\d?|ppl)\b"
    r"|Out of bounds values : 0 OK|\d+%\|",
    re.IGNORECASE,
)
_ENDED_WELL = re.compile(
    r"(?:training|train|job|run|benchmark|evaluation|test)s? (?:is |was |has )?(?:been )?"
    r"(?:finished|completed?|done|succeeded)"
    r"|Out of bounds values : 0 OK|finished successfully|completed successfully|Pod completed"
    r"|successfully (?:finished|completed)|Exit code 0\b|works well|exitcode: 0\b",
    re.IGNORECASE,
)
_WENT_WRONG = re.compile(
    r"\b(?:error|fatal|abort(?:ed|ing)?|failed|failure|exception|core dumped|panic|killed|denied|refused"
    r"|unable to|cannot|timed out|timeout exceeded)\b",
    re.IGNORECASE,
)
_MEANT_WELL = re.compile(
    r"error_handling|errors?[=: ]+(?:0|none|\[\])|no errors?|0 errors|error rate|_error\b|error[-_ ]?handling"
    r"|err=-3|NCCL INFO|errors?\.py|loss|warnings?\.warn|harmless|failed: 0|timeout\(ms\)|errno: 97"
    r"|retry ?\(\d+/\d+\)|could not find TensorRT|uv_loop_close failed"
    r"|loopback address as fallback|client socket cannot be",
    re.IGNORECASE,
)
_EXCEPTION_TEXT = re.compile(r"[\w.]*(?:Error|Exception)\b")
# A launcher's own exceptions tell that something failed, not what.
_LAUNCHERS = re.compile(
    r"SystemExit|[\w.]*(?:ChildFailed|CalledProcess|RendezvousClosed|RendezvousGracefulExit)Error\b"
    r"|[\w.]*(?:Signal|ProcessExited|ProcessRaised)Exception\b"
    r"|RuntimeError: Distributed job exited with exception"  # msrun
    r"|FatalError: `(?:Termination|Process abort) signal`"  # Paddle's handlers of signals
    r"|RuntimeError: reentrant call inside"  # a handler that prints while something else does
)


def judge(scanned: Sequence[Scanned]) -> Diagnosis:
    """Decide what the logs tell.

    Args:
        scanned: every log of one run.
    """
    events = _in_order(_compared(scanned))
    decided = _decided(scanned, events)
    return decided.model_copy(update={"asides": (*_harmless(events), *decided.asides)})


def _decided(scanned: Sequence[Scanned], events: Sequence[Event]) -> Diagnosis:
    notes = [
        f"{one.name}: {'read only in part' if one.size else 'cannot be read'} ({one.trouble})"
        for one in scanned
        if one.trouble
    ]
    failures = [e for e in events if e.role in (Role.CAUSE, Role.APPLICATION)]
    effects = [e for e in events if e.role is Role.CONSEQUENCE]
    killed = [e for e in events if e.role is Role.KILLED]
    signs = [e for e in events if e.role is Role.SIGN]
    traces = [e for e in events if e.role is Role.TRACE]
    good = any(e.role is Role.GOOD for e in events)
    failures = _without_echoes(failures, effects + killed)
    if _went_well(scanned, failures, effects + killed + traces):
        seen = tuple(
            _candidate(label, score, found) for label, score, found in _ranked(failures, signs)
        )
        return Diagnosis(
            label=HEALTHY, confidence="likely", candidates=seen[:SHOWN], notes=tuple(notes)
        )
    if failures:
        return _answer(failures, signs, effects, notes)
    if effects and not killed:
        return _answer(effects, signs, effects, notes)
    if killed:
        return _undecided(killed, effects + signs, effects, notes)
    if signs and (answer := _answer(signs, [], [], notes)).label != UNKNOWN:
        return answer
    return _nothing(scanned, signs, traces, notes, good=good)


def _answer(
    leading: Sequence[Event], signs: Sequence[Event], effects: Sequence[Event], notes: Iterable[str]
) -> Diagnosis:
    ranked = _ranked(leading, signs)
    if not ranked:
        return _undecided(leading, signs, effects, notes)
    label, score, found = ranked[0]
    second = ranked[1][1] if len(ranked) > 1 else 0.0
    candidates = tuple(_candidate(*one) for one in ranked[:SHOWN] if one[1] >= score / 3)
    if score < LEAST:
        label = UNKNOWN
    return Diagnosis(
        label=label,
        confidence=_confidence(score, second) if label != UNKNOWN else "none",
        lead=_evidence(found[0] if label != UNKNOWN else leading[0]),
        candidates=candidates,
        consequences=tuple(_evidence(event) for event in effects[:SHOWN]),
        notes=tuple(notes),
    )


def _undecided(
    leading: Sequence[Event],
    others: Sequence[Event],
    effects: Sequence[Event],
    notes: Iterable[str],
) -> Diagnosis:
    ranked = _ranked(leading, others)
    return Diagnosis(
        label=UNKNOWN,
        confidence="none",
        lead=_evidence(leading[0]) if leading else None,
        candidates=tuple(_candidate(*one) for one in ranked[:SHOWN]),
        consequences=tuple(_evidence(event) for event in effects[:SHOWN]),
        notes=tuple(notes),
    )


def _nothing(
    scanned: Sequence[Scanned],
    signs: Sequence[Event],
    traces: Sequence[Event],
    notes: list[str],
    *,
    good: bool,
) -> Diagnosis:
    """Answer where no entry decides: a program's own exit code, a run that goes on, or unknown."""
    codes = {e.details.get("code") for e in traces} - {None, "1", "0"}
    if any(code and code.isdigit() and 1 < int(code) < 126 for code in codes):
        return Diagnosis(
            label=APPLICATION,
            confidence="possible",
            lead=_evidence(traces[0]),
            candidates=(
                Candidate(
                    label=APPLICATION,
                    score=0.5,
                    reason="the program ended with an exit code of its own",
                    evidence=(_evidence(traces[0]),),
                ),
            ),
            notes=tuple(notes),
        )
    if not any(one.size or one.trouble for one in scanned):
        notes.append("the logs are empty: did standard error go elsewhere? (program >log 2>&1)")
    if not traces and (good or any(_PROGRESS.search(one.tail) for one in scanned)):
        wrong = [line for one in scanned for line in _wrong_lines(one.tail)]
        if not wrong:
            return Diagnosis(label=HEALTHY, confidence="possible", notes=tuple(notes))
        notes.append(f"nothing in the catalogue explains: {wrong[-1][:200]}")
    undecided = _undecided([*traces[:1]] if traces else list(signs), signs, [], notes)
    return undecided.model_copy(update={"asides": (MORE,)})


def _went_well(scanned: Sequence[Scanned], failures: Sequence[Event], bad: Sequence[Event]) -> bool:
    """Whether the run came to its end, or goes on, whatever was printed before."""
    if bad or any(event.symptom == EXCEPTION for event in failures):
        return False
    if not scanned or any(_wrong_lines(one.tail[-6000:]) for one in scanned):
        return False
    if any(_ENDED_WELL.search(one.tail[-6000:]) for one in scanned):
        return all(max((w for _, w, _ in e.says), default=0) < 0.97 for e in failures)
    # A log that tells of a failure has to go on itself: that another rank's does proves nothing of it.
    told = {event.source for event in failures}
    moving = {one.name for one in scanned if _goes_on(one, failures)}
    return bool(moving) and told <= moving and not any(_strong(event) for event in failures)


def _goes_on(log: Scanned, failures: Sequence[Event]) -> bool:
    """Whether a log ends with progress, and that after the last failure that it tells of."""
    last = max((log.tail.rfind(e.text[:80]) for e in failures if e.source == log.name), default=-1)
    after = log.tail[last:].splitlines()[1:] if last >= 0 else log.tail.splitlines()
    return any(_PROGRESS.search(line) for line in after[-5:])


def _strong(event: Event) -> bool:
    return max((weight for _, weight, _ in event.says), default=0) >= 0.9


def _wrong_lines(text: str) -> list[str]:
    """Return the lines that speak of a failure, after the last one that speaks of progress."""
    found: list[str] = []
    for line in text.splitlines():
        if _WENT_WRONG.search(line) and not _MEANT_WELL.search(line):
            found.append(line)
        elif _PROGRESS.search(line):
            found.clear()
    return found


def _compared(scanned: Sequence[Scanned]) -> list[Event]:
    """Leave out what only counts beside other logs, ranks or entries, and does not there."""
    entries = {entry.id: entry for entry in catalogue()}
    kept = [e for one in scanned for e in one.events if _counts(e, one, scanned, entries)]
    seen = {event.symptom for event in kept}
    return [
        event
        for event in kept
        if event.symptom not in entries or entries[event.symptom].unless_seen not in seen
    ]


def _counts(
    event: Event, log: Scanned, scanned: Sequence[Scanned], entries: Mapping[str, Symptom]
) -> bool:
    """Whether an event counts, by its place in its log and by what the other logs hold."""
    entry = entries.get(event.symptom)
    if entry is None:
        return True
    if entry.last and log.lines - event.line >= LAST:
        return False
    if not entry.across:
        return True
    same = [e for one in scanned for e in one.events if e.symptom == event.symptom]
    if entry.across == "some":
        return len(scanned) > 1 and len({e.source for e in same}) < len(scanned)
    if entry.across == "differs":
        return len({e.details.get(entry.by) for e in same}) > 1
    return len(same) > 1


def _in_order(events: list[Event]) -> list[Event]:
    """Put the events of all logs in the order of time.

    Within a log the order is that of its lines. A log without times comes after those that have them: nothing
    tells where it belongs.
    """
    latest: dict[str, float] = {}
    keyed = []
    for event in events:
        before = latest.get(event.source, float("-inf"))
        time = event.time if event.time is not None else before
        latest[event.source] = max(before, time)
        known = latest[event.source]
        keyed.append(
            (known if known != float("-inf") else float("inf"), event.source, event.line, event)
        )
    return [event for *_, event in sorted(keyed, key=lambda key: key[:3])]


def _without_echoes(failures: list[Event], explained: Sequence[Event]) -> list[Event]:
    """Leave out exceptions whose own text an entry already explains, as cause or as consequence."""
    known = [event for event in [*explained, *failures] if event.symptom != EXCEPTION]
    told = {(event.source, event.line): event.rank for event in known}
    # The lines after an exception are its own, unless they are another one.
    others = {(e.source, e.line) for e in known if _EXCEPTION_TEXT.match(e.text)}
    kept = []
    for event in failures:
        if event.symptom == EXCEPTION:
            here = (event.source, event.line)
            after = [(event.source, event.line + at) for at in range(1, 7)]
            places = [here, *(place for place in after if place not in others)]
            if any(told.get(place, -1) in (event.rank, None) for place in places):
                continue
            if _LAUNCHERS.match(event.text):
                continue
        kept.append(event)
    return kept


def _ranked(
    leading: Sequence[Event], signs: Sequence[Event]
) -> list[tuple[str, float, list[Event]]]:
    """Return the causes that the events speak for: label, score and the events, the likeliest first."""
    scores: dict[str, float] = {}
    found: dict[str, list[Event]] = {}
    support: dict[str, set[str]] = {}
    order: dict[str, int] = {}
    first = leading[0] if leading else None
    for event in leading:
        place = order.setdefault(event.symptom, len(order))
        decay = LATER ** min(place, 5)
        if (
            first is not None
            and first.role is Role.APPLICATION
            and event.role is not Role.APPLICATION
        ):
            decay *= AFTER_EXCEPTION if _apart(first, event) else 1.0
        _count(event, decay, scores, found, support)
    for event in signs:
        _count(event, SIGNS_WEIGH if leading else 1.0, scores, found, support)
    ranked = [
        (label, min(score + SUPPORT * (len(support[label]) - 1), 0.99), found[label])
        for label, score in scores.items()
    ]
    return sorted(ranked, key=lambda one: -one[1])


def _count(
    event: Event,
    decay: float,
    scores: dict[str, float],
    found: dict[str, list[Event]],
    support: dict[str, set[str]],
) -> None:
    for label, weight, _ in event.says:
        scores[label] = max(scores.get(label, 0.0), weight * decay)
        found.setdefault(label, []).append(event)
        if weight >= 0.3:
            support.setdefault(label, set()).add(event.symptom)
        else:
            support.setdefault(label, set())


def _apart(first: Event, later: Event) -> bool:
    """Whether two failures are not one and the same told twice."""
    if first.source != later.source or first.rank != later.rank:
        return True
    if first.time is None or later.time is None:
        return False
    return later.time - first.time > SECONDS


def _candidate(label: str, score: float, found: list[Event]) -> Candidate:
    best = max(found, key=lambda event: max(w for name, w, _ in event.says if name == label))
    because = next((why for name, _, why in best.says if name == label and why), best.meaning)
    return Candidate(
        label=label,
        score=round(max(score, 0.0), 3),
        reason=because,
        evidence=tuple(_evidence(event) for event in found[:SHOWN]),
    )


def _confidence(score: float, second: float) -> Confidence:
    words: tuple[Confidence, ...] = ("certain", "likely", "possible")
    level = 0 if score >= 0.85 else 1 if score >= 0.65 else 2
    if score - second < 0.08:
        level = min(level + 1, 2)
    return words[level]


def _harmless(events: Iterable[Event]) -> list[str]:
    found = {event.symptom: event for event in events if event.role is Role.HARMLESS}
    return [f"{e.source}:{e.line}: harmless by itself: {e.meaning}" for e in found.values()]


def _evidence(event: Event) -> Evidence:
    return Evidence(
        file=event.source,
        line=event.line,
        text=event.text,
        meaning=event.meaning,
        symptom="" if event.symptom == EXCEPTION else event.symptom,
        rank=event.rank,
        host=event.host,
        time=event.time,
        details=details_of(event),
    )
