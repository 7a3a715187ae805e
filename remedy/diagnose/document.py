"""The JSON document of a diagnosis, as ``remedy schema diagnosis`` publishes it."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from remedy.diagnose.confirm import Confirmation
from remedy.diagnose.diagnosis import Candidate, Quote
from remedy.values import Document


class LeadDocument(Document):
    """The line where a failure began, with what is known of it."""

    file: str
    line: int
    text: str


class DiagnosisDocument(Document):
    """What ``diagnose`` prints with ``--json``.

    ``label`` is the cause; ``lead`` the line where the failure began; ``remedy`` cures or reports it;
    ``command`` is to be typed next; ``confirmations`` compares each candidate with the hosts, where they were
    probed.
    """

    model_config = ConfigDict(populate_by_name=True)

    schema_: Literal["remedy.diagnosis/1"] = Field(default="remedy.diagnosis/1", alias="schema")
    label: str
    confidence: str
    lead: LeadDocument | None
    candidates: tuple[Candidate, ...]
    consequences: tuple[Quote, ...]
    notes: tuple[str, ...]
    remedy: str | None
    command: str | None
    confirmations: tuple[Confirmation, ...]
