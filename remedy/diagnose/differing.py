"""Ranks that wait in different collectives of one group: the program's own disorder, and no rank is gone."""

from __future__ import annotations

from collections.abc import Sequence

from remedy.diagnose.diagnosis import APPLICATION, Candidate, Diagnosis, sure
from remedy.diagnose.hangs import COLLECTIVE, PEER
from remedy.diagnose.ranking import SHOWN, quote
from remedy.diagnose.scan import Event

SCORE, AFTER = 0.62, 0.5
NOTE = "ranks wait in different collectives under one number: compare what each of them ran last"

# Numbered apart, or no operation at all.
_NOT_COMPARED = frozenset(("", "SEND", "RECV", "COALESCED", "UNKNOWN"))


def of_different_collectives(effects: Sequence[Event]) -> Diagnosis | None:
    """Return the answer where ranks wait in different collectives of one group; None where they do not.

    Args:
        effects: what ranks print that wait for others.
    """
    waiting = _differing(effects)
    if not waiting:
        return None
    lead = quote(waiting[0])
    evidence = tuple(quote(event) for event in waiting[:SHOWN])
    reason = "the ranks called different collectives, so that none of them ends"
    candidates = (
        Candidate(label=APPLICATION, score=SCORE, reason=reason, evidence=evidence),
        Candidate(
            label=PEER, score=AFTER, reason="or one of them is behind the others", evidence=(lead,)
        ),
    )
    return Diagnosis(
        label=APPLICATION,
        **sure(SCORE),
        lead=lead,
        candidates=candidates,
        consequences=evidence,
        notes=(NOTE,),
    )


def _differing(effects: Sequence[Event]) -> list[Event]:
    """Return the first wait of each rank in a number under which they called different collectives."""
    first: dict[int, Event] = {}
    for event in effects:
        is_compared = event.details.get("operation", "") not in _NOT_COMPARED
        if event.symptom == COLLECTIVE and event.rank is not None and is_compared:
            first.setdefault(event.rank, event)
    # Each group of ranks counts its own: where the lines name them, those of one alone are compared.
    places = {(e.details.get("process_group"), e.details.get("sequence")) for e in first.values()}
    operations = {event.details["operation"] for event in first.values()}
    return list(first.values()) if len(places) == 1 and len(operations) > 1 else []
