"""``remedy rollback``: take a run back, from the pre-images that it left on the hosts."""

from __future__ import annotations

from remedy.apply.start import origin
from remedy.audit import agreement
from remedy.errors import UsageError
from remedy.runs import host
from remedy.runs.gate import Consent, Proposal, begin
from remedy.runs.outcome import RunOutcome
from remedy.runs.probe import probe
from remedy.runs.session import Session
from remedy.runs.settle import Purpose, settle
from remedy.text import counted


def propose(session: Session, run: str) -> Proposal:
    """Return what takes a run back on the hosts of a session, last change first, and what prevents it.

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
    settled = settle(session, probe(session), Purpose.ROLL_BACK)
    carried_out = agreement.read_agreed(session.home, story).restricted(story.began)
    local = carried_out.restricted(h for h in session.hosts if h not in settled.result.unsettled)
    plan = agreement.undoing(local, story, origin())
    obstacles = {
        name: host.unread(settled.result.errors[name]) for name in settled.result.unsettled
    }
    if plan.changes:
        with session.progress.stage(f"Checking {counted(len(plan.hosts), 'host')}"):
            reports = session.carrier.look(plan, of=run)
        obstacles |= {name: host.reported(name, report) for name, report in reports.items()}
    return Proposal(
        "rollback",
        agreement.Agreement(plan, of=run),
        plan,
        notes=(
            *settled.notes,
            *(
                f"{name}: the journal does not have what this host remembers of it: {what}"
                for name, what in settled.result.forgotten.items()
            ),
        ),
        obstacles=obstacles,
        irreversible=agreement.irreversible(local, story),
    )


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
