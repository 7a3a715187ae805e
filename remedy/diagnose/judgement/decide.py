"""From what the logs hold to the answer: which failure was the first, and what it speaks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from remedy.diagnose.catalogue import Role
from remedy.diagnose.course.behind import ranks_behind
from remedy.diagnose.course.c10d_targets import with_targets
from remedy.diagnose.course.chains import (
    without_repeated_blame,
    without_short_copies,
    without_wrappers,
)
from remedy.diagnose.course.clocks import on_one_clock
from remedy.diagnose.course.first_failed import first_failed
from remedy.diagnose.course.levels import at_their_level
from remedy.diagnose.course.outlived import only_warns, without_outlived
from remedy.diagnose.course.past import all_went_well, without_the_past
from remedy.diagnose.course.timeline import timeline
from remedy.diagnose.diagnosis import (
    APPLICATION,
    CERTAIN,
    HEALTHY,
    UNKNOWN,
    Candidate,
    Diagnosis,
    Quote,
    sure,
)
from remedy.diagnose.endings.ends import (
    is_stopped_by_hand,
    is_through,
    says_farewell,
    sent_nothing,
)
from remedy.diagnose.endings.last_run import of_the_last_run
from remedy.diagnose.endings.progress import failure_lines, is_text
from remedy.diagnose.endings.stopped import without_aftermath
from remedy.diagnose.endings.succeeded import successes
from remedy.diagnose.endings.suspect import is_silent_of_failure
from remedy.diagnose.endings.trials import without_trials
from remedy.diagnose.judgement.alternatives import with_alternatives
from remedy.diagnose.judgement.answers import answer_of, of_a_kill, undecided
from remedy.diagnose.judgement.context import in_context, unfit_in
from remedy.diagnose.judgement.differing import of_waits
from remedy.diagnose.judgement.doubts import without_doubt
from remedy.diagnose.judgement.good_ends import SAID, examined
from remedy.diagnose.judgement.hangs import of_a_start, of_an_open_end
from remedy.diagnose.judgement.outside import QUIET, ended, ended_together
from remedy.diagnose.judgement.phase import in_phase
from remedy.diagnose.judgement.places import in_place
from remedy.diagnose.judgement.ranking import SHOWN, quote, ranked
from remedy.diagnose.judgement.refuted import (
    ANSWERS,
    failures_of,
    is_more_than_set_up,
    outlived_causes,
    standing,
)
from remedy.diagnose.judgement.worded import LEAST, narrowed, of_words
from remedy.diagnose.judgement.words import by_words
from remedy.diagnose.lines import WIDEST
from remedy.diagnose.phrases.kinds import Raised
from remedy.diagnose.scanner.events import (
    events_that_count,
    is_misplaced,
    is_of_launcher,
    without_echoes,
)
from remedy.diagnose.scanner.exceptions import EXCEPTION, last_named
from remedy.diagnose.scanner.job_setting import remarks, together
from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.diagnose.scanner.steps import are_moving
from remedy.text import is_number

# What torchrun prints first of all: a start that goes no further has it, too.
STARTED = "omp-threads"
BARE = 0.58  # the most that an exception without its traceback weighs
BESIDE = 0.3  # and the most where it decides nothing
OUTLIVED = 0.2  # what can have slowed a good run
MOVING = 0.75  # how sure it is that a run is healthy which goes on
HARMLESS = 0.5  # and one of which only harmless lines are seen, or a page of others
LAST_LINES = 3  # of a log that report a failure: by them it is guessed what else it can be
MOST_LOGS = 64  # that are asked for them
MORE = "collect more: the logs of all ranks, NCCL_DEBUG=INFO, TORCH_DISTRIBUTED_DEBUG=INFO, dmesg of the hosts"


@dataclass(frozen=True)
class _Sorted:
    """The events of all logs by what they are to the failure, each in the order of time."""

    failures: tuple[Event, ...]
    effects: tuple[Event, ...]
    killed: tuple[Event, ...]
    signs: tuple[Event, ...]
    traces: tuple[Event, ...]
    good: bool
    successes: tuple[Event, ...]


def decide(scans: Sequence[LogScan]) -> Diagnosis:
    """Decide what the logs of one run show."""
    scans, clocks = on_one_clock([of_the_last_run(without_trials(scan)) for scan in scans])
    scans = without_aftermath(without_the_past(scans))
    events = without_outlived(at_their_level(with_targets(events_that_count(scans))))
    reported = events
    events = standing(events, scans)
    outlived = outlived_causes(reported, events)
    events = in_place(in_phase(events, scans), scans)
    events = in_context(events, scans)
    by_role = _sorted(events, scans)
    diagnosis = _decided(scans, by_role)
    unreadable = [f"{scan.name}: is no text" for scan in scans if not is_text(scan.tail)]
    is_open = unreadable or not all(scan.is_whole for scan in scans)
    if diagnosis.label == HEALTHY and (is_open or all(scan.is_state for scan in scans)):
        # What was not read may hold the failure, and what a tool says of a host or a job is no log of a run.
        diagnosis = diagnosis.model_copy(update={"label": UNKNOWN, **sure(0.0)})
    setting = together(scan.setting for scan in scans)
    diagnosis = examined(diagnosis, reported, scans, setting, by_role.successes)
    diagnosis = without_doubt(diagnosis, events, scans)
    diagnosis = _with_no_failure(diagnosis, events, scans)
    diagnosis = with_alternatives(diagnosis, _failing(scans), unfit_in(setting))
    last = {scan.name: _last_line(scan) if scan.steps else "" for scan in scans}
    broken = [scan.name for scan in scans if scan.trouble]
    who = filter(None, (first_failed(scans), ranks_behind(events, last, broken)))
    moments, left_out = timeline(
        by_role.failures, (*by_role.effects, *by_role.killed, *by_role.traces), len(scans)
    )
    said: tuple[str, ...] = ()
    if diagnosis.label == HEALTHY:
        diagnosis = _with_outlived(diagnosis, outlived)
        said = (*map(_went_on, outlived), *remarks(setting))
    update = {
        "notes": (*said, *_notes(scans), *unreadable, *diagnosis.notes, *left_out, *clocks, *who),
        "asides": (*_harmless(events), *diagnosis.asides),
        "timeline": moments,
    }
    return diagnosis.model_copy(update=update)


def _with_outlived(diagnosis: Diagnosis, outlived: Iterable[Event]) -> Diagnosis:
    """Return a diagnosis of a good run with what can have made it slow, below all that can be wrong with it."""
    known = {candidate.label for candidate in diagnosis.candidates}
    others = tuple(
        Candidate(
            label=event.causes[0].label,
            score=OUTLIVED,
            reason="the run went on after it",
            evidence=(quote(event),),
        )
        for event in outlived
        if event.causes[0].label not in known
    )
    return diagnosis.model_copy(update={"candidates": (*diagnosis.candidates, *others)})


def _went_on(event: Event) -> str:
    return f"{event.source}:{event.line}: the run went on after it: {event.meaning}"


def _last_line(scan: LogScan) -> str:
    return scan.tail.rstrip().rpartition("\n")[2].strip()


def _failing(scans: Sequence[LogScan]) -> str:
    """Return the last lines in which the logs report a failure, or their very last where they report none."""
    whole = [scan for scan in scans[:MOST_LOGS] if scan.is_whole]
    ends = [failure_lines(scan.tail)[-LAST_LINES:] for scan in whole]
    if not any(ends):
        ends = [scan.tail.splitlines()[-LAST_LINES:] for scan in whole]
    return "\n".join(line[:WIDEST] for lines in ends for line in lines)


def _sorted(events: Sequence[Event], scans: Sequence[LogScan]) -> _Sorted:
    def with_role(*roles: Role) -> tuple[Event, ...]:
        return tuple(event for event in events if event.role in roles)

    effects, killed = with_role(Role.CONSEQUENCE), with_role(Role.KILLED)
    reported = without_short_copies(with_role(Role.CAUSE, Role.APPLICATION))
    failures = without_echoes(reported, effects, killed)
    failures = without_repeated_blame(without_wrappers(failures, effects, scans), scans)
    if any(event.time is not None for event in failures):
        # What the kernel counts from its boot, or was asked for afterwards, has no place among them: what is as
        # good as proof leads.
        failures = sorted(failures, key=lambda e: not is_misplaced(e) or e.weight < CERTAIN)
    return _Sorted(
        failures=tuple(failures),
        effects=effects,
        killed=killed,
        signs=with_role(Role.SIGN),
        traces=with_role(Role.TRACE),
        good=is_more_than_set_up(with_role(Role.GOOD)),
        successes=successes(events, scans),
    )


def _decided(scans: Sequence[LogScan], events: _Sorted) -> Diagnosis:
    if not (events.failures or events.killed) and is_through(scans, events.effects):
        note = "each log shows the last epoch to its end; what stands below it came after"
        return Diagnosis(label=HEALTHY, notes=(note,), **sure(QUIET))
    return _of_events(scans, events)


def _of_events(scans: Sequence[LogScan], events: _Sorted) -> Diagnosis:
    is_quiet = not (events.effects or events.killed or events.traces)
    if events.successes or (is_quiet and all_went_well(scans, events.failures)):
        candidates = tuple(
            cause.candidate() for cause in ranked(events.failures, events.signs)[:SHOWN]
        )
        return of_an_open_end(scans) or Diagnosis(
            label=HEALTHY, candidates=candidates, **sure(MOVING)
        )
    if events.failures and (failed := _of_failures(scans, events)):
        return failed
    if events.effects and not events.killed:
        return _of_effects(scans, events)
    if events.killed:
        return of_a_kill(events.killed, events.signs, events.effects)
    if events.signs and (answer := answer_of(events.signs, [], [])).label != UNKNOWN:
        return answer
    named = by_words(scans) if not events.good else None
    if named and named[1][0].score >= LEAST:
        return of_words(named)
    return _by_exit_code(events.traces) or _without_entries(scans, events)


def _of_failures(scans: Sequence[LogScan], events: _Sorted) -> Diagnosis | None:
    """Answer with what failed; None where that decides nothing, and other ranks print that they suffer."""
    answer = ended(scans, events.failures, events.effects, events.signs) or answer_of(
        events.failures, events.signs, events.effects
    )
    is_vague = all(event.symptom == EXCEPTION for event in events.failures)
    if answer.label == UNKNOWN and is_vague and events.effects and not events.killed:
        return answer if _is_of_another(events.failures[0], events.effects) else None
    return (narrowed(answer, scans) if answer.label == UNKNOWN else None) or answer


def _is_of_another(failure: Event, effects: Sequence[Event]) -> bool:
    """Return whether a rank failed that did not suffer from any other: the others suffer from it."""
    suffering = {(effect.source, effect.process) for effect in effects}
    is_known = failure.process is not None and None not in {process for _, process in suffering}
    return is_known and (failure.source, failure.process) not in suffering


def _of_effects(scans: Sequence[LogScan], events: _Sorted) -> Diagnosis:
    """Answer with what the logs suffered, where none shows what failed."""
    return (
        ended_together(scans, events.effects)
        or of_waits(events.effects, events.signs, scans)
        or _raised_elsewhere(scans, events)
        or answer_of(events.effects, events.signs, events.effects)
    )


def _raised_elsewhere(scans: Sequence[LogScan], events: _Sorted) -> Diagnosis | None:
    """Answer with an exception that a log ends with which suffers from nobody, where other logs do."""
    suffering = {event.source for event in events.effects}
    others = [scan for scan in scans if scan.name not in suffering and scan.is_whole]
    answer = _by_last_exception(others, events) if others else None
    if answer is None or answer.label == UNKNOWN:
        return None
    return answer.model_copy(update={"consequences": tuple(map(quote, events.effects[:SHOWN]))})


def _by_exit_code(traces: Sequence[Event]) -> Diagnosis | None:
    """Answer where a launcher reports an exit code that only the program itself can have chosen."""
    codes = {event.details.get("code") or "" for event in traces}
    if not any(is_number(code) and 1 < int(code) < 126 for code in codes):
        return None
    lead = quote(traces[0])
    candidate = Candidate(
        label=APPLICATION,
        score=0.5,
        reason="the program ended with an exit code of its own",
        evidence=(lead,),
    )
    return Diagnosis(label=APPLICATION, lead=lead, candidates=(candidate,), **sure(candidate.score))


def _without_entries(scans: Sequence[LogScan], events: _Sorted) -> Diagnosis:
    """Answer where no entry decides: a run that goes on, or unknown."""
    notes: list[str] = []
    if not any(scan.size or scan.trouble for scan in scans):
        notes.append("the logs are empty: did standard error go elsewhere? (program >log 2>&1)")
    if not events.traces:
        failures = [line for scan in scans for line in failures_of(scan)]
        if not failures and _moves(scans, events):
            healthy = Diagnosis(label=HEALTHY, notes=tuple(notes), **sure(QUIET))
            return of_an_open_end(scans) or healthy
        if failures:
            notes.append(f"no entry of the catalogue explains: {failures[-1][:200]}")
        elif not events.signs and (hang := of_a_start(scans)):
            return hang
    if named := _by_last_exception(scans, events):
        return named.model_copy(update={"notes": _without_its_line(notes, named.lead)})
    diagnosis = undecided(events.traces[:1] or events.signs, events.signs, [])
    if not diagnosis.candidates and (words := by_words(scans)):
        diagnosis = of_words(words)
    return diagnosis.model_copy(update={"notes": tuple(notes), "asides": (MORE,)})


def _without_its_line(notes: Sequence[str], lead: Quote | None) -> tuple[str, ...]:
    """Return notes without those that hold the line which is shown already."""
    return tuple(note for note in notes if lead is None or lead.text[:SAID] not in note)


def _moves(scans: Sequence[LogScan], events: _Sorted) -> bool:
    """Return whether a run came beyond its set-up, and nobody stopped it by hand."""
    if any(is_stopped_by_hand(scan.tail) or sent_nothing(scan.tail) for scan in scans):
        return False
    is_moving = any(are_moving(scan.steps) for scan in scans)
    return events.good or is_moving or (all(map(only_warns, events.signs)) and says_farewell(scans))


def _by_last_exception(scans: Iterable[LogScan], events: _Sorted) -> Diagnosis | None:
    """Answer with the last exception that a log names without a traceback: the program's, or shown at least."""
    for scan in scans:
        raised = last_named(scan.tail)
        if raised is None or is_of_launcher(raised.text):
            continue
        lead = Quote(file=scan.name, line=max(1, scan.lines + raised.after), text=raised.text)
        cause = max(raised.causes, key=lambda cause: cause.weight)
        candidate = Candidate(
            label=cause.label,
            score=min(cause.weight, BARE),
            reason="the last exception, which stands there without its traceback",
            evidence=(lead,),
        )
        others = tuple(c.candidate() for c in ranked((), events.signs)[:SHOWN])
        if cause.weight < LEAST or not scan.is_whole:
            offered = (*others, *_of_raised(raised, lead, others)) if scan.is_whole else others
            return Diagnosis(label=UNKNOWN, lead=lead, candidates=offered, **sure(0.0))
        return Diagnosis(
            label=cause.label, lead=lead, candidates=(candidate, *others), **sure(candidate.score)
        )
    return None


def _of_raised(raised: Raised, lead: Quote, known: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return what else an exception speaks for that decides nothing, the likeliest first."""
    labels = {candidate.label for candidate in known}
    return tuple(
        Candidate(
            label=cause.label,
            score=min(cause.weight, BESIDE),
            reason=cause.because or "the last exception",
            evidence=(lead,),
        )
        for cause in sorted(raised.causes, key=lambda cause: -cause.weight)
        if cause.label not in labels
    )


def _notes(scans: Iterable[LogScan]) -> list[str]:
    scans = tuple(scans)
    troubles = [
        f"{scan.name}: {'read only in part' if scan.size else 'cannot be read'} ({scan.trouble})"
        for scan in scans
        if scan.trouble
    ]
    return troubles + [f"{scan.name}: {text}" for scan in scans for text in scan.unread]


def _with_no_failure(
    diagnosis: Diagnosis, events: Sequence[Event], scans: Sequence[LogScan]
) -> Diagnosis:
    """Answer that nothing is wrong, possibly, where nothing else is known and no line reports a failure.

    Either something is seen that is harmless by itself, or each log is long enough to be that of a job at work.
    """
    harmless = [event for event in events if event.role is Role.HARMLESS]
    named = diagnosis.label != UNKNOWN or diagnosis.candidates or diagnosis.lead or diagnosis.notes
    if named or len(harmless) < len(events) or any(map(_fails, scans)):
        return diagnosis
    if any(event.symptom not in (*ANSWERS, STARTED) for event in harmless):
        note = "what looks like a failure is harmless by itself; no line shows how the run ended"
    elif any(failure_lines(scan.tail) for scan in scans):
        note = "what was missing came later; no line shows how the run ended"
    elif all(is_silent_of_failure(scan.tail) and not scan.is_state for scan in scans):
        note = "no line reports a failure, and none shows how the run ended: did it fail, or hang?"
    else:
        return diagnosis
    return Diagnosis(label=HEALTHY, notes=(note,), asides=diagnosis.asides, **sure(HARMLESS))


def _fails(scan: LogScan) -> bool:
    return bool(failures_of(scan)) or not (scan.is_whole and is_text(scan.tail))


def _harmless(events: Iterable[Event]) -> list[str]:
    harmless = (event for event in events if event.role is Role.HARMLESS)
    last = {event.symptom: event for event in harmless if event.symptom not in ANSWERS}
    return [f"{e.source}:{e.line}: harmless by itself: {e.meaning}" for e in last.values()]
