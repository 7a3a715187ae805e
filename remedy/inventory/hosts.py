"""The hosts of an inventory, as values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from remedy.errors import RemedyError, raise_together
from remedy.files import full_path
from remedy.inventory.selection import selected
from remedy.secret import looks_secret


@dataclass(frozen=True)
class Node:
    """One host of the inventory.

    Args:
        name: its name in the inventory, which is the host name that the machine gets.
        ssh_address: where ssh connects to: ``ssh_hostname`` of the host's data, else the name.
        ssh_port: the port ssh connects to.
        groups: names of the groups the host is in.
        data: the host's data as pyinfra merges it (override, host, groups, all).
    """

    name: str
    ssh_address: str
    ssh_port: int = 22
    groups: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def cluster_address(self) -> str | None:
        """The address given by the inventory for the cluster network, or None."""
        value = self.data.get("cluster_address")
        return None if value is None else str(value)


@dataclass(frozen=True)
class Inventory:
    """All hosts of one inventory file, in the file's order.

    Args:
        source: pyinfra's own inventory object, opaque to everything but the transport.
    """

    path: Path
    nodes: tuple[Node, ...]
    source: Any = field(default=None, compare=False, repr=False)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The host names, in the file's order."""
        return tuple(node.name for node in self.nodes)

    @property
    def home(self) -> Path:
        """The folder ``.remedy`` beside the inventory, where remedy keeps plans, runs and the journal."""
        return self.path.resolve().parent / ".remedy"

    @property
    def full_path(self) -> str:
        """The file as documents name it, whatever folder a command is typed in."""
        return full_path(self.path)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over the hosts: names, addresses, and all data, such as users and interpreters.

        Two inventories that mean the same agree. Secrets are left out: they are how remedy gets in.
        """
        hosts = [[n.name, n.ssh_address, n.ssh_port, _meaning(n.data)] for n in self.nodes]
        text = json.dumps(hosts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def __contains__(self, name: object) -> bool:
        """Say whether a host is called ``name``."""
        return name in self._by_name

    def node(self, name: str) -> Node:
        """Return the node called ``name``; KeyError when there is none."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """The hosts of each group, both in the file's order."""
        names = dict.fromkeys(group for node in self.nodes for group in node.groups)
        return {g: tuple(n.name for n in self.nodes if g in n.groups) for g in names}

    def select(self, texts: Sequence[str], option: str = "--limit") -> tuple[str, ...]:
        """Return the names that any of ``texts`` selects, in the file's order; all where there is no text.

        Args:
            texts: in the notation of ``remedy.inventory.selection``.
            option: which of the command line they are of.

        Raises:
            InventoryError: one of them cannot be read, names what is not in the inventory, or selects nothing.
        """
        if not texts:
            return self.names
        chosen: set[str] = set()
        errors: list[RemedyError] = []
        for text in texts:
            try:
                chosen |= selected(self, text, option)
            except RemedyError as error:
                errors += error.parts or (error,)
        raise_together(errors)
        return tuple(name for name in self.names if name in chosen)


def _meaning(value: object) -> object:
    """Return the data of a host without its secrets, as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(k): _meaning(v) for k, v in value.items() if not looks_secret(str(k))}
    if isinstance(value, list | tuple):
        return [_meaning(item) for item in value]
    is_plain = value is None or isinstance(value, str | int | float | bool)
    return value if is_plain else type(value).__name__
