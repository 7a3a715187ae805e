"""Runs as the journal has them: pure functions from records to stories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remedy.audit.journal import JournalRecord, read_records
from remedy.inventory import Inventory, Node

# A change with one of these is settled; the others may still be made when the run is resumed.
SETTLED = frozenset(("done", "already", "stale", "failed"))
# With one of these the run has, or may have, written something.
TOUCHED = frozenset(("done", "failed", "lost"))
# An id begins with the time of its run, in UTC.
_ID_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z-[0-9a-f]{8}")


@dataclass
class Story:
    """One run, as the journal has it.

    Args:
        run: its id; ``mode``, ``time`` and ``by`` say what it was, when it began and who did it.
        digest: of the plan that was agreed to.
        of: the run that it takes back, "" for none; ``resumes`` the run that it resumes.
        approvals: who signed the plan.
        vouched: whether all that it was to do was what remedy itself made for the hosts as they then were.
        only: the remedies that decided, or whose changes were taken back, where it was not all; ``skip``: those
            that were left out.
        planned: for each host the titles of its changes, in order.
        began: the hosts on which the plan was carried out, or begun.
        mtus: of their interfaces before that, by host.
        results: for each host and change how it ended.
        words: for each host and change the host's own words, where there are any.
        refused: hosts that refused the run as a whole, with the reason.
        settled: how changes ended that waited for a confirmation when the run was cut off, by host.
        waves: of a run in several waves, what the journal has of the proof of each.
        unproved: in how many waves the run was to be made without a proof of each; 0 for none.
        proving: whether each of its waves is to be proved.
        in_proof: the hosts of a wave that was changed, and whose proof is not on record.
        sizes: of the waves, as they were asked for; "" where that is not on record.
        red: of a wave whose proof failed, what the journal has; empty for none. It was taken back, unless it
            is a wave of a run that this one resumes.
        proved: what verification showed; None where there was none.
        hosts: how each host ended, in words; empty where the run did not end.
        exit_code: of the command; None where the run did not end.
        boots: the boot-id of each host when the run saw it last.
        records: the numbers of its records.
    """

    run: str
    mode: str
    time: str
    by: str = ""
    digest: str = ""
    of: str = ""
    resumes: str = ""
    approvals: tuple[str, ...] = ()
    vouched: bool = False
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    planned: dict[str, tuple[str, ...]] = field(default_factory=dict)
    began: set[str] = field(default_factory=set)
    mtus: dict[str, dict[str, int]] = field(default_factory=dict)
    results: dict[str, dict[str, str]] = field(default_factory=dict)
    words: dict[str, dict[str, str]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    settled: dict[str, str] = field(default_factory=dict)
    waves: list[Mapping[str, Any]] = field(default_factory=list)
    unproved: int = 0
    proving: bool = False
    in_proof: tuple[str, ...] = ()
    sizes: str = ""
    red: Mapping[str, Any] = field(default_factory=dict)
    proved: bool | None = None
    reason: str = ""
    hosts: dict[str, str] = field(default_factory=dict)
    exit_code: int | None = None
    boots: dict[str, str] = field(default_factory=dict)
    records: list[int] = field(default_factory=list)

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The hosts that the run did not reach, or whose results are not known."""
        return tuple(h for h in self.planned if not SETTLED & set(self.results.get(h, {}).values()))

    @property
    def not_known(self) -> tuple[str, ...]:
        """The hosts that the run began to change, and whose answer the journal does not have."""
        known = {*self.results, *self.refused}
        return tuple(host for host in self.planned if host in self.began - known)

    @property
    def not_begun(self) -> tuple[str, ...]:
        """The hosts that the run was to change, and did not come to; none of a command that changes none."""
        if self.mode not in ("apply", "rollback"):
            return ()
        return tuple(host for host in self.planned if host not in self.began)

    @property
    def count(self) -> int:
        """How many changes were planned."""
        return sum(len(titles) for titles in self.planned.values())


def stories(records: Iterable[JournalRecord]) -> dict[str, Story]:
    """Return the story of every run, in the order in which they began."""
    by_run: dict[str, Story] = {}
    for record in records:
        body = record.body
        story = by_run.setdefault(body["run"], Story(body["run"], body["mode"], _begun(body)))
        story.records.append(record.number)
        _add(story, str(body["event"]), body["data"])
    return by_run


def _begun(body: Mapping[str, Any]) -> str:
    """Return when a run began, from its first record.

    A command that changes nothing is on record when it ends, and its id has the earlier time. An unlock has the
    id of the run that it releases.
    """
    match = _ID_TIME.fullmatch(body["run"])
    time = str(body["time"])
    if match is None or body["mode"] == "unlock":
        return time
    year, month, day, hour, minute, second = match.groups()
    return min(time, f"{year}-{month}-{day}T{hour}:{minute}:{second}+00:00")


def read_stories(path: Path) -> dict[str, Story]:
    """Return the story of every run of a journal."""
    return stories(read_records(path))


def hosts_of_plan(path: Path, digest: str) -> set[str]:
    """Return the hosts on which the plan with this digest was carried out, or begun."""
    return {
        host
        for story in read_stories(path).values()
        if story.mode == "apply" and story.digest == digest
        for host in story.began
    }


def on_record(path: Path, runs: Iterable[Story], texts: Sequence[str]) -> tuple[str, ...]:
    """Return the hosts on record that ``--host`` selects; none where it is not given, or nothing is on record.

    A host that is no longer in the inventory was changed all the same, and so can be named.

    Args:
        path: of the inventory, for messages.
        runs: all that are on record.
        texts: what is given, in the notation of ``--limit``.

    Raises:
        InventoryError: one of them names no host that is on record.
    """
    names = dict.fromkeys(name for story in runs for name in (*story.planned, *story.hosts))
    recorded = Inventory(path, tuple(Node(name, name) for name in names))
    return recorded.select(texts, "--host") if names and texts else ()


def _add(story: Story, event: str, data: Mapping[str, Any]) -> None:
    """Add one record to the story of its run."""
    if event in ("planned", "saved", "checked", "rehearsed"):
        _add_plan(story, data)
    elif event == "began":
        story.began |= set(data.get("hosts", ()))
        story.mtus |= dict(data.get("mtus", {}))
    if event in ("changed", "rehearsed"):
        _add_reports(story, data.get("hosts", {}))
        story.in_proof = tuple(data.get("hosts", ())) if story.proving else ()
    elif event == "checked":
        story.hosts = dict(data.get("hosts", {}))
    elif event == "verified":
        story.proved = data.get("passed")
        story.reason = str(data.get("reason", ""))
    elif event == "ended":
        if "only" in data or "skip" in data:
            _add_choice(story, data)
        story.by = story.by or str(data.get("by", ""))
        story.exit_code = data.get("exit_code")
        story.hosts = dict(data.get("hosts", {}))
        story.boots = dict(data.get("boots", {}))
    elif event == "wave":
        story.waves.append(data)
        story.in_proof = ()
    elif event == "red":
        story.red, story.proved = data, False
        story.reason = str(data.get("reason", ""))
    elif event == "settled":
        story.by = story.by or str(data.get("by", ""))
        story.settled |= dict(data.get("hosts", {}))
    elif event == "accepted":
        story.by = str(data.get("by", ""))
    elif event == "unlocked":
        story.by = story.by or str(data.get("by", ""))
        if (
            story.mode == "unlock"
        ):  # else the lock was that of the run of this story, whose hosts ended in their way
            story.hosts = dict(data.get("hosts", {}))


def _add_plan(story: Story, data: Mapping[str, Any]) -> None:
    """Add who does what, from the first record of a run."""
    story.by = str(data.get("by", ""))
    story.digest = str(data.get("digest", ""))
    story.of = str(data.get("of", ""))
    story.resumes = str(data.get("resumes", ""))
    story.approvals = tuple(approval["principal"] for approval in data.get("approvals", ()))
    story.vouched = data.get("vouched") is True
    _add_choice(story, data)
    changes = data.get("changes") or {}
    story.planned = {host: tuple(titles) for host, titles in changes.items()}
    story.exit_code = data.get("exit_code")
    story.sizes = str(data.get("sizes", ""))
    waves = int(data.get("waves") or 1)
    story.proving = data.get("prove_waves") is True
    story.unproved = waves if waves > 1 and data.get("prove_waves") is False else 0


def _add_choice(story: Story, data: Mapping[str, Any]) -> None:
    story.only, story.skip = (
        tuple(map(str, data.get(option) or ())) for option in ("only", "skip")
    )


def _add_reports(story: Story, reports: Mapping[str, Any]) -> None:
    """Add what hosts reported of their changes."""
    for host, report in reports.items():
        if report.get("refused"):
            story.refused[host] = str(report["refused"])
        for result in report.get("results", ()):
            story.results.setdefault(host, {})[result["id"]] = result["status"]
            if result.get("detail"):
                story.words.setdefault(host, {})[result["id"]] = result["detail"]
