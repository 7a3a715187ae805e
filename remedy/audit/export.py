"""The journal as a table: one row for each change of a host, and one for each proof of a run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta, timezone
from pathlib import Path

from remedy.audit.agreement import plan_path
from remedy.audit.story import Story
from remedy.errors import PlanFileError, UsageError
from remedy.plan import Change, CommandAction, Plan, read_plan
from remedy.text import visible

# What begins a formula (OWASP, CSV Injection), also as East Asian keyboards write it; "" is an empty field.
FORMULA = frozenset("=+-@|%\uff1d\uff0b\uff0d\uff20")


@dataclass(frozen=True)
class AuditRow:
    """What was done to one host by one change, or what a run proved of it.

    Args:
        object: the file, or the command that looks at what is changed.
        before: the digest of the file, or the state, that was there; ``after``: what is to be there.
        status: how it ended; "planned" where it was not begun, "not known" where no answer is on record.
        proved: yes, no, or "" where there was no verification.
    """

    time: str
    run: str
    mode: str
    by: str
    approved_by: str
    host: str
    change: str
    title: str
    reason: str
    object: str
    before: str
    after: str
    status: str
    detail: str
    proved: str
    host_ended: str
    exit_code: str
    of: str
    plan: str


def rows(runs: Iterable[Story], plans: Mapping[str, Plan]) -> Iterator[AuditRow]:
    """Yield the rows of runs.

    Args:
        runs: in order.
        plans: by run, where the plan is still there and is the one that the journal names.
    """
    for story in runs:
        plan = plans.get(story.run)
        for host in dict.fromkeys([*story.planned, *story.results, *story.hosts]):
            changes = {c.id: c for c in plan.for_host(host)} if plan is not None else {}
            ids = [i for i in changes if host in story.planned] or list(story.results.get(host, {}))
            if not ids:
                yield _row(story, host, "", None)
            for change in ids:
                yield _row(story, host, change, changes.get(change))


def _row(story: Story, host: str, change_id: str, change: Change | None) -> AuditRow:
    action = change.action if change is not None else None
    look = action.observe if isinstance(action, CommandAction) else ""
    waiting = "not known" if host in story.not_known else "planned"
    default = waiting if change_id else ""
    return AuditRow(
        time=story.time,
        run=story.run,
        mode=story.mode,
        by=story.by,
        approved_by=" ".join(story.approvals),
        host=host,
        change=change_id,
        title=change.title if change is not None else "",
        reason=change.reason if change is not None else "",
        object=look or getattr(action, "real_path", ""),
        before=(action.before or "absent") if action is not None else "",
        after=(action.after or "absent") if action is not None else "",
        status=story.results.get(host, {}).get(change_id, default),
        detail=story.words.get(host, {}).get(change_id, "") or story.refused.get(host, ""),
        proved="" if story.proved is None else "yes" if story.proved else "no",
        host_ended=story.hosts.get(host, ""),
        exit_code="" if story.exit_code is None else str(story.exit_code),
        of=story.of or story.resumes,
        plan=story.digest,
    )


def as_csv(table: Iterable[AuditRow]) -> str:
    """Return rows as CSV (RFC 4180) with a header.

    A field that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    text = io.StringIO()
    names = [field.name for field in fields(AuditRow)]
    writer = csv.DictWriter(text, names, lineterminator="\r\n")
    writer.writeheader()
    for row in table:
        writer.writerow({key: _harmless(value) for key, value in asdict(row).items()})
    return text.getvalue()


def _harmless(value: str) -> str:
    """Return a field of one line that no spreadsheet computes; blanks in front of a formula make it no text."""
    shown = visible(value)
    return f"'{shown}" if shown.lstrip()[:1] in FORMULA else shown


def plans_of(home: Path, runs: Iterable[Story]) -> dict[str, Plan]:
    """Return the plans of runs that are kept beside the journal and are the ones that it names."""
    plans = {}
    for story in runs:
        try:
            plan = read_plan(plan_path(home, story.run), of_journal=True)
        except PlanFileError:
            continue
        if plan.digest == story.digest or not story.digest:
            plans[story.run] = plan
    return plans


def moment(text: str, option: str = "", *, end: bool = False) -> datetime:
    """Return the moment that ``text`` names: a date, or a date and time, in UTC where no zone is given.

    Args:
        text: such as 2026-01-31 or 2026-01-31T12:00:00+01:00.
        option: that it is the value of, for the error.
        end: a date alone means the end of that day.

    Raises:
        UsageError: it is neither.
    """
    try:
        named = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise UsageError(
            f"{option} {text!r} is not a date".lstrip(),
            next_step="Give one such as 2026-01-31 or 2026-01-31T12:00:00Z.",
        ) from error
    if end and len(text) <= len("2026-01-31"):
        named += timedelta(days=1)
    return named if named.tzinfo is not None else named.replace(tzinfo=timezone.utc)


def within(story: Story, since: datetime | None, until: datetime | None) -> bool:
    """Say whether a run began in a range of time."""
    began = moment(story.time)
    return (since is None or began >= since) and (until is None or began < until)
