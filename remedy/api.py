"""remedy from a program: the commands as functions, which return what they found and print nothing.

Import this module before others that open sockets: it loads pyinfra, which replaces sockets and threads of the
whole process (gevent). A program that has threads of its own runs the command ``remedy --json`` instead.

What is not in ``__all__`` may change from one version to the next.

Expected failures are ``RemedyError``; ``message`` says what went wrong, ``next_step`` what to do about it.
"""

from __future__ import annotations

import remedy.transport.cooperative  # noqa: F401  # isort: skip (before whatever else uses sockets)

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from remedy.diagnose.cures import explain_alone
from remedy.diagnose.diagnosis import Explanation
from remedy.diagnose.logs import diagnose_paths
from remedy.errors import RefusedError, RemedyError
from remedy.plan import Plan
from remedy.report.document import run_document
from remedy.runs import apply as _apply
from remedy.runs import check as _check
from remedy.runs import plan as _plan
from remedy.runs import verify as _verify
from remedy.runs.consent import agree
from remedy.runs.diagnose import with_hosts
from remedy.runs.gate import Consent, Proposal
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.runs.session import Progress, Session, open_session
from remedy.text import to_paste

__all__ = [
    "Consent",
    "Explanation",
    "HostOutcome",
    "HostStatus",
    "Plan",
    "Progress",
    "Proposal",
    "RefusedError",
    "RemedyError",
    "RunOutcome",
    "Session",
    "agree",
    "apply",
    "check",
    "diagnose",
    "document",
    "load",
    "plan",
    "verify",
]


def load(
    inventory: str | Path,
    *,
    spec: str | Path | None = None,
    limit: str | Iterable[str] | None = None,
    only: str | Iterable[str] = (),
    skip: str | Iterable[str] = (),
    settings: Mapping[str, Mapping[str, object]] | None = None,
    sudo_password: str | None = None,
    progress: Progress | None = None,
) -> Session:
    """Open an inventory; its connections end with ``close``, or with the block of ``with``.

    Args:
        inventory: a pyinfra inventory; it is a program, and is run.
        spec: ``remedy.yaml``; None for the one beside the inventory, where there is one.
        limit: as ``--limit``, such as ``gpu[01-08]``, or several of these; None for all hosts. A list of
            nothing selects nothing, which is an error.
        only: the remedies that decide, empty for all; ``skip``: those that do not.
        settings: by section of ``remedy.yaml``, what holds in place of it: ``{"verify": {"deadline": 60}}``.
        sudo_password: for hosts whose sudo asks for one.
        progress: hears what happens meanwhile.

    Raises:
        RemedyError: the inventory or the settings cannot be used, or ``limit`` selects no host.
    """
    return open_session(
        Path(inventory),
        spec=None if spec is None else Path(spec),
        limit=_limit(limit),
        settings=settings,
        origin="settings",
        sudo_password=None if sudo_password is None else SecretStr(sudo_password),
        progress=progress,
        only=_texts(only),
        skip=_texts(skip),
    )


def _texts(values: str | Iterable[str]) -> tuple[str, ...]:
    """Return one text or several; a text is not taken for its letters."""
    return (values,) if isinstance(values, str) else tuple(values)


def _limit(values: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return what selects hosts; a list that came out empty is not taken for all of them."""
    return () if values is None else _texts(values) or ("",)


def check(session: Session) -> RunOutcome:
    """Read the hosts and return what is wrong, as ``remedy check``; nothing is changed but the journal."""
    with _typed(session):
        outcome = _check.check(session, pending_counts=False, after_reboot=False)
    return outcome.noting(session.transport.notes, session.transport.warnings)


def plan(session: Session, output: str | Path | None = None) -> RunOutcome:
    """Read the hosts and return what would be changed, as ``remedy plan``: the outcome's ``plan``.

    Args:
        session: the hosts.
        output: where the plan is saved, to be approved or applied later; None for nowhere.
    """
    file = None if output is None else Path(output)
    with _typed(session):
        outcome = _plan.plan(session, output=file, pending_counts=False)
    return outcome.noting(session.transport.notes, session.transport.warnings)


def apply(
    session: Session, *, consent: Consent, plan: str | Path | None = None, prove: bool = True
) -> RunOutcome:
    """Change the hosts, probe them again and prove the result, as ``remedy apply``.

    Args:
        session: the hosts.
        consent: gets the proposal with its plan before anything is changed, and raises ``RefusedError``
            where it does not agree. ``agree`` agrees to all that ``--yes`` does.
        plan: a saved plan, with the signatures beside it; None to make one now.
        prove: whether to run the all-reduce afterwards.
    """
    file = None if plan is None else Path(plan)
    with _typed(session):
        proposal = _apply.propose(session, plan_file=file)
        outcome = _apply.apply(session, proposal, consent=consent, prove=prove)
    return outcome.noting(session.transport.notes, session.transport.warnings)


def verify(session: Session) -> RunOutcome:
    """Prove the hosts as they are, as ``remedy verify``: the outcome's ``verdict``; nothing is changed."""
    with _typed(session):
        outcome = _verify.verify(session, incremental=False)
    return outcome.noting(session.transport.notes, session.transport.warnings)


def diagnose(logs: Iterable[str | Path], session: Session | None = None) -> Explanation:
    """Name the cause of a failed run from its logs, as ``remedy diagnose``.

    Args:
        logs: files, and folders of files: those of all ranks together.
        session: the hosts that the run was on, to compare the logs with; None to read the logs alone.
    """
    paths = tuple(map(Path, logs))
    diagnosis = diagnose_paths(paths)
    return explain_alone(diagnosis, paths) if session is None else with_hosts(diagnosis, session)


@contextmanager
def _typed(session: Session) -> Iterator[None]:
    """Have the next step of an error name the inventory as it was given."""
    try:
        yield
    except RemedyError as error:
        error.next_step = to_paste(error.next_step, session.typed)
        raise


def document(outcome: RunOutcome) -> dict[str, Any]:
    """Return an outcome as ``--json`` prints it, but for the head: plain values (``remedy schema run``)."""
    return run_document(outcome)
