"""What a command is at, for when it is interrupted: which hosts are at work, and what is known of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from remedy.apply.report import HostReport
from remedy.apply.start import origin
from remedy.audit import Journal
from remedy.errors import RemedyError
from remedy.runs import host
from remedy.text import folded
from remedy.transport import HostEvent

AGAIN = "reading again"
"""The stage of a host that was changed, and confirmed where that is needed, and is looked at once more."""

# What is known of a host whose script was started and whose answer is not recorded, by its last stage. That of
# changing is told before the script is sent: whether it began there only the host knows.
LAST_STEPS: Mapping[str, str] = {
    "connecting": "was being connected to; nothing is known to have begun there",
    "changing": "a script may be at work there, and then ends its changes within two minutes",
    "answered": "its script has ended; its answer is not recorded",
    "confirming": "changed, and not known to be confirmed",
    AGAIN: "changed, and being read again; what it reported is not recorded",
    "reverting": "takes its guarded changes back",
}
SHOW, GO_ON, BACK = "what the hosts noted", "go on", "take it back"
RED = "taken back by run {run}, because the proof of its wave failed; not compared with what was before"
TESTED = "what the verification has at work there ends by itself within half a minute"
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
        resumes: the run that it resumes, "" for none.
        resumed: hosts that this one, or one before it, changed without a proof, while that is made.
        planned: the hosts that the run is to change.
        at_work: those whose changes were begun, and whose results are not recorded yet.
        unproved: those of a wave that was changed, and whose proof has not ended.
        reports: what hosts reported of their changes.
        steps: the last stage of each host.
        requests: hosts that something is asked of beside the changes of a run, or that are waited for: what is
            known of each, and the run that it concerns.
        settled: the same for hosts that were about to change by themselves, and do so no longer.
        journal: of the run, None where it records no end of its own.
        ended: whether the run has come to its end.
        taken_back: hosts of a wave whose proof failed, with the run that took them back.
        tested: hosts on which a verification is at work.
        outer: the run that this one is a part of: it takes a wave of that run back. None for no such run.
        choice: the options that choose the remedies whose changes are taken back; "" for all.
    """

    mode: str = ""
    run: str = ""
    of: str = ""
    resumes: str = ""
    resumed: tuple[str, ...] = ()
    planned: tuple[str, ...] = ()
    at_work: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()
    reports: dict[str, HostReport] = field(default_factory=dict)
    steps: dict[str, str] = field(default_factory=dict)
    requests: dict[str, tuple[str, str]] = field(default_factory=dict)
    settled: dict[str, tuple[str, str]] = field(default_factory=dict)
    journal: Journal | None = None
    ended: bool = False
    taken_back: dict[str, str] = field(default_factory=dict)
    tested: tuple[str, ...] = ()
    outer: Activity | None = None
    choice: str = ""

    def hear(self, event: HostEvent) -> None:
        """Take the next step of one host; where something began, a new connection takes nothing back."""
        if event.stage != "connecting" or event.host not in self.steps:
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
            else "failed"
            if name in self.taken_back
            else self._ended(name)
            if name in self.reports
            else "not reached"
            for name in self.planned
        }

    def _ended(self, name: str) -> str:
        """Return where a host ended that has reported, in a word."""
        return host.reported(name, self.reports[name], inventory="").status.value

    def _of(self, name: str) -> str:
        if name in self.at_work:
            return LAST_STEPS.get(self.steps.get(name, ""), LAST_STEPS["changing"])
        if name in self.taken_back:
            return RED.format(run=self.taken_back[name])
        if name in self.reports:
            status = self._ended(name)
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
    if activity.ended and activity.outer is None:
        words = f"run {activity.run} had ended, and is recorded"
        return Interruption((words,), _commands(activity, inventory)[:1])
    outer = activity.outer
    lines = [] if outer is None else [*_record(outer, signal, code)]
    lines += () if activity.ended else _record(activity, signal, code)
    if outer is not None:
        lines.append(f"run {activity.run} takes a wave of run {outer.run} back, whose proof failed")
    lines += [f"{folded(activity.tested)}: {TESTED}"] if activity.tested else []
    lines += [f"{folded(names)}: {words}" for words, names in _requested(activity).items()]
    if not activity.began:
        commands = (*_resumed_commands(activity, inventory), *_asked_commands(activity, inventory))
        return Interruption((*lines, *_unchanged(activity)), commands)
    lines += [f"{folded(names)}: {words}" for words, names in activity.known().items()]
    for words, names in ({} if outer is None else outer.known()).items():
        others = [name for name in names if name not in activity.planned]
        lines += [f"{folded(others)}: {words}"] if others else []
    waiting = [n for n in activity.at_work if activity.steps.get(n) in ("confirming", "answered")]
    if waiting:
        lines.append(f"{folded(waiting)}: {UNCONFIRMED.format(seconds=guard_seconds)}")
    return Interruption(tuple(lines), _commands(activity, inventory))


def _unchanged(activity: Activity) -> Iterator[str]:
    """Yield what is known where the run has changed nothing yet."""
    rest = "nothing else" if activity.settled or activity.requests else "nothing"
    yield f"{rest} was changed on any host"
    if activity.resumed:
        yield f"{folded(activity.resumed)}: changed before; {NOT_PROVED}"


def _requested(activity: Activity) -> dict[str, list[str]]:
    """Return the hosts that something was asked of beside the changes of a run, by what is known of them."""
    by_words: dict[str, list[str]] = {}
    for name, (words, _) in (*activity.settled.items(), *activity.requests.items()):
        by_words.setdefault(words, []).append(name)
    return by_words


def _asked_commands(activity: Activity, inventory: str) -> tuple[tuple[str, str], ...]:
    """Return the commands that show what became of hosts that something was asked of."""
    asked = (*activity.settled.values(), *activity.requests.values())
    runs = dict.fromkeys(run for _, run in asked)
    show = ((SHOW, f"remedy show {run} --inventory {inventory}") for run in runs)
    if activity.mode == "unlock":
        return (*show, *((GO_ON, f"remedy unlock {run} {inventory}") for run in runs))
    settled = dict.fromkeys(run for _, run in activity.settled.values())
    return (*show, *((BACK, f"remedy rollback {run} {inventory}") for run in settled))


def _resumed_commands(activity: Activity, inventory: str) -> tuple[tuple[str, str], ...]:
    """Return the commands for the run that this one resumed, where this one has changed nothing."""
    run = activity.resumes
    if not run:
        return ()
    return (
        (SHOW, f"remedy show {run} --inventory {inventory}"),
        (GO_ON, f"remedy apply {inventory} --resume {run}"),
        (BACK, f"remedy rollback {run} {inventory}"),
    )


def _commands(activity: Activity, inventory: str) -> tuple[tuple[str, str], ...]:
    """Return the commands that show what happened, go on, and take back."""
    run = activity.run
    show = (SHOW, f"remedy show {run} --inventory {inventory}")
    back = (BACK, f"remedy rollback {run} {inventory}")
    prove = ("prove it", f"remedy verify {inventory}")
    if activity.outer is not None:
        whole = (SHOW, f"remedy show {activity.of} --inventory {inventory}")
        return (whole, show, (GO_ON, f"remedy rollback {activity.of} {inventory}"), back)
    if activity.taken_back:
        return (show, ("see what is left", f"remedy check {inventory}"), back)
    if activity.of:
        words = f"remedy rollback {activity.of} {inventory} {activity.choice}".rstrip()
        return (show, (GO_ON, words), back)
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
