"""Jobs that a scheduler or a person ended: at work, in a hang, or nobody knows in what."""

from __future__ import annotations

import re
from collections.abc import Sequence

from remedy.diagnose.diagnosis import APPLICATION, HEALTHY, Candidate, Diagnosis, sure
from remedy.diagnose.judgement.answers import answer_of, undecided
from remedy.diagnose.judgement.hangs import PEER, ended_from_outside
from remedy.diagnose.judgement.ranking import quote
from remedy.diagnose.scanner.log_scan import Event, LogScan

# The entries of jobs that were ended by a scheduler or a person.
FROM_OUTSIDE = frozenset(("time-limit", "batch-limit"))
# The entry of a launcher that was sent SIGTERM: by a scheduler, a person, or whoever saw another part fail.
SIGNALLED = "ended-by-signal"
# What a person sends from a keyboard, whatever the job did until then.
_BY_HAND = re.compile(r"\bSIGINT\b|got signal: 2\b|Received 2 death signal|\bKeyboardInterrupt\b")
QUIET = 0.6
"""How sure it is that a run is healthy which shows no failure."""


def ended(
    scans: Sequence[LogScan],
    failures: Sequence[Event],
    effects: Sequence[Event],
    signs: Sequence[Event],
) -> Diagnosis | None:
    """Answer where a job was ended from outside and nothing else failed; None where something else did.

    Args:
        scans: the logs.
        failures: what failed, in the order of time.
        effects: what others suffered from it.
        signs: what speaks for a cause beside them.
    """
    if not {event.symptom for event in failures} <= FROM_OUTSIDE:
        return None
    if effects and not _came_first(failures[0], effects):
        return answer_of(effects, signs, effects)
    at_work = any(scan.steps for scan in scans)
    by_hand = all(_BY_HAND.search(event.text) for event in failures)
    if by_hand and not at_work:
        return None
    if not by_hand and (hang := ended_from_outside(scans, failures)):
        return hang
    return _ended_at_work(failures) if at_work else _ended_unseen(failures)


def _came_first(end: Event, effects: Sequence[Event]) -> bool:
    """Return whether a scheduler ended a job before anybody suffered: what ranks print then follows from it."""
    if _BY_HAND.search(end.text):
        return False
    return all(
        effect.line > end.line
        if effect.source == end.source
        else None not in (effect.time, end.time) and (effect.time or 0.0) >= (end.time or 0.0)
        for effect in effects
    )


def ended_together(scans: Sequence[LogScan], effects: Sequence[Event]) -> Diagnosis | None:
    """Answer where each log of several is of a launcher that was sent SIGTERM in the middle of its steps.

    None of them saw a part of the job fail, as it would where one ended the others; a host whose log is not
    there may have.

    Args:
        scans: the logs.
        effects: what the logs suffered; nothing failed in them.
    """
    is_each = {event.source for event in effects} == {scan.name for scan in scans}
    is_only = all(event.symptom == SIGNALLED for event in effects)
    if len(scans) < 2 or not (is_each and is_only and all(scan.steps for scan in scans)):
        return None
    if hang := ended_from_outside(scans, effects):
        return hang
    reason = "a scheduler or a person ended the job"
    outside = Candidate(label=APPLICATION, score=0.45, reason=reason, evidence=(quote(effects[0]),))
    peer = Candidate(label=PEER, score=0.4, reason="or a host whose log is not here failed")
    note = (
        "each launcher was sent SIGTERM while the job made steps, and no log shows a failure: "
        "ask the scheduler who ended it"
    )
    answer = undecided(effects, (), ())
    return answer.model_copy(update={"candidates": (outside, peer), "notes": (note,)})


def _ended_at_work(ends: Sequence[Event]) -> Diagnosis:
    """Answer where a job made steps until it was ended from outside: nothing failed."""
    last = quote(ends[0])
    reason = "the time that the job was given was too short, or somebody ended it"
    given = Candidate(label=APPLICATION, score=0.5, reason=reason, evidence=(last,))
    note = "the job made steps until it was ended from outside; it goes on from its last checkpoint"
    return Diagnosis(label=HEALTHY, lead=last, candidates=(given,), notes=(note,), **sure(QUIET))


def _ended_unseen(ends: Sequence[Event]) -> Diagnosis:
    """Answer where a job was ended from outside, and nothing shows what it did until then."""
    score, reason = 0.45, "a rank that stalled, if nothing was done until the job was ended"
    peer = Candidate(label=PEER, score=score, reason=reason, evidence=(quote(ends[0]),))
    answer = undecided(ends, [], [])
    notes = ("the job was ended from outside, and no step of it was seen: what did it do before?",)
    candidates = (*answer.candidates, peer)
    return answer.model_copy(update={"candidates": candidates, "notes": notes})
