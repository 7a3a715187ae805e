"""The documents of commands that read records alone, and of errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field

from remedy.audit.story import Story
from remedy.values import Document, Headed


class NextCommand(Document):
    """A command to type next, and what it is for."""

    purpose: str
    command: str


class ErrorDocument(Headed):
    """What any command prints with ``--json`` that ends with an error before it has a result.

    Args:
        error: what went wrong, and where.
        next_step: what to do about it.
        known: what is known of hosts where a run was interrupted, a sentence each.
        commands: how to go on.
        exit_code: of the command.
    """

    schema_: Literal["remedy.error/1"] = Field(default="remedy.error/1", alias="schema")
    error: str
    next_step: str
    known: tuple[str, ...]
    commands: tuple[NextCommand, ...]
    exit_code: int


class HistoryRun(Document):
    """A run in a list: when, what, by whom, and how it ended.

    Args:
        run: its id.
        time: when it began.
        mode: what it did.
        by: who.
        changes: how many were planned.
        exit_code: None where it did not end.
        proved: None where nothing was verified.
        of: the run that it takes back or resumes, "" for none.
        only: the remedies that took part, where it was not all; ``skip``: those that were left out.
    """

    run: str
    time: str
    mode: str
    by: str
    changes: int
    exit_code: int | None
    proved: bool | None
    of: str
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


class HistoryDocument(Headed):
    """What ``history`` prints with ``--json``: runs, the last one last."""

    schema_: Literal["remedy.history/1"] = Field(default="remedy.history/1", alias="schema")
    runs: tuple[HistoryRun, ...]


class StoryDocument(Headed):
    """What ``show RUN`` prints with ``--json``.

    Args:
        time: when the run began; ``mode``: what it did; ``by``: who.
        digest: of its plan.
        of: the run that it takes back; ``resumes``: that it resumes; "" for none.
        approvals: who signed the plan.
        only: the remedies that decided, or whose changes were taken back, where it was not all; ``skip``: those
            that were left out.
        planned: by host, the titles of its changes.
        results: by host and change, how it ended; ``words``: the host's own words.
        refused: hosts that refused the run, with the reason.
        hosts: how each host ended.
        not_known: the hosts that the run began to change, and whose answer is not on record.
        not_begun: those that it did not come to.
        settled: by host, how changes ended that waited for a confirmation when the run was cut off.
        unproved: in how many waves the run was to be made without a proof of each; 0 for none.
        waves: the proof of each wave, ``of`` names the run of one that a resumed run left without a proof;
            ``in_proof``: the hosts of one whose proof did not end.
        red: of a wave that was taken back because its proof failed: the reason, the run that took it back,
            which hosts are as before and which are not, whether they were proved again, what is suspected;
            of a wave of a resumed run, ``of`` names that run, and it was not taken back.
        proved: what verification showed, and the ``reason``; None where there was none.
        exit_code: None where the run did not end.
        receipts: by host, what it noted of the run itself; empty where no host was asked.
    """

    schema_: Literal["remedy.story/1"] = Field(default="remedy.story/1", alias="schema")
    time: str
    mode: str
    by: str
    digest: str
    of: str
    resumes: str
    approvals: tuple[str, ...]
    only: tuple[str, ...]
    skip: tuple[str, ...]
    planned: Mapping[str, tuple[str, ...]]
    results: Mapping[str, Mapping[str, str]]
    words: Mapping[str, Mapping[str, str]]
    refused: Mapping[str, str]
    hosts: Mapping[str, str]
    not_known: tuple[str, ...]
    not_begun: tuple[str, ...]
    settled: Mapping[str, str]
    unproved: int
    waves: tuple[Mapping[str, Any], ...]
    in_proof: tuple[str, ...]
    red: Mapping[str, Any]
    proved: bool | None
    reason: str
    exit_code: int | None
    receipts: Mapping[str, str]


class AuditDocument(Headed):
    """What ``audit verify`` prints with ``--json``.

    Args:
        records: how many are valid.
        problems: what is wrong.
        hosts: that were compared.
        replaced: those of them where a different machine answers now than the one that was changed.
        exit_code: of the command.
    """

    schema_: Literal["remedy.audit/1"] = Field(default="remedy.audit/1", alias="schema")
    records: int
    problems: tuple[str, ...]
    hosts: tuple[str, ...]
    replaced: tuple[str, ...]
    exit_code: int


class AcceptDocument(Headed):
    """What ``audit accept`` prints with ``--json``.

    Args:
        forgotten: by host, what it remembers of the journal and the journal does not have.
        errors: by host, why it does not keep the record of that.
        exit_code: of the command.
    """

    schema_: Literal["remedy.accept/1"] = Field(default="remedy.accept/1", alias="schema")
    forgotten: Mapping[str, str]
    errors: Mapping[str, str]
    exit_code: int


class ExportDocument(Headed):
    """What ``audit export --format json`` prints: the rows of the table, by the names of its columns."""

    schema_: Literal["remedy.export/1"] = Field(default="remedy.export/1", alias="schema")
    rows: tuple[Mapping[str, str], ...]


def history_body(runs: Iterable[Story]) -> dict[str, Any]:
    """Return what a ``HistoryDocument`` holds."""
    return {
        "runs": [
            {
                "run": story.run,
                "time": story.time,
                "mode": story.mode,
                "by": story.by,
                "changes": story.count,
                "exit_code": story.exit_code,
                "proved": story.proved,
                "of": story.of or story.resumes,
                "only": list(story.only),
                "skip": list(story.skip),
            }
            for story in runs
        ]
    }


def story_body(story: Story, receipts: Mapping[str, str]) -> dict[str, Any]:
    """Return what a ``StoryDocument`` holds."""
    names = StoryDocument.model_fields.keys() - Headed.model_fields.keys()
    body = {name: getattr(story, name) for name in names - {"schema_", "receipts"}}
    return {**body, "run": story.run, "receipts": dict(receipts)}
