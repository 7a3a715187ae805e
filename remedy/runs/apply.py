"""``remedy apply``: change the hosts by a plan, probe them again, and prove the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from remedy.apply.waves import TAKEN_BACK, waves
from remedy.audit.agreement import Agreement
from remedy.audit.unproved import mtus_before
from remedy.errors import UsageError
from remedy.plan import Plan, vouched
from remedy.runs import host, machines
from remedy.runs.cut import mtus_of
from remedy.runs.earlier import Earlier, earlier, still_unproved
from remedy.runs.gate import ChangeRun, Consent, Proposal, begin, require_approval
from remedy.runs.note import unrecorded
from remedy.runs.outcome import HostStatus, RunOutcome
from remedy.runs.partners import Ground, ground_of, with_pair
from remedy.runs.probe import ProbeResult, Reading, probe
from remedy.runs.saved import changed_since, check_machines, read_saved, refuse_choice, resumed
from remedy.runs.session import Session
from remedy.runs.settle import Purpose, SettledHosts, settle
from remedy.text import counted
from remedy.values import Unknown

if TYPE_CHECKING:
    from remedy.runs.wave import Waves


def propose(
    session: Session,
    *,
    plan_file: Path | None = None,
    resume: str | None = None,
    approvals: int = 0,
    rehearsing: bool = False,
) -> Proposal:
    """Read the hosts, settle those that are about to change, and return what would be changed there.

    Args:
        session: the hosts.
        plan_file: a saved plan to carry out; None to make one.
        resume: the run whose plan is carried out on the hosts that are left; None for no such run.
        approvals: how many signatures are required; the spec may require more.
        rehearsing: whether nothing may be written on a host.

    Raises:
        UsageError: both a plan and a run are given, or they cannot be used.
        StaleError: the plan was made for a different inventory, or was carried out before.
        RefusedError: approvals are missing.
    """
    agreement, hosts = None, session.hosts
    if plan_file is not None and resume is not None:
        raise UsageError(
            "--plan and --resume exclude each other: a run is resumed with its own plan",
            next_step="Give one of them.",
        )
    if resume is not None:
        agreement, hosts = resumed(session, resume, approvals)
    elif plan_file is not None:
        agreement = read_saved(session, plan_file, approvals)
    else:
        require_approval(session, None, None, approvals)
    if agreement is not None:
        refuse_choice(session, "remedy plan")
        session = replace(session, choice=agreement.plan.choice)
    purpose = Purpose.READ if rehearsing else Purpose.APPLY
    settled = settle(
        session, probe(session), purpose, plan=agreement.plan if agreement is not None else None
    )
    return _proposed(session, settled, agreement, hosts)


def _proposed(
    session: Session, settled: SettledHosts, agreement: Agreement | None, hosts: Sequence[str]
) -> Proposal:
    """Return what would be changed on hosts that are settled: by a plan of before, else by one made now.

    Raises:
        StaleError: other machines answer than those that the plan was made for.
    """
    result, notes = settled.result, settled.notes
    proposed = partial(
        Proposal,
        "apply",
        probe=result,
        claims=result.claims,
        intervened=settled.intervened,
    )
    if agreement is None:
        plan = result.marked(result.plan)
        agreement = Agreement(plan)
        return proposed(
            agreement, plan, notes=(*notes, *_wave_notes(session, agreement, plan, Earlier()))
        )
    scope = agreement.plan.restricted(hosts)
    # What is not read is left out: another machine may answer there by the time of the change.
    plan = scope.restricted(host for host in hosts if host in result.fleet.states)
    before = earlier(session, agreement, plan, result)
    notes += _wave_notes(session, agreement, plan, before)
    notes += tuple(f"approved by {approval.principal}" for approval in agreement.approvals)
    check_machines(plan, result)
    notes += changed_since(session, plan, result)
    authorship = vouched(plan, result.plan)
    return proposed(
        agreement, plan, scope=scope, notes=notes, authorship=authorship, earlier=before
    )


def _sizes(session: Session, agreement: Agreement) -> str:
    """Return the sizes of the waves: as the settings say, else as the run that is resumed had them."""
    spec = session.spec.apply
    return spec.waves if "waves" in spec.model_fields_set else agreement.sizes or spec.waves


def _wave_notes(
    session: Session, agreement: Agreement, plan: Plan, before: Earlier
) -> tuple[str, ...]:
    """Return what somebody who agrees to a plan agrees to as well, where it is carried out in waves."""
    count = len(waves(plan.hosts, _sizes(session, agreement)))
    if not session.spec.apply.prove_waves or not _in_waves(count, before):
        return ()
    each = "each of them" if count > 1 else "which is"
    words = f"changed in {counted(count, 'wave')}, {each} proved; {TAKEN_BACK}"
    return (*before.notes(), *((words,) if count else ()))


def _in_waves(count: int, before: Earlier) -> bool:
    """Return whether each wave of a run ends with a proof: one of several, and the last of a run of several."""
    return count > 1 or before.in_waves


def apply(session: Session, proposal: Proposal, *, consent: Consent, prove: bool) -> RunOutcome:
    """Carry a proposal out wave by wave, probe the changed hosts again, and prove the result.

    Args:
        session: the hosts.
        proposal: what ``propose`` gave.
        consent: asks whether to go ahead.
        prove: whether to verify afterwards.

    Raises:
        RefusedError: nobody consented.
        UsageError, LaunchError: the ranks of the proof could not be started; then nothing is changed.
        RemedyError: the journal cannot be written; then nothing more is changed.
    """
    plan, before = proposal.plan, proposal.probe
    assert before is not None, "apply is proposed from hosts as they were read"
    if prove:
        session.check_launcher()
    asked = _sizes(session, proposal.agreement)
    sizes = waves(plan.hosts, asked)
    first = proposal.earlier
    proving = prove and session.spec.apply.prove_waves and _in_waves(len(sizes), first)
    ground = ground_of(session, before, plan) if proving else None
    sizes = sizes if ground is None else with_pair(sizes, ground, first.hosts)
    work = begin(session, proposal, consent, waves=len(sizes), proving=proving, sizes=asked)
    before = before.accepted if proposal.claims else before
    with session.progress.stage(_stage(plan, prove=prove)):
        result = before
        proofs = None if ground is None else _proofs(session, work, proposal, before, ground)
        for wave in sizes if proofs is None or proofs.red is None else ():
            if _too_many_failures(session, work, result):
                break
            # Each host is read again as soon as it is changed, and not when all are.
            again = Reading(session, before.fleet)
            work.carry(plan.restricted(wave), again.read_again, again.second)
            result = result.updated(again.result())
            if proofs is not None:
                hosts = _outcome(session, work, proposal, result).hosts
                result = proofs.prove(work.journal, result, hosts, wave)
                if proofs.red is not None:
                    break
        outcome = _waves(session, _outcome(session, work, proposal, result), proofs, sizes)
        if prove and (proofs is None or proofs.red is None):
            outcome = _prove(session, work, outcome, result)
        named = () if proofs is None else (*proofs.proved, *proofs.errors)
        further = (
            *(_only_wave(session, sizes, prove=prove) if proofs is None else ()),
            *still_unproved(session, proposal.agreement, outcome, named),
        )
        outcome = replace(outcome, waves=(*outcome.waves, *further))
        outcome = work.end(outcome, _boots(result))
        warnings = list(outcome.warnings)
        with unrecorded(warnings):
            machines.save(session.home, result.fleet)
        return replace(outcome, warnings=tuple(warnings))


def _proofs(
    session: Session, work: ChangeRun, proposal: Proposal, before: ProbeResult, ground: Ground
) -> Waves:
    """Return what proves the waves of a run; waves of resumed runs are proved by now, or one of them is red."""
    # Verification is not needed without a proof.
    from remedy.runs.prove_earlier import prove_earlier
    from remedy.runs.wave import Waves

    stories = session.stories().values() if proposal.agreement.resumes else ()
    mtus = {**mtus_of(before.fleet.states), **mtus_before(stories, proposal.agreement.plan.digest)}
    proofs = Waves(session, proposal.agreement, work.run, before, mtus, ground)
    hosts = _outcome(session, work, proposal, before).hosts if proposal.earlier.waves else {}
    prove_earlier(proofs, work.journal, before, hosts, proposal.earlier)
    return proofs


def _waves(
    session: Session, outcome: RunOutcome, proofs: Waves | None, sizes: Sequence[Sequence[str]]
) -> RunOutcome:
    """Return an outcome with what is known of its waves; a red one ends as failed, as those after it do."""
    if proofs is None:
        words = "waves: changed without a proof of each (--no-prove-waves, or --no-verify)"
        return replace(outcome, waves=(words,) if len(sizes) > 1 else ())
    lines, red = tuple(proofs.lines), proofs.red
    if red is None:
        return replace(outcome, waves=lines)
    hosts = dict(outcome.hosts)
    for name, error in proofs.errors.items():
        hosts[name] = replace(hosts[name], status=HostStatus.FAILED, error=error)
    for name in (n for n, o in hosts.items() if o.status is HostStatus.NOT_REACHED):
        show = session.show_command(outcome.run)
        hosts[name] = replace(hosts[name], error=host.after_red_wave(name, show))
    proof = red.proof
    return replace(
        outcome,
        hosts=hosts,
        waves=lines,
        converged=False,
        verdict=red.verdict,
        explanation=None if proof is None else proof.explanation,
    )


def _only_wave(session: Session, sizes: Sequence[Sequence[str]], *, prove: bool) -> tuple[str, ...]:
    """Return what becomes of a proof of each wave that was asked for, where there is but one."""
    spec = session.spec.apply
    if len(sizes) != 1 or not ("prove_waves" in spec.model_fields_set and spec.prove_waves):
        return ()
    words = "the proof at the end is its proof" if prove else "it is not proved (--no-verify)"
    return (f"waves: all hosts were changed in one wave; {words}",)


def _stage(plan: Plan, *, prove: bool) -> str:
    action = f"Changing {counted(len(plan.hosts), 'host')}" if plan.changes else "Probing again"
    return f"{action}, then verifying" if prove else action


def _too_many_failures(session: Session, work: ChangeRun, result: ProbeResult) -> bool:
    """Decide whether the run stops before its next wave; a host that could not be read counts as failed."""
    limit = session.spec.apply.max_failures
    if limit is None:
        return False
    failed = set(result.errors)
    for name, report in work.reports.items():
        if name in result.fleet.states:
            status = host.changed(name, report, result.plan, session.typed).status
            failed |= {name} if status is HostStatus.FAILED else set()
    if len(failed) <= limit:
        return False
    work.journal.write("stopped", failed=sorted(failed), limit=limit)
    return True


def _outcome(
    session: Session, work: ChangeRun, proposal: Proposal, result: ProbeResult
) -> RunOutcome:
    """Return how the changes ended on each host, by its report and by what the second probe finds."""
    hosts = {
        name: host.unread_after(error, work.reports[name])
        if name in work.reports
        else host.unread(error)
        for name, error in result.errors.items()
    }
    for name in result.fleet.states:
        report = work.reports.get(name)
        hosts[name] = (
            host.probed(name, result.plan)
            if report is None
            else host.changed(name, report, result.plan, session.typed)
        )
    hosts |= {
        name: host.not_reached(name, work.run, session.typed)
        for name in proposal.plan.hosts
        if name not in work.reports
    }
    return RunOutcome(
        mode="apply",
        run=work.run,
        inventory=session.inventory.full_path,
        hosts={name: hosts[name] for name in session.inventory.names if name in hosts},
        plan=proposal.plan,
        of=proposal.agreement.resumes,
        strict=session.strict,
        converged=not result.plan.changes and not result.errors,
    )


def _prove(
    session: Session, work: ChangeRun, outcome: RunOutcome, result: ProbeResult
) -> RunOutcome:
    """Verify the hosts that are right, and record the verdict."""
    from remedy.runs.proof import Scene, prove, record  # verification is not needed without a proof

    proof = prove(session, Scene(result.fleet, result.plan, outcome.hosts))
    record(proof, work.journal, session.home)
    return replace(outcome, verdict=proof.verdict, explanation=proof.explanation)


def _boots(result: ProbeResult) -> dict[str, str]:
    """Return the boot-id of each host that gave one."""
    return {
        name: state.identity.boot_id
        for name, state in result.fleet.states.items()
        if not isinstance(state.identity, Unknown) and state.identity.boot_id
    }
