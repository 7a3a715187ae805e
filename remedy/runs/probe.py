"""Reading the hosts: one command each, and what the plan would be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from remedy.apply.start import PROBE_SECONDS, origin, probe_request
from remedy.errors import ProbeError, RemedyError
from remedy.plan import Fleet, Plan, make_plan
from remedy.probe import HostState, fingerprint, parse_probe, render_probe
from remedy.runs.session import Session
from remedy.text import counted
from remedy.transport import Output, Root, Script


@dataclass(frozen=True)
class ProbeResult:
    """A fleet as it was read.

    Args:
        fleet: the states of the hosts that could be read.
        errors: why the other hosts could not be read.
    """

    fleet: Fleet
    errors: Mapping[str, RemedyError]

    @cached_property
    def plan(self) -> Plan:
        """What has to be changed; decided once."""
        return make_plan(self.fleet, origin())

    def marked(self, plan: Plan) -> Plan:
        """Return ``plan`` with the fingerprint of the state of each host that it changes.

        A host that could not be read has none.
        """
        states = self.fleet.states
        marks = {name: fingerprint(states[name]) for name in plan.hosts if name in states}
        return plan.model_copy(update={"observed": marks})

    def updated(self, newer: ProbeResult) -> ProbeResult:
        """Return the fleet with some of its hosts as they were read later."""
        states = {
            name: state
            for name, state in {**self.fleet.states, **newer.fleet.states}.items()
            if name not in newer.errors
        }
        return _result(self.fleet, states, {**self.errors, **newer.errors})


def probe(session: Session) -> ProbeResult:
    """Read the hosts of a session, as a stage of its command."""
    with session.progress.stage(f"Reading {counted(len(session.hosts), 'host')}"):
        return read_hosts(session, session.hosts)


def read_hosts(session: Session, hosts: Iterable[str]) -> ProbeResult:
    """Read hosts, one command each; a host that cannot be read has an error in the result."""
    names = list(hosts)
    request = probe_request(session.inventory)
    script = Script(render_probe(request), deadline=PROBE_SECONDS + 5, root=Root.PREFERRED)
    answers: dict[str, HostState | RemedyError] = {}

    def parse(output: Output) -> None:
        """Parse an answer while other hosts still work."""
        try:
            answers[output.host] = output.error or parse_probe(
                output.host, output.stdout, request, output.ended_at
            )
        except ProbeError as error:
            answers[output.host] = error

    session.transport.run(dict.fromkeys(names, script), parse)
    states = {n: state for n in names if isinstance(state := answers[n], HostState)}
    errors = {n: error for n in names if isinstance(error := answers[n], RemedyError)}
    return _result(Fleet(session.inventory, {}, session.spec, {}), states, errors)


def _result(
    fleet: Fleet, states: Mapping[str, HostState], errors: Mapping[str, RemedyError]
) -> ProbeResult:
    missing = {name: error.message for name, error in errors.items()}
    return ProbeResult(Fleet(fleet.inventory, states, fleet.spec, missing), errors)
