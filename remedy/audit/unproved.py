"""Hosts that a plan changed and no proof is on record for: pure functions from the journal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from remedy.audit.journal import JournalRecord
from remedy.audit.story import TOUCHED, Story


@dataclass(frozen=True)
class UnprovedWave:
    """Hosts that a run changed together, and whose proof did not come to its end.

    Args:
        run: that changed them.
        number: of the wave in that run; 0 where the run proved none of its waves.
        hosts: in the order of the run.
    """

    run: str
    number: int
    hosts: tuple[str, ...]

    @property
    def words(self) -> str:
        """The wave as it is named in a sentence."""
        return f"wave {self.number} of run {self.run}" if self.number else f"run {self.run}"


@dataclass(frozen=True)
class RecordedProof:
    """A proof of a host that is on record: the run that made it, and the host's fingerprint at that time."""

    run: str
    fingerprint: str


def in_proved_waves(stories: Iterable[Story], digest: str) -> bool:
    """Return whether a run of a plan was to prove each of its waves."""
    return any(story.proving for story in stories if _carries_out(story, digest))


def unproved_by(stories: Iterable[Story], digest: str, without: str = "") -> tuple[str, ...]:
    """Return the hosts that the runs of a plan changed, of which none has a proof on record.

    Args:
        stories: of all runs, in the order in which they began.
        digest: of the plan.
        without: a run that is left out.
    """
    return tuple(_pending(stories, digest, without))


def unproved_waves(stories: Iterable[Story], digest: str) -> tuple[UnprovedWave, ...]:
    """Return the waves of a plan that have no proof on record, the oldest first.

    A host whose changes failed, and that took no part in a proof that its wave had, is in none of them.

    Args:
        stories: of all runs, in the order in which they began.
        digest: of the plan.
    """
    by_run = {story.run: story for story in stories}
    hosts: dict[str, list[str]] = {}
    for name, run in _pending(by_run.values(), digest).items():
        if not by_run[run].proving or name in by_run[run].in_proof:
            hosts.setdefault(run, []).append(name)
    return tuple(
        UnprovedWave(run, _number(by_run[run]), tuple(hosts[run])) for run in by_run if run in hosts
    )


def mtus_before(stories: Iterable[Story], digest: str) -> Mapping[str, Mapping[str, int]]:
    """Return the MTUs that hosts without a proof had before the first run of a plan changed them.

    Args:
        stories: of all runs, in the order in which they began.
        digest: of the plan.
    """
    mtus: dict[str, Mapping[str, int]] = {}
    run_by_host: dict[str, str] = {}
    for story in stories:
        if _carries_out(story, digest):
            mtus = {**story.mtus, **mtus}
            run_by_host |= dict.fromkeys(story.began, story.run)
        for name in _cleared(story, run_by_host):
            mtus.pop(name, None)
    return mtus


def recorded_proofs(
    records: Iterable[JournalRecord], hosts: Collection[str]
) -> Mapping[str, RecordedProof]:
    """Return the last proof of hosts in which remedy began no change after it.

    Args:
        records: of the journal, in order.
        hosts: that are asked about.
    """
    proofs: dict[str, RecordedProof] = {}
    for record in records:
        data, event = record.body["data"], record.body["event"]
        if event in ("began", "settled"):
            for name in data.get("hosts", ()):
                proofs.pop(name, None)
        elif event == "verified" and data.get("passed"):
            marks = data.get("fingerprints") or {}
            run = str(record.body["run"])
            proofs |= {name: RecordedProof(run, marks[name]) for name in hosts if name in marks}
    return proofs


def _pending(stories: Iterable[Story], digest: str, without: str = "") -> dict[str, str]:
    """Return the hosts that runs of a plan changed and none proved, each with the last run that did."""
    run_by_host: dict[str, str] = {}
    for story in stories:
        if story.run == without:
            continue
        touched = [name for name, ended in story.results.items() if TOUCHED & {*ended.values()}]
        if _carries_out(story, digest):
            run_by_host |= dict.fromkeys(touched, story.run)
        for name in _cleared(story, run_by_host):
            run_by_host.pop(name, None)
    return run_by_host


def _cleared(story: Story, run_by_host: Mapping[str, str]) -> set[str]:
    """Return the hosts that a run proved, or took back what the run did that changed them."""
    cleared = {name for wave in story.waves if wave.get("passed") for name in wave["hosts"]}
    cleared |= set(story.results) if story.proved else set()
    if story.mode == "rollback":
        cleared |= {name for name in story.began if run_by_host.get(name) == story.of}
    return cleared


def _carries_out(story: Story, digest: str) -> bool:
    return story.mode == "apply" and story.digest == digest


def _number(story: Story) -> int:
    """Return the number of a run's wave that has no proof; waves of a resumed run have the numbers of that."""
    if not story.proving:
        return 0
    return 1 + sum(not wave.get("of") for wave in story.waves)
