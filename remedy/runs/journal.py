"""What the hosts keep of runs and of the journal: asked for, and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from remedy.apply.receipts import Receipts
from remedy.apply.start import new_run_id, origin
from remedy.audit import Journal, Story, witness
from remedy.audit.agreement import read_agreed
from remedy.audit.journal import FILE_NAME
from remedy.errors import RemedyError
from remedy.runs.session import Session
from remedy.text import counted


@dataclass(frozen=True)
class HostWords:
    """What hosts of a session say of a run or of the journal.

    Args:
        words: by host, also of those that could not be asked.
        errors: why those could not be asked.
        replaced: hosts that keep nothing, since a different machine answers there than the one that was
            changed, and the last run that changed that one.
    """

    words: Mapping[str, str]
    errors: Mapping[str, RemedyError]
    replaced: Mapping[str, str] = field(default_factory=dict)


def ask_receipts(session: Session, story: Story) -> HostWords:
    """Return, in words, what each host of a session noted of a run that was to change it.

    Args:
        session: the hosts.
        story: of the run.
    """
    runs = {name: story.run for name in session.hosts if name in story.planned}
    with session.progress.stage(f"Asking {counted(len(runs), 'host')}"):
        answers = session.carrier.receipts(runs)
    machines = machines_of(session, story)
    words = {name: _in_words(answer, machines.get(name, "")) for name, answer in answers.items()}
    return HostWords(words, _errors(answers))


def _errors(answers: Mapping[str, object]) -> dict[str, RemedyError]:
    return {name: answer for name, answer in answers.items() if isinstance(answer, RemedyError)}


def _in_words(answer: Receipts | RemedyError, machine: str) -> str:
    """Return what a host noted of a run, where it is the machine that the run was to change.

    Args:
        answer: of the host that answers now.
        machine: what stands for the machine-id of the one that was to be changed; "" where that is unknown.
    """
    if isinstance(answer, RemedyError):
        return f"not read: {answer.message}"
    if machine and answer.machine and answer.machine != machine:
        return (
            "not read: a different machine answers there now than the one that this run was to change (it has "
            "a different machine-id); only that one has the receipts"
        )
    if not (machine and answer.machine):
        return (
            f"{answer.summary} (whether it is the machine that the run was to change is not known)"
        )
    return answer.summary


def machines_of(session: Session, story: Story) -> Mapping[str, str]:
    """Return what stands for the machine-id of each host that a run was to change, by the plan that is kept.

    A rollback changes the machines of the run that it takes back.
    """
    stories, seen = session.stories(), set[str]()
    current: Story | None = story
    while current is not None and current.run not in seen:
        seen.add(current.run)
        try:
            plan = read_agreed(session.home, current)
        except RemedyError:
            return {}
        if plan.machines or not current.of:
            return plan.machines
        current = stories.get(current.of)
    return {}


def compare_journal(session: Session) -> HostWords:
    """Ask each host of a session which records of the journal it keeps.

    Returns:
        for each host what does not agree, "" where everything does; and why some were not compared. Runs that
        changed the machine that was there before are no matter of the one that answers now.
    """
    path = session.home / FILE_NAME
    known, location = witness.hashes(path), witness.place(session.home)
    stories = session.stories()
    machines = cache(lambda run: machines_of(session, stories[run]))
    with session.progress.stage(f"Asking {counted(len(session.hosts), 'host')}"):
        heads_by_host = session.carrier.heads(session.hosts)
    problems: dict[str, str] = {}
    replaced: dict[str, str] = {}
    for name, heads in heads_by_host.items():
        if isinstance(heads, RemedyError):
            problems[name] = f"not compared: {heads.message}"
            continue
        runs = [s.run for s in stories.values() if "done" in s.results.get(name, {}).values()]
        lines = heads.lines if heads else None
        absent = witness.absent(lines or (), runs) if heads and heads.machine else []
        gone = [
            run
            for run in absent
            if heads and machines(run).get(name, heads.machine) != heads.machine
        ]
        problems[name] = witness.judge(lines, known, location, [r for r in runs if r not in gone])
        if gone and not lines:
            replaced[name] = gone[-1]
    return HostWords(problems, _errors(heads_by_host), replaced)


def accept_journal(session: Session, forgotten: Mapping[str, str]) -> dict[str, RemedyError]:
    """Have hosts go on with the journal as it is, although they remember another, or more of it.

    What they remembered stays on them, and is in the record that this writes.

    Args:
        session: the hosts.
        forgotten: by host, what the journal does not have.

    Returns:
        why a host does not keep the new record.
    """
    run = new_run_id()
    journal = Journal(session.home, run=run, mode="accept")
    head = journal.write("accepted", by=origin().author, hosts=dict(forgotten))
    return session.carrier.tell(forgotten, witness.words(head, session.home, run))
