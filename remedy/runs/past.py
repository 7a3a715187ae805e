"""Runs of before: going on with one, taking it back, opening its lock, and whether it is as recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from remedy.apply.carrier import Carrier
from remedy.apply.report import HostReport, Unlocked
from remedy.apply.start import origin
from remedy.audit import Head, Journal, Story, agreement, read_stories, witness
from remedy.audit.journal import FILE_NAME
from remedy.audit.survival import Survival, survival
from remedy.errors import RemedyError, UsageError
from remedy.inventory import Inventory
from remedy.plan import Change, Plan
from remedy.probe import HostState
from remedy.transport import Transport


class Past:
    """The runs of one inventory.

    Args:
        inventory: the hosts; the journal is beside it.
        transport: runs scripts on hosts.
        carrier: brings changes to hosts.
    """

    def __init__(self, inventory: Inventory, transport: Transport, carrier: Carrier) -> None:
        self._inventory = inventory
        self._transport = transport
        self._carrier = carrier

    def undoing(self, run: str, hosts: Iterable[str]) -> Plan:
        """Return the plan that takes a run back on ``hosts``: what it made there, last change first.

        Raises:
            UsageError: there is no such run.
            PlanFileError: the run's plan is not here or cannot be read.
            StaleError: it is not the plan that the journal names.
        """
        story = self._story(run)
        if story.mode not in ("apply", "rollback"):
            raise UsageError(
                f"{run} is a {story.mode}, which changed no host, so there is nothing to take back",
                next_step="remedy history INVENTORY lists the runs.",
            )
        return agreement.undoing(self.plan_of(run).restricted(hosts), story, origin())

    def irreversible(self, run: str, hosts: Iterable[str]) -> tuple[Change, ...]:
        """Return what a run changed on ``hosts`` and nothing takes back."""
        return agreement.irreversible(self.plan_of(run).restricted(hosts), self._story(run))

    def conflicts(self, plan: Plan, of: str) -> dict[str, HostReport]:
        """See, changing nothing, where a plan that takes run ``of`` back meets what it does not expect."""
        return self._carrier.explain(plan, self._carrier.look(plan, of=of), of=of)

    def rollback(self, plan: Plan, *, run: str, of: str) -> dict[str, HostReport]:
        """Take a run back, from the pre-images that it left on the hosts.

        An object that somebody changed since is left alone and reported as stale. The rollback is a run like
        any other: it is in the journal, and can be taken back.

        Args:
            plan: what ``undoing`` gave.
            run: the id of the rollback.
            of: the run that is taken back.

        Raises:
            RemedyError: the journal cannot be written; then nothing is taken back.
        """
        home = self._inventory.home
        agreed = agreement.Agreement(plan, of=of)
        journal = Journal(home, run=run, mode="rollback")
        journal.write("planned", **agreed.record(plan, waves=1))
        agreement.keep(agreed, home, run)
        head = journal.write("began", hosts=list(plan.hosts))
        reports = self._carrier.take_back(
            plan, run, of=of, by=plan.author, head=witness.words(head, home, run)
        )
        journal.write("changed", hosts={name: report.record() for name, report in reports.items()})
        return self._carrier.explain(plan, reports, of=of)

    def ended(
        self, run: str, exit_code: int, hosts: Mapping[str, str], reports: Mapping[str, HostReport]
    ) -> None:
        """Record how a rollback ended.

        Args:
            run: its id.
            exit_code: of the command.
            hosts: where each host ended.
            reports: what the hosts said.
        """
        journal = Journal(self._inventory.home, run=run, mode="rollback")
        head = journal.write("ended", exit_code=exit_code, hosts=dict(hosts))
        self.tell(reports, head, run)

    def tell(self, reports: Mapping[str, HostReport], head: Head, run: str) -> None:
        """Have a few of the hosts that a run changed keep its last record.

        Args:
            reports: what the hosts said.
            head: the record.
            run: its id.
        """
        changed = [name for name, report in reports.items() if report.finished and report.changed]
        some = changed[: witness.LAST_WITNESSES]
        self._carrier.tell(some, witness.words(head, self._inventory.home, run))

    def unlock(self, run: str, hosts: Iterable[str], *, force: bool) -> dict[str, Unlocked]:
        """Open the lock of a run on ``hosts``, and record that; of one that is at work only with ``force``.

        Raises:
            RemedyError: the journal cannot be written; then nothing is opened.
        """
        by = origin().author
        journal = Journal(self._inventory.home, run=run, mode="unlock")
        journal.write("unlocking", by=by, force=force)
        found = self._carrier.unlock(hosts, run, force=force, by=by)
        journal.write("unlocked", by=by, hosts={name: one.state for name, one in found.items()})
        return found

    def plan_of(self, run: str) -> Plan:
        """Return the plan that a run carried out, on the hosts where it did.

        Raises:
            UsageError: there is no such run.
            PlanFileError: its plan is not here or cannot be read.
            StaleError: its plan is not the one that the journal names.
        """
        story = self._story(run)
        return agreement.read_agreed(self._inventory.home, story).restricted(story.used)

    def unfinished(self, run: str) -> tuple[Plan, tuple[str, ...]]:
        """Return the whole plan of a run, and the hosts that neither it nor a run that went on with it settled.

        Raises:
            UsageError: there is no such run, or it is none that can be gone on with.
            StaleError: its plan is not the one that the journal names.
        """
        told = read_stories(self._inventory.home / FILE_NAME)
        story = self._story(run)
        if story.mode != "apply":
            raise UsageError(
                f"{run} is a {story.mode}, and only an apply can be gone on with",
                next_step="remedy history INVENTORY lists the runs.",
            )
        plan = agreement.read_agreed(self._inventory.home, story)
        settled = {
            host
            for other in told.values()
            if other.mode == "apply" and other.digest == plan.digest
            for host in other.planned
            if host not in other.unfinished
        }
        return plan, tuple(host for host in story.planned if host not in settled)

    def survival(
        self, states: Mapping[str, HostState], plan: Plan, hosts: Sequence[str]
    ) -> dict[str, Survival]:
        """Return for each host whether it booted since its last run, and what did not survive that."""
        runs = read_stories(self._inventory.home / FILE_NAME).values()
        return survival(runs, states, plan, hosts)

    def witnesses(self, hosts: Iterable[str]) -> dict[str, str]:
        """Compare the journal with what the hosts were told of it.

        Returns:
            for each host what does not agree, "" where all does.
        """
        path = self._inventory.home / FILE_NAME
        known, here = witness.hashes(path), witness.place(self._inventory.home)
        runs = read_stories(path).values()
        result = {}
        for name, heads in self._carrier.heads(hosts).items():
            changed = [
                story.run for story in runs if "done" in story.results.get(name, {}).values()
            ]
            result[name] = (
                f"it could not be asked: {heads.message}"
                if isinstance(heads, RemedyError)
                else witness.judge(heads, known, here, changed)
            )
        return result

    def _story(self, run: str) -> Story:
        story = read_stories(self._inventory.home / FILE_NAME).get(run)
        if story is None:
            raise UsageError(
                f"the journal of {self._inventory.path.name} knows no run {run!r}",
                next_step="remedy history INVENTORY lists the runs.",
            )
        return story
