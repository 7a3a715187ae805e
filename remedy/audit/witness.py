"""What the hosts know of the journal: each was told, when it was changed, which record came last.

A journal that somebody wrote anew has a whole chain, and other records than those that the hosts were told of.
"""

from __future__ import annotations

import hashlib
import shlex
import socket
from collections.abc import Collection, Mapping
from pathlib import Path

from remedy.audit.journal import Head, read_records

HEADS = "/var/lib/remedy/heads"
MARK = "remedy-heads"
# A host keeps one line a run; what it was told years ago is compared as well, up to this many.
LINES = 1000
# So many hosts are told the last record of a run as well, when all is done: one command each, side by side. Who
# would change that record unnoticed has to be root on all of them.
LAST_WITNESSES = 3


def words(head: Head, home: Path, run: str) -> str:
    """Return a head as a host keeps it: the journal, the record, where the journal lies, and the run."""
    return f"{head.journal} {head.seq} {head.hash} {place(home)} {run}"


def place(home: Path) -> str:
    """Return a short name of the folder that a journal lies in, on this machine."""
    text = f"{socket.gethostname()}:{home.resolve()}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def question() -> str:
    """Return the sh text that prints what a host was told; run as root."""
    place = shlex.quote(HEADS)
    read = f"if [ -e {place} ]; then tail -n {LINES} {place}; fi"
    return f"echo {MARK} begin; {read} && echo {MARK} end\n"


def statement(told: str) -> str:
    """Return the sh text that has a host keep a head (``words``); run as root on one that a run changed."""
    line, place = shlex.quote(told), shlex.quote(HEADS)
    return f"printf '%s\\n' {line} >>{place} && {{ sync -- {place} 2>/dev/null || sync; }}\n"


def hashes(path: Path) -> Mapping[int, str]:
    """Return the hash of every record of a journal."""
    return {record.number: str(record.body.get("hash")) for record in read_records(path)}


def judge(answer: str, known: Mapping[int, str], here: str, runs: Collection[str]) -> str:
    """Compare what a host was told with the journal.

    Args:
        answer: what the host printed.
        known: the hash of every record of the journal.
        here: the ``place`` of the journal.
        runs: those that changed this host, as the journal has it.

    Returns:
        "", or what does not agree. Records of journals that lie elsewhere say nothing of this one.
    """
    lines = answer.splitlines()
    if f"{MARK} begin" not in lines or f"{MARK} end" not in lines:
        return "the host did not say what it was told"
    told = [line.split(" ") for line in lines[lines.index(f"{MARK} begin") + 1 :]]
    heads = [words for words in told if len(words) == 5 and words[1].isdigit()]
    for journal, number, claimed, where, run in heads:
        seq = int(number)
        if journal != known.get(0):
            if where == here:
                return f"run {run} told it of another journal that lay here, so this one was begun anew"
        elif seq not in known:
            return f"run {run} told it of record {seq}, and the journal ends with {max(known)}"
        elif known[seq] != claimed:
            return f"record {seq} is not the one that run {run} told it of"
    unheard = [run for run in runs if run not in {words[4] for words in heads}]
    if unheard:
        return f"it knows nothing of run {unheard[0]}, which changed it as the journal has it"
    return ""
