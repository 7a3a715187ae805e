"""The hosts as witnesses of the journal: when a host is changed, it keeps the head of the journal.

A journal that somebody wrote anew has a whole chain, and other records than those on the hosts.
"""

from __future__ import annotations

import hashlib
import re
import socket
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from remedy.audit.journal import FILE_NAME, Head, pick_hashes, read_records, verify_chain
from remedy.text import is_number

# So many hosts keep the last record of a run as well, when all is done: one command each, side by side. Who
# would change that record unnoticed has to be root on all of them.
LAST_WITNESSES = 3

_DIGEST = re.compile(r"[0-9a-f]{64}")


def words(head: Head, home: Path, run: str) -> str:
    """Return a head as a host keeps it: the journal, the record, where the journal lies, and the run."""
    return f"{head.journal} {head.seq} {head.hash} {place(home)} {run}"


def place(home: Path) -> str:
    """Return a short name of the folder that a journal lies in, on this machine."""
    text = f"{socket.gethostname()}{home.resolve()}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def hashes(path: Path) -> Mapping[int, str]:
    """Return the hash of every record of a journal."""
    return {record.number: str(record.body.get("hash")) for record in read_records(path)}


def lines_of(home: Path) -> str:
    """Return by what a host knows its lines about the journal in a folder: the first record, or the place."""
    first = pick_hashes(home / FILE_NAME, ()).get(0, "")
    return f"^{first} | {place(home)} " if _DIGEST.fullmatch(first) else f" {place(home)} "


def forgotten(heads: Mapping[str, str], home: Path) -> dict[str, str]:
    """Compare the last record that each host keeps with the journal, as it is now.

    Each record holds the hash of the one before, so that the last one vouches for all before it.

    Args:
        heads: by host, the last line of this journal or its folder, "" where it keeps none.
        home: the folder of the journal.

    Returns:
        for each host that remembers what the journal does not have, what that is.
    """
    kept = {name: head for name, head in heads.items() if head}
    numbers = {int(head.split(" ")[1]) for head in kept.values()}
    known, location = pick_hashes(home / FILE_NAME, numbers), place(home)
    problems = {name: judge([head], known, location, ()) for name, head in kept.items()}
    return {name: problem for name, problem in problems.items() if problem}


def vouching(heads: Mapping[str, str], home: Path, number: int) -> frozenset[str]:
    """Return the hosts that vouch for a record: they keep it, or a later one that follows from it.

    Args:
        heads: as for ``forgotten``.
        home: the folder of the journal.
        number: of the record. Nobody vouches for it in a journal whose chain is broken.
    """
    if verify_chain(home / FILE_NAME)[1]:
        return frozenset()
    lines = {name: head.split(" ") for name, head in heads.items()}
    kept = {n: words for n, words in lines.items() if len(words) == 5 and is_number(words[1])}
    known = pick_hashes(home / FILE_NAME, {int(words[1]) for words in kept.values()})
    return frozenset(
        name
        for name, (journal, seq, claimed, *_) in kept.items()
        if int(seq) >= number and journal == known.get(0) and claimed == known.get(int(seq))
    )


def judge(
    heads: Collection[str] | None, hashes: Mapping[int, str], location: str, runs: Collection[str]
) -> str:
    """Compare the heads that a host keeps with the journal.

    Args:
        heads: as the host keeps them; None where it did not print them.
        hashes: the hash of every record of the journal.
        location: the ``place`` of the journal.
        runs: those that changed this host, as the journal has it.

    Returns:
        "", or what does not agree. Records of journals that lie elsewhere say nothing of this one.
    """
    if heads is None:
        return "the host did not print which records it keeps"
    for journal, number, claimed, where, run in _records(heads):
        seq = int(number)
        if journal != hashes.get(0):
            if where == location:
                return f"run {run} is of another journal in this folder: that was removed, or rewritten"
        elif seq not in hashes:
            return f"run {run} left record {seq} on it, and the journal ends with {max(hashes)}"
        elif hashes[seq] != claimed:
            return f"record {seq} is not the one that run {run} left on it"
    missing = absent(heads, runs)
    if missing:
        return f"run {missing[0]}, which changed it as the journal has it, left no record on it"
    return ""


def absent(heads: Iterable[str], runs: Iterable[str]) -> list[str]:
    """Return the runs of which a host keeps no head, in their order."""
    kept = {words[4] for words in _records(heads)}
    return [run for run in runs if run not in kept]


def _records(heads: Iterable[str]) -> list[list[str]]:
    """Return the words of each head that is whole."""
    lines = [line.split(" ") for line in heads]
    return [words for words in lines if len(words) == 5 and is_number(words[1])]
