"""What a firewall's module is asked, and what it proposes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from remedy.firewall.spans import Spans, address_ranges, port_texts
from remedy.plan.change import FindingKind
from remedy.plan.workbench import Command
from remedy.text import listed

Way: TypeAlias = Literal["in", "out"]

COMMENT = "remedy"
"""The mark of remedy's rules, where a firewall can carry a comment."""


@dataclass(frozen=True)
class Side:
    """Hosts and ports of one direction; without a host there is no rule.

    Args:
        way: "in" from the hosts to ports of this host, "out" to the hosts, on ports of theirs.
        hosts: their addresses.
        ports: the ports.
    """

    way: Way
    hosts: Spans = ()
    ports: Spans = ()

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that stand for exactly this."""
        return _digest(self)


@lru_cache(maxsize=64)
def _digest(side: Side) -> str:
    hosts, ports = address_ranges(side.hosts), port_texts(side.ports, "-")
    text = f"{'' if side.way == 'in' else 'out '}{','.join(hosts)} {','.join(ports)}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Opening:
    """Who may open TCP connections to which ports of this host, and to whom this host may open them.

    Args:
        sources: who may connect to this host; () for no rule.
        ports: the ports of this host.
        targets: to whom this host may connect; () for no rule.
        target_ports: their ports.
    """

    sources: Spans = ()
    ports: Spans = ()
    targets: Spans = ()
    target_ports: Spans = ()

    @property
    def incoming(self) -> Side:
        """What it says of connections to this host."""
        return Side("in", self.sources, self.ports)

    @property
    def outgoing(self) -> Side:
        """What it says of connections from this host."""
        return Side("out", self.targets, self.target_ports)

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both."""
        return self.incoming, self.outgoing


def opening_of(sides: Iterable[Side]) -> Opening:
    """Return the opening of one side or two."""
    opening = Opening()
    for side in sides:
        if side.way == "in":
            opening = replace(opening, sources=side.hosts, ports=side.ports)
        else:
            opening = replace(opening, targets=side.hosts, target_ports=side.ports)
    return opening


def accepted(sides: Iterable[Side]) -> str:
    """Return what rules for these sides let through, in words; that they let nothing through, where they do."""
    texts = []
    for side in sides:
        hosts, ports = listed(address_ranges(side.hosts)), ", ".join(port_texts(side.ports, "-"))
        if side.hosts and side.way == "in":
            texts.append(f"accepts TCP from {hosts} to ports {ports} of this host")
        elif side.hosts:
            texts.append(f"accepts TCP from this host to {hosts}, ports {ports}")
    return "; ".join(texts) or "takes remedy's own rules out"


@dataclass(frozen=True)
class FileStep:
    """A file that gets another content."""

    title: str
    path: str
    content: bytes


@dataclass(frozen=True)
class CommandStep:
    """A command between two looks; ``writes``: the files that it writes by itself.

    ``restarts``: the service that reads its rules again, "" for none.
    """

    title: str
    command: Command
    writes: tuple[str, ...] = ()
    disrupts: str = ""
    restarts: str = ""


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
