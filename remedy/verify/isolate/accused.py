"""What is accused: hosts, and pairs of hosts that are not."""

from __future__ import annotations

from remedy.verify.isolate.evidence import Evidence
from remedy.verify.isolate.model import Fault


class Accused:
    """The faults that were found.

    Attributes:
        faults: all of them, in the order in which they were found.
    """

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    @property
    def hosts(self) -> set[str]:
        """The hosts that are accused as a whole."""
        return {fault.hosts[0] for fault in self.faults if fault.is_host}

    @property
    def pairs(self) -> list[frozenset[str]]:
        """The pairs."""
        return [frozenset(fault.hosts) for fault in self.faults if not fault.is_host]

    def partners_of(self, host: str) -> set[str]:
        """Return the hosts with which one is known not to work, though both are good."""
        return {end for pair in self.pairs if host in pair for end in pair}

    def explains(self, fault: Fault) -> bool:
        """Say whether a fault is nothing new: a broken way of a broken host is nothing of its own."""
        return fault in self.faults or not self.hosts.isdisjoint(fault.hosts)

    def add(self, fault: Fault, evidence: Evidence) -> None:
        """Add what was found.

        Args:
            fault: a host or a pair.
            evidence: a host that is broken with several and was seen to work with nobody is broken as a whole.
        """
        for host in fault.hosts:
            if self.partners_of(host) and not evidence.good(host):
                fault = Fault((host,))
        if fault.is_host:
            self.faults = [known for known in self.faults if fault.hosts[0] not in known.hosts]
        self.faults.append(fault)

    def withdraw(self, fault: Fault) -> None:
        """Take an accusation back."""
        self.faults.remove(fault)
