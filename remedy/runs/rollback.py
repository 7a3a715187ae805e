"""``remedy rollback``: take a run back, from the pre-images that it left on the hosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from remedy.apply.start import origin
from remedy.audit import agreement
from remedy.errors import RemedyError, StaleError, UsageError
from remedy.plan import Plan, read_plan, write_plan
from remedy.plan.identities import Claim, findings, in_words
from remedy.plan.reading import ROLLBACK
from remedy.runs import host
from remedy.runs.gate import Consent, Proposal, begin, require_approval
from remedy.runs.outcome import HostOutcome, RunOutcome
from remedy.runs.probe import ProbeResult, probe
from remedy.runs.saved import check_bonds
from remedy.runs.session import Session
from remedy.runs.settle import Purpose, settle
from remedy.text import counted, quoted


def propose(
    session: Session, run: str, *, plan_file: Path | None = None, saving: bool = False
) -> Proposal:
    """Return what takes a run back on the hosts of a session, last change first, and what prevents it.

    Args:
        session: the hosts.
        run: the one to be taken back.
        plan_file: the plan for that, as it was approved; None to make one.
        saving: whether the plan is only made, to be approved.

    Raises:
        UsageError: there is no such run, or it changed no host.
        PlanFileError: its plan is not here or cannot be read.
        StaleError: its plan is not the one that the journal names.
    """
    story = session.story(run)
    if story.mode not in ("apply", "rollback") or not story.planned:
        article = "an" if story.mode[0] in "aeiou" else "a"
        raise UsageError(
            f"{run} is {article} {story.mode} that changed no host, so there is nothing to take back",
            next_step="List the runs: remedy history INVENTORY",
        )
    carried_out = agreement.read_agreed(session.home, story).restricted(story.began)
    approved = None if plan_file is None else _approved(session, run, plan_file)
    if plan_file is None and not saving:
        how = f"remedy rollback {run} {quoted(session.inventory.path)} -o plan.json"
        require_approval(session, None, None, 0, how)
    purpose = Purpose.READ if saving else Purpose.ROLL_BACK
    settled = settle(session, probe(session), purpose)
    result = settled.result
    local = carried_out.restricted(host for host in session.hosts if host in result.fleet.states)
    plan = agreement.undoing(local, story, origin())
    if approved is not None:
        plan = _same(plan_file, approved.plan.restricted(plan.hosts), plan)
    concerned = set(carried_out.hosts)
    claims = tuple(claim for claim in result.claims if claim.host in concerned)
    unread = {name: error for name, error in result.errors.items() if name in concerned}
    return Proposal(
        "rollback",
        agreement.Agreement(plan, of=run) if approved is None else replace(approved, of=run),
        plan,
        notes=(*settled.notes, *_notes(session, result, claims)),
        obstacles=_obstacles(session, plan, run, unread),
        claims=claims,
        intervened=settled.intervened,
        irreversible=agreement.irreversible(local, story),
        authorship=None if approved is None else {(c.host, c.id): True for c in plan.changes},
    )


def _obstacles(
    session: Session, plan: Plan, run: str, unread: Mapping[str, RemedyError]
) -> dict[str, HostOutcome]:
    """Return how hosts would end because they could not be read, or because of what is seen there now."""
    obstacles = {name: host.unread(error) for name, error in unread.items()}
    if plan.changes:
        with session.progress.stage(f"Checking {counted(len(plan.hosts), 'host')}"):
            reports = session.carrier.look(plan, of=run)
        obstacles |= {name: host.reported(name, report) for name, report in reports.items()}
    return obstacles


def _notes(session: Session, result: ProbeResult, claims: Iterable[Claim]) -> Iterator[str]:
    """Yield what somebody who takes a run back has to know of the hosts."""
    for name, what in result.forgotten.items():
        yield f"{name}: the journal does not have what this host remembers of it: {what}"
    yield from map(in_words, findings(session.inventory, claims))


def save(session: Session, proposal: Proposal, path: Path) -> None:
    """Write the plan that takes a run back, to be approved.

    Raises:
        UsageError: there is nothing to take back.
        RemedyError: it cannot be written.
    """
    if not proposal.plan.changes:
        raise UsageError("nothing is to be taken back", next_step="See why: remedy show RUN")
    digests = {
        "inventory_digest": session.inventory.digest,
        "spec_digest": session.spec.digest,
    }
    write_plan(proposal.plan.model_copy(update=digests), path)


def _approved(session: Session, run: str, path: Path) -> agreement.Agreement:
    """Return the plan that takes a run back, as it was approved.

    Raises:
        UsageError: it is for something else.
        StaleError: it was made for a different inventory or settings, or was carried out before.
        RefusedError: signatures are missing.
    """
    plan = read_plan(path)
    if plan.purpose != f"{ROLLBACK}{run}":
        raise UsageError(
            f"{path} does not take run {run} back, but is for: {plan.purpose or 'an apply'}",
            next_step=f"Make one: remedy rollback {run} {quoted(session.inventory.path)} -o {quoted(path)}",
        )
    check_bonds(session, path, plan)
    if any(story.digest == plan.digest for story in session.stories().values()):
        raise StaleError(
            f"{path} was carried out before; a plan is used once",
            next_step=f"Make a new one: remedy rollback {run} {quoted(session.inventory.path)} "
            f"-o {quoted(path)}",
        )
    planner, valid = require_approval(session, plan, path, 0)
    return agreement.Agreement(plan, valid, planner, by=origin().author)


def _same(path: Path | None, approved: Plan, current: Plan) -> Plan:
    """Return the approved plan, where it is what takes the run back by the records of the run.

    Raises:
        StaleError: it is not.
    """
    if approved.changes != current.changes:
        raise StaleError(
            f"{path} is not what takes the run back by the records of the run and its plan",
            next_step="Make it again: remedy rollback RUN INVENTORY -o FILE",
        )
    return approved


def rollback(session: Session, proposal: Proposal, *, consent: Consent) -> RunOutcome:
    """Take a run back; an object that somebody changed since is left alone, and its host with it.

    The rollback is a run like any other: it is in the journal, and can be taken back.

    Raises:
        RefusedError: nobody consented.
        RemedyError: the journal cannot be written; then nothing is taken back.
    """
    plan = proposal.plan
    work = begin(session, proposal, consent)
    with session.progress.stage(f"Taking back on {counted(len(plan.hosts), 'host')}"):
        reports = work.carry(plan)
        outcome = RunOutcome(
            mode="rollback",
            run=work.run,
            inventory=session.inventory.path.name,
            hosts={
                **{n: o for n, o in proposal.obstacles.items() if n not in reports},
                **{name: host.reported(name, report) for name, report in reports.items()},
            },
            plan=plan,
            of=proposal.agreement.of,
        )
        return work.end(outcome)
