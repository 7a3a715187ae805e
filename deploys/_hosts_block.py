"""What the block in the hosts file of each host is to say. Not a remedy: ``hosts_file`` needs it.

Nearly everything in it is the same on all hosts, so it is worked out once a fleet. Only where the address of a
node is not known, or a node was not read, does it depend on what a host has in its file already.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from remedy.deploys._resolution import HOSTS
from remedy.edit.hosts import HostsLine, block_names, lines_naming, managed_block
from remedy.plan import Fleet, once_a_fleet, once_alike
from remedy.probe import File
from remedy.templating import render

# What a host says of itself goes to all others, so it has to look like a name (RFC 1123).
_LONG = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?")
MOST_LONGS = 4


@dataclass(frozen=True)
class HostsEntry:
    """One line of the block: an address, and the names it has."""

    address: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class HostsBlock:
    """The lines that the block is to have, one for each node whose address is known."""

    entries: tuple[HostsEntry, ...]

    @cached_property
    def addresses(self) -> Mapping[str, str]:
        """The address that each name (lower case) is to have."""
        return {name.lower(): entry.address for entry in self.entries for name in entry.names}

    @cached_property
    def text(self) -> bytes:
        """Its lines as they are in the file."""
        return render("hosts_block.j2", entries=self.entries).encode()


@dataclass(frozen=True)
class _Node:
    """A node of the inventory, as far as all hosts have it alike.

    Args:
        name: in the inventory.
        address: of the cluster; None where none could be found.
        guessed: whether a host that has another address for it in its block keeps that.
        short: its name up to the first dot, where nobody else has that; else the whole.
        longs: the fully qualified names that its own file gives it; None where that was not read.
    """

    name: str
    address: str | None
    guessed: bool
    short: str
    longs: tuple[str, ...] | None

    def entry(self, address: str, longs: Iterable[str]) -> HostsEntry:
        """Return its line."""
        return HostsEntry(address, tuple(dict.fromkeys((*longs, self.name, self.short))))


def target(fleet: Fleet, content: bytes) -> HostsBlock:
    """Return the block of a host whose file has this content.

    A node that was not probed (it is down, or ``--limit`` left it out) keeps the entry it has, unless the
    inventory itself says otherwise: the address that ssh uses may not be the one on the cluster network.
    """
    _, open_nodes, block = _alike(fleet)
    return _target(fleet, block_names(content)) if open_nodes else block


def expected(fleet: Fleet) -> bytes:
    """Return the block, with its marks, that hosts have as far as it is known; states need not be."""
    return managed_block(_alike(fleet)[2].text)


@once_alike
def _target(fleet: Fleet, present: Mapping[str, HostsLine]) -> HostsBlock:
    """Return the block of the hosts that have these lines in theirs."""
    entries, open_nodes, block = _alike(fleet)
    kept = {
        number: entry
        for number in open_nodes
        if (entry := _kept(fleet, _nodes(fleet)[number], present)) not in (None, entries[number])
    }
    if not kept:
        return block
    lines = (kept.get(number, entry) for number, entry in enumerate(entries))
    return HostsBlock(tuple(line for line in lines if line is not None))


def _kept(fleet: Fleet, node: _Node, present: Mapping[str, HostsLine]) -> HostsEntry | None:
    """Return the line of a node that a host has in its block already, where that is to stay."""
    line = present.get(node.name.lower())
    if line is None:
        return None
    address = line.address if node.guessed or node.address is None else node.address
    longs = _longs(fleet, node.name, (line,)) if node.longs is None else node.longs
    return node.entry(address, longs)


@once_a_fleet
def _alike(fleet: Fleet) -> tuple[Sequence[HostsEntry | None], Sequence[int], HostsBlock]:
    """Return the line of each node, the numbers of those that a host may have otherwise, and the block."""
    nodes = _nodes(fleet)
    entries = [
        None if node.address is None else node.entry(node.address, node.longs or ())
        for node in nodes
    ]
    open_nodes = [
        number
        for number, node in enumerate(nodes)
        if node.address is None or node.guessed or node.longs is None
    ]
    return entries, open_nodes, HostsBlock(tuple(entry for entry in entries if entry is not None))


@once_a_fleet
def _nodes(fleet: Fleet) -> Sequence[_Node]:
    shorts = Counter(name.split(".")[0].lower() for name in fleet.inventory.names)
    return [_node(fleet, name, shorts) for name in fleet.inventory.names]


def _node(fleet: Fleet, name: str, shorts: Mapping[str, int]) -> _Node:
    state = fleet.states.get(name)
    file = None if state is None else state.file(HOSTS)
    short = name.split(".")[0]
    return _Node(
        name,
        fleet.addresses[name].address,
        guessed=state is None and fleet.inventory.node(name).cluster_address is None,
        short=short if shorts[short.lower()] == 1 else name,
        longs=_longs(fleet, name, lines_naming(name.lower(), file.content))
        if isinstance(file, File)
        else None,
    )


def _longs(fleet: Fleet, name: str, lines: Iterable[HostsLine]) -> tuple[str, ...]:
    """Return the fully qualified names that lines of a file give ``name``, without those of other nodes."""
    known = _known(fleet)
    longs = dict.fromkeys(_long_forms(name.lower(), lines))
    return tuple(long for long in list(longs)[:MOST_LONGS] if long not in known)


@once_a_fleet
def _known(fleet: Fleet) -> frozenset[str]:
    return frozenset(name.lower() for name in fleet.inventory.names)


def _long_forms(name: str, lines: Iterable[HostsLine]) -> Iterator[str]:
    """Yield the fully qualified names of ``name`` (lower case).

    The first name of a line is the canonical one that getfqdn() and `hostname -f` return: it must not change
    because the line moves into the block. Peers need it too: with c10d's rendezvous, rank 0 tells them its
    getfqdn() as MASTER_ADDR (PyTorch 2.13, elastic/rendezvous/api.py).
    """
    for line in lines:
        if name in line.names:
            for long in line.names:
                if long.startswith(f"{name}.") and _LONG.fullmatch(long):
                    yield long
