"""The proof at the end of a run: the hosts that are right are verified, and the verdict is kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from remedy.audit import Journal
from remedy.bounds import TooMuchError, work
from remedy.diagnose.diagnosis import Explanation
from remedy.errors import LaunchError, RemedyError, UsageError
from remedy.inventory import Inventory
from remedy.plan import Finding, Fleet, Plan
from remedy.probe import HostState, fingerprint
from remedy.probe.accelerators import NVIDIA
from remedy.runs.outcome import HostOutcome, HostStatus
from remedy.runs.session import Session
from remedy.spec import VerifySpec
from remedy.text import names_in, quoted
from remedy.transport import HostEvent
from remedy.values import Unknown
from remedy.verify.hosts import Participant, Participants, shortened
from remedy.verify.ladder import climb
from remedy.verify.last import Proved, increment, load, save
from remedy.verify.look.compare import HostView
from remedy.verify.look.run import MOST, CloseLook
from remedy.verify.verdict import Rung, Verdict, not_launched

EXPLAINING = 20.0
"""Seconds of work that looking for a cause in the logs of a failed run may take; usually it is below one."""


@dataclass(frozen=True)
class Scene:
    """What is known when the proof begins.

    Args:
        fleet: the hosts as they were seen last.
        plan: what would still be changed there, with its findings.
        hosts: how each host stands; only those that are right are tested.
    """

    fleet: Fleet
    plan: Plan
    hosts: Mapping[str, HostOutcome]


@dataclass(frozen=True)
class Proof:
    """A verdict, and the cause where it is NOT PROVED.

    Args:
        verdict: of the verification.
        explanation: the cause that its logs and the state of the hosts show; None where there is none to name.
        views: what a close look at each host showed, where there was one and something failed.
    """

    verdict: Verdict
    explanation: Explanation | None = None
    views: tuple[HostView, ...] = ()


def prove(
    session: Session, scene: Scene, *, incremental: bool = False, closer: bool = False
) -> Proof:
    """Verify every host that is right; ``record`` records the verdict.

    Args:
        session: the last verdict is kept in its home.
        scene: the fleet.
        incremental: whether the last verdict is built on, where only a few hosts changed since.
        closer: whether each host is looked at closely before and after.

    Raises:
        UsageError: there are too many hosts for a close look.
    """
    candidates = [
        candidate
        for name in scene.fleet.states
        if scene.hosts[name].status in (HostStatus.OK, HostStatus.CHANGED)
        and (candidate := _participant(session.inventory, name, scene.fleet)) is not None
    ]
    names = [candidate.name for candidate in candidates]
    for name in names:
        session.progress.host(HostEvent(name, "verifying"))
    fingerprints = {name: fingerprint(scene.fleet.states[name]) for name in names}
    section = session.spec.section("verify", VerifySpec)
    look = _close_look(session, candidates, scene) if closer else None
    pairs: tuple[tuple[str, str], ...] = ()
    if incremental:
        pairs = _pairs(session, fingerprints, section)
    session.activity.tested = tuple(names)
    verdict = _verdict(session, _participants(session.inventory, candidates, scene), section, pairs)
    session.activity.tested = ()
    excused = {
        name: host.error.message if host.error else f"the host is {host.status.value}"
        for name, host in scene.hosts.items()
        if name not in names
    }
    explanation = _explain(session.inventory, verdict, scene)
    views = look.views() if look is not None and not verdict.passed else ()
    verdict = verdict.excusing(excused).model_copy(update={"fingerprints": fingerprints})
    return Proof(verdict, explanation, views)


def _verdict(
    session: Session,
    participants: Participants,
    section: VerifySpec,
    pairs: Sequence[tuple[str, str]],
) -> Verdict:
    """Climb the ladder; where what starts the ranks comes to its end, nothing is proved and nobody accused."""
    launcher = session.launcher
    try:
        verdict = climb(
            launcher.run, participants, section, session.progress.rung, pairs, launcher.job
        )
    except LaunchError as error:
        names = [host.name for host in participants.hosts]
        verdict = not_launched(names, error.message, error.next_step).model_copy(
            update={"engine": section.engine, "launcher": section.launcher, "job": launcher.job}
        )
    verdict = launcher.with_steps(verdict)
    return verdict.model_copy(update={"evidence": (*launcher.notes, *verdict.evidence)})


def _close_look(session: Session, hosts: Sequence[Participant], scene: Scene) -> CloseLook:
    """Take the first look at each host."""
    if len(hosts) > MOST:
        raise UsageError(
            f"--explain compares {MOST} hosts at most, and {len(hosts)} are selected",
            next_step="Name the hosts that a verification accuses, and one beside them: --limit A,B,C",
        )
    names = {name: name for name in session.inventory.names}
    for name, state in scene.fleet.states.items():
        if not isinstance(state.network, Unknown):
            addresses = (a for i in state.network.interfaces for a in i.addresses)
            names |= {
                a.address: name for a in addresses if not a.address.startswith(("127.", "::1"))
            }
    names |= scene.fleet.host_by_address
    return CloseLook(session.transport.run, hosts, names)


def _pairs(
    session: Session, fingerprints: Mapping[str, str], section: VerifySpec
) -> tuple[tuple[str, str], ...]:
    """Return the pairs that are tested in place of the whole ladder; none where it has to be the whole."""
    how = Proved(section.engine, section.launcher, whole=section.divide is None)
    less = increment(load(session.home), fingerprints, how)
    if isinstance(less, str):
        rung = Rung(name="new hosts", passed=None, message=f"the whole ladder: {less}")
        session.progress.rung(rung)
        return ()
    return less.pairs


def record(proof: Proof, journal: Journal, home: Path) -> None:
    """Record what a verification showed, and keep the verdict as the last one.

    Raises:
        RemedyError: that cannot be written.
    """
    verdict, explanation = proof.verdict, proof.explanation
    journal.write(
        "verified",
        **verdict.model_dump(mode="json", exclude={"evidence", "dead_links", "tests"}),
        cause=explanation and explanation.diagnosis.label,
        command=explanation and explanation.command,
    )
    try:
        save(home, verdict)
    except OSError as error:
        raise RemedyError(
            f"the verdict cannot be kept in {home}: {error.strerror}",
            next_step="It is in the journal. Make room or give write access before the next run.",
        ) from error


def gpu_count(state: HostState) -> int:
    """Return how many GPUs a host has; those on its bus where nvidia-smi could not be asked."""
    gpus = state.gpus
    if isinstance(gpus, Unknown):
        return 0
    if not isinstance(gpus.devices, Unknown):
        return len(gpus.devices)
    return sum(device.vendor == NVIDIA and device.kind.startswith("03") for device in gpus.pci)


def _explain(inventory: Inventory, verdict: Verdict, scene: Scene) -> Explanation | None:
    """Name the cause of a verification that failed, from its logs and the state of the hosts."""
    if verdict.passed or not (verdict.rungs or verdict.logs):  # nothing ran that could show a cause
        return None
    # Imported late: the catalogue of texts is read only where something failed.
    from remedy.diagnose.verification import explain_verdict

    typed = quoted(inventory.path)
    fleet = scene.fleet
    explanation = None
    with suppress(TooMuchError), work(EXPLAINING):
        explanation = explain_verdict(
            verdict, scene.plan, fleet.states, typed, fleet.host_by_address
        )
    if explanation is None or not explanation.command:
        return explanation  # None: what the hosts' processes printed takes too long to read
    command = shortened(explanation.command, inventory.names)
    return explanation.model_copy(update={"command": command})


def _participants(
    inventory: Inventory, tested: Sequence[Participant], scene: Scene
) -> Participants:
    """Return what verification may know of the hosts: with what a plan would find, it explains itself."""
    known: dict[str, list[str]] = {}
    names = [host.name for host in tested]
    titles = {(finding.host, finding.title) for finding in scene.plan.findings}
    of_most: list[tuple[str, str]] = []
    for finding in scene.plan.findings:
        if finding.host is not None:
            known.setdefault(finding.host, []).append(finding.sentence)
    for change in scene.plan.changes:
        if (change.host, change.reason) not in titles:
            known.setdefault(change.host, []).append(f"{change.title}: {change.reason}")
    # Few of these lines are shown: what a host has alone comes before what it has in common with most.
    for finding in scene.plan.findings:
        if finding.host is None:
            for name, words, is_of_most in _about_hosts(finding, names):
                if is_of_most:
                    of_most.append((name, words))
                else:
                    known.setdefault(name, []).append(words)
    for name, words in of_most:
        known.setdefault(name, []).append(words)
    curable = frozenset(change.host for change in scene.plan.changes)
    typed, groups = quoted(inventory.path), inventory.groups
    return Participants(tested, scene.fleet.states, known, curable, typed, groups)


def _about_hosts(finding: Finding, names: Collection[str]) -> Iterator[tuple[str, str, bool]]:
    """Yield the hosts that a finding about the fleet names, what it says of each, and whether of most."""
    of_all = names_in(finding.title, names)
    for name in of_all:
        yield name, finding.sentence, False
    lines: dict[str, list[str]] = {}
    most: set[str] = set()
    for line in finding.evidence:
        named = [name for name in names_in(line, names) if name not in of_all]
        most.update(named if 2 * len(named) > len(names) else ())
        for name in named:
            lines.setdefault(name, []).append(line)
    for name, words in lines.items():
        yield name, f"{finding.title} ({'; '.join(words)})", name in most


def _participant(inventory: Inventory, name: str, fleet: Fleet) -> Participant | None:
    """Return what verification has to know of a host; None when peers could not reach it."""
    address = fleet.addresses[name].address
    if address is None:
        return None
    python = inventory.node(name).data.get("python")
    return Participant(
        name=name,
        address=address,
        gpus=gpu_count(fleet.states[name]),
        python=None if python is None else str(python),
    )
