"""Deciding what has to be changed: pure functions from a fleet to a plan."""

from __future__ import annotations

from remedy.plan.change import (
    Change,
    CommandAction,
    FileAction,
    Finding,
    FindingKind,
    Risk,
    Splice,
    command,
    inverse,
    sha256,
    undo_id,
)
from remedy.plan.choice import EVERY, Choice, choose
from remedy.plan.claimed import interface_addresses
from remedy.plan.fleet import ClusterAddress, Fleet, once_a_fleet
from remedy.plan.lockout import UNKNOWN_PROGRAM, guarded, guarded_for, sshd_reads
from remedy.plan.own import vouched, vouched_findings
from remedy.plan.plan import Plan, PlanFile, write_plan
from remedy.plan.planner import Origin, make_plan
from remedy.plan.promise import promised
from remedy.plan.reading import read_plan
from remedy.plan.registry import (
    Remedy,
    all_causes,
    files_read,
    find_remedy,
    remedies,
    remedy,
    remedy_of,
    section_models,
)
from remedy.plan.workbench import Command, FleetBench, Workbench
from remedy.values import once_alike

__all__ = [
    "EVERY",
    "UNKNOWN_PROGRAM",
    "Change",
    "Choice",
    "ClusterAddress",
    "Command",
    "CommandAction",
    "FileAction",
    "Finding",
    "FindingKind",
    "Fleet",
    "FleetBench",
    "Origin",
    "Plan",
    "PlanFile",
    "Remedy",
    "Risk",
    "Splice",
    "Workbench",
    "all_causes",
    "choose",
    "command",
    "files_read",
    "find_remedy",
    "guarded",
    "guarded_for",
    "interface_addresses",
    "inverse",
    "make_plan",
    "once_a_fleet",
    "once_alike",
    "promised",
    "read_plan",
    "remedies",
    "remedy",
    "remedy_of",
    "section_models",
    "sha256",
    "sshd_reads",
    "undo_id",
    "vouched",
    "vouched_findings",
    "write_plan",
]
