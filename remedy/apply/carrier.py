"""Carrying changes to hosts: pyinfra brings each its script; what can cut the connection is confirmed."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import replace

from remedy.apply.script import (
    Guard,
    HostReport,
    Job,
    parse_confirmation,
    parse_report,
    render_changes,
    render_confirm,
    render_undo,
)
from remedy.errors import RemedyError, UnreachableError
from remedy.plan import Change, Plan, inverse
from remedy.transport import HostEvent, Listener, Root, Script, Transport

# Writing is quick; what can take long is a service that is asked to reload.
APPLY_DEADLINE = 120
CONFIRM_DEADLINE = 30
# What a host needs to take its guarded changes back, once its timer has fired.
REVERT_SECONDS = 10


class Carrier:
    """Brings plans to hosts and reads what became of them.

    Args:
        transport: the connections.
        guard: how changes that can cut them are guarded.
        listener: is told of each host's stages.
    """

    def __init__(self, transport: Transport, guard: Guard, listener: Listener) -> None:
        self._transport = transport
        self._guard = guard
        self._listen = listener

    def make(self, plan: Plan, run: str, *, by: str = "", head: str = "") -> dict[str, HostReport]:
        """Make the changes of a plan on all its hosts, all at once.

        Args:
            plan: what is to be done.
            run: the id of the run.
            by: who does it, "" for the plan's author.
            head: what the hosts shall keep of the journal.
        """
        job = Job(run=run, nonce=secrets.token_hex(8), by=by or plan.author, head=head)
        texts = {
            name: render_changes(job, plan.for_host(name), plan.blobs, self._guard)
            for name in plan.hosts
        }
        return self._carry(job, texts, {name: plan.for_host(name) for name in plan.hosts})

    def take_back(self, plan: Plan, run: str, *, by: str) -> dict[str, HostReport]:
        """Take the changes of a run back on all hosts of its plan, from what it left there."""
        job = Job(run=run, nonce=secrets.token_hex(8), by=by)
        texts = {name: render_undo(job, plan.for_host(name), self._guard) for name in plan.hosts}
        return self._carry(job, texts, {name: inverse(plan.for_host(name)) for name in plan.hosts})

    def _carry(
        self, job: Job, texts: Mapping[str, str], changes: Mapping[str, tuple[Change, ...]]
    ) -> dict[str, HostReport]:
        """Have pyinfra carry each host's script, and read what it says of the host's changes."""
        from remedy.apply.carry import plan_deploy  # needs pyinfra, which only this step does

        scripts = {
            name: Script(text, deadline=APPLY_DEADLINE, root=Root.REQUIRED)
            for name, text in texts.items()
        }
        reports = {}
        for name, output in self._transport.carry(plan_deploy, scripts).items():
            report = parse_report(job, changes[name], output.stdout)
            if not report.finished and not report.refused:
                # A connection that broke may have carried the script; a refusal by sudo has not.
                began = job.nonce in output.stdout or isinstance(output.error, UnreachableError)
                report = report.without_answer(output.error or _overdue(name), began=began)
            reports[name] = report
        return self._confirm(job, reports)

    def _confirm(self, job: Job, reports: dict[str, HostReport]) -> dict[str, HostReport]:
        """Tell each host whose timer is armed, over a new connection, that it can still be reached.

        A host that cannot be told takes its guarded changes back; this waits until it has.
        """
        armed = [name for name, report in reports.items() if report.armed]
        for name in armed:
            self._transport.reconnect(name)
            self._listen(HostEvent(name, "confirming"))
        script = Script(render_confirm(job), deadline=CONFIRM_DEADLINE, root=Root.REQUIRED)
        confirmed = dict(reports)
        for name, output in self._transport.run(dict.fromkeys(armed, script)).items():
            if parse_confirmation(job, output.stdout):
                continue
            why = output.error.message if output.error else "it was not told in time"
            confirmed[name] = replace(reports[name], reverted=why)
        lost = [name for name, report in confirmed.items() if report.reverted]
        for name in lost:
            self._transport.reconnect(name)
            self._listen(HostEvent(name, "reverting"))
        if lost:
            time.sleep(self._guard.seconds + REVERT_SECONDS)
        return confirmed


def _overdue(name: str) -> RemedyError:
    return RemedyError(
        f"{name}: the host ended the changes at their deadline",
        next_step="Look at the host's load and disk, then run the command again.",
    )
