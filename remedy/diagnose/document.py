"""The JSON document of a diagnosis, as ``remedy schema diagnosis`` publishes it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from remedy.diagnose.diagnosis import Candidate, Confirmation, Moment, Quote
from remedy.values import Document, Headed


class LeadDocument(Document):
    """The line where a failure began, with what is known of it."""

    file: str
    line: int
    text: str


class DiagnosisDocument(Headed):
    """What ``diagnose`` prints with ``--json``.

    ``label`` is the cause; ``certainty`` is 0 to 1, and ``confidence`` the word for its range; ``lead`` is the
    line where the failure began; ``timeline`` shows what failed first where, of several logs; ``look`` shows on
    a host what the lines name; ``remedy`` cures or reports the cause; ``command`` is to be typed next;
    ``confirmations`` compares each candidate with the hosts, where they were probed.
    """

    schema_: Literal["remedy.diagnosis/1"] = Field(default="remedy.diagnosis/1", alias="schema")
    label: str
    confidence: str
    certainty: float = 0.0
    lead: LeadDocument | None
    candidates: tuple[Candidate, ...]
    consequences: tuple[Quote, ...]
    timeline: tuple[Moment, ...] = ()
    look: str | None = None
    notes: tuple[str, ...]
    remedy: str | None
    command: str | None
    confirmations: tuple[Confirmation, ...]
