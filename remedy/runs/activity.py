"""What a command is at, for when it is interrupted: which hosts are at work, and what is known of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from remedy.apply.report import HostReport
from remedy.apply.start import origin
from remedy.audit import Journal
from remedy.errors import RemedyError
from remedy.runs import host
from remedy.text import fold
from remedy.transport import HostEvent

# What is known of a host whose script was started and whose answer is not recorded, by its last stage.
LAST_STEPS: Mapping[str, str] = {
    "connecting": "was being connected to; nothing is known to have begun there",
    "changing": "a script is at work there: it ends its changes within two minutes",
    "answered": "its script has ended; its answer is not recorded",
    "confirming": "changed, and not known to be confirmed",
    "reverting": "takes its guarded changes back",
}
SHOW, GO_ON = "what the hosts noted", "go on"
NOT_PROVED = "the proof of its wave did not end"
UNCONFIRMED = (
    "what is guarded there is taken back in {seconds} s, unless the next apply confirms it"
)


@dataclass
class Activity:
    """What a command is at; the command itself keeps it up to date.

    Args:
        mode: of the run, "" where none has begun that is recorded.
        run: its id.
        of: the run that it takes back, "" for none.
        planned: the hosts that the run is to change.
        at_work: those whose changes were begun, and whose results are not recorded yet.
        unproved: those of a wave that was changed, and whose proof has not ended.
        reports: what hosts reported of their changes.
        steps: the last stage of each host.
        requests: hosts that something is asked of beside the changes of a run, or that are waited for: what is
            known of each, and the run that it concerns.
        settled: what was done about hosts that were about to change by themselves, a sentence a host.
        journal: of the run, None where it records no end of its own.
        ended: whether the run has come to its end.
    """

    mode: str = ""
    run: str = ""
    of: str = ""
    planned: tuple[str, ...] = ()
    at_work: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()
    reports: dict[str, HostReport] = field(default_factory=dict)
    steps: dict[str, str] = field(default_factory=dict)
    requests: dict[str, tuple[str, str]] = field(default_factory=dict)
    settled: list[str] = field(default_factory=list)
    journal: Journal | None = None
    ended: bool = False

    def hear(self, event: HostEvent) -> None:
        """Take the next step of one host."""
        self.steps[event.host] = event.stage

    @property
    def began(self) -> bool:
        """Whether a change was, or may have been, made on a host."""
        return bool(self.at_work or self.reports)

    def known(self) -> dict[str, list[str]]:
        """Return the hosts of the run by what is known of each."""
        words: dict[str, list[str]] = {}
        for name in self.planned:
            words.setdefault(self._of(name), []).append(name)
        return words

    def statuses(self) -> dict[str, str]:
        """Return where each host ended, in a word, as the journal has it."""
        return {
            name: "not known"
            if name in self.at_work
            else host.reported(name, self.reports[name]).status.value
            if name in self.reports
            else "not reached"
            for name in self.planned
        }

    def _of(self, name: str) -> str:
        if name in self.at_work:
            return LAST_STEPS.get(self.steps.get(name, ""), LAST_STEPS["changing"])
        if name in self.reports:
            status = host.reported(name, self.reports[name]).status.value
            return f"{status}; {NOT_PROVED}" if name in self.unproved else status
        return "not begun"


@dataclass(frozen=True)
class Interruption:
    """What is to be known when a command was interrupted.

    Args:
        lines: what it was at, and what is known of the hosts.
        commands: that go on, take back, or show more, each with what it does.
    """

    lines: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]


def interrupted(
    activity: Activity, *, signal: str, code: int, inventory: str, guard_seconds: int
) -> Interruption:
    """Record that a run was interrupted, and return what its user has to know.

    Args:
        activity: what the command was at.
        signal: its name.
        code: the exit code of the command.
        inventory: as it is typed.
        guard_seconds: after which a host takes guarded changes back.
    """
    if activity.ended:
        words = f"run {activity.run} had ended, and is recorded"
        return Interruption((words,), _commands(activity, inventory)[:1])
    lines = [*_record(activity, signal, code)]
    lines += activity.settled
    by_words: dict[str, list[str]] = {}
    for name, (words, _) in activity.requests.items():
        by_words.setdefault(words, []).append(name)
    lines += [f"{fold(names)}: {words}" for words, names in by_words.items()]
    if not activity.began:
        rest = "nothing else" if activity.settled or activity.requests else "nothing"
        lines.append(f"{rest} was changed on any host")
        return Interruption(tuple(lines), _asked_commands(activity, inventory))
    lines += [f"{fold(names)}: {words}" for words, names in activity.known().items()]
    waiting = [n for n in activity.at_work if activity.steps.get(n) in ("confirming", "answered")]
    if waiting:
        lines.append(f"{fold(waiting)}: {UNCONFIRMED.format(seconds=guard_seconds)}")
    return Interruption(tuple(lines), _commands(activity, inventory))


def _asked_commands(activity: Activity, inventory: str) -> tuple[tuple[str, str], ...]:
    """Return the commands that show what became of hosts that something was asked of."""
    runs = dict.fromkeys(run for _, run in activity.requests.values())
    show = ((SHOW, f"remedy show {run} --inventory {inventory}") for run in runs)
    again = ((GO_ON, f"remedy unlock {run} {inventory}") for run in runs)
    return (*show, *(again if activity.mode == "unlock" else ()))


def _commands(activity: Activity, inventory: str) -> tuple[tuple[str, str], ...]:
    """Return the commands that show what happened, go on, and take back."""
    run = activity.run
    show = (SHOW, f"remedy show {run} --inventory {inventory}")
    back = ("take it back", f"remedy rollback {run} {inventory}")
    prove = ("prove it", f"remedy verify {inventory}")
    if activity.of:
        return (show, (GO_ON, f"remedy rollback {activity.of} {inventory}"), back)
    if activity.at_work or set(activity.planned) - set(activity.reports):
        go_on = (GO_ON, f"remedy apply {inventory} --resume {run}")
        # What was not proved is proved before more hosts are changed in the same way.
        return (show, prove, go_on, back) if activity.unproved else (show, go_on, back)
    return (show, prove, back)


def _record(activity: Activity, signal: str, code: int) -> tuple[str, ...]:
    """Record the end of the run; one that cannot be recorded is no reason to say less."""
    if activity.journal is None:
        return ()
    try:
        activity.journal.write(
            "ended",
            by=origin().author,
            exit_code=code,
            interrupted=signal,
            converged=None,
            proved=None,
            hosts=activity.statuses(),
            boots={},
        )
    except RemedyError as error:
        return (f"run {activity.run}: its end is not recorded: {error.message}",)
    return (f"run {activity.run}: recorded as interrupted",)
