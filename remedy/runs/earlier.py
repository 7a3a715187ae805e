"""What a resumed run proves before it changes further hosts: waves of its plan whose proof did not end."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from remedy.audit.agreement import Agreement
from remedy.audit.journal import FILE_NAME, read_records
from remedy.audit.unproved import (
    RecordedProof,
    UnprovedWave,
    in_proved_waves,
    recorded_proofs,
    unproved_by,
    unproved_waves,
)
from remedy.plan import Plan
from remedy.probe import fingerprint
from remedy.runs.outcome import HostStatus, RunOutcome
from remedy.runs.probe import ProbeResult
from remedy.runs.session import Session
from remedy.text import folded


@dataclass(frozen=True)
class Earlier:
    """The waves of resumed runs that have no proof, as far as this run does not change their hosts itself.

    Args:
        waves: to be proved first, the oldest first.
        held: hosts with a proof on record that still holds, by the run that made it.
        left_out: hosts that this command does not read (``--limit``).
        in_waves: whether a run of the plan was to prove its waves; then this one does so, even a single one.
    """

    waves: tuple[UnprovedWave, ...] = ()
    held: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    in_waves: bool = False

    @property
    def hosts(self) -> tuple[str, ...]:
        """All hosts of the waves to be proved."""
        return tuple(name for wave in self.waves for name in wave.hosts)

    @property
    def held_hosts(self) -> tuple[str, ...]:
        """All hosts with a proof on record that holds."""
        return tuple(name for names in self.held.values() for name in names)

    def held_words(self) -> Iterator[str]:
        """Yield which hosts need no further proof, in sentences."""
        for run, names in self.held.items():
            yield (
                f"{folded(names)}: changed before by this plan; proved by run {run} since, and as it was then"
            )

    def notes(self) -> Iterator[str]:
        """Yield what somebody who decides has to know, in sentences."""
        for wave in self.waves:
            changed = f"changed by {wave.words} without a proof"
            yield f"{folded(wave.hosts)}: {changed}; proved before a further host is changed"
        yield from self.held_words()
        if self.left_out:
            yield (
                f"{folded(self.left_out)}: changed before by this plan without a proof, and NOT proved first: "
                "not selected by --limit"
            )


def decide(
    waves: Collection[UnprovedWave],
    changing: Collection[str],
    selected: Collection[str],
    marks: Mapping[str, str],
    proofs: Mapping[str, RecordedProof],
    *,
    in_waves: bool = True,
) -> Earlier:
    """Decide which of the waves without a proof are proved first.

    Args:
        waves: of the runs of the plan.
        changing: the hosts that this run changes, and proves with their own wave.
        selected: the hosts that this command reads.
        marks: the fingerprint of each host as it is now, as far as it could be read.
        proofs: that are on record, by host.
        in_waves: whether a run of the plan was to prove its waves.
    """
    rest: list[UnprovedWave] = []
    held: dict[str, tuple[str, ...]] = {}
    left_out: list[str] = []
    for wave in waves:
        hosts = []
        for name in wave.hosts:
            proof = proofs.get(name)
            if name in changing:
                continue
            if name not in selected:
                left_out.append(name)
            elif proof is not None and proof.fingerprint == marks.get(name):
                held[proof.run] = (*held.get(proof.run, ()), name)
            else:
                hosts.append(name)
        rest += [UnprovedWave(wave.run, wave.number, tuple(hosts))] if hosts else []
    return Earlier(tuple(rest), held, tuple(left_out), in_waves)


def earlier(session: Session, agreement: Agreement, plan: Plan, result: ProbeResult) -> Earlier:
    """Return what a run proves first, by the journal and the hosts as they are; nothing where it resumes none.

    Args:
        session: the hosts.
        agreement: what was agreed to.
        plan: the part that is carried out now.
        result: the hosts as they were read.
    """
    if not agreement.resumes:
        return Earlier()
    stories = session.stories().values()
    digest = agreement.plan.digest
    in_waves = in_proved_waves(stories, digest)
    waves = unproved_waves(stories, digest)
    if not waves:
        return Earlier(in_waves=in_waves)
    hosts = {name for wave in waves for name in wave.hosts}
    states = result.fleet.states
    marks = {name: fingerprint(states[name]) for name in hosts if name in states}
    proofs = recorded_proofs(read_records(session.home / FILE_NAME), hosts)
    return decide(waves, plan.hosts, session.hosts, marks, proofs, in_waves=in_waves)


def still_unproved(
    session: Session, agreement: Agreement, outcome: RunOutcome, proved: Collection[str]
) -> tuple[str, ...]:
    """Return which hosts resumed runs changed without a proof, and whether they are proved now, in sentences.

    Args:
        session: the hosts.
        agreement: what was agreed to.
        outcome: of this run.
        proved: hosts of which a sentence has said so already.
    """
    if not agreement.resumes:
        return ()
    stories = session.stories().values()
    names = unproved_by(stories, agreement.plan.digest, without=outcome.run)
    names = tuple(name for name in names if name not in proved)
    good = {
        name
        for name, ended in outcome.hosts.items()
        if ended.status in (HostStatus.OK, HostStatus.CHANGED)
    }
    passed = outcome.verdict is not None and outcome.verdict.passed
    now = [name for name in names if passed and name in good]
    rest = [name for name in names if name not in now]
    changed = f"changed by run {agreement.resumes}, or one that it resumed, without a proof"
    lines = []
    if now:
        lines.append(f"{folded(now)}: {changed}; proved at the end of this run")
    if rest:
        lines.append(f"{folded(rest)}: {changed}; NOT proved by this run either")
    return tuple(lines)
