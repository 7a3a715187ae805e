"""The hosts that take part in a verification, and what is known of them before it begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from remedy.probe import HostState
from remedy.text import limited
from remedy.values import Record
from remedy.verify.verdict import Culprit


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
    """

    hosts: Sequence[Participant]
    states: Mapping[str, HostState] = field(default_factory=dict)
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)
    curable: frozenset[str] = frozenset()
    inventory: str = "INVENTORY"

    @property
    def known_states(self) -> dict[str, HostState]:
        """The state of each host that takes part; empty where not all of them are known."""
        if any(host.name not in self.states for host in self.hosts):
            return {}
        return {host.name: self.states[host.name] for host in self.hosts}

    def with_facts(self, culprit: Culprit) -> Culprit:
        """Add to a culprit the facts that explain it, and what to do next."""
        facts = tuple(line for host in culprit.hosts for line in self.known.get(host, ()))
        command = "apply" if self.curable.intersection(culprit.hosts) else "check"
        typed = f"remedy {command} {self.inventory} --limit {limited(culprit.hosts)}"
        step = culprit.next_step or typed
        return culprit.model_copy(update={"facts": facts, "next_step": step})
