"""A wave ends with a proof: its hosts and partners that were proved before run an all-reduce together.

Where it fails, the wave is taken back by its own receipts, compared with what it was before, and proved again
where it was proved before; the run stops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from remedy.apply.start import origin
from remedy.audit import Journal
from remedy.audit.agreement import Agreement, undoing
from remedy.diagnose.diagnosis import Explanation
from remedy.errors import RemedyError
from remedy.plan import Change, Fleet, Plan
from remedy.probe import fingerprint
from remedy.runs import host
from remedy.runs.gate import Proposal, begin
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.runs.probe import ProbeResult, read_hosts
from remedy.runs.proof import Proof, Scene, prove
from remedy.runs.session import Session
from remedy.text import fold
from remedy.verify.last import load
from remedy.verify.verdict import Verdict

GOOD = (HostStatus.OK, HostStatus.CHANGED)
SHOWN = 3


@dataclass(frozen=True)
class Ground:
    """What the choice of partners rests on.

    Args:
        held: hosts whose last proof still holds: they are as they were when it was made.
        proved_once: hosts that took part in the last proof, also those that have changed since.
        planned: the hosts that the run changes.
    """

    held: tuple[str, ...] = ()
    proved_once: frozenset[str] = frozenset()
    planned: frozenset[str] = frozenset()

    def partners(self, wave: Sequence[str], proved_now: Collection[str] = ()) -> tuple[str, ...]:
        """Return the hosts that prove a wave with it, at most as many as it has itself.

        Args:
            wave: its hosts.
            proved_now: those that an earlier wave of this run proved.

        A host that the run will still change may lack what a new host needs (its name, its rules): it is a
        partner only of hosts that were proved with it before.
        """
        known = set(wave) <= self.proved_once
        holding = [h for h in self.held if h not in wave and (known or h not in self.planned)]
        candidates = list(dict.fromkeys([*(h for h in proved_now if h not in wave), *holding]))
        # Neighbours share switches: those in the middle of the rest have seen more of the network.
        half = len(candidates) // 2
        return tuple([*candidates[half:], *candidates[:half]][: max(1, len(wave))])


def ground_of(session: Session, result: ProbeResult, plan: Plan) -> Ground:
    """Return what is known of the last proof, for hosts as they were read before anything is changed."""
    last = load(session.home)
    if isinstance(last, str) or not last.passed:
        return Ground(planned=frozenset(plan.hosts))
    states = result.fleet.states
    held = (
        n for n, mark in last.fingerprints.items() if n in states and fingerprint(states[n]) == mark
    )
    return Ground(tuple(held), frozenset(last.fingerprints), frozenset(plan.hosts))


def with_pair(sizes: Sequence[tuple[str, ...]], ground: Ground) -> tuple[tuple[str, ...], ...]:
    """Return the waves with a second host in the first where nobody else can prove the first alone."""
    if len(sizes) < 2 or len(sizes[0]) > 1 or ground.partners(sizes[0]):
        return tuple(sizes)
    first, second, *rest = sizes
    widened = ((*first, second[0]), second[1:], *rest)
    return tuple(wave for wave in widened if wave)


@dataclass(frozen=True)
class Suspect:
    """A change that may be what a red wave failed by."""

    host: str
    change: Change
    reason: str

    def record(self) -> dict[str, str]:
        """Return the suspect as the journal has it."""
        return {
            "host": self.host,
            "change": self.change.id,
            "title": self.change.title,
            "reason": self.reason,
        }


def suspects(
    made: Iterable[Change], verdict: Verdict | None, explanation: Explanation | None
) -> tuple[Suspect, ...]:
    """Return the changes of a wave that may be what it failed by, the most suspect first.

    Args:
        made: the changes that were made.
        verdict: of its proof; None where no host came that far.
        explanation: the cause that the logs and the hosts show.
    """
    accused = {name for culprit in (verdict.culprits if verdict else ()) for name in culprit.hosts}
    label = explanation.diagnosis.label if explanation else ""
    ranked = []
    for number, change in enumerate(made):
        reasons = []
        if change.label == label:
            reasons.append(f"it is about the cause that the proof shows, {label}")
        if change.host in accused:
            reasons.append("the proof names its host")
        if change.guarded:
            reasons.append("it can cut connections")
        rank = (change.label != label, change.host not in accused, not change.guarded, number)
        reason = "; ".join(reasons) or "it was made in this wave"
        ranked.append((rank, Suspect(change.host, change, reason)))
    return tuple(suspect for _, suspect in sorted(ranked, key=lambda item: item[0]))


@dataclass(frozen=True)
class WaveProof:
    """What the proof of one wave showed.

    Args:
        hosts: of the wave, those that could be proved.
        partners: the hosts that proved them.
        proof: None where there was nobody to prove.
        reason: in a sentence.
        passed: None where it could not be proved for lack of a partner.
    """

    hosts: tuple[str, ...]
    partners: tuple[str, ...]
    proof: Proof | None
    reason: str
    passed: bool | None

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
    result: ProbeResult,
    hosts: Mapping[str, HostOutcome],
    wave: Sequence[str],
    partners: Sequence[str],
) -> WaveProof:
    """Prove a wave with its partners.

    Args:
        session: the hosts.
        result: the hosts as they were read last.
        hosts: how the hosts of the wave ended.
        wave: its hosts.
        partners: the hosts that take part beside it.
    """
    good = tuple(name for name in wave if name in hosts and hosts[name].status in GOOD)
    if not good:
        first = next((h.error for n, h in hosts.items() if n in wave and h.error), None)
        words = first.message if first else "the second probe found each of them not right"
        return WaveProof(
            (), tuple(partners), None, f"no host of the wave is right: {words}", passed=False
        )
    if len(good) + len(partners) < 2:
        reason = "not proved: no host whose last proof still holds, and no second host in the wave"
        return WaveProof(good, (), None, reason, passed=None)
    proof = prove(session, _scene(result, (*good, *partners)))
    return WaveProof(
        good, tuple(partners), proof, proof.verdict.reason, passed=proof.verdict.passed
    )


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
        as_before: the hosts that are as they were before the wave, in all that a proof rests on.
        failed: why other hosts are not, by host.
        again: the proof after it; None where the wave was not proved before.
    """

    run: str
    result: ProbeResult
    as_before: tuple[str, ...]
    failed: Mapping[str, str]
    again: Proof | None = None

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
    back = undoing(agreement.plan.restricted(wave), story, origin())
    # Whoever approved the plan approved that it is taken back.
    agreed = Agreement(back, agreement.approvals, agreement.planner, of=run)
    work = begin(session, Proposal("rollback", agreed, back), lambda _: None)
    reports = work.carry(back) if back.changes else {}
    outcomes = {name: host.reported(name, report) for name, report in reports.items()}
    work.end(RunOutcome("rollback", work.run, session.inventory.path.name, outcomes, back, of=run))
    vars(session.activity).update(vars(activity))  # the run of the wave goes on to its own end
    after = now.updated(read_hosts(session, wave))
    as_before, failed = [], {}
    for name in wave:
        state = after.fleet.states.get(name)
        if state is None:
            failed[name] = after.errors[name].message if name in after.errors else "not read"
        elif fingerprint(state) == fingerprint(before.fleet.states[name]):
            as_before.append(name)
        else:
            outcome = outcomes.get(name)
            words = outcome.error.message if outcome is not None and outcome.error else ""
            failed[name] = words or "its state is not what it was before the run"
    return TakenBack(work.run, after, tuple(as_before), failed)


def proved_again(
    session: Session, taken: TakenBack, wave: Sequence[str], ground: Ground, partners: Sequence[str]
) -> TakenBack:
    """Prove a wave again that was proved before the run, now that it is as it was."""
    names = [name for name in wave if name in ground.held and name in taken.as_before]
    group = [*names, *(name for name in partners if name in ground.held)]
    if not names or len(group) < 2:
        return taken
    return replace(taken, again=prove(session, _scene(taken.result, group)))


@dataclass
class Waves:
    """The waves of one run: their proofs, and the one that was red.

    Args:
        session: the hosts.
        agreement: what was agreed to.
        run: its id.
        before: the hosts as they were read before it.
        ground: for the choice of partners.
        proved: the hosts that were proved in this run.
        lines: what happened, in sentences.
        red: the proof of the wave that ended the run; None while there is none.
        errors: why each host of the red wave ended as failed.
    """

    session: Session
    agreement: Agreement
    run: str
    before: ProbeResult
    ground: Ground
    proved: list[str] = field(default_factory=list)
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
        number = len(self.lines) + 1
        partners = self.ground.partners(wave, self.proved)
        proof = prove_wave(self.session, result, hosts, wave, partners)
        journal.write("wave", **proof.record(number))
        if proof.passed is not False:
            self.proved += proof.hosts if proof.passed else ()
            self.lines.append(f"wave {number}: {_words(proof)}")
            return result
        self.red = proof
        taken = take_back(self.session, self.agreement, self.run, wave, self.before, result)
        taken = proved_again(self.session, taken, wave, self.ground, partners)
        made = [c for c in self.agreement.plan.changes if c.host in wave]
        verdict = proof.proof.verdict if proof.proof else None
        explanation = proof.proof.explanation if proof.proof else None
        named = suspects(made, verdict, explanation)
        records = [suspect.record() for suspect in named]
        journal.write("red", wave=number, reason=proof.reason, suspects=records, **taken.record())
        self.lines += _red_words(number, proof, taken, named)
        for name in wave:
            words = "as it was before" if name in taken.as_before else taken.failed[name]
            self.errors[name] = RemedyError(
                f"{name}: taken back, because the proof of its wave failed: {proof.reason}; now: {words}",
                next_step=f"The suspected changes are named below. Everything: remedy show {self.run}",
            )
        return taken.result


def _words(proof: WaveProof) -> str:
    """Return what the proof of a good wave showed, in words."""
    if proof.passed is None:
        return f"{fold(proof.hosts)}: {proof.reason}"
    with_whom = f"with {fold(proof.partners)}" if proof.partners else "each other, without partners"
    return f"{fold(proof.hosts)} proved {with_whom}"


def _red_words(
    number: int, proof: WaveProof, taken: TakenBack, named: Sequence[Suspect]
) -> Iterator[str]:
    """Yield what happened to a red wave, in words."""
    yield f"wave {number}: NOT PROVED with {fold(proof.partners) or 'nobody'}: {proof.reason}"
    yield f"wave {number}: taken back by run {taken.run}"
    if taken.as_before:
        yield f"wave {number}: {fold(taken.as_before)}: as before the run, byte for byte"
    for name, words in taken.failed.items():
        yield f"wave {number}: {name}: NOT as before the run: {words}"
    if taken.again is not None:
        verdict = taken.again.verdict
        words = "proved again" if verdict.passed else f"NOT proved again: {verdict.reason}"
        yield f"wave {number}: {words}"
    for suspect in named[:SHOWN]:
        yield f"suspected: {suspect.host}: {suspect.change.id} ({suspect.change.title}): {suspect.reason}"
    if len(named) > SHOWN:
        yield f"suspected: and {len(named) - SHOWN} more: remedy show RUN"
