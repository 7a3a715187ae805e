"""The heads of journals that a host keeps: storing one there, and asking for all of them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from remedy.answers import read_block
from remedy.apply.script import ROOT
from remedy.plan.identities import machine_mark

HEADS = f"{ROOT}/heads"
MARK = "remedy-heads"
# A host keeps one line a run; those of years ago are compared as well, up to this many.
LINES = 1000


@dataclass(frozen=True)
class Heads:
    """What a host keeps of journals.

    Args:
        machine: what stands for the machine-id of the host (``machine_mark``); "" where it has none.
        lines: the heads, the oldest first.
    """

    machine: str
    lines: tuple[str, ...]


def store(head: str) -> str:
    """Return the sh text that has a host keep a head; run as root."""
    line, path = shlex.quote(head), shlex.quote(HEADS)
    both = f"{path} {shlex.quote(HEADS.rpartition('/')[0])}"  # the first line makes the file
    return f"printf '%s\\n' {line} >>{path} && {{ sync -- {both} 2>/dev/null || sync; }}\n"


def question(nonce: str) -> str:
    """Return the sh text that prints which machine a host is, and the heads that it keeps; run as root."""
    path, mark = shlex.quote(HEADS), f"{MARK} {nonce}"
    read = f"if [ -e {path} ]; then tail -n {LINES} {path}; fi"
    machine = 'id=; read -r id </etc/machine-id; echo "$id"'
    return f"echo {mark} begin; {machine}; {read} && echo {mark} end\n"


def parse(stdout: str, nonce: str) -> Heads | None:
    """Return what a host printed; None where it did not print all of it."""
    block = read_block(stdout, nonce, MARK, ("begin",))
    if block is None or not block.complete:
        return None
    machine, *lines = block.text.splitlines() or [""]
    return Heads(machine_mark(machine.strip()) if machine.strip() else "", tuple(lines))
