"""Diagnosing logs: from the text of an error to the cause, the evidence and the remedy.

``diagnose_paths`` reads files and folders of any size, ``diagnose_lines`` takes lines that are in memory
already. Neither asks a host anything; ``confirm`` compares a diagnosis with what a probe found.
"""

from remedy.diagnose.catalogue import Symptom, catalogue, texts_of
from remedy.diagnose.diagnosis import Candidate, Diagnosis, Evidence
from remedy.diagnose.run import diagnose_lines, diagnose_paths

__all__ = [
    "Candidate",
    "Diagnosis",
    "Evidence",
    "Symptom",
    "catalogue",
    "diagnose_lines",
    "diagnose_paths",
    "texts_of",
]
