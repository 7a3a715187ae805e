"""What every command that changes hosts passes through.

A command first makes a ``Proposal``: what it would do, with the signatures that count. ``begin`` asks for
consent and has the agreement on record before the first host is changed; it alone gives a ``ChangeRun``,
which carries the changes out and records each step. Its ``end`` records how the run ended, with the exit
code, and leaves that record with some of the hosts. The lock is taken by each host's own script, as its
first step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import IO

from remedy.apply.job import Once, SecondProbe
from remedy.apply.report import HostReport
from remedy.apply.start import new_run_id
from remedy.audit import Journal, witness
from remedy.audit.agreement import Agreement, forget, keep
from remedy.audit.approval import Approval, require
from remedy.audit.presence import hold
from remedy.errors import RefusedError, RemedyError
from remedy.plan import Change, Plan, Risk
from remedy.plan.identities import Claim
from remedy.plan.splice import whole
from remedy.probe import File
from remedy.runs.cut import mtus_of
from remedy.runs.earlier import Earlier
from remedy.runs.outcome import HostOutcome, RunOutcome
from remedy.runs.probe import ProbeResult
from remedy.runs.session import Session
from remedy.sentences import by_sentence
from remedy.text import counted, quoted


@dataclass(frozen=True)
class Proposal:
    """What a command would do to hosts, before anybody agreed to it.

    Args:
        mode: apply or rollback.
        agreement: the plan as a whole, who signed it, and the run that it takes back or resumes.
        plan: the part of it for the hosts of the session; exactly this is carried out.
        probe: the hosts as they were read; None where they were not.
        scope: the part of it that was asked for, also for hosts that could not be read: nothing is done there,
            and a run that resumes this one comes to them. None where that is ``plan``.
        notes: what somebody who decides has to know.
        obstacles: how hosts would end because of something that is known now.
        irreversible: changes of the run to be taken back that nothing takes back.
        claims: the hosts at whose address another entry's machine answers.
        intervened: whether something that waited on a host was confirmed or taken back before.
        authorship: of a plan that was made before, whether remedy makes each change for its host as it is
            now, by host and id; of one that takes a run back, whether its host vouches for the record of that
            run. None for a plan that remedy made for this command, and for which nobody's word is needed.
        earlier: what a resumed run proves before it changes further hosts.
    """

    mode: str
    agreement: Agreement
    plan: Plan
    probe: ProbeResult | None = None
    scope: Plan | None = None
    notes: tuple[str, ...] = ()
    obstacles: Mapping[str, HostOutcome] = field(default_factory=dict)
    irreversible: tuple[Change, ...] = ()
    claims: tuple[Claim, ...] = ()
    intervened: bool = False
    authorship: Mapping[tuple[str, str], bool] | None = None
    earlier: Earlier = field(default_factory=Earlier)

    @property
    def unseen(self) -> Mapping[str, str]:
        """The cluster address of each host that only claims it, and from which nobody got an answer."""
        return {} if self.probe is None else self.probe.fleet.unseen

    @property
    def unread(self) -> Mapping[str, RemedyError]:
        """Why hosts could not be read, so that nothing is known of them and nothing done there."""
        if self.probe is not None:
            return self.probe.errors
        return {name: host.error for name, host in self.obstacles.items() if host.error is not None}

    @property
    def is_vouched(self) -> bool:
        """Whether all of it is what remedy itself makes, and not what only a file says."""
        return self.authorship is None or all(self.authorship.values())

    @property
    def final_words(self) -> tuple[str, ...]:
        """What nothing takes back of the run that is to be taken back, each once with its hosts."""
        titles = by_sentence((change.host, change.title) for change in self.irreversible)
        return tuple(f"{hosts}: CANNOT be taken back: {title}" for hosts, title in titles)

    @property
    def high_risk(self) -> tuple[Change, ...]:
        """The changes that are marked as high risk."""
        return tuple(change for change in self.plan.changes if change.risk is Risk.HIGH)


# Asks for consent; raises RefusedError or UsageError where it is not given.
Consent = Callable[[Proposal], None]


def require_approval(
    session: Session, plan: Plan | None, path: Path | None, minimum: int, how: str = ""
) -> tuple[Approval | None, tuple[Approval, ...]]:
    """Return the signature of a plan's planner and those that approve it; nobody's where none is required.

    Args:
        session: its spec says how many are required.
        plan: the plan, None where it is not made yet.
        path: its file; the signatures are beside it.
        minimum: how many the command line requires; the spec may require more.
        how: the command that writes the file to be approved; "" for a plan to apply.

    Raises:
        RefusedError: there are fewer than required.
    """
    spec = session.spec.approval
    count = max(spec.required, minimum)
    if count == 0:
        return None, ()
    if path is None or plan is None:
        inventory = session.inventory.path
        how = how or f"remedy plan {quoted(inventory)} -o plan.json"
        raise RefusedError(
            f"{counted(count, 'approval')} required, and only a plan file can be approved",
            next_step=f"{how}; remedy approve plan.json --planner; somebody else: remedy approve plan.json; "
            "then the same command with --plan plan.json",
        )
    folder = session.inventory.path.resolve().parent
    revoked = None if spec.revoked_keys is None else folder / spec.revoked_keys
    return require(plan, path, folder / spec.allowed_signers, count, revoked)


def begin(
    session: Session,
    proposal: Proposal,
    consent: Consent,
    *,
    waves: int = 1,
    proving: bool = False,
    sizes: str = "",
) -> ChangeRun:
    """Ask for consent to a proposal and record what was agreed to; nothing is changed yet.

    Args:
        session: the hosts.
        proposal: what is to be done.
        consent: asks; it is not called where nothing is to be changed, and each machine is at its place.
        waves: in how many steps the hosts are changed.
        proving: whether each of them ends with a proof.
        sizes: of the steps, as they were asked for.

    Raises:
        RefusedError: nobody consented, or the approvals of the plan were not required as the spec says.
        RemedyError: that cannot be recorded.
    """
    if len(proposal.agreement.approvals) < session.spec.approval.required:
        require_approval(session, None, None, 0)
    assert proposal.probe is None or proposal.claims == proposal.probe.claims
    if proposal.plan.changes or proposal.claims:
        consent(proposal)
    work = ChangeRun(session, proposal, new_run_id())
    scope = proposal.scope or proposal.plan
    work.journal.write(
        "planned",
        vouched=proposal.is_vouched,
        **proposal.agreement.record(scope, waves=waves, proving=proving, sizes=sizes),
    )
    if scope.changes:
        keep(proposal.agreement, session.home, work.run)
        work.hold()
        forget(session.home, session.spec.apply.keep_days, datetime.now(timezone.utc))
    session.activity.journal = work.journal
    return work


class ChangeRun:
    """A run that may change hosts; ``begin`` gives it.

    Args:
        session: the hosts.
        proposal: what was agreed to.
        run: its id.
    """

    def __init__(self, session: Session, proposal: Proposal, run: str) -> None:
        self.run = run
        self.reports: dict[str, HostReport] = {}
        self.journal = Journal(session.home, run=run, mode=proposal.mode)
        self._session = session
        self._proposal = proposal
        self._presence: IO[bytes] | None = None
        self._activity = session.activity
        self._activity.mode, self._activity.run = proposal.mode, run
        self._activity.of = proposal.agreement.of
        self._activity.resumes = proposal.agreement.resumes
        self._activity.choice = proposal.agreement.plan.choice.words
        self._activity.planned = (proposal.scope or proposal.plan).hosts
        self._activity.reports = self.reports

    def hold(self) -> None:
        """Show other commands of this folder that the run has a controller, until it ends or dies."""
        self._presence = hold(self._session.home, self.run)

    def carry(
        self,
        plan: Plan,
        then: Callable[[str], None] | None = None,
        second: SecondProbe | None = None,
    ) -> dict[str, HostReport]:
        """Carry out a part of the plan on its hosts, all at once.

        Args:
            plan: the part.
            then: is called with each host when its report is there, while others are still at work.
            second: reads a host whose changes are confirmed, before that; not of a run that takes back.

        Raises:
            RemedyError: the journal cannot be written; then nothing is changed.
        """
        session, agreement = self._session, self._proposal.agreement
        head = self.journal.write("began", hosts=list(plan.hosts), **self._mtus(plan))
        words = witness.words(head, session.home, self.run)
        by = agreement.by or agreement.plan.author
        self._activity.at_work = plan.hosts
        digest = agreement.plan.digest
        earlier = [s.run for s in session.stories().values() if s.digest == digest]
        once = Once(digest, tuple(earlier) if agreement.resumes else ())
        reports: dict[str, HostReport] = {}

        def take(name: str, report: HostReport) -> None:
            reports[name] = report
            if len(reports) == len(plan.hosts):
                self._record({host: reports[host] for host in plan.hosts})
            if then is not None:
                then(name)

        if agreement.of:
            session.carrier.take_back(
                plan, self.run, of=agreement.of, by=by, head=words, once=once, then=take
            )
        else:
            session.carrier.make(
                plan,
                self.run,
                by=by,
                head=words,
                once=once,
                then=take,
                second=second,
                whole=self._whole,
            )
        if not plan.hosts:
            self._record({})
        return {name: reports[name] for name in plan.hosts}

    def _mtus(self, plan: Plan) -> dict[str, object]:
        """Return the MTUs of the hosts of a part: where the run is cut off, another one proves them."""
        probe = self._proposal.probe
        if probe is None or self._proposal.agreement.of:
            return {}
        states = probe.fleet.states
        return {"mtus": mtus_of({name: states[name] for name in plan.hosts if name in states})}

    def _whole(self, host: str, changes: tuple[Change, ...]) -> Mapping[str, bytes]:
        """Return what the files of a host are to hold, by digest, where what they held was read."""
        probe, plan = self._proposal.probe, self._proposal.plan
        state = None if probe is None else probe.fleet.states.get(host)
        if state is None:
            return {}

        def content(path: str) -> bytes | None:
            file = state.file(path)
            return file.content if isinstance(file, File) and file.exists else None

        return whole(changes, content, plan.blobs)

    def _record(self, reports: Mapping[str, HostReport]) -> None:
        records = {name: report.record() for name, report in reports.items()}
        self.journal.write("changed", hosts=records)
        self.reports.update(reports)
        self._activity.at_work = ()

    def end(self, outcome: RunOutcome, boots: Mapping[str, str] | None = None) -> RunOutcome:
        """Record how the run ended, and leave the record with a few of the hosts that it changed.

        Args:
            outcome: how it ended.
            boots: the boot-id of each host that was probed after the changes.
        """
        verdict = outcome.verdict
        head = self.journal.write(
            "ended",
            exit_code=outcome.exit_code,
            converged=outcome.converged,
            proved=None if verdict is None else verdict.passed,
            hosts=outcome.statuses,
            boots=dict(boots or {}),
        )
        self._activity.ended = True
        changed = [n for n, report in self.reports.items() if report.finished and report.changed]
        words = witness.words(head, self._session.home, self.run)
        self._session.carrier.tell(changed[: witness.LAST_WITNESSES], words)
        if self._presence is not None:
            self._presence.close()
        return outcome
