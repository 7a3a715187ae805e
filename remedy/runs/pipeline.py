"""The way of a run through the rooms: probe, plan, apply, probe again, verify, record.

Each step takes what the one before returned. Nothing is printed here: what people see is made from the
events (``Listener``) and from the ``RunOutcome``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remedy.apply.carrier import Carrier
from remedy.apply.job import Guard
from remedy.apply.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.apply.report import ChangeStatus, HostReport
from remedy.apply.start import PROBE_SECONDS, origin, probe_request
from remedy.apply.waves import waves
from remedy.audit import Journal, witness
from remedy.audit.agreement import Agreement, keep
from remedy.errors import LockedError, ProbeError, RefusedError, RemedyError
from remedy.inventory import Inventory
from remedy.plan import Fleet, Plan, make_plan
from remedy.probe import HostState, fingerprint, parse_probe, render_probe
from remedy.runs.past import Past
from remedy.secret import Seal, read_seal
from remedy.spec import Spec
from remedy.transport import Listener, Output, Root, Script, Transport
from remedy.values import Unknown

if TYPE_CHECKING:
    from remedy.verify.verdict import Rung, Verdict


@dataclass(frozen=True)
class Probed:
    """What probing a fleet gave: the fleet, and the error of each host without a state."""

    fleet: Fleet
    errors: Mapping[str, RemedyError]


class Pipeline:
    """One inventory, one spec, and the connections to its hosts.

    Args:
        inventory: the hosts.
        spec: what the user wants.
        transport: runs scripts on hosts.
        listener: is told of each host's stages.
    """

    def __init__(
        self,
        inventory: Inventory,
        spec: Spec,
        transport: Transport,
        listener: Listener | None = None,
    ) -> None:
        self.inventory = inventory
        self.spec = spec
        self.transport = transport
        self._listen = listener or (lambda _: None)
        guard = Guard(
            spec.apply.confirm_seconds, needs_systemd=spec.apply.without_systemd == "refuse"
        )
        self._carrier = Carrier(transport, guard, self._listen)
        self.past = Past(inventory, transport, self._carrier)
        self._planned: tuple[Probed, Plan] | None = None
        # Told of each rung of the verification as it is climbed.
        self.on_rung: Callable[[Rung], None] = lambda _: None

    def probe(self, hosts: Iterable[str]) -> Probed:
        """Read ``hosts``, one command each; a host that cannot be read has an error in the result."""
        request = probe_request(self.inventory)
        script = Script(render_probe(request), deadline=PROBE_SECONDS + 5, root=Root.PREFERRED)
        found: dict[str, HostState | RemedyError] = {}

        def heard(output: Output) -> None:
            """Read an answer while other hosts still work."""
            try:
                found[output.host] = output.error or parse_probe(
                    output.host, output.stdout, request, output.ended_at
                )
            except ProbeError as error:
                found[output.host] = error

        asked = list(hosts)
        self.transport.run(dict.fromkeys(asked, script), heard)
        states = {n: state for n in asked if isinstance(state := found[n], HostState)}
        errors = {n: error for n in asked if isinstance(error := found[n], RemedyError)}
        missing = {name: error.message for name, error in errors.items()}
        return Probed(Fleet(self.inventory, states, self.spec, missing), errors)

    def plan(self, probed: Probed) -> Plan:
        """Decide what has to be changed; asked again about the same states, it gives the same plan."""
        if self._planned is None or self._planned[0] is not probed:
            self._planned = probed, make_plan(probed.fleet, origin())
        return self._planned[1]

    def observed(self, probed: Probed, plan: Plan) -> Plan:
        """Return the plan with the fingerprint of each changed host's state in it."""
        marks = {name: fingerprint(probed.fleet.states[name]) for name in plan.hosts}
        return plan.model_copy(update={"observed": marks})

    def preview(self, probed: Probed, plan: Plan, *, pending_counts: bool) -> RunOutcome:
        """Return the outcome of a command that only looks: nothing is changed, changes are pending."""
        hosts = {
            name: self._seen(
                name, plan, HostStatus.PENDING if plan.for_host(name) else HostStatus.OK
            )
            for name in probed.fleet.states
        }
        hosts |= {name: _absent(error) for name, error in probed.errors.items()}
        return RunOutcome(
            run="",
            inventory=self.inventory.path.name,
            hosts={name: hosts[name] for name in self.inventory.names if name in hosts},
            plan=plan,
            pending_counts=pending_counts,
        )

    def apply(
        self,
        probed: Probed,
        plan: Plan,
        *,
        run: str,
        prove: bool,
        agreement: Agreement | None = None,
    ) -> RunOutcome:
        """Carry a plan out, look again, and prove the result.

        Args:
            probed: what the plan was made from.
            plan: exactly this is carried out.
            run: the id of the run.
            prove: whether to verify afterwards.
            agreement: the plan that was agreed to, where ``plan`` is only the part of it for some hosts.

        Raises:
            RemedyError: the journal cannot be written; then nothing more is changed.
        """
        agreement = agreement or Agreement(plan)
        sizes = waves(plan.hosts, self.spec.apply.waves)
        journal = Journal(self.inventory.home, run=run, mode="apply")
        journal.write("planned", **agreement.record(plan, waves=len(sizes)))
        if plan.changes:
            keep(agreement, self.inventory.home, run)
        again, reports, skipped = self._in_waves(probed, plan, run, journal, sizes, agreement.by)
        hosts = {name: _absent(error) for name, error in again.errors.items()}
        remaining = self.plan(again)
        for name in again.fleet.states:
            hosts[name] = self._outcome(name, remaining, reports.get(name))
        hosts |= {name: _not_reached(name, run) for name in skipped}
        converged = not remaining.changes and not again.errors
        verdict = None
        if prove:
            from remedy.runs.proving import record

            verdict = self._prove(again, hosts)
            record(verdict, journal, self.inventory.home)
        outcome = RunOutcome(
            run=run,
            inventory=self.inventory.path.name,
            hosts={name: hosts[name] for name in self.inventory.names if name in hosts},
            plan=plan,
            converged=converged,
            verdict=verdict,
        )
        head = journal.write(
            "ended",
            exit_code=outcome.exit_code,
            converged=converged,
            proved=None if verdict is None else verdict.passed,
            hosts={name: host.status.value for name, host in outcome.hosts.items()},
            boots=_boots(again),
        )
        self.past.tell(reports, head, run)
        return outcome

    def rehearse(self, plan: Plan, run: str) -> dict[str, HostReport]:
        """See on the hosts whether a plan could be carried out: everything up to the first write.

        Args:
            plan: what would be done.
            run: the id of the rehearsal.
        """
        told = self._carrier.rehearse(plan, run)
        return self._carrier.explain(plan, told, seal=self._seal())

    def verify(self, probed: Probed, *, incremental: bool = False) -> Verdict:
        """Prove the fleet as it is, changing nothing; ``record`` is the caller's.

        Args:
            probed: the hosts as they are.
            incremental: whether the last verdict is built on, where only a few hosts are other ones.
        """
        hosts = {name: _absent(error) for name, error in probed.errors.items()}
        hosts |= {name: HostOutcome(HostStatus.OK) for name in probed.fleet.states}
        return self._prove(probed, hosts, incremental=incremental)

    def record(self, verdict: Verdict, run: str) -> None:
        """Record what ``verify`` showed.

        Raises:
            RemedyError: that cannot be written.
        """
        from remedy.runs.proving import record

        journal = Journal(self.inventory.home, run=run, mode="verify")
        record(verdict, journal, self.inventory.home)

    def _in_waves(
        self,
        probed: Probed,
        plan: Plan,
        run: str,
        journal: Journal,
        sizes: Sequence[Sequence[str]],
        by: str,
    ) -> tuple[Probed, dict[str, HostReport], tuple[str, ...]]:
        """Carry a plan out wave by wave, each looked at again before the next.

        Returns:
            the fleet as it was seen last, what each host said, and the hosts that were not reached because too
            many before them failed.
        """
        reports: dict[str, HostReport] = {}
        spec = self.spec.apply
        for wave in sizes:
            if spec.max_failures is not None:
                failed = self._failures(probed, reports)
                if len(failed) > spec.max_failures:
                    journal.write("stopped", failed=sorted(failed), limit=spec.max_failures)
                    break
            head = journal.write("began", hosts=list(wave))
            told = self._carrier.make(
                plan.restricted(wave),
                run,
                by=by,
                head=witness.words(head, self.inventory.home, run),
            )
            journal.write("changed", hosts={name: report.record() for name, report in told.items()})
            reports.update(self._carrier.explain(plan, told, seal=self._seal()))
            probed = self._converge(probed, told)
        return probed, reports, tuple(name for name in plan.hosts if name not in reports)

    def _seal(self) -> Seal | None:
        """Return the key of saved plans; None where it cannot be used, which is no reason to stop."""
        try:
            return read_seal(self.inventory.home)
        except RemedyError:
            return None

    def _failures(self, probed: Probed, reports: Mapping[str, HostReport]) -> set[str]:
        """Return the hosts of the run that failed so far; one that cannot be reached counts as failed."""
        remaining = self.plan(probed)
        bad = {
            name
            for name, report in reports.items()
            if name in probed.fleet.states
            and self._outcome(name, remaining, report).status is HostStatus.FAILED
        }
        return bad | set(probed.errors)

    def _converge(self, probed: Probed, reports: Mapping[str, HostReport]) -> Probed:
        """Probe again each host on which anything was tried; the others are as they were read."""
        if not reports:
            return probed
        again = self.probe(reports)
        states = {**probed.fleet.states, **again.fleet.states}
        for name in again.errors:
            states.pop(name, None)
        errors = {**probed.errors, **again.errors}
        missing = {name: error.message for name, error in errors.items()}
        return Probed(Fleet(self.inventory, states, self.spec, missing), errors)

    def _outcome(self, name: str, remaining: Plan, report: HostReport | None) -> HostOutcome:
        """Decide where a host ended: by what was done, and by what a second look still finds."""
        if report is None:
            pending = bool(remaining.for_host(name))
            return self._seen(name, remaining, HostStatus.PENDING if pending else HostStatus.OK)
        results = tuple(report.results.values())
        good = {ChangeStatus.DONE, ChangeStatus.ALREADY}
        changed = any(result.status is ChangeStatus.DONE for result in results)
        failed = bool(
            report.refused
            or report.reverted
            or remaining.for_host(name)
            or any(result.status not in good for result in results)
        )
        status = HostStatus.FAILED if failed else HostStatus.CHANGED if changed else HostStatus.OK
        seen = self._seen(name, remaining, status)
        error = _refusal(name, report) or seen.error
        return HostOutcome(seen.status, results, seen.findings, error)

    def _seen(self, name: str, plan: Plan, status: HostStatus) -> HostOutcome:
        """Return the outcome of a host from its findings: what blocks or is unknown is not ok."""
        findings = tuple(f for f in plan.findings if f.host == name)
        blocked = plan.blocked(name)
        error = None
        if blocked and status is not HostStatus.PENDING:
            status = HostStatus.FAILED
            reason = f": {blocked[0].evidence[0]}" if blocked[0].evidence else ""
            error = RemedyError(
                f"{name}: {blocked[0].title}{reason}",
                next_step=blocked[0].fix
                or "Put that right on the host, then run the command again.",
            )
        return HostOutcome(status, findings=findings, error=error)

    def _prove(
        self,
        probed: Probed,
        hosts: Mapping[str, HostOutcome],
        *,
        incremental: bool = False,
    ) -> Verdict:
        """Climb the ladder with every host that is right."""
        from remedy.runs.proving import (  # verification is not needed where nothing is proved
            Scene,
            prove,
        )

        return prove(
            self.inventory,
            self.spec,
            Scene(probed.fleet, self.plan(probed), hosts),
            self.transport.run,
            listen=self._listen,
            on_rung=self.on_rung,
            incremental=incremental,
        )


def _boots(probed: Probed) -> dict[str, str]:
    """Return the boot-id of each host that said who it is."""
    return {
        name: state.identity.boot_id
        for name, state in probed.fleet.states.items()
        if not isinstance(state.identity, Unknown) and state.identity.boot_id
    }


def _absent(error: RemedyError) -> HostOutcome:
    status = HostStatus.UNREACHABLE if _no_contact(error) else HostStatus.FAILED
    return HostOutcome(status, error=error)


def _no_contact(error: RemedyError) -> bool:
    """Whether the error means that no script ran: no connection, or one that was refused."""
    return error.exit_code == 5 or isinstance(error, RefusedError)


def _not_reached(name: str, run: str) -> HostOutcome:
    error = RemedyError(
        f"{name}: not reached, because more hosts failed before it than apply.max_failures allows",
        next_step=f"Put those right, then go on with this plan: remedy apply INVENTORY --resume {run}",
    )
    return HostOutcome(HostStatus.NOT_REACHED, error=error)


def _refusal(name: str, report: HostReport) -> RemedyError | None:
    if report.reverted:
        return RemedyError(
            f"{name}: a change cut the connection, so the host took it back by itself: {report.reverted}",
            next_step="The host is as it was before that change. Look at the plan: which rule or address "
            "would keep this machine out?",
        )
    if report.error is not None:
        # The host could be looked at afterwards: what failed is the change, not the connection.
        return RemedyError(report.error.message, next_step=report.error.next_step)
    if not report.refused:
        return None
    if report.refused.startswith("LOCKED"):
        return LockedError(
            f"{name}: another run is at work there: {report.refused.removeprefix('LOCKED ')}",
            next_step="Wait for it to end, then run the command again. If it will not end: remedy unlock RUN "
            "INVENTORY, with the run named here.",
        )
    return RemedyError(
        f"{name}: nothing was changed: {report.refused}",
        next_step="Remove the obstacle and run the command again.",
    )
