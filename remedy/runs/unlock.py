"""``remedy unlock``: release the lock that a run holds on hosts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from remedy import __version__
from remedy.apply.report import Unlocked
from remedy.apply.start import RUN_ID, origin
from remedy.audit import Journal
from remedy.errors import RefusedError, UsageError
from remedy.files import name_of
from remedy.plan import Plan, read_plan
from remedy.runs.gate import require_approval
from remedy.runs.host import unread
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.runs.saved import check_bonds, new_file
from remedy.runs.session import Session
from remedy.text import counted, fold, quoted

WORDS: Mapping[str, str] = MappingProxyType(
    {
        "free": "not locked by this run",
        "removed": "released the lock of a dead process",
        "fenced": "lock taken away; the run makes no further change there",
        "reverted": "released; the changes that waited for a confirmation were taken back",
    }
)
ASKED = "was asked to release what run {run} holds there; its answer is not known"
# Why the lock is still held, and the next step.
HELD: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "other": ("locked by a different run", "Give the id of that run."),
        "alive": (
            "the run is still at work there",
            "Wait until it ends. To stop it before its next change: --force.",
        ),
        "pending": (
            "the host is about to take the changes of the run back",
            "Wait until it has. To have them taken back now: --force.",
        ),
        "refused": ("the host refused", "Remove the obstacle and run the command again."),
    }
)


def check_id(session: Session, run: str) -> None:
    """Refuse what no run is called: it would get onto the record as one.

    A run of a different journal may hold a lock, too; its id has the form of one.

    Raises:
        UsageError: it is no id, and no run of the journal has it.
    """
    if RUN_ID.fullmatch(run) is None and run not in session.stories():
        raise UsageError(
            f"{run!r} is no id of a run",
            next_step="A host that is locked names the run. Runs of this journal: "
            f"remedy history {session.typed}",
        )


def proposed(session: Session, run: str) -> Plan:
    """Return what is approved for a forced unlock: the run and the hosts, and no change.

    It may be used again: a lock that was taken away from a run is never that run's again.
    """
    who = origin()
    return Plan(
        tool_version=__version__,
        created=who.created,
        author=who.author,
        inventory=session.inventory.path.name,
        inventory_digest=session.inventory.digest,
        spec_digest=session.spec.digest,
        purpose=_purpose(session, run),
    )


def _purpose(session: Session, run: str) -> str:
    return f"unlock {run} by force on {fold(session.hosts)}, and have taken back what waits there"


def _approve(session: Session, run: str, path: Path | None) -> dict[str, object]:
    """Return who approved that a lock is taken away by force, for the record; nothing where nobody has to.

    Raises:
        UsageError: the plan is for something else.
        StaleError: it is of a different inventory or settings.
        RefusedError: signatures are missing.
    """
    file = "plan.json" if path is None else new_file(path)
    how = f"remedy unlock {run} {quoted(session.inventory.path)} --force -o {file}"
    plan = None if path is None else read_plan(path)
    if plan is not None and path is not None:
        if plan.purpose != _purpose(session, run):
            raise UsageError(
                f"{name_of(path)} is for: {plan.purpose or 'an apply'}",
                next_step=f"Make one: {how}",
            )
        check_bonds(session, path, plan, how)
    _, valid = require_approval(session, plan, path, 0, how)
    return {"approvals": [approval.principal for approval in valid]} if valid else {}


def unlock(session: Session, run: str, *, force: bool, plan_file: Path | None = None) -> RunOutcome:
    """Release the lock of a run on the hosts of a session, and record that.

    It asks for no consent, since no object is changed and it has to work when nothing else does. By force it
    needs the approvals that a change needs: the host also takes back what waits there for a confirmation.

    Args:
        plan_file: what was approved; None for nothing.
        session: the hosts.
        run: the id of the run that holds the lock.
        force: whether to take it also from a run that is at work.

    Raises:
        RefusedError: approvals are missing.
        RemedyError: the journal cannot be written; then nothing is released.
    """
    approved = _approve(session, run, plan_file) if force else {}
    by = origin().author
    journal = Journal(session.home, run=run, mode="unlock")
    journal.write("unlocking", by=by, force=force, **approved)
    session.activity.mode, session.activity.run = "unlock", run
    session.activity.requests = dict.fromkeys(session.hosts, (ASKED.format(run=run), run))
    with session.progress.stage(f"Unlocking {counted(len(session.hosts), 'host')}"):
        answers = session.carrier.unlock(session.hosts, run, force=force, by=by)
    journal.write("unlocked", by=by, hosts={name: lock.state for name, lock in answers.items()})
    session.activity.ended = True
    return RunOutcome(
        mode="unlock",
        run=run,
        inventory=session.inventory.full_path,
        hosts={name: _outcome(name, lock) for name, lock in answers.items()},
    )


def _outcome(name: str, lock: Unlocked) -> HostOutcome:
    """Return the outcome of a host from what it answered."""
    detail = f": {lock.holder}" if lock.holder else ""
    if lock.error is not None:
        return unread(lock.error)
    if lock.state in WORDS:
        return HostOutcome(HostStatus.OK, message=f"{WORDS[lock.state]}{detail}")
    unknown = "whether it is locked is unknown", "See why, then run the command again."
    reason, next_step = HELD.get(lock.state, unknown)
    error = RefusedError(f"{name}: {reason}{detail}", next_step=next_step)
    return HostOutcome(HostStatus.FAILED, error=error)
