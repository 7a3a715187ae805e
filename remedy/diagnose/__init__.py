"""Diagnosing logs: from the text of an error to the cause, the evidence and the remedy.

``diagnose_paths`` reads files and folders of any size, ``diagnose_lines`` takes lines that are in memory
already. Neither connects to a host; ``confirm`` compares a diagnosis with what a probe read.
"""

from remedy.diagnose.catalogue import Symptom, catalogue, texts_of
from remedy.diagnose.diagnosis import Candidate, Diagnosis, Quote
from remedy.diagnose.logs import diagnose_lines, diagnose_paths

__all__ = [
    "Candidate",
    "Diagnosis",
    "Quote",
    "Symptom",
    "catalogue",
    "diagnose_lines",
    "diagnose_paths",
    "texts_of",
]
