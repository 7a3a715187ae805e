"""What a diagnosis is: the cause, how sure it is, the lines that show it, and what else it could be."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal, TypedDict

from remedy.values import Record

SCHEMA = "remedy.diagnosis/1"
UNKNOWN, HEALTHY, APPLICATION = "unknown", "healthy", "application-error"

Confidence = Literal["certain", "likely", "possible", "none"]

CERTAIN, LIKELY = 0.85, 0.65
"""From this certainty on an answer is certain, or likely; below it, and above 0, it is possible."""
NEAR = 2.0
"""Seconds by which clocks differ a little: moments so near are one."""


def sure(certainty: float) -> Sureness:
    """Return how sure an answer is, as a number and as the word for its range.

    Args:
        certainty: 0 to 1; 0 where nothing is answered.
    """
    number = round(certainty, 3)
    if number >= CERTAIN:
        return {"certainty": number, "confidence": "certain"}
    if number >= LIKELY:
        return {"certainty": number, "confidence": "likely"}
    return {"certainty": number, "confidence": "possible" if number > 0 else "none"}


class Sureness(TypedDict):
    """A certainty, and the word for its range."""

    certainty: float
    confidence: Confidence


class Quote(Record):
    """One line of a log.

    Args:
        file: its name; ``line`` counts from 1.
        text: without colours, and with the ports that gloo swaps put right.
        meaning: what the line means.
        symptom: the entry of the catalogue that matched, "" for a program's own exception.
        rank: of the process that printed it, where that is known; ``host`` the same.
        time: seconds from the start of the year, where the line or one before it says so.
        details: address, port, interface, device, path, version, ... that the line names.
        copies: how many other ranks, or logs, hold such a line.
    """

    file: str
    line: int
    text: str
    meaning: str = ""
    symptom: str = ""
    rank: int | None = None
    host: str = ""
    time: float | None = None
    details: Mapping[str, str] = {}
    copies: int = 0


class Candidate(Record):
    """A cause that the logs speak for.

    Args:
        label: the cause.
        score: 0 to 1, for comparing.
        reason: why it can be this cause.
        evidence: lines that speak for it, the first failure first.
    """

    label: str
    score: float
    reason: str
    evidence: tuple[Quote, ...] = ()


class Moment(Record):
    """The first failure of a log, or of several with the same one.

    Args:
        file: of the first; ``line``, ``text``, ``symptom``, ``rank`` and ``host`` as in a quote.
        time: seconds from the start of the year, of the line itself or of the last one above it.
        until: of the line itself or of the first one below it.
        logs: how many logs began to fail so.
    """

    file: str
    line: int
    text: str
    symptom: str = ""
    rank: int | None = None
    host: str = ""
    time: float | None = None
    until: float | None = None
    logs: int = 1


class Diagnosis(Record):
    """The answer.

    Args:
        label: the cause; ``unknown``, ``healthy`` or ``application-error`` where that is the answer.
        confidence: how sure it is, in a word.
        certainty: how sure it is, 0 to 1: ``confidence`` is the word for its range.
        lead: the line where the failure began, None where there is none.
        candidates: the likeliest first.
        consequences: lines of ranks that only suffered from it.
        notes: what is wrong with the logs (empty, broken off, not readable, not explained).
        asides: what helps to read them (harmless texts, what else to collect).
        timeline: what failed first where, of several logs.
    """

    label: str
    confidence: Confidence
    certainty: float = 0.0
    lead: Quote | None = None
    candidates: tuple[Candidate, ...] = ()
    consequences: tuple[Quote, ...] = ()
    notes: tuple[str, ...] = ()
    asides: tuple[str, ...] = ()
    timeline: tuple[Moment, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Whether the logs show that their run went well, and not only that they hold no failure."""
        return self.label == HEALTHY and self.confidence != "possible"

    @property
    def is_open(self) -> bool:
        """Whether the logs hold no failure, and do not show that there was none."""
        return self.label == HEALTHY and not self.is_fine

    def document(self, *, remedy: str | None, command: str | None) -> dict[str, Any]:
        """Return the JSON document.

        Args:
            remedy: the remedy that cures or reports the cause.
            command: to type next.
        """
        lead = self.lead
        return {
            "schema": SCHEMA,
            "label": self.label,
            "confidence": self.confidence,
            "certainty": self.certainty,
            "lead": None
            if lead is None
            else {"file": lead.file, "line": lead.line, "text": lead.text, **_about(lead)},
            "candidates": [candidate.model_dump(mode="json") for candidate in self.candidates],
            "consequences": [quote.model_dump(mode="json") for quote in self.consequences],
            "timeline": [moment.model_dump(mode="json") for moment in self.timeline],
            "notes": [*self.notes, *self.asides],
            "remedy": remedy,
            "command": command,
        }


class ConfirmationStatus(str, Enum):
    """How a candidate compares with the state of the hosts."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    OPEN = "open"  # no remedy looks for it, or the facts could not be read


class Confirmation(Record):
    """One candidate, compared with the state of the hosts.

    Args:
        label: the cause.
        status: how it compares.
        hosts: those that show it.
        evidence: what they show, one line each.
        curable: whether the plan has changes against it.
    """

    label: str
    status: ConfirmationStatus
    hosts: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    curable: bool = False


class Explanation(Record):
    """A diagnosis, compared with the hosts where they were probed, and the command to type next.

    Args:
        diagnosis: of the logs; candidates that the hosts confirm come first.
        confirmations: one a candidate, none where no host was probed.
        remedy: the remedy that cures or reports the cause, None where there is none.
        command: to type next, None where remedy can do nothing against the cause.
        look: shows on a host what the lines of the log name, None where they name nothing.
    """

    diagnosis: Diagnosis
    confirmations: tuple[Confirmation, ...] = ()
    remedy: str | None = None
    command: str | None = None
    look: str | None = None

    def confirmation_of(self, label: str) -> Confirmation | None:
        """Return how one cause compares with the hosts."""
        return next((c for c in self.confirmations if c.label == label), None)


def _about(lead: Quote) -> dict[str, Any]:
    return {
        "meaning": lead.meaning,
        "rank": lead.rank,
        "host": lead.host,
        "details": dict(lead.details),
    }
