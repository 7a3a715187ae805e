"""Answers by weight: what the events that lead speak for, and what they leave open."""

from __future__ import annotations

from collections.abc import Sequence

from remedy.diagnose.diagnosis import UNKNOWN, Diagnosis, sure
from remedy.diagnose.judgement.ranking import SHOWN, certainty, quote, ranked
from remedy.diagnose.judgement.worded import LEAST
from remedy.diagnose.scanner.log_scan import Event


def answer_of(
    leading: Sequence[Event], signs: Sequence[Event], effects: Sequence[Event]
) -> Diagnosis:
    """Answer with the likeliest cause, or leave it open where nothing weighs enough.

    Args:
        leading: the events that decide.
        signs: what speaks for a cause beside them.
        effects: what followed from it.
    """
    causes = ranked(leading, signs)
    if not causes or causes[0].score < LEAST:
        likely = [cause for cause in causes if cause.score >= causes[0].score / 3]
        return undecided(leading, signs, effects, len(likely))
    first = causes[0]
    second = causes[1].score if len(causes) > 1 else 0.0
    likely = [cause for cause in causes[:SHOWN] if cause.score >= first.score / 3]
    return Diagnosis(
        label=first.label,
        **sure(certainty(first.score, second)),
        lead=quote(first.events[0]),
        candidates=tuple(cause.candidate() for cause in likely),
        consequences=tuple(quote(event) for event in effects[:SHOWN]),
    )


def undecided(
    leading: Sequence[Event], signs: Sequence[Event], effects: Sequence[Event], most: int = SHOWN
) -> Diagnosis:
    """Answer that the cause is unknown, with what is possible.

    Args:
        leading: the events that decide; the first is shown.
        signs: what speaks for a cause beside them.
        effects: what followed from it.
        most: how many possible causes are named.
    """
    candidates = ranked(leading, signs)[: min(most, SHOWN)]
    return Diagnosis(
        label=UNKNOWN,
        **sure(0.0),
        lead=quote(leading[0]) if leading else None,
        candidates=tuple(cause.candidate() for cause in candidates),
        consequences=tuple(quote(event) for event in effects[:SHOWN]),
    )


def of_a_kill(
    killed: Sequence[Event], signs: Sequence[Event], effects: Sequence[Event]
) -> Diagnosis:
    """Answer with why a process was killed, where a sign says it; otherwise leave it open.

    Args:
        killed: what says that it was.
        signs: what speaks for a cause beside that.
        effects: what followed from it.
    """
    possible = {cause.label for event in killed for cause in event.causes}
    answer = answer_of(signs, killed, effects) if signs else None
    if answer is not None and answer.label in possible:
        return answer
    return undecided(killed, [*effects, *signs], effects)
