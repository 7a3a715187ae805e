"""``remedy audit verify --hosts``: compare the journal with what the hosts keep of it."""

from __future__ import annotations

from remedy.audit import witness
from remedy.audit.journal import FILE_NAME
from remedy.errors import RemedyError
from remedy.runs.session import Session
from remedy.text import counted


def compare_journal(session: Session) -> dict[str, str]:
    """Ask each host of a session which records of the journal it keeps.

    Returns:
        for each host what does not agree, "" where everything does.
    """
    path = session.home / FILE_NAME
    known, location = witness.hashes(path), witness.place(session.home)
    stories = session.stories().values()
    with session.progress.stage(f"Asking {counted(len(session.hosts), 'host')}"):
        heads_by_host = session.carrier.heads(session.hosts)
    problems = {}
    for name, heads in heads_by_host.items():
        if isinstance(heads, RemedyError):
            problems[name] = f"not compared: {heads.message}"
            continue
        runs = [s.run for s in stories if "done" in s.results.get(name, {}).values()]
        problems[name] = witness.judge(heads, known, location, runs)
    return problems
