"""What a diagnosis is: the cause, how sure, which lines say so, and what else it could be."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal

from remedy.values import Record

SCHEMA = "remedy.diagnosis/1"
UNKNOWN, HEALTHY, APPLICATION = "unknown", "healthy", "application-error"

Confidence = Literal["certain", "likely", "possible", "none"]


class Evidence(Record):
    """One line of a log.

    Args:
        file: its name; ``line`` counts from 1.
        text: without colours, and with the ports that gloo swaps put right.
        meaning: what the line means.
        symptom: the entry of the catalogue that matched, "" for a program's own exception.
        rank: of the process that printed it, where that is known; ``host`` the same.
        time: seconds from the start of the year, where the line or one before it says so.
        details: address, port, interface, device, path, version, ... that the line names.
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


class Candidate(Record):
    """A cause that the logs speak for.

    Args:
        label: the cause.
        score: 0 to 1, for comparing.
        reason: why it can be this one.
        evidence: lines that speak for it, the first failure first.
    """

    label: str
    score: float
    reason: str
    evidence: tuple[Evidence, ...] = ()


class Diagnosis(Record):
    """The answer.

    Args:
        label: the cause; ``unknown``, ``healthy`` or ``application-error`` where that is the answer.
        confidence: how sure.
        lead: the line where the failure began, None where there is none.
        candidates: what it can be, the likeliest first.
        consequences: lines of ranks that only suffered from it.
        notes: what is to be known of the logs (empty, broken off, not readable, not explained).
        asides: what is good to know as well (harmless texts, what else to look at).
    """

    label: str
    confidence: Confidence
    lead: Evidence | None = None
    candidates: tuple[Candidate, ...] = ()
    consequences: tuple[Evidence, ...] = ()
    notes: tuple[str, ...] = ()
    asides: tuple[str, ...] = ()

    def document(self, *, remedy: str | None, command: str | None) -> dict[str, Any]:
        """Return the JSON document.

        Args:
            remedy: the remedy that deals with the cause.
            command: what is to be typed.
        """
        lead = self.lead
        return {
            "schema": SCHEMA,
            "label": self.label,
            "confidence": self.confidence,
            "lead": None
            if lead is None
            else {"file": lead.file, "line": lead.line, "text": lead.text, **_more(lead)},
            "candidates": [one.model_dump(mode="json") for one in self.candidates],
            "consequences": [one.model_dump(mode="json") for one in self.consequences],
            "notes": [*self.notes, *self.asides],
            "remedy": remedy,
            "command": command,
        }


class Verdict(str, Enum):
    """What the hosts say to a candidate."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    NOT_TOLD = "not told"


class Confirmation(Record):
    """One candidate, held against the hosts.

    Args:
        label: the cause.
        verdict: what the hosts say to it.
        hosts: those on which it was found.
        evidence: what was found, one line each.
        curable: whether the plan has changes against it there.
    """

    label: str
    verdict: Verdict
    hosts: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    curable: bool = False


class Explained(Record):
    """A diagnosis that was held against the hosts, and what is to be typed.

    Args:
        diagnosis: of the logs; what the hosts confirm comes first.
        confirmations: what the hosts say to each candidate.
        remedy: the remedy that deals with the cause, None where there is none.
        command: what is to be typed, None where remedy can do nothing against it.
    """

    diagnosis: Diagnosis
    confirmations: tuple[Confirmation, ...] = ()
    remedy: str | None = None
    command: str | None = None

    def of(self, label: str) -> Confirmation | None:
        """Return what the hosts say to one cause."""
        return next((one for one in self.confirmations if one.label == label), None)


def _more(lead: Evidence) -> dict[str, Any]:
    return {
        "meaning": lead.meaning,
        "rank": lead.rank,
        "host": lead.host,
        "details": dict(lead.details),
    }
