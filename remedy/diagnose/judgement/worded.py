"""Answers by the words of the system: alone, or where they say which of several causes of an entry it is."""

from __future__ import annotations

from collections.abc import Sequence

from remedy.diagnose.diagnosis import UNKNOWN, Candidate, Diagnosis, Quote, sure
from remedy.diagnose.judgement.ranking import SUPPORT
from remedy.diagnose.judgement.words import by_words
from remedy.diagnose.scanner.log_scan import LogScan

LEAST = 0.55  # below it a cause is a candidate, and not the answer


def of_words(named: tuple[Quote, tuple[Candidate, ...]]) -> Diagnosis:
    """Answer with what the words of the last failure mean, where they mean one thing before others."""
    lead, candidates = named
    score = candidates[0].score
    answer = (
        {"label": candidates[0].label, **sure(score)}
        if score >= LEAST
        else {"label": UNKNOWN, **sure(0.0)}
    )
    return Diagnosis.model_validate({**answer, "lead": lead, "candidates": candidates})


def narrowed(answer: Diagnosis, scans: Sequence[LogScan]) -> Diagnosis | None:
    """Answer with the cause, of several that an entry leaves, that another line has the system's words for."""
    lead, meant = by_words(scans) or (None, ())
    if lead is None or meant[0].score < LEAST:
        return None
    known = [c for c in answer.candidates if c.label == meant[0].label]
    read = {(quote.file, quote.line) for c in answer.candidates for quote in c.evidence}
    if not known or (lead.file, lead.line) in read:
        return None
    score = meant[0].score + SUPPORT
    evidence = (lead, *known[0].evidence)
    first = meant[0].model_copy(update={"score": score, "evidence": evidence})
    others = tuple(c for c in answer.candidates if c.label != first.label)
    update = {"label": first.label, **sure(score), "lead": lead, "candidates": (first, *others)}
    return answer.model_copy(update=update)
