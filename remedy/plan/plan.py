"""The plan: the ordered changes of a fleet, one document, one digest."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from remedy.errors import RemedyError
from remedy.files import STANDARD, write_output
from remedy.plan.change import Change, Finding, FindingKind
from remedy.plan.choice import Choice
from remedy.plan.shared import (
    FORMAT,
    LARGE_FORMAT,
    OfHost,
    Shared,
    folded,
    kinds_of,
    laid_out,
    shared_items,
)
from remedy.text import quoted
from remedy.values import Document

_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9 ._-]{0,200}")
# Fields that few plans have: left out of the file where they are empty.
RARE = ("purpose", "machines", "only", "skip")


class Plan(Document):
    """What is to be changed, exactly.

    Args:
        format_version: the version of its file; a reader refuses a version it does not know. Large plans are of
            version 2: what several hosts have alike stands there once, with ``hosts``, and ``order`` has them
            all.
        tool_version: the remedy that made it.
        created: when, RFC 3339 in UTC.
        author: who made it, user@machine.
        inventory: the inventory file's name.
        inventory_digest: what the inventory meant.
        spec_digest: what the spec meant.
        changes: all changes; those of one host are in the order in which they act.
        findings: all of them, also those that the plan does not change.
        blobs: the bytes that the changes put into files and take out of them, by SHA-256 (hex).
        purpose: what it does besides its changes, such as taking a run back; "" for an apply.
        observed: the fingerprint of each changed host's state, as it was when the plan was made.
        machines: what stands for the machine-id of each changed host (``machine_mark``).
        secrets: for each secret that the inventory had for a changed host a keyed digest, by host and name.
        sealed_by: which key that was; "" for none.
        only: the remedies that decided, where it was not all; ``skip``: those that did not.
        contents: whole files before and after, by digest: only where the plan was made, never in its file.
        addresses: each host's own, in the same order for all: only where the plan was made, never in its file.
        inventory_argument: the inventory as it is typed in a command; it is as little in the file.
    """

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    format_version: int = FORMAT
    tool_version: str
    created: str
    author: str
    inventory: str
    inventory_digest: str
    spec_digest: str
    changes: tuple[Change, ...] = ()
    findings: tuple[Finding, ...] = ()
    blobs: Mapping[str, bytes] = Field(default_factory=dict)
    observed: Mapping[str, str] = Field(default_factory=dict)
    machines: Mapping[str, str] = Field(default_factory=dict)
    secrets: Mapping[str, str] = Field(default_factory=dict)
    sealed_by: str = ""
    purpose: str = ""
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    contents: Mapping[str, bytes] = Field(default_factory=dict, exclude=True, repr=False)
    addresses: Mapping[str, tuple[str, ...]] = Field(default_factory=dict, exclude=True, repr=False)
    inventory_argument: str = Field(default="", exclude=True, repr=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical form: sorted keys, no white space, ASCII."""
        return hashlib.sha256(canonical(self).encode()).hexdigest()

    @property
    def content_digest(self) -> str:
        """SHA-256 (hex) of what it changes alone: the same state gives the same, whoever asks, and when.

        For comparing two plans; what is signed, and used once, is ``digest``.
        """
        content = hashlib.sha256(json.dumps(self.purpose).encode())
        for shared in self.shared_changes:
            document = {**shared.item.model_dump(), "host": shared.hosts}
            content.update(json.dumps(document, sort_keys=True).encode())
        return content.hexdigest()

    @property
    def date(self) -> str:
        """When it was made, for people: to the second."""
        second, dot, rest = self.created.partition(".")
        return second + rest.lstrip("0123456789") if dot else second

    @property
    def inventory_typed(self) -> str:
        """The inventory as it is typed in a command: where the plan was made, else as its file names it."""
        return self.inventory_argument or inventory_named(self.inventory)

    @property
    def choice(self) -> Choice:
        """The remedies that decided."""
        return Choice(self.only, self.skip)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that are changed, in the order of the plan."""
        return tuple(self._changes_by_host)

    def for_host(self, host: str) -> tuple[Change, ...]:
        """Return the changes of one host, in the order in which they act."""
        return self._changes_by_host.get(host, ())

    def restricted(self, hosts: Iterable[str]) -> Plan:
        """Return the plan without the changes of other hosts."""
        names = set(hosts)
        return self.model_copy(
            update={"changes": tuple(c for c in self.changes if c.host in names)}
        )

    def blocked(self, host: str) -> tuple[Finding, ...]:
        """Return what is wrong or unknown on a host and is not changed by this plan."""
        kinds = (FindingKind.BLOCKED, FindingKind.UNKNOWN)
        return tuple(f for f in self.findings_of(host) if f.kind in kinds)

    def findings_of(self, host: str) -> tuple[Finding, ...]:
        """Return all findings of one host, in the order of the plan."""
        return self._findings_by_host.get(host, ())

    @cached_property
    def shared_changes(self) -> tuple[Shared[Change], ...]:
        """All changes, each once with the hosts that have it."""
        return shared_items(self._changes_by_host)

    @cached_property
    def change_kinds(self) -> Mapping[int, int]:
        """The place of each change among ``shared_changes``, by its identity (``id``)."""
        return kinds_of(self.shared_changes, self._changes_by_host)

    @cached_property
    def finding_kinds(self) -> Mapping[int, int]:
        """The place of each finding among ``shared_findings``, by its identity (``id``)."""
        return kinds_of(self.shared_findings, self._findings_by_host)

    @cached_property
    def shared_findings(self) -> tuple[Shared[Finding], ...]:
        """All findings, each once with its hosts; those of the fleet as a whole have the host None."""
        return shared_items({None: (), **dict.fromkeys(self.order, ()), **self._findings_by_host})

    @property
    def order(self) -> tuple[str, ...]:
        """All hosts that it is about: those that are changed in the order of the plan, then the others."""
        return tuple(dict.fromkeys((*self._changes_by_host, *filter(None, self._findings_by_host))))

    @cached_property
    def _changes_by_host(self) -> Mapping[str, tuple[Change, ...]]:
        return _by_host(self.changes)

    @cached_property
    def _findings_by_host(self) -> Mapping[str | None, tuple[Finding, ...]]:
        return _by_host(self.findings)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Plan:
        """Return a copy with other values; what was worked out from the values stays behind."""
        copy = super().model_copy(update=update, deep=deep)
        for name in _WORKED_OUT:
            copy.__dict__.pop(name, None)
        return copy


_WORKED_OUT = (
    *("digest", "_changes_by_host", "_findings_by_host"),
    *("shared_changes", "shared_findings", "change_kinds", "finding_kinds"),
)


def _by_host(items: Iterable[OfHost]) -> Mapping[Any, tuple[OfHost, ...]]:
    """Return items by their host: a look at all of them for each host grows with the square of the fleet."""
    groups: dict[Any, list[OfHost]] = {}
    for item in items:
        groups.setdefault(item.host, []).append(item)
    return {host: tuple(group) for host, group in groups.items()}


class PlanFile(Document):
    """What a plan file holds: the plan, and its digest beside it."""

    digest: str
    plan: Plan


def inventory_named(name: object) -> str:
    """Return the inventory that a plan file names as it is typed; "" where that is no name of a file.

    Whoever wrote the file may want a reader to type something else.
    """
    return quoted(name) if isinstance(name, str) and _FILE_NAME.fullmatch(name) else ""


def canonical(plan: Plan) -> str:
    """Return the one text that stands for a plan, whatever way it was written to a file."""
    return json.dumps(plan_document(plan), sort_keys=True, separators=(",", ":"))


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON has it; without a field that format 1 had not at first, where it is empty."""
    document = plan.model_dump(mode="json", exclude={"changes", "findings"})
    if plan.format_version == LARGE_FORMAT:
        document["changes"] = folded(plan.shared_changes, _change_document)
        document["findings"] = folded(plan.shared_findings, _finding_document)
        document["order"] = list(plan.order)
    else:
        document["changes"] = [_change_document(change) for change in plan.changes]
        document["findings"] = [_finding_document(finding) for finding in plan.findings]
    return {k: v for k, v in document.items() if v or k not in RARE}


def _change_document(change: Change) -> dict[str, Any]:
    document = change.model_dump(mode="json")
    return {k: v for k, v in document.items() if v or k not in ("does", "undoes", "restarts")}


def _finding_document(finding: Finding) -> dict[str, Any]:
    return finding.model_dump(mode="json")


def write_plan(plan: Plan, path: Path, *, mode: int | None = None) -> None:
    """Write a plan file, with its digest beside the plan; a reader never sees half of it.

    Args:
        plan: what is written.
        path: the file; ``-`` is standard output.
        mode: its permissions, as of ``write_whole``.

    Raises:
        RemedyError: it cannot be written.
    """
    document = {"digest": plan.digest, "plan": plan_document(plan)}
    if plan.format_version == LARGE_FORMAT:
        text = laid_out(document)
    else:
        text = json.dumps(document, indent=2, sort_keys=True) + "\n"
    try:
        if path == STANDARD:
            sys.stdout.flush()
            with os.fdopen(os.dup(1), "w", encoding="ascii") as output:
                output.write(text.replace("\x7f", "\\u007f"))
            return
        write_output(path, text, mode=mode)
    except BrokenPipeError:
        raise  # a signal's affair
    except OSError as error:
        raise RemedyError(
            f"the plan {path} cannot be written: {error.strerror}",
            next_step="Make room or give write access, and run the command again; nothing was changed.",
        ) from error
