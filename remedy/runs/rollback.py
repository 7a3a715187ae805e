"""``remedy rollback``: take a run back, from the pre-images that it left on the hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from remedy.apply.start import origin
from remedy.audit import Story, agreement, witness
from remedy.errors import RefusedError, RemedyError, StaleError, UsageError
from remedy.files import name_of
from remedy.plan import Change, Choice, FileAction, Plan, read_plan, sha256, write_plan
from remedy.plan.identities import Claim, findings, in_words
from remedy.plan.reading import ROLLBACK
from remedy.plan.splice import whole
from remedy.probe import File, Guards
from remedy.runs import host
from remedy.runs.gate import Consent, Proposal, begin, require_approval
from remedy.runs.journal import machines_of
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.runs.probe import ProbeResult, probe
from remedy.runs.saved import check_bonds, new_file, refuse_choice
from remedy.runs.session import Session
from remedy.runs.settle import Purpose, settle
from remedy.text import counted, fold, quoted

_READY = (HostStatus.READY, HostStatus.OK)


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
        UsageError: there is no such run, it changed no host, or no change of it is of the chosen remedies.
        PlanFileError: its plan is not here or cannot be read.
        StaleError: its plan is not the one that the journal names.
    """
    story = _story(session, run)
    if plan_file is not None:
        refuse_choice(session, f"remedy rollback {run}")
    carried_out = agreement.read_agreed(session.home, story).restricted(story.began)
    approved = None if plan_file is None else _approved(session, run, plan_file)
    choice = session.choice if approved is None else approved.plan.choice
    _refuse_nothing(session, carried_out, story, choice)
    again = f"remedy rollback {run} {quoted(session.inventory.path)} -o"
    if plan_file is None and not saving:
        require_approval(session, None, None, 0, f"{again} plan.json")
    purpose = Purpose.READ if saving else Purpose.ROLL_BACK
    settled = settle(session, probe(session), purpose)
    result = settled.result
    local = carried_out.restricted(host for host in session.hosts if host in result.fleet.states)
    plan = _bound(agreement.undoing(local, story, origin(), choice), session)
    if approved is not None:
        former = approved.plan.restricted(plan.hosts)
        plan = _same(plan_file, former, plan, f"{again} {quoted(plan_file)}")
    concerned = set(carried_out.hosts)
    claims = tuple(claim for claim in result.claims if claim.host in concerned)
    unread = {name: error for name, error in result.errors.items() if name in concerned}
    strangers = _strangers(session, plan, story, result)
    obstacles = strangers | _obstacles(session, _without(plan, strangers), run, unread)
    idle = {name for name in plan.hosts if obstacles[name].status not in _READY}
    ready = _readable(_without(plan, idle), result)
    vouched = _vouched(session, result, story)
    authorship = {(change.host, change.id): change.host in vouched for change in ready.changes}
    return Proposal(
        "rollback",
        agreement.Agreement(plan, of=run) if approved is None else replace(approved, of=run),
        ready,
        scope=plan,
        notes=(
            *settled.notes,
            *_notes(session, result, claims),
            *_staying(agreement.touched(local, story), choice),
        ),
        obstacles=obstacles,
        claims=claims,
        intervened=settled.intervened,
        irreversible=agreement.irreversible(local, story, choice),
        authorship=None if approved is None and all(authorship.values()) else authorship,
    )


def _without(plan: Plan, hosts: Container[str]) -> Plan:
    """Return the part of a plan that leaves hosts alone."""
    return plan.restricted(name for name in plan.hosts if name not in hosts)


def _story(session: Session, run: str) -> Story:
    """Return a run that can be taken back.

    Raises:
        UsageError: there is no such run, or it changed no host.
    """
    story = session.story(run)
    if story.mode not in ("apply", "rollback") or not story.planned:
        article = "an" if story.mode[0] in "aeiou" else "a"
        raise UsageError(
            f"{run} is {article} {story.mode} that changed no host, so there is nothing to take back",
            next_step=f"List the runs: remedy history {session.typed}",
        )
    return story


def _bound(plan: Plan, session: Session) -> Plan:
    """Return the plan as one for the inventory and the settings of now, not of the run that it takes back."""
    digests = {
        "inventory_digest": session.inventory.digest,
        "spec_digest": session.spec.digest,
    }
    return plan.model_copy(update=digests)


def _readable(plan: Plan, result: ProbeResult) -> Plan:
    """Return the plan with what its reader is shown besides: the lines around those that change."""
    contents: dict[str, bytes] = {}
    for name in plan.hosts:
        state, changes = result.fleet.states[name], plan.for_host(name)
        before = {
            change.action.path: file.content
            for change in changes
            if isinstance(change.action, FileAction)
            and isinstance(file := state.file(change.action.path), File)
            and file.exists
        }
        contents |= whole(changes, before.get, plan.blobs)
        contents |= {sha256(content): content for content in dict.fromkeys(before.values())}
    more = {"contents": contents, "addresses": result.fleet.own_addresses}
    return plan.model_copy(update=more)


def _vouched(session: Session, result: ProbeResult, story: Story) -> frozenset[str]:
    """Return the hosts that vouch for what a run was to do there, and that this was remedy's own.

    Its plan lies in a file. That the file is the plan which was carried out says the journal; that the journal
    is still the one of that time says what root of the host keeps of it.
    """
    if not story.vouched:
        return frozenset()
    states = result.fleet.states.items()
    heads = {name: s.guards.head for name, s in states if isinstance(s.guards, Guards)}
    return witness.vouching(heads, session.home, story.records[0])


def _obstacles(
    session: Session, plan: Plan, run: str, unread: Mapping[str, RemedyError]
) -> dict[str, HostOutcome]:
    """Return how hosts would end because they could not be read, or because of what is seen there now."""
    obstacles = {name: host.unread(error) for name, error in unread.items()}
    if plan.changes:
        with session.progress.stage(f"Checking {counted(len(plan.hosts), 'host')}"):
            reports = session.carrier.look(plan, of=run)
        obstacles |= {
            name: host.reported(name, report, session.typed) for name, report in reports.items()
        }
    return obstacles


def _strangers(
    session: Session, plan: Plan, story: Story, result: ProbeResult
) -> dict[str, HostOutcome]:
    """Return the hosts where a different machine answers now than the one that a run changed."""
    machines = machines_of(session, story)
    current = result.marked(plan).machines
    strangers = [name for name, mark in current.items() if machines.get(name, mark) != mark]
    step = "Nothing of that run is there. Leave it out: --limit "
    return {
        name: HostOutcome(
            HostStatus.FAILED,
            error=RefusedError(
                f"{name}: a different machine answers there now than the one that run {story.run} changed; "
                "only that one has the pre-images",
                next_step=f"{step}{quoted(f'*!{fold(strangers)}')}",
            ),
        )
        for name in strangers
    }


def _notes(session: Session, result: ProbeResult, claims: Iterable[Claim]) -> Iterator[str]:
    """Yield what somebody who takes a run back has to know of the hosts."""
    for name, what in result.forgotten.items():
        yield f"{name}: the journal does not have what this host remembers of it: {what}"
    yield from map(in_words, findings(session.inventory, claims))


def _refuse_nothing(session: Session, plan: Plan, story: Story, choice: Choice) -> None:
    """Refuse a choice of remedies that leaves nothing of what a run changed to be taken back.

    Raises:
        UsageError: it leaves nothing.
    """
    by_remedy = _counts(agreement.touched(plan, story))
    if choice and by_remedy and not any(name in choice for name in by_remedy):
        raise UsageError(
            f"{choice.words}: run {story.run} made no change that this chooses",
            next_step=f"Its changes are of: {_in_numbers(by_remedy)}. See them: "
            f"{session.show_command(story.run)}",
        )


def _staying(changes: Iterable[Change], choice: Choice) -> Iterator[str]:
    """Yield what is left as the run made it, where not all remedies are taken back."""
    staying = _counts(change for change in changes if change.remedy not in choice)
    if staying:
        yield f"{choice.words}: what the run did by other remedies stays: {_in_numbers(staying)}"


def _counts(changes: Iterable[Change]) -> Counter[str]:
    return Counter(change.remedy for change in changes)


def _in_numbers(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({counted(count, 'change')})" for name, count in counts.items())


def save(session: Session, proposal: Proposal, path: Path) -> Plan:
    """Write the plan that takes a run back, to be approved, and return it.

    Raises:
        UsageError: there is nothing to take back.
        RemedyError: it cannot be written.
    """
    if proposal.scope is None or not proposal.scope.changes:
        why = session.show_command(proposal.agreement.of)
        raise UsageError("nothing is to be taken back", next_step=f"See why: {why}")
    write_plan(proposal.scope, path)
    return proposal.scope


def _approved(session: Session, run: str, path: Path) -> agreement.Agreement:
    """Return the plan that takes a run back, as it was approved.

    Raises:
        UsageError: it is for something else.
        StaleError: it was made for a different inventory or settings, or was carried out before.
        RefusedError: signatures are missing.
    """
    plan = read_plan(path)
    how, name = f"remedy rollback {run} {session.typed} -o {new_file(path)}", name_of(path)
    if plan.purpose != f"{ROLLBACK}{run}":
        raise UsageError(
            f"{name} does not take run {run} back, but is for: {plan.purpose or 'an apply'}",
            next_step=f"Make one: {how}",
        )
    how = " ".join(filter(None, (how, plan.choice.words)))
    check_bonds(session, path, plan, how)
    if any(story.digest == plan.digest for story in session.stories().values()):
        raise StaleError(
            f"{name} was carried out before; a plan is used once",
            next_step=f"Make a new one: {how}",
        )
    planner, valid = require_approval(session, plan, path, 0)
    return agreement.Agreement(plan, valid, planner, by=origin().author)


def _same(path: Path | None, approved: Plan, current: Plan, again: str) -> Plan:
    """Return the approved plan, where it is what takes the run back by the records of the run.

    Args:
        path: its file.
        approved: the plan.
        current: what takes the run back now.
        again: the command that makes such a plan.

    Raises:
        StaleError: it is not.
    """
    if approved.changes != current.changes:
        raise StaleError(
            f"{path} is not what takes the run back by the records of the run and its plan",
            next_step=f"Make it again: {again}",
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
    stage = session.progress.stage(f"Taking back on {counted(len(plan.hosts), 'host')}")
    with stage if plan.hosts else nullcontext():
        reports = work.carry(plan)
        outcome = RunOutcome(
            mode="rollback",
            run=work.run,
            inventory=session.inventory.full_path,
            hosts={
                **{n: o for n, o in proposal.obstacles.items() if n not in reports},
                **{
                    name: host.reported(name, report, session.typed)
                    for name, report in reports.items()
                },
            },
            plan=proposal.scope,
            of=proposal.agreement.of,
            warnings=proposal.final_words,
        )
        return work.end(outcome)
