"""Which hosts stand behind which gateways, as the settings say: a mapping, or a topology file of ClusterShell.

In the tree a host is called by the address that ssh connects to: gateways need not know the names that are to
be repaired.
"""

from __future__ import annotations

import re
import socket
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from remedy.errors import SpecError
from remedy.files import at_home
from remedy.inventory import Inventory, Node
from remedy.text import BracketError, expand, fold, folded, quoted
from remedy.transport.failures import ssh_command

ROOT = "remedy-controller"
"""What this machine is called in the tree; a gateway never connects to it."""

# What an address in the tree may be made of: ClusterShell and ssh read more as operators and options.
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_TERM = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_LIST = re.compile(rf"{_TERM.pattern}(?:,{_TERM.pattern})*")
_STEP = "Correct it; the notation is in docs/connections.md."


@dataclass(frozen=True)
class Branch:
    """Hosts, and the gateways to them; each of the gateways reaches all of the hosts.

    Args:
        gateways: their names.
        hosts: names of the inventory, or further gateways.
    """

    gateways: tuple[str, ...]
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Routes:
    """The tree of gateways to hosts of an inventory.

    Args:
        inventory: all hosts.
        routes: the branches of the tree.
    """

    inventory: Inventory
    routes: tuple[Branch, ...]

    @cached_property
    def gateways(self) -> frozenset[str]:
        """The names of all gateways."""
        return frozenset(name for route in self.routes for name in route.gateways)

    @cached_property
    def behind(self) -> frozenset[str]:
        """The hosts of the inventory that are reached through gateways."""
        return frozenset(
            name for route in self.routes for name in route.hosts if name in self.inventory
        )

    def through(self, host: str) -> tuple[str, ...]:
        """Return the gateways to a host."""
        return self._gateways_of.get(host, ())

    @cached_property
    def _gateways_of(self) -> Mapping[str, tuple[str, ...]]:
        return {name: route.gateways for route in self.routes for name in route.hosts}

    def gateways_behind(self, gateway: str) -> frozenset[str]:
        """Return the gateways that are reached through one."""
        return self._gateways_behind.get(gateway, frozenset())

    @cached_property
    def _gateways_behind(self) -> Mapping[str, frozenset[str]]:
        behind: defaultdict[str, set[str]] = defaultdict(set)
        for name in self.gateways:
            for outer in self.way(name):
                for gateway in outer:
                    behind[gateway].add(name)
        return {name: frozenset(inner) for name, inner in behind.items()}

    def address(self, name: str) -> str:
        """Return what a host or a gateway is called in the tree."""
        return self.inventory.node(name).ssh_address if name in self.inventory else name

    def name(self, address: str) -> str:
        """Return the name of the gateway that has an address in the tree."""
        return next((name for name in self.gateways if self.address(name) == address), address)

    def door(self, gateway: str) -> tuple[str, ...]:
        """Return the words of ssh that lead to a gateway from here, as the inventory says where it has it."""
        if gateway not in self.inventory:
            return (gateway,)
        node = self.inventory.node(gateway)
        return (*_ssh_words(node), node.ssh_address)

    def way(self, name: str) -> tuple[tuple[str, ...], ...]:
        """Return the sets of gateways on the way to a host or a gateway, the outermost first."""
        gateways = self.through(name)
        return (*self.way(gateways[0]), gateways) if gateways else ()

    def typed(self, gateway: str, command: str = "") -> str:
        """Return the ssh with which a user comes to a gateway from here, or has it run a command."""
        text = f" {quoted(command)}" if command else ""
        outer = self.through(gateway)
        if not outer:
            return " ".join(("ssh", *map(quoted, self.door(gateway)))) + text
        line = f"ssh {gateway}"
        if gateway in self.inventory:
            line = ssh_command(self.inventory.node(gateway), is_from_here=False)
        # The shell of each gateway on the way takes one pair of quotes away.
        return self.typed(outer[0], line + text) if text else f"{self.typed(outer[0])} {line}"

    def topology(self, hosts: Collection[str]) -> str:
        """Return the text of a topology file with the ways to some hosts.

        Args:
            hosts: of the inventory, each behind a gateway.
        """
        needed = set(hosts)
        kept: list[tuple[str, str]] = []
        for route in self._from_leaves():
            ends = [name for name in route.hosts if name in needed]
            if ends:
                needed |= set(route.gateways)
                kept.append((self._folded(route.gateways), self._folded(ends)))
        inner = {name for route in self.routes for name in route.hosts}
        first = [name for name in self.gateways if name in needed and name not in inner]
        lines = [f"{ROOT}: {self._folded(first)}", *(f"{a}: {b}" for a, b in reversed(kept))]
        return "\n".join(["[routes]", *lines, ""])

    def _from_leaves(self) -> Iterator[Branch]:
        """Yield the branches, each after those that begin at one of its ends."""
        remaining = list(self.routes)
        while remaining:
            sources = {name for route in remaining for name in route.gateways}
            ready = [route for route in remaining if sources.isdisjoint(route.hosts)]
            if not ready:
                raise _wrong(f"a loop: {fold(sources)} stand behind each other", _STEP)
            yield from ready
            remaining = [route for route in remaining if route not in ready]

    def _folded(self, names: Iterable[str]) -> str:
        return fold(sorted(self.address(name) for name in names))


def read_routes(settings: Mapping[str, str] | str, inventory: Inventory) -> Routes:
    """Return the tree that the settings give.

    Args:
        settings: gateways to hosts, or the path of a topology file.
        inventory: all hosts.

    Raises:
        SpecError: it is no tree, or reaches no host of the inventory.
        InventoryError: it names hosts that the inventory does not have.
    """
    pairs = (
        _of_file(settings, inventory)
        if isinstance(settings, str)
        else _of_mapping(settings, inventory)
    )
    merged: dict[tuple[str, ...], list[str]] = {}
    for gateways, hosts in pairs:
        merged.setdefault(tuple(sorted(gateways)), []).extend(hosts)
    routes = Routes(
        inventory, tuple(Branch(gateways, tuple(hosts)) for gateways, hosts in merged.items())
    )
    if not routes.behind:
        raise _wrong("no host of the inventory stands behind a gateway", _STEP)
    _check(routes)
    return routes


def _of_mapping(
    settings: Mapping[str, str], inventory: Inventory
) -> Iterator[tuple[list[str], list[str]]]:
    for gateways, hosts in settings.items():
        try:
            names = [name for term in _terms(gateways) for name in expand(term)]
        except BracketError as error:
            raise _wrong(f"{gateways}: {error}", "Name gateways as in head[1-2].") from error
        yield names, list(inventory.select((hosts,), "ssh.gateways"))


def _terms(text: str) -> list[str]:
    """Return the names, folded or not, that commas divide.

    Raises:
        BracketError: it is no list of names.
    """
    if not _LIST.fullmatch(text):
        raise BracketError("no list of names")
    return [term.strip() for term in _TERM.findall(text)]


def _of_file(file: str, inventory: Inventory) -> Iterator[tuple[list[str], list[str]]]:
    """Read a topology file of ClusterShell, by ClusterShell itself: its groups of nodes count, too."""
    from ClusterShell.NodeSet import NodeSetException

    path = inventory.path.resolve().parent / at_home(file)
    if not path.is_file():
        raise _wrong(
            f"{path}: there is no such topology file", "Give its path from the inventory's folder."
        )
    here = socket.gethostname().split(".")[0]
    try:
        tree = _tree(path, here)
    except (NodeSetException, OSError, UnicodeDecodeError, ValueError) as error:
        raise _wrong(
            f"{path}: {error}",
            f"It needs a section [routes] with a line that begins at this machine: {here}: GATEWAYS",
        ) from error
    for group in tree:
        for child in group.children():
            if group is not tree.root:
                ends = [n for n in child.nodeset if n in inventory or child.children_len()]
                yield list(group.nodeset), ends


def _tree(path: Path, root: str) -> Any:
    """Return the tree of a topology file.

    Raises:
        ValueError: it is none.
    """
    import warnings

    from ClusterShell.Topology import TopologyError, TopologyParser

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return TopologyParser(str(path)).tree(root)
    except (TopologyError, AssertionError) as error:
        raise ValueError(str(error) or "it is no tree") from error


def _check(routes: Routes) -> None:
    """Refuse what ClusterShell would refuse later, or misread.

    Raises:
        SpecError: with what is wrong.
    """
    ends = [name for route in routes.routes for name in route.hosts]
    twice = [name for name, count in Counter(ends).items() if count > 1]
    if twice:
        stand = "stands" if len(twice) == 1 else "stand"
        raise _wrong(
            f"{folded(twice)} {stand} behind several sets of gateways",
            "Give all gateways to the same hosts as one: {'head[1-2]': 'gpu[001-064]'}.",
        )
    for route in routes.routes:
        both = sorted(set(route.gateways) & set(route.hosts))
        if both:
            raise _wrong(
                f"{fold(both)}: a gateway to itself",
                "Gateways are reached from here; leave them out: 'gpu*!head1'.",
            )
    for name in (*sorted(routes.gateways), *ends):
        address = routes.address(name)
        if not _ADDRESS.fullmatch(address):
            raise _wrong(
                f"{name} has the address {address}, which ClusterShell cannot name",
                "Give it an alias in the ssh_config of this machine and of its gateways.",
            )
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(routes.topology(routes.behind))
        file.flush()
        try:
            _tree(Path(file.name), ROOT)
        except ValueError as error:
            raise _wrong(str(error), _STEP) from error


def _ssh_words(node: Node) -> Iterator[str]:
    """Yield the options of ssh that the inventory asks for."""
    for key, option in (
        ("ssh_config_file", "-F"),
        ("ssh_user", "-l"),
        ("ssh_port", "-p"),
        ("ssh_key", "-i"),
    ):
        value = node.data.get(key)
        if value:
            yield from (option, str(value))
    if node.data.get("ssh_known_hosts_file"):
        yield f"-oUserKnownHostsFile={node.data['ssh_known_hosts_file']}"


def _wrong(reason: str, step: str) -> SpecError:
    return SpecError(f"ssh.gateways: {reason}", next_step=step)
