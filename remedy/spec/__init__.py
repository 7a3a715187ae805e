"""The spec: what the user wants, read from ``remedy.yaml`` beside the inventory.

Every setting has a default that works, so no file is needed at all. Here are the sections that belong to no
remedy; each remedy brings one of its own, called like the remedy.
"""

from __future__ import annotations

from remedy.spec.apply import ApplySpec
from remedy.spec.approval import ApprovalSpec
from remedy.spec.cluster import ClusterSpec
from remedy.spec.document import COMMAND_LINE, FILE_NAME, SECTIONS, Spec, load_spec, read_document
from remedy.spec.section import SpecSection
from remedy.spec.ssh import SshSpec
from remedy.spec.verify import EngineName, LauncherName, VerifySpec

__all__ = [
    "COMMAND_LINE",
    "FILE_NAME",
    "SECTIONS",
    "ApplySpec",
    "ApprovalSpec",
    "ClusterSpec",
    "EngineName",
    "LauncherName",
    "Spec",
    "SpecSection",
    "SshSpec",
    "VerifySpec",
    "load_spec",
    "read_document",
]
