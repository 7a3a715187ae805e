"""Reading the hosts: one command each, and what the plan would be."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

from remedy.apply.job import SecondProbe
from remedy.apply.start import PROBE_SECONDS, origin, probe_request
from remedy.audit import witness
from remedy.bounds import TooMuchError, work
from remedy.errors import LockedError, ProbeError, RemedyError
from remedy.inventory import Node
from remedy.plan import Finding, FindingKind, Fleet, Plan, identities, make_plan
from remedy.plan.identities import Claim, identity_of, machine_mark
from remedy.probe import (
    Guards,
    HostState,
    ProbeRequest,
    explain_stuck_probe,
    fingerprint,
    parse_probe,
    render_probe,
    stuck_processes,
)
from remedy.runs import machines, sight
from remedy.runs.activity import AGAIN
from remedy.runs.hosts_blocks import expected_blocks, keep_block
from remedy.runs.session import Session
from remedy.text import counted, fold, limited, quoted
from remedy.transport import Output, Root, Script
from remedy.transport.failures import explain_sudo, refusal_of_sudo
from remedy.values import Unknown

T = TypeVar("T")
PARSING = 20.0
"""Seconds of work that reading one answer may take; usually it is some milliseconds."""
MOST_REMARKS = 8
"""Hosts of which the reason is shown why they were not read; of others the names."""


@dataclass(frozen=True)
class ProbeResult:
    """A fleet as it was read.

    Args:
        fleet: the states of the hosts that could be read.
        errors: why the other hosts could not be read, or must not be judged.
        unsettled: the states of hosts that are about to change by themselves, which must not be judged.
        forgotten: by host, what it remembers of the journal and the journal does not have.
    """

    fleet: Fleet
    errors: Mapping[str, RemedyError]
    unsettled: Mapping[str, HostState] = field(default_factory=dict)
    forgotten: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """The hosts at whose address another entry's machine answers; the operator decides what is right."""
        return identities.claims(self.fleet)

    @cached_property
    def accepted(self) -> ProbeResult:
        """The same hosts, where the operator agreed that each machine is what the inventory calls it."""
        return replace(self, fleet=replace(self.fleet, known_machines={}, known_boots={}))

    @cached_property
    def plan(self) -> Plan:
        """What has to be changed; decided once."""
        plan = make_plan(self.fleet, origin())
        unread = tuple(
            _unread_guards(name, guards)
            for name, state in self.fleet.states.items()
            if isinstance(guards := state.guards, Unknown) and state.root
        )
        rootless = tuple(
            _without_root(self.fleet.inventory.node(name), state.refusal)
            for name, state in self.fleet.states.items()
            if not state.root
        )
        journal = tuple(_forgotten(name, what) for name, what in self.forgotten.items())
        journal += sight.findings(self.fleet)
        more = (*journal, *identities.findings(self.fleet.inventory, self.claims), *unread)
        if not more and not rootless:
            return plan
        return plan.model_copy(update={"findings": (*rootless, *plan.findings, *more)})

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else there is to know of the hosts, for a reader who is shown no plan: a sentence each."""
        errors = list(self.errors.items())
        remarks = [f"{error.message}. {error.next_step}" for _, error in errors[:MOST_REMARKS]]
        if errors[MOST_REMARKS:]:
            rest = fold(name for name, _ in errors[MOST_REMARKS:])
            typed = quoted(self.fleet.inventory.path)
            limit = limited(name for name, _ in errors[MOST_REMARKS:])
            remarks.append(
                f"{rest}: not read either. See why: remedy check {typed} --limit {limit}"
            )
        findings = identities.findings(self.fleet.inventory, self.claims)
        return (*remarks, *map(identities.in_words, findings))

    @cached_property
    def with_unsettled(self) -> ProbeResult:
        """The same hosts, with those that are about to change as they are now."""
        if not self.unsettled:
            return self
        errors = {n: error for n, error in self.errors.items() if n not in self.unsettled}
        states = {**self.fleet.states, **self.unsettled}
        return _result(self.fleet, states, errors, forgotten=self.forgotten)

    def marked(self, plan: Plan) -> Plan:
        """Return ``plan`` with the fingerprint of each host that it changes, and what stands for its machine.

        A host that could not be read has none.
        """
        states = self.fleet.states
        marks = {name: fingerprint(states[name]) for name in plan.hosts if name in states}
        machines = {
            name: machine_mark(identity.machine_id)
            for name in plan.hosts
            if (identity := identity_of(self.fleet, name)) and identity.machine_id
        }
        return plan.model_copy(update={"observed": marks, "machines": machines})

    def updated(self, newer: ProbeResult) -> ProbeResult:
        """Return the fleet with some of its hosts as they were read later."""
        names = {*newer.fleet.states, *newer.errors}

        def merged(before: Mapping[str, T], after: Mapping[str, T]) -> dict[str, T]:
            return {**{n: v for n, v in before.items() if n not in names}, **after}

        states = merged(self.fleet.states, newer.fleet.states)
        ordered = {n: states[n] for n in self.fleet.inventory.names if n in states}
        return _result(
            self.fleet,
            ordered,
            merged(self.errors, newer.errors),
            merged(self.unsettled, newer.unsettled),
            merged(self.forgotten, newer.forgotten),
        )


def probe(session: Session) -> ProbeResult:
    """Read the hosts of a session, as a stage of its command."""
    with session.progress.stage(f"Reading {counted(len(session.hosts), 'host')}"):
        result = read_hosts(session, session.hosts)
    keep_block(session.home, result.fleet)
    # Also hosts that are about to change: when that is over, nothing is asked again.
    seen = sight.look(session, result.with_unsettled.fleet).answering
    return replace(result, fleet=replace(result.fleet, answering=seen)) if seen else result


def read_hosts(session: Session, hosts: Iterable[str]) -> ProbeResult:
    """Read hosts, one command each.

    A host that cannot be read, or is about to change by itself, has an error in the result.
    """
    reading = Reading(session)
    reading.read(hosts)
    return reading.result()


class Reading:
    """Hosts that are read, together or each when its time has come; answers are parsed while others work.

    Args:
        session: the hosts.
        fleet: the hosts as they were read before; None where they were not.
    """

    def __init__(self, session: Session, fleet: Fleet | None = None) -> None:
        self._session = session
        fleet = fleet or Fleet(session.inventory, {}, session.spec)
        blocks = expected_blocks(session.home, fleet)
        heads_of = witness.lines_of(session.home)
        self._request = probe_request(session.inventory, session.spec, heads_of, blocks)
        text = render_probe(self._request)
        self._script = Script(text, PROBE_SECONDS + 5, Root.PREFERRED, packs=True)
        self._answers: dict[str, HostState | RemedyError] = {}

    def read(self, hosts: Iterable[str], *, stage: str = "running") -> None:
        """Read hosts, side by side.

        Args:
            hosts: their names.
            stage: what listeners hear meanwhile.
        """
        request = self._request.model_copy(update={"asked_at": time.time_ns()})

        def parse(output: Output) -> None:
            self._answers[output.host] = _parsed(output, request)

        self._session.transport.run(dict.fromkeys(hosts, self._script), parse, stage=stage)

    @property
    def second(self) -> SecondProbe:
        """The probe of a host right after the confirmation of its changes."""

        def take(output: Output, asked_at: int) -> None:
            request = self._request.model_copy(update={"asked_at": asked_at})
            state = _parsed(output, request)
            if isinstance(state, HostState):
                self._answers[output.host] = state

        return SecondProbe(self._script, take)

    def read_again(self, host: str) -> None:
        """Read a host that was changed, where ``second`` has not."""
        if host not in self._answers:
            self.read([host], stage=AGAIN)

    def result(self) -> ProbeResult:
        """Return what was read, in the order of the inventory."""
        session = self._session
        answers = {n: self._answers[n] for n in session.inventory.names if n in self._answers}
        states = {n: state for n, state in answers.items() if isinstance(state, HostState)}
        errors = {n: error for n, error in answers.items() if isinstance(error, RemedyError)}
        unsettled = {
            name: state
            for name, state in states.items()
            if isinstance(state.guards, Guards) and state.guards.unsettled
        }
        for name, state in unsettled.items():
            assert isinstance(state.guards, Guards)
            errors[name] = about_to_change(name, state.guards, session.typed)
        settled = {name: state for name, state in states.items() if name not in unsettled}
        # The journal is read after the hosts: a run that goes on meanwhile has written there first.
        heads = {n: s.guards.head for n, s in states.items() if isinstance(s.guards, Guards)}
        forgotten = witness.forgotten(heads, session.home)
        last = machines.load(session.home)
        fleet = Fleet(
            session.inventory, {}, session.spec, {}, last.marks, last.boots, choice=session.choice
        )
        return _result(fleet, settled, errors, unsettled, forgotten)


def _parsed(output: Output, request: ProbeRequest) -> HostState | RemedyError:
    """Return the state of a host, or why its answer has none."""
    if stuck := stuck_processes(output.stderr, request.nonce):
        return explain_stuck_probe(output.host, stuck)
    try:
        with work(PARSING):
            if output.error is not None:
                return output.error
            state = parse_probe(output.host, output.stdout, request, output.ended_at)
        if not state.root and (refusal := refusal_of_sudo(output.stderr)):
            return state.model_copy(update={"refusal": refusal})
        return state
    except ProbeError as error:
        return error
    except (TooMuchError, RecursionError, MemoryError) as error:
        return ProbeError(
            f"{output.host}: what it answered cannot be read: {str(error) or type(error).__name__}",
            next_step="Log in by hand and check the host: it may be broken or compromised.",
        )


def about_to_change(name: str, guards: Guards, inventory: str) -> LockedError:
    """Return why a host must not be judged: it is about to change by itself.

    Args:
        name: the host.
        guards: what is about to change it.
        inventory: as it is typed.
    """
    if guards.at_work is not None:
        run = guards.at_work
        return LockedError(
            f"{name}: about to change: run {run.run} by {run.by or 'unknown'} is at work there since "
            f"{run.since}",
            next_step="Wait until it ends, then run the command again. If it does not end: remedy unlock "
            f"{run.run} {inventory} --force",
        )
    guard = guards.pending
    assert guard is not None, "a host is unsettled by a run or by a guard"
    changes = ", ".join(guard.titles[:3]) or "titles not known"
    if not guard.attended:
        when = "nothing on the host does that any more"
    elif guard.seconds is None:
        when = "soon"
    else:
        when = f"in {guard.seconds:.0f} s"
    return LockedError(
        f"{name}: about to change: the changes of run {guard.run} wait for a confirmation, else the host "
        f"takes them back ({when}): {changes}",
        next_step="To have them confirmed where they are right, and taken back otherwise: remedy apply "
        f"{inventory}. To have them taken back now: remedy unlock {guard.run} {inventory} --force",
    )


def _without_root(node: Node, refusal: str) -> Finding:
    """Return what is not known of a host that was read without root, and the way to be root there.

    Args:
        node: the host.
        refusal: what sudo said; "" where nothing is known of that.
    """
    words = f"sudo refused: {refusal}" if refusal else "sudo refused or is not there"
    fix = (
        "Run the command again with -K, which asks for the sudo password. Without one: connect as root, or "
        "allow the user NOPASSWD in sudoers."
    )
    if refusal and "password is required" not in refusal:
        error = explain_sudo(node, refusal)
        fix = (
            error.next_step
            if error
            else "Mend that (as that user, on the host: sudo -n true), or connect as root: ssh_user in the "
            "inventory."
        )
    return Finding(
        host=node.name,
        remedy="guard",
        kind=FindingKind.UNKNOWN,
        label="",
        title="read without root: unknown whether a change waits there for a confirmation",
        evidence=(f"the ssh user is not root, and {words}: what needs root was not read",),
        fix=fix,
    )


def _unread_guards(name: str, guards: Unknown) -> Finding:
    return Finding(
        host=name,
        remedy="guard",
        kind=FindingKind.UNKNOWN,
        label="",
        title="unknown whether a change waits there for a confirmation",
        evidence=(guards.reason,),
        fix="Connect as root, or as a user with sudo.",
    )


def _forgotten(name: str, what: str) -> Finding:
    return Finding(
        host=name,
        remedy="journal",
        kind=FindingKind.BLOCKED,
        label="",
        title="the journal does not have what this host remembers of it",
        evidence=(what,),
        fix="Bring the folder .remedy back from where it is kept safe. If it was restarted on purpose: "
        "remedy audit accept INVENTORY",
    )


def _result(
    fleet: Fleet,
    states: Mapping[str, HostState],
    errors: Mapping[str, RemedyError],
    unsettled: Mapping[str, HostState] = MappingProxyType({}),
    forgotten: Mapping[str, str] = MappingProxyType({}),
) -> ProbeResult:
    missing = {name: error.message for name, error in errors.items()}
    judged = replace(fleet, states=states, missing=missing)
    return ProbeResult(judged, errors, unsettled, forgotten)
