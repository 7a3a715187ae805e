"""The heads of journals that a host keeps: storing one there, and asking for all of them."""

from __future__ import annotations

import shlex

from remedy.answers import read_block
from remedy.apply.script import ROOT

HEADS = f"{ROOT}/heads"
MARK = "remedy-heads"
# A host keeps one line a run; those of years ago are compared as well, up to this many.
LINES = 1000


def store(head: str) -> str:
    """Return the sh text that has a host keep a head; run as root."""
    line, path = shlex.quote(head), shlex.quote(HEADS)
    both = f"{path} {shlex.quote(HEADS.rpartition('/')[0])}"  # the first line makes the file
    return f"printf '%s\\n' {line} >>{path} && {{ sync -- {both} 2>/dev/null || sync; }}\n"


def question(nonce: str) -> str:
    """Return the sh text that prints the heads of a host; run as root."""
    path, mark = shlex.quote(HEADS), f"{MARK} {nonce}"
    read = f"if [ -e {path} ]; then tail -n {LINES} {path}; fi"
    return f"echo {mark} begin; {read} && echo {mark} end\n"


def parse(stdout: str, nonce: str) -> tuple[str, ...] | None:
    """Return the heads that a host printed, the oldest first; None where it did not print all of them."""
    block = read_block(stdout, nonce, MARK, ("begin",))
    return tuple(block.text.splitlines()) if block is not None and block.complete else None
