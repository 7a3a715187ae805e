"""``remedy unlock``: release the lock that a run holds on hosts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from remedy.apply.report import Unlocked
from remedy.apply.start import origin
from remedy.audit import Journal
from remedy.errors import RefusedError
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.runs.session import Session
from remedy.text import counted

RELEASED: Mapping[str, str] = MappingProxyType(
    {
        "free": "not locked by this run",
        "removed": "released the lock of a dead process",
        "fenced": "lock taken away; the run makes no further change there",
        "reverted": "released; the changes that waited for a confirmation were taken back",
    }
)
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


def unlock(session: Session, run: str, *, force: bool) -> RunOutcome:
    """Release the lock of a run on the hosts of a session, and record that.

    It asks for no consent and needs no approval: no object is changed, and it has to work when nothing else
    does.

    Args:
        session: the hosts.
        run: the id of the run that holds the lock.
        force: whether to take it also from a run that is at work.

    Raises:
        RemedyError: the journal cannot be written; then nothing is released.
    """
    by = origin().author
    journal = Journal(session.home, run=run, mode="unlock")
    journal.write("unlocking", by=by, force=force)
    with session.progress.stage(f"Unlocking {counted(len(session.hosts), 'host')}"):
        answers = session.carrier.unlock(session.hosts, run, force=force, by=by)
    journal.write("unlocked", by=by, hosts={name: lock.state for name, lock in answers.items()})
    return RunOutcome(
        mode="unlock",
        run=run,
        inventory=session.inventory.path.name,
        hosts={name: _outcome(name, lock) for name, lock in answers.items()},
    )


def _outcome(name: str, lock: Unlocked) -> HostOutcome:
    """Return the outcome of a host from what it answered."""
    detail = f": {lock.holder}" if lock.holder else ""
    if lock.state in RELEASED:
        return HostOutcome(HostStatus.OK, message=f"{RELEASED[lock.state]}{detail}")
    unknown = "whether it is locked is unknown", "See why, then run the command again."
    reason, next_step = HELD.get(lock.state, unknown)
    error = RefusedError(f"{name}: {reason}{detail}", next_step=next_step)
    return HostOutcome(HostStatus.FAILED, error=error)
