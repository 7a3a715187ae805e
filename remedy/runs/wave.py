"""A wave ends with a proof: its hosts and partners that were proved before run an all-reduce together.

Where it fails, the wave is taken back by its own receipts, compared with what it was before, and proved again
where it was proved before; the run stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from remedy.apply.start import origin
from remedy.audit import Journal
from remedy.audit.agreement import Agreement, undoing
from remedy.audit.story import TOUCHED, Story
from remedy.errors import RemedyError
from remedy.plan import Change, FindingKind, Fleet
from remedy.probe import differing
from remedy.runs import host
from remedy.runs.cut import CUT, Mtus, cut_since, cut_words, mtus_of
from remedy.runs.gate import Proposal, begin
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.runs.partners import Ground
from remedy.runs.probe import ProbeResult, read_hosts
from remedy.runs.proof import Proof, Scene, prove
from remedy.runs.session import Session
from remedy.runs.suspects import Suspect, suspects
from remedy.sentences import by_sentence
from remedy.text import first_few, folded
from remedy.verify.verdict import NarrowLink, Verdict, culprit

GOOD = (HostStatus.OK, HostStatus.CHANGED)
SHOWN = 3
NOT_BY_THESE = "no change is suspected: the proof fails without them as well"


@dataclass(frozen=True)
class WaveProof:
    """What the proof of one wave showed.

    Args:
        hosts: of the wave, those that could be proved.
        partners: the hosts that proved them.
        proof: None where there was nobody to prove, or nobody to prove it with.
        reason: in a sentence.
        passed: whether all of them summed together.
        lost: links that lose packets of a size that the wave has changed.
    """

    hosts: tuple[str, ...]
    partners: tuple[str, ...]
    proof: Proof | None
    reason: str
    passed: bool
    lost: tuple[NarrowLink, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """What the proof showed, also where it did not come to one."""
        return self.proof.verdict if self.proof else Verdict(passed=False, reason=self.reason)

    def record(self, number: int) -> dict[str, object]:
        """Return the proof as the journal has it."""
        return {
            "wave": number,
            "hosts": list(self.hosts),
            "partners": list(self.partners),
            "passed": self.passed,
            "reason": self.reason,
        }


def prove_wave(
    session: Session,
    before: Mtus,
    result: ProbeResult,
    hosts: Mapping[str, HostOutcome],
    wave: Sequence[str],
    partners: Sequence[str],
) -> WaveProof:
    """Prove a wave with its partners.

    Args:
        session: the hosts.
        before: the MTUs of the hosts before the plan changed them.
        result: the hosts as they were read last.
        hosts: how the hosts of the wave ended.
        wave: its hosts.
        partners: the hosts that take part beside it.
    """
    good = tuple(name for name in wave if name in hosts and hosts[name].status in GOOD)
    bad = [_not_right(name, hosts[name]) for name in wave if name in hosts and name not in good]
    if len(good) + len(partners) < 2 or not good:
        reason = "no host of the wave is right"
        if good:
            reason = f"no host is there to prove {folded(good)} with: the last proof of none holds"
        return WaveProof(
            good, tuple(partners), None, "; ".join((reason, *bad[:SHOWN])), passed=False
        )
    proof = prove(session, _scene(result, (*good, *partners)))
    lost = cut_since(before, mtus_of(result.fleet.states), proof.verdict, good)
    if lost and proof.verdict.passed:
        proof = replace(proof, verdict=_lossy(proof.verdict, lost))
    return WaveProof(
        good, tuple(partners), proof, proof.verdict.reason, passed=proof.verdict.passed, lost=lost
    )


def _lossy(verdict: Verdict, lost: Sequence[NarrowLink]) -> Verdict:
    """Return what a proof showed whose sum is right, and whose hosts lose packets since the run."""
    reason = cut_words(lost)
    names = dict.fromkeys(name for link in lost for name in (link.source, link.target))
    named = culprit(reason, *names)
    return verdict.model_copy(update={"passed": False, "reason": reason, "culprits": (named,)})


def _not_right(name: str, outcome: HostOutcome) -> str:
    """Return why a host is not right after its changes, in a sentence."""
    if outcome.error is not None:
        return outcome.error.message
    for result in outcome.results:
        if result.status not in host.GOOD and result.detail:
            return f"{name}: {result.id} {result.status.value}: {result.detail.splitlines()[0]}"
    drift = (f.title for f in outcome.findings if f.kind is FindingKind.DRIFT)
    return f"{name}: {next(drift, outcome.status.value)}"


def _scene(result: ProbeResult, names: Iterable[str]) -> Scene:
    """Return the part of the fleet that takes part, each host as good to go."""
    chosen = set(names)
    fleet = result.fleet
    states = {name: state for name, state in fleet.states.items() if name in chosen}
    part = Fleet(fleet.inventory, states, fleet.spec, fleet.missing)
    return Scene(part, result.plan, {name: HostOutcome(HostStatus.OK) for name in states})


@dataclass(frozen=True)
class TakenBack:
    """What became of a wave that was taken back.

    Args:
        run: the rollback.
        result: the hosts as they are after it.
        as_before: the hosts that are as they were before the wave.
        failed: why other hosts are not, by host.
        again: the proof after it; None where the wave was not proved before.

    A host is as before where the host itself compared each thing that was changed (the bytes of a file, what a
    command shows of its state), and a probe finds the rest as it was.
    """

    run: str
    result: ProbeResult
    as_before: tuple[str, ...]
    failed: Mapping[str, str]
    again: Proof | None = None

    @property
    def fails_without(self) -> bool:
        """Whether the proof fails on hosts that are as before: then the changes are not what it failed by."""
        return self.again is not None and not self.again.verdict.passed and not self.failed

    def record(self) -> dict[str, object]:
        """Return the result as the journal has it."""
        return {
            "rollback": self.run,
            "as_before": list(self.as_before),
            "not_as_before": dict(self.failed),
            "proved_again": None if self.again is None else self.again.verdict.passed,
        }


def take_back(
    session: Session,
    agreement: Agreement,
    run: str,
    wave: Sequence[str],
    before: ProbeResult,
    now: ProbeResult,
) -> TakenBack:
    """Take a wave back by its receipts, and compare each host with what it was before; a run of its own.

    Args:
        session: the hosts.
        agreement: what was agreed to; taking a red wave back is a part of that.
        run: the run of the wave.
        wave: its hosts.
        before: the hosts as they were read before the run.
        now: as they were read last.
    """
    story, activity = session.story(run), replace(session.activity)
    session.activity.outer = replace(activity, at_work=tuple(wave))
    back = undoing(agreement.plan.restricted(wave), story, origin())
    # Whoever approved the plan approved that it is taken back.
    agreed = Agreement(back, agreement.approvals, agreement.planner, of=run)
    work = begin(session, Proposal("rollback", agreed, back), lambda _: None)
    reports = work.carry(back) if back.changes else {}
    outcomes = {
        name: host.reported(name, report, session.typed) for name, report in reports.items()
    }
    work.end(RunOutcome("rollback", work.run, session.inventory.full_path, outcomes, back, of=run))
    vars(session.activity).update(vars(activity))  # the run of the wave goes on to its own end
    session.activity.taken_back = dict.fromkeys(wave, work.run)
    after = now.updated(read_hosts(session, wave))
    kept = {c.host: c for c in agreement.plan.changes if not c.reversible and _touched(story, c)}
    as_before, failed = [], {}
    for name in wave:
        state, outcome = after.fleet.states.get(name), outcomes.get(name)
        former = before.fleet.states.get(name)
        if name in kept:
            failed[name] = f"nothing takes {kept[name].id} ({kept[name].title}) back"
        elif outcome is not None and outcome.status not in GOOD:
            failed[name] = _not_right(name, outcome)
        elif state is None:
            failed[name] = after.errors[name].message if name in after.errors else "not read"
        elif former is None:
            failed[name] = "what it was before the run is not known"
        elif groups := differing(former, state):
            failed[name] = f"not what it was before the run: {', '.join(groups)}"
        else:
            as_before.append(name)
    return TakenBack(work.run, after, tuple(as_before), failed)


def proved_again(
    session: Session,
    restored: TakenBack,
    wave: Sequence[str],
    ground: Ground,
    partners: Sequence[str],
) -> TakenBack:
    """Prove a wave again that was proved before the run, now that it is as it was."""
    names = [name for name in wave if name in ground.still_proved and name in restored.as_before]
    group = [*names, *(name for name in partners if name in ground.still_proved)]
    if not names or len(group) < 2:
        return restored
    return replace(restored, again=prove(session, _scene(restored.result, group)))


@dataclass
class Waves:
    """The waves of one run: their proofs, and the one that was red.

    Args:
        session: the hosts.
        agreement: what was agreed to.
        run: its id.
        before: the hosts as they were read before it.
        mtus: of the hosts before the first run of its plan changed them.
        ground: for the choice of partners.
        number: of the last wave.
        proved: the hosts that were proved in this run.
        begun: the hosts of all waves so far.
        lines: what happened, in sentences.
        red: the proof of the wave that ended the run; None while there is none.
        errors: why each host of the red wave ended as failed.
    """

    session: Session
    agreement: Agreement
    run: str
    before: ProbeResult
    mtus: Mtus
    ground: Ground
    number: int = 0
    proved: list[str] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    red: WaveProof | None = None
    errors: dict[str, RemedyError] = field(default_factory=dict)

    def prove(
        self,
        journal: Journal,
        result: ProbeResult,
        hosts: Mapping[str, HostOutcome],
        wave: Sequence[str],
    ) -> ProbeResult:
        """Prove a wave, and take it back where that fails.

        Returns:
            the hosts as they are then; ``red`` says whether the run goes on.
        """
        number = self.number = self.number + 1
        partners = self.ground.partners(wave, self.proved, self.begun)
        self.begun += wave
        self.session.activity.unproved = tuple(wave)
        proof = prove_wave(self.session, self.mtus, result, hosts, wave, partners)
        journal.write("wave", **proof.record(number))
        if proof.passed:
            self.proved += proof.hosts
            self.session.activity.unproved = ()
            self.lines.append(f"wave {number}: {proved_words(proof)}")
            return result
        self.red = proof
        restored = take_back(self.session, self.agreement, self.run, wave, self.before, result)
        self.session.activity.unproved = ()
        restored = proved_again(self.session, restored, wave, self.ground, partners)
        blameless = proof.proof is not None and restored.fails_without
        named = () if blameless else self.suspects(proof, hosts, wave, self.run)
        records = [suspect.record() for suspect in named]
        journal.write(
            "red", wave=number, reason=proof.reason, suspects=records, **restored.record()
        )
        show = self.session.show_command(self.run)
        self.lines += _red_words(number, proof, restored, named, show)
        if blameless:
            self.lines.append(f"wave {number}: {NOT_BY_THESE}")
        more = "Which changes are suspected, and everything else"
        for name in wave:
            words = "as it was before" if name in restored.as_before else restored.failed[name]
            self.errors[name] = RemedyError(
                f"{name}: taken back, because the proof of its wave failed: {proof.reason}; now: {words}",
                next_step=f"{more}: {self.session.show_command(self.run)}",
            )
        return restored.result

    def suspects(
        self, proof: WaveProof, hosts: Mapping[str, HostOutcome], wave: Sequence[str], run: str
    ) -> tuple[Suspect, ...]:
        """Return the changes of a red wave that a run made, or began, the most suspect first.

        Args:
            proof: of the wave.
            hosts: how its hosts ended.
            wave: its hosts.
            run: that changed them.
        """
        story = self.session.story(run)
        made = [c for c in self.agreement.plan.changes if c.host in wave and _touched(story, c)]
        findings = (f for name in wave if name in hosts for f in hosts[name].findings)
        drift = {f.label for f in findings if f.kind is FindingKind.DRIFT}
        seen = {CUT} if proof.lost else drift if not proof.proof else ()
        explanation = proof.proof.explanation if proof.proof else None
        verdict = proof.proof.verdict if proof.proof else None
        return suspects(made, verdict, explanation, seen)


def _touched(story: Story, change: Change) -> bool:
    """Return whether a run made a change, or may have made it or a part of it."""
    return (
        change.host not in story.refused
        and story.results.get(change.host, {}).get(change.id, "lost") in TOUCHED
    )


def proved_words(proof: WaveProof) -> str:
    """Return what the proof of a good wave showed, in words."""
    with_whom = (
        f"with {folded(proof.partners)}" if proof.partners else "each other, without partners"
    )
    return f"{folded(proof.hosts)} proved {with_whom}"


def _red_words(
    number: int, proof: WaveProof, taken: TakenBack, named: Sequence[Suspect], show: str
) -> Iterator[str]:
    """Yield what happened to a red wave, in words; ``show`` is the command that shows its run."""
    yield f"wave {number}: NOT PROVED with {folded(proof.partners) or 'nobody'}: {proof.reason}"
    yield f"wave {number}: taken back by run {taken.run}"
    if taken.as_before:
        yield f"wave {number}: {folded(taken.as_before)}: as before the run, byte for byte"
    for names, words in by_sentence(taken.failed.items()):
        yield f"wave {number}: {names}: NOT as before the run: {words}"
    if taken.again is not None:
        verdict = taken.again.verdict
        words = "proved again" if verdict.passed else f"NOT proved again: {verdict.reason}"
        yield f"wave {number}: {words}"
    yield from suspect_words(named, show)


def suspect_words(named: Sequence[Suspect], show: str) -> Iterator[str]:
    """Yield which changes are suspected, in words; ``show`` is the command that shows all of them."""
    shown, more = first_few(named, SHOWN)
    for suspect in shown:
        yield f"suspected: {suspect.host}: {suspect.change.id} ({suspect.change.title}): {suspect.reason}"
    if more:
        yield f"suspected: and {more} more: {show}"
