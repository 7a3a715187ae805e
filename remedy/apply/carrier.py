"""Carrying changes to hosts: each gets one script; what can cut the connection is confirmed."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from remedy.answers import read_answer
from remedy.apply import heads, receipts
from remedy.apply.job import NOT_KEPT, Guard, Job, Once, SecondProbe
from remedy.apply.receipts import Receipts
from remedy.apply.report import (
    ChangeStatus,
    HostReport,
    Settled,
    Unlocked,
    parse_confirmation,
    parse_refusal,
    parse_report,
    parse_settled,
    parse_unlocked,
)
from remedy.apply.script import (
    NOTHING_WHOLE,
    render_changes,
    render_confirm,
    render_look,
    render_rehearsal,
    render_take_back,
    render_undo,
    render_unlock,
)
from remedy.errors import RemedyError, UnreachableError
from remedy.plan import Change, Plan, guarded
from remedy.transport import HostEvent, Listener, Output, Root, Script
from remedy.transport.connections import Transport

# Writing is quick; what can take long is a service that is asked to reload.
APPLY_DEADLINE = 120
CONFIRM_DEADLINE = 30
# The part of a guard's time in which a connection that confirms may begin, and seconds between two of them.
TRYING, PAUSE = 0.25, 1.0
# What a host needs to take its guarded changes back, once its timer has fired.
REVERT_SECONDS = 10

Then = Callable[[str, HostReport], None]
Whole = Callable[[str, tuple[Change, ...]], Mapping[str, bytes]]


def _nothing_whole(_host: str, _changes: tuple[Change, ...]) -> Mapping[str, bytes]:
    return NOTHING_WHOLE


class Carrier:
    """The way of plans to hosts, and of results back.

    Args:
        transport: the connections.
        guard: how changes that can cut them are guarded.
        listener: hears of each host's stages.
        keep_days: after which a host that is changed forgets earlier runs; None for never.
    """

    def __init__(
        self,
        transport: Transport,
        guard: Guard,
        listener: Listener,
        keep_days: int | None = None,
    ) -> None:
        self._keep_days = keep_days
        self._transport = transport
        self._guard = guard
        self._listen = listener

    def make(
        self,
        plan: Plan,
        run: str,
        *,
        by: str = "",
        head: str = "",
        once: Once = NOT_KEPT,
        then: Then | None = None,
        second: SecondProbe | None = None,
        whole: Whole = _nothing_whole,
    ) -> dict[str, HostReport]:
        """Make the changes of a plan on all its hosts, all at once.

        Args:
            plan: what is to be done.
            run: the id of the run.
            by: who does it, "" for the plan's author.
            head: of the journal, for the hosts to keep.
            once: the whole plan, for the hosts to keep.
            then: is called with each host's report when it is settled, while others are still at work.
            second: reads a host whose changes are confirmed, before that.
            whole: returns the new contents of a host's files that are known, by digest.
        """
        job = self._job(run, by or plan.author, head, once)
        changes = {name: guarded(plan.for_host(name)) for name in plan.hosts}

        def render(name: str) -> str:
            steps = changes[name]
            return render_changes(job, steps, plan.blobs, self._guard, whole(name, steps))

        return self._carry(job, render, changes, then, second)

    def take_back(
        self,
        plan: Plan,
        run: str,
        *,
        of: str,
        by: str,
        head: str,
        once: Once = NOT_KEPT,
        then: Then | None = None,
    ) -> dict[str, HostReport]:
        """Take the changes of a run back, from what it left on the hosts.

        Args:
            plan: the changes that take back.
            run: the id of this run.
            of: the run that is taken back.
            by: who does it.
            head: of the journal, for the hosts to keep.
            once: the whole plan, for the hosts to keep.
            then: as for ``make``.
        """
        job = self._job(run, by, head, once)
        changes = {name: guarded(plan.for_host(name)) for name in plan.hosts}

        def render(name: str) -> str:
            return render_undo(job, changes[name], of, self._guard)

        return self._carry(job, render, changes, then)

    def _job(self, run: str, by: str, head: str, once: Once) -> Job:
        return Job(run, secrets.token_hex(8), by, head, self._keep_days, once)

    def look(self, plan: Plan, *, of: str) -> dict[str, HostReport]:
        """See which changes of a run can be taken back; what can is ``SKIPPED`` in the reports."""
        job = Job(run=of, nonce=secrets.token_hex(8), by="")
        return self._ask(job, plan, lambda changes: render_look(job, changes, of))

    def rehearse(self, plan: Plan, run: str) -> dict[str, HostReport]:
        """See which changes of a plan could be made; what could is ``READY`` in the reports."""
        job = Job(run=run, nonce=secrets.token_hex(8), by="")
        return self._ask(job, plan, lambda changes: render_rehearsal(job, changes, self._guard))

    def tell(self, hosts: Iterable[str], head: str) -> dict[str, RemedyError]:
        """Have hosts keep the journal's last record.

        Returns:
            why a host does not keep it; at the end of a run that is no reason to stop.
        """
        script = Script(heads.store(head), CONFIRM_DEADLINE, root=Root.REQUIRED)
        outputs = self._transport.run(dict.fromkeys(hosts, script))
        return {name: output.error for name, output in outputs.items() if output.error is not None}

    def heads(self, hosts: Iterable[str]) -> dict[str, heads.Heads | RemedyError | None]:
        """Return the heads that each host keeps, or why it could not be asked; None as in ``heads.parse``."""
        nonce = secrets.token_hex(8)
        script = Script(heads.question(nonce), CONFIRM_DEADLINE, root=Root.REQUIRED)
        return {
            name: output.error or heads.parse(output.stdout, nonce)
            for name, output in self._transport.run(dict.fromkeys(hosts, script)).items()
        }

    def confirm(self, runs: Mapping[str, str], *, by: str) -> dict[str, Settled]:
        """Confirm guarded changes that earlier runs left; the connection was made after them.

        Args:
            runs: by host, the run whose changes wait there.
            by: who confirms.
        """
        return self._settle(runs, by, render_confirm)

    def take_back_now(self, runs: Mapping[str, str], *, by: str) -> dict[str, Settled]:
        """Have hosts take back at once what the timers of earlier runs would take back.

        Args:
            runs: by host, the run whose changes wait there.
            by: who asks for it.
        """
        return self._settle(runs, by, render_take_back)

    def receipts(self, runs: Mapping[str, str]) -> dict[str, Receipts | RemedyError]:
        """Return what each host noted of a run, or why it could not be asked.

        Args:
            runs: by host, the id of the run.
        """
        nonce = secrets.token_hex(8)
        scripts = {
            name: Script(receipts.question(run, nonce), CONFIRM_DEADLINE, root=Root.REQUIRED)
            for name, run in runs.items()
        }
        return {
            name: output.error or receipts.parse(output.stdout, nonce) or _no_receipts(name)
            for name, output in self._transport.run(scripts).items()
        }

    def _settle(
        self, runs: Mapping[str, str], by: str, render: Callable[[Job], str]
    ) -> dict[str, Settled]:
        """Run on each host a script that settles what a run left there."""
        nonce = secrets.token_hex(8)
        jobs = {name: Job(run=run, nonce=nonce, by=by) for name, run in runs.items()}
        scripts = {
            name: Script(render(job), APPLY_DEADLINE, root=Root.REQUIRED)
            for name, job in jobs.items()
        }
        return {
            name: Settled("unknown", output.error.message)
            if output.error is not None
            else parse_settled(jobs[name], output.stdout)
            for name, output in self._transport.run(scripts).items()
        }

    def unlock(
        self, hosts: Iterable[str], run: str, *, force: bool, by: str
    ) -> dict[str, Unlocked]:
        """Open the lock of a run on ``hosts``; of a run that is at work only with ``force``."""
        job = Job(run=run, nonce=secrets.token_hex(8), by=by)
        text = render_unlock(job, run, force=force)
        script = Script(text, APPLY_DEADLINE, root=Root.REQUIRED)
        return {
            name: Unlocked("unknown", error=output.error)
            if output.error is not None
            else parse_unlocked(job, output.stdout)
            for name, output in self._transport.run(dict.fromkeys(hosts, script)).items()
        }

    def _ask(
        self, job: Job, plan: Plan, render: Callable[[tuple[Change, ...]], str]
    ) -> dict[str, HostReport]:
        """Run on each host of a plan a script that writes nothing, and read what it reports."""
        scripts = {
            name: Script(render(guarded(plan.for_host(name))), APPLY_DEADLINE, root=Root.REQUIRED)
            for name in plan.hosts
        }
        return {
            name: self._report(job, name, plan.for_host(name), output)
            for name, output in self._transport.run(scripts).items()
        }

    def _carry(
        self,
        job: Job,
        render: Callable[[str], str],
        changes: Mapping[str, tuple[Change, ...]],
        then: Then | None,
        second: SecondProbe | None = None,
    ) -> dict[str, HostReport]:
        """Run each host's script, read what it reports of the host's changes, and confirm those."""
        scripts = _Scripts(changes, render)
        reports: dict[str, HostReport] = {}

        def answered(output: Output) -> None:
            # Its timer runs: a host is confirmed when it has answered, whatever others do.
            name = output.host
            report = self._report(job, name, changes[name], output)
            reports.update(self._confirm(job, {name: report}, second))
            if report.changed and not report.armed:
                # Whether somebody still gets in is seen by whoever comes anew, as a confirmation does.
                self._transport.reconnect(name)
            if then is not None:
                then(name, reports[name])

        self._transport.run(scripts, answered, stage="changing")
        return {name: reports[name] for name in changes}

    def _report(
        self, job: Job, name: str, changes: tuple[Change, ...], output: Output
    ) -> HostReport:
        """Read what a script reported of a host's changes, or why it reported too little."""
        report = parse_report(job, changes, output.stdout)
        if report.finished or report.refused:
            return report
        # A connection that broke may have carried the script; a refusal by sudo has not.
        began = read_answer(output.stdout, job.nonce).began or isinstance(
            output.error, UnreachableError
        )
        error = output.error or _overdue(name, changes, report)
        return report.without_answer(error, began=began)

    def _confirm(
        self, job: Job, reports: dict[str, HostReport], second: SecondProbe | None = None
    ) -> dict[str, HostReport]:
        """Tell each host whose timer is armed, over a new connection, that it can still be reached.

        A connection that fails is tried again for a while: sshd may be reading its settings anew just then.
        A host that no confirmation reaches takes its guarded changes back; this waits until it has.
        """
        confirmed = dict(reports)
        waiting = [name for name, report in reports.items() if report.armed]
        script = _confirmation(job, second)
        began = time.monotonic()
        while waiting:
            for name in waiting:
                self._transport.reconnect(name)
                self._listen(HostEvent(name, "confirming"))
            asked_at = time.time_ns()
            outputs = self._transport.run(dict.fromkeys(waiting, script), stage="confirming")
            lost = [n for n in waiting if not parse_confirmation(job, outputs[n].stdout)]
            if second is not None:
                for name in set(waiting).difference(lost):
                    second.take(outputs[name], asked_at)
            again = [
                name
                for name in lost
                if isinstance(outputs[name].error, UnreachableError)
                and time.monotonic() < began + self._guard.seconds * TRYING
            ]
            for name in set(lost).difference(again):
                error = outputs[name].error
                refusal = parse_refusal(job, outputs[name].stdout)
                why = error.message if error else refusal or "no confirmation reached it in time"
                confirmed[name] = replace(reports[name], reverted=why)
            waiting = again
            if waiting:
                time.sleep(PAUSE)
        reverted = [name for name, report in confirmed.items() if report.reverted]
        for name in reverted:
            self._transport.reconnect(name)
            self._listen(HostEvent(name, "reverting"))
        if reverted:
            # Its timer began before this did.
            passed = time.monotonic() - began
            time.sleep(max(self._guard.seconds - passed, 0) + REVERT_SECONDS)
        return confirmed


def _confirmation(job: Job, second: SecondProbe | None) -> Script:
    """Return the script that confirms, and then reads the host where that is asked for."""
    if second is None:
        return Script(render_confirm(job), CONFIRM_DEADLINE, root=Root.REQUIRED)
    deadline = CONFIRM_DEADLINE + second.script.deadline
    return Script(render_confirm(job, second.script.text), deadline, root=Root.REQUIRED)


class _Scripts(Mapping[str, Script]):
    """Scripts of changes, each written when its host is connected: those of a large fleet fill the memory.

    Args:
        hosts: their names.
        render: returns the text of a host.
    """

    def __init__(self, hosts: Iterable[str], render: Callable[[str], str]) -> None:
        self._hosts = tuple(hosts)
        self._render = render

    def __getitem__(self, name: str) -> Script:
        return Script(self._render(name), deadline=APPLY_DEADLINE, root=Root.REQUIRED)

    def __iter__(self) -> Iterator[str]:
        return iter(self._hosts)

    def __len__(self) -> int:
        return len(self._hosts)


def _no_receipts(name: str) -> RemedyError:
    return RemedyError(
        f"{name}: the host did not print its receipts",
        next_step="They are there, in a folder for each run: /var/lib/remedy/runs",
    )


def _overdue(name: str, changes: Sequence[Change], report: HostReport) -> RemedyError:
    """Return why a host reported too little though its connection held: its script was ended there.

    A host makes its changes in their order, and reports each when it is made.
    """
    lost = (c.title for c in changes if report.results[c.id].status is ChangeStatus.LOST)
    title = next(lost, "what comes after the changes")
    return RemedyError(
        f"{name}: the host ended the changes at their deadline, {APPLY_DEADLINE:.0f} s; at work then: {title}",
        next_step="Check the host's load and disk, and whether what that change runs ends there (remedy plan "
        "--commands shows it), then run the command again.",
    )
