"""The hosts that take part in a verification, and what is known of them before it begins."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from remedy.probe import HostState
from remedy.text import expand, folded, limited
from remedy.values import Record
from remedy.verify.verdict import Culprit

# The option with one word of a shell, as `shlex.quote` makes it.
_LIMIT = re.compile(r""" --limit (?:'[^']*'|"[^"]*"|[^\s'"])+""")


class Participant(Record):
    """A host that is to take part: its name, its cluster address, and how many GPUs it has (0: none).

    Args:
        python: an interpreter that the inventory names.
    """

    name: str
    address: str
    gpus: int = 0
    python: str | None = None


@dataclass(frozen=True)
class Participants:
    """What is known of the hosts that take part.

    Args:
        hosts: in the order of the ranks.
        states: what the probe read.
        known: by host, what is known to be wrong with it, in words.
        curable: hosts that a plan would change.
        inventory: its file's name, for the commands that are recommended.
        groups: the hosts of each group of the inventory.
    """

    hosts: Sequence[Participant]
    states: Mapping[str, HostState] = field(default_factory=dict)
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)
    curable: frozenset[str] = frozenset()
    inventory: str = "INVENTORY"
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def known_states(self) -> dict[str, HostState]:
        """The state of each host that takes part; empty where not all of them are known."""
        if any(host.name not in self.states for host in self.hosts):
            return {}
        return {host.name: self.states[host.name] for host in self.hosts}

    def with_facts(self, culprit: Culprit) -> Culprit:
        """Add to a culprit the facts that explain it, and what to do next.

        Where a plan would change its hosts, that is to apply it. Elsewhere ``check`` says no more than stands
        here, so the next step looks closer, beside hosts that are not accused. Of several hosts each fact
        names its own.
        """
        several = len(culprit.hosts) > 1
        known = tuple(
            f"{host}: {line}" if several else line
            for host in culprit.hosts
            for line in self.known.get(host, ())
        )
        if not known and culprit.hosts and self.states:
            known = (f"check found nothing wrong on {folded(culprit.hosts)} before the test",)
        curable = [host for host in culprit.hosts if host in self.curable]
        step = culprit.next_step or (
            f"{apply_step(self.inventory)}{limited(curable)}"
            if curable
            else self.closer(culprit.hosts)
        )
        return culprit.model_copy(update={"facts": (*culprit.facts, *known), "next_step": step})

    def closer(self, hosts: Sequence[str]) -> str:
        """Return the command that looks closer at hosts, and compares them with others.

        Args:
            hosts: that are accused; none where nobody is.
        """
        names = [host.name for host in self.hosts]
        chosen = list(hosts) or names[:2]
        others = [name for name in names if name not in chosen]
        sound = others[: max(1, 3 - len(chosen))]
        return f"remedy verify {self.inventory} --limit {limited([*chosen, *sound])} --explain"


def apply_step(inventory: str) -> str:
    """Return the command that changes hosts, up to their names."""
    return f"remedy apply {inventory} --limit "


def hosts_of_step(step: str) -> list[str]:
    """Return the hosts behind the ``--limit`` of a command, as ``limited`` wrote them."""
    words = shlex.split(step)
    if "--limit" not in words[:-1]:
        return []
    names = words[words.index("--limit") + 1]
    return expand(names) if "[" in names else names.split(",")


def shortened(step: str, every: Collection[str]) -> str:
    """Return a command without its ``--limit`` where that names every host of the inventory.

    Args:
        step: the command.
        every: the hosts of the inventory.
    """
    named = set(hosts_of_step(step))
    return _LIMIT.sub("", step, count=1) if named and named.issuperset(every) else step
