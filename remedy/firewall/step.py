"""What a firewall's module is asked, and what it proposes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

from remedy.firewall.spans import Spans, address_ranges, port_texts
from remedy.plan.change import FindingKind
from remedy.plan.workbench import Command

COMMENT = "remedy"
"""The mark of remedy's rules, where a firewall can carry a comment."""


@dataclass(frozen=True)
class Opening:
    """Who may open TCP connections to which ports; without a source, nobody, and no rule is left."""

    sources: Spans = ()
    ports: Spans = ()

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that stand for exactly this opening."""
        return _digest(self)


@lru_cache(maxsize=64)
def _digest(opening: Opening) -> str:
    sources, ports = address_ranges(opening.sources), port_texts(opening.ports, "-")
    return hashlib.sha256(f"{','.join(sources)} {','.join(ports)}".encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Path:
    """The way of a packet from a peer: the interface it comes in by and the address it goes to, if known."""

    interface: str | None = None
    address: str | None = None


@dataclass(frozen=True)
class FileStep:
    """A file that gets another content."""

    title: str
    path: str
    content: bytes


@dataclass(frozen=True)
class CommandStep:
    """A command between two looks; ``writes``: the files that it writes by itself."""

    title: str
    command: Command
    writes: tuple[str, ...] = ()
    disrupts: str = ""


@dataclass(frozen=True)
class Note:
    """Something that the user has to know: what cannot be done, is not known, or is worth knowing."""

    kind: FindingKind
    title: str
    evidence: tuple[str, ...] = ()
    fix: str = ""


@dataclass(frozen=True)
class Amendment:
    """How a firewall comes to hold exactly an opening.

    Args:
        present: what remedy's own rules in force let in now; None where there are none.
        steps: what is to do; empty when it holds the opening, now and after a reboot.
        notes: what stands in the way.
        independent: whether each step helps without the others; else none is done where one cannot be.
    """

    present: Opening | None = None
    steps: tuple[FileStep | CommandStep, ...] = ()
    notes: tuple[Note, ...] = ()
    independent: bool = False
