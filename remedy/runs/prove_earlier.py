"""A resumed run proves the waves of before that have no proof; where that fails, no further host is changed.

What these hosts were before their run is not known here, so that they are not taken back by themselves: the run
stops with the command that takes them back by the receipts of the run that changed them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from remedy.audit import Journal
from remedy.audit.unproved import UnprovedWave
from remedy.errors import RemedyError
from remedy.runs.earlier import Earlier
from remedy.runs.outcome import HostOutcome
from remedy.runs.probe import ProbeResult
from remedy.runs.wave import WaveProof, Waves, prove_wave, proved_words, suspect_words
from remedy.text import folded, limited


def prove_earlier(
    proofs: Waves,
    journal: Journal,
    result: ProbeResult,
    hosts: Mapping[str, HostOutcome],
    earlier: Earlier,
) -> None:
    """Prove waves of resumed runs, until the proof of one fails; then ``proofs.red`` holds it.

    Args:
        proofs: of this run, which takes what is proved and what is not.
        journal: of this run.
        result: the hosts as they were read.
        hosts: how they stand.
        earlier: what is to be proved.
    """
    proofs.begun += earlier.hosts
    proofs.lines += earlier.held_words()
    proofs.proved += earlier.held_hosts
    for wave in earlier.waves:
        partners = proofs.ground.partners(wave.hosts, proofs.proved, proofs.begun)
        proofs.session.activity.resumed = wave.hosts
        proof = prove_wave(proofs.session, proofs.mtus, result, hosts, wave.hosts, partners)
        proofs.session.activity.resumed = ()
        shown = proof.passed or _failed(proof)
        record = {**proof.record(wave.number), "of": wave.run}
        journal.write("wave", **record | ({} if shown else {"passed": None}))
        if proof.passed:
            proofs.proved += proof.hosts
            proofs.lines.append(f"{wave.words}: {proved_words(proof)}")
            continue
        proofs.red = proof
        if _failed(proof):
            _stop(proofs, journal, hosts, wave, proof)
        else:
            _stop_without(proofs, wave, proof)
        return


def _failed(proof: WaveProof) -> bool:
    """Return whether a proof was made and failed: where nothing could be proved, no change is suspected."""
    return proof.proof is not None and proof.verdict.possible and not proof.passed


def _stop(
    proofs: Waves,
    journal: Journal,
    hosts: Mapping[str, HostOutcome],
    wave: UnprovedWave,
    proof: WaveProof,
) -> None:
    """Record a wave whose proof failed, with what is suspected and how it is taken back."""
    named = proofs.suspects(proof, hosts, wave.hosts, wave.run)
    journal.write(
        "red",
        wave=wave.number,
        of=wave.run,
        reason=proof.reason,
        suspects=[suspect.record() for suspect in named],
        hosts=list(wave.hosts),
    )
    typed = proofs.session.typed
    back = f"remedy rollback {wave.run} {typed} --limit {limited(wave.hosts)}"
    proofs.lines += _red_words(wave, proof, back)
    proofs.lines += suspect_words(named, proofs.session.show_command(proofs.run))
    for name in wave.hosts:
        proofs.errors[name] = RemedyError(
            f"{name}: changed by {wave.words}, and its proof failed: {proof.reason}; not taken back",
            next_step=f"Take it back: {back}",
        )


def _stop_without(proofs: Waves, wave: UnprovedWave, proof: WaveProof) -> None:
    """Stop before a further host is changed, because a wave could not be proved."""
    typed = proofs.session.typed
    step = f"Prove it, and resume again: remedy verify {typed}"
    if not proof.hosts:
        step = f"Repair that on the host, or make a new plan: remedy plan {typed} -o plan.json"
    proofs.lines.append(f"{wave.words}: not proved: {proof.reason}")
    for name in wave.hosts:
        proofs.errors[name] = RemedyError(
            f"{name}: changed by {wave.words} without a proof, and there is none now: {proof.reason}",
            next_step=f"{step}. Or resume with --no-prove-waves.",
        )


def _red_words(wave: UnprovedWave, proof: WaveProof, back: str) -> Iterator[str]:
    """Yield what is known of a wave whose proof failed, in words; ``back`` is what takes it back."""
    partners = folded(proof.partners) or "nobody"
    yield f"{wave.words}: NOT PROVED with {partners}: {proof.reason}"
    yield f"{wave.words}: {folded(wave.hosts)}: not taken back; to take it back: {back}"
