"""Hosts that are about to change by themselves: no plan is made and no verdict given over one of them.

A controller that was killed can leave a script at work on a host, or changes that the host takes back unless
somebody confirms them. The next command settles that first. ``decide`` says how, ``settle`` does it: it waits,
confirms what is part of its own plan, or has the rest taken back. What it did is in the notes and the journal.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from remedy.apply.carrier import APPLY_DEADLINE
from remedy.apply.report import Settled
from remedy.apply.start import origin
from remedy.audit import Journal, Story
from remedy.audit.agreement import read_agreed
from remedy.audit.presence import is_at_work
from remedy.errors import RemedyError
from remedy.plan import Plan
from remedy.probe import Guards, PendingGuard, RunAtWork
from remedy.runs.probe import ProbeResult, read_hosts
from remedy.runs.session import Session
from remedy.text import counted
from remedy.values import Unknown

# A host ends a script of changes within this.
SCRIPT_SECONDS = APPLY_DEADLINE + 10
# For the run of somebody else, who may be at it for long, and for everything together.
FOREIGN_SECONDS, MOST_SECONDS = 20.0, 240.0
# Between two probes of hosts that are waited for: at first, and later.
NAP, LONGEST_NAP = 1.0, 5.0


class Purpose(enum.Enum):
    """What the hosts are settled for."""

    READ = (
        "read"  # a plan, a verification, a rehearsal: nothing is changed on a host, also not sooner
    )
    APPLY = "apply"
    ROLL_BACK = "rollback"


class Means(enum.Enum):
    """How a host is settled."""

    WAIT = "wait"
    CONFIRM = "confirm"
    TAKE_BACK = "take back"
    LEAVE = "leave"  # and refuse it, with the reason


# What is known of a host that was asked, and has not answered yet.
ASKED: Mapping[Means, str] = {
    Means.CONFIRM: "was asked to keep the changes of run {run} that wait there; its answer is not known",
    Means.TAKE_BACK: "was asked to take the changes of run {run} back that wait there; its answer is not known",
}


@dataclass(frozen=True)
class Case:
    """What the decision about one host rests on.

    Args:
        guards: what is about to change it.
        purpose: of the command.
        cut_off: whether the run is one of this journal, and its controller is gone.
        agrees: whether the changes that wait are what the command wants.
        waited: seconds that the command has waited already.
        retried: whether it was confirmed or taken back already, and that was of no use.
    """

    guards: Guards
    purpose: Purpose
    cut_off: bool = False
    agrees: bool = False
    waited: float = 0.0
    retried: bool = False


def decide(case: Case) -> Means:
    """Decide how a host is settled."""
    if case.waited > MOST_SECONDS:
        return Means.LEAVE
    if case.guards.at_work is not None:
        return _of_run(case, case.guards.at_work)
    if case.guards.pending is not None:
        return _of_guard(case, case.guards.pending)
    return Means.LEAVE


def _of_run(case: Case, run: RunAtWork) -> Means:
    """Wait for a script that is at work; one that is past its deadline does not end by itself."""
    most = MOST_SECONDS if case.cut_off else FOREIGN_SECONDS
    in_time = run.seconds <= SCRIPT_SECONDS and case.waited <= most
    return Means.WAIT if in_time else Means.LEAVE


def _of_guard(case: Case, guard: PendingGuard) -> Means:
    """Confirm or take back what is of a run of this journal that was cut off; wait for what is not."""
    ours = case.cut_off or not guard.attended
    if case.purpose is not Purpose.READ and ours:
        if case.retried:
            return Means.LEAVE
        return Means.CONFIRM if case.agrees and case.purpose is Purpose.APPLY else Means.TAKE_BACK
    if not guard.attended or (guard.seconds or 0.0) + case.waited > MOST_SECONDS:
        return Means.LEAVE
    return Means.WAIT


@dataclass(frozen=True)
class SettledHosts:
    """Hosts that no longer change by themselves.

    Args:
        result: the hosts as they were read; one that still is about to change has an error there.
        notes: what was done about the others.
        intervened: whether something was confirmed or taken back for that.
    """

    result: ProbeResult
    notes: tuple[str, ...] = ()
    intervened: bool = False


def settle(
    session: Session, result: ProbeResult, purpose: Purpose, plan: Plan | None = None
) -> SettledHosts:
    """Wait until no host is about to change by itself, and confirm or take back what keeps it from that.

    Args:
        session: the hosts.
        result: the hosts as they were read.
        purpose: of the command.
        plan: that is carried out; None where it is made from what the hosts are.
    """
    if not result.unsettled:
        return SettledHosts(result)
    title = f"Settling {counted(len(result.unsettled), 'host')}"
    with session.progress.stage(title):
        return _Settling(session, purpose, plan).settled(result)


class _Settling:
    """One command's way to hosts that are settled.

    Args:
        session, purpose, plan: as for ``settle``.
    """

    def __init__(self, session: Session, purpose: Purpose, plan: Plan | None) -> None:
        self._session = session
        self._purpose = purpose
        self._plan = plan
        self._began = time.monotonic()
        self._tried: set[str] = set()
        self._waited_for: dict[str, str] = {}
        self._notes: list[str] = []

    @cached_property
    def _stories(self) -> Mapping[str, Story]:
        return self._session.stories()

    def settled(self, result: ProbeResult) -> SettledHosts:
        """Go on until nothing is left that can be done."""
        nap = NAP
        while result.unsettled:
            self._session.activity.requests = {
                name: (error.message.removeprefix(f"{name}: "), run_of(guards_of(result, name)))
                for name, error in result.errors.items()
                if name in result.unsettled
            }
            means = {name: self._means(name, result) for name in result.unsettled}
            hosts = {kind: [n for n, mean in means.items() if mean is kind] for kind in Means}
            if len(hosts[Means.LEAVE]) == len(means):
                break
            self._act(hosts[Means.CONFIRM], Means.CONFIRM, result)
            self._act(hosts[Means.TAKE_BACK], Means.TAKE_BACK, result)
            if hosts[Means.WAIT]:
                self._wait(hosts[Means.WAIT], result, nap)
                nap = min(nap * 1.5, LONGEST_NAP)
            again = [name for name, mean in means.items() if mean is not Means.LEAVE]
            result = result.updated(read_hosts(self._session, again))
        self._session.activity.requests.clear()
        self._after_waiting(result)
        return SettledHosts(result, tuple(self._notes), intervened=bool(self._tried))

    def _means(self, name: str, result: ProbeResult) -> Means:
        guards = guards_of(result, name)
        run = run_of(guards)
        story = self._stories.get(run)
        cut_off = story is not None and not is_at_work(self._session.home, run)
        case = Case(
            guards,
            self._purpose,
            cut_off=cut_off,
            agrees=story is not None and self._agrees(name, story, result),
            waited=time.monotonic() - self._began,
            retried=name in self._tried,
        )
        return decide(case)

    def _agrees(self, name: str, story: Story, result: ProbeResult) -> bool:
        """Whether what waits on a host is what this command wants there.

        That is so for a run of the same plan, and where a plan made over the host as it is now leaves all that
        the guarded changes concern alone.
        """
        if self._purpose is not Purpose.APPLY or story.mode != "apply":
            return False
        if self._plan is not None:
            return self._plan.digest == story.digest
        try:
            agreed = read_agreed(self._session.home, story)
        except RemedyError:
            return False
        guarded = {change.remedy for change in agreed.for_host(name) if change.guarded}
        remaining = result.with_unsettled.plan.for_host(name)
        return bool(guarded) and not guarded & {change.remedy for change in remaining}

    def _act(self, hosts: Iterable[str], means: Means, result: ProbeResult) -> None:
        """Confirm or take back on hosts, and record it before and after."""
        pending = {name: guards_of(result, name).pending for name in hosts}
        runs = {name: guard.run for name, guard in pending.items() if guard is not None}
        if not runs:
            return
        by, carrier = origin().author, self._session.carrier
        journals = {run: self._journal(run) for run in dict.fromkeys(runs.values())}
        for run, journal in journals.items():
            on = [name for name in runs if runs[name] == run]
            journal.write("settling", by=by, means=means.value, hosts=on)
        self._tried |= set(runs)
        asked = self._session.activity.requests
        asked |= {name: (ASKED[means].format(run=run), run) for name, run in runs.items()}
        confirming = means is Means.CONFIRM
        answers = (carrier.confirm if confirming else carrier.take_back_now)(runs, by=by)
        for run, journal in journals.items():
            states = {name: answers[name].state for name in runs if runs[name] == run}
            journal.write("settled", by=by, hosts=states)
        for name, answer in answers.items():
            guard = pending[name]
            assert guard is not None, "only hosts where something waits are settled"
            words = settled_words(guard, answer)
            self._notes.append(f"{name}: {words}")
            self._session.activity.settled[name] = words, guard.run
            asked.pop(name)

    def _journal(self, run: str) -> Journal:
        story = self._stories.get(run)
        return Journal(self._session.home, run=run, mode=story.mode if story else "settle")

    def _wait(self, hosts: Iterable[str], result: ProbeResult, nap: float) -> None:
        """Wait a while, not longer than until the first timer fires."""
        for name in hosts:
            self._waited_for.setdefault(name, run_of(guards_of(result, name)))
        pending = [guards_of(result, name).pending for name in hosts]
        timers = [guard.seconds for guard in pending if guard is not None and guard.seconds]
        time.sleep(max(nap, min(timers)) if timers and len(timers) == len(pending) else nap)

    def _after_waiting(self, result: ProbeResult) -> None:
        """Note how the runs ended that were waited for, by the receipts of their hosts."""
        over = {n: run for n, run in self._waited_for.items() if n in result.fleet.states}
        if not over:
            return
        seconds = time.monotonic() - self._began
        for name, receipts in self._session.carrier.receipts(over).items():
            words = receipts.message if isinstance(receipts, RemedyError) else receipts.summary
            self._notes.append(f"{name}: waited {seconds:.0f} s for run {over[name]}: {words}")


def guards_of(result: ProbeResult, name: str) -> Guards:
    """Return what is about to change a host that is unsettled."""
    guards = result.unsettled[name].guards
    assert not isinstance(guards, Unknown), "a host is unsettled by what is known"
    return guards


def run_of(guards: Guards) -> str:
    """Return the run that is about to change a host."""
    cause = guards.at_work or guards.pending
    return cause.run if cause is not None else ""


def settled_words(guard: PendingGuard, answer: Settled) -> str:
    """Return how changes ended that waited on a host, in words."""
    changes = fold_titles(guard.titles)
    words = {
        "confirmed": "confirmed, since they are part of this plan and a new connection works",
        "reverted": "taken back before anything else",
        "gone": "no longer waited, so nothing was done",
    }
    outcome = words.get(answer.state, f"still wait: {answer.detail or answer.state}")
    return f"changes of run {guard.run} waited for a confirmation ({changes}): {outcome}"


def fold_titles(titles: Iterable[str]) -> str:
    """Return the titles of changes in words."""
    names = list(dict.fromkeys(titles))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more if names else "titles not known"
