"""Simulated fleets: hosts, faults, and what a test of a group of them would show.

The oracle of the isolation's property tests, and what its benchmark counts tests in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from remedy.verify.isolate.model import Fault, Test, TestResult


@dataclass
class SimulatedFleet:
    """Hosts, of which some are broken.

    Args:
        hosts: their names.
        faults: what is broken, in truth.
        telling: how likely it is that a failed test names one of its faults: 0 is one bit a test.
        lying: how likely it is that a failed test names a host that has nothing to do with it.
        wrong: how likely it is that a test passes that should fail, or fails that should pass.
        random: decides what is told.
    """

    hosts: tuple[str, ...]
    faults: tuple[Fault, ...]
    telling: float = 0.0
    random: Random = field(default_factory=lambda: Random(0))  # noqa: S311  (reproducible on purpose)
    lying: float = 0.0
    wrong: float = 0.0
    tests: int = 0

    def run(self, test: Test) -> TestResult:
        """What the test would show."""
        self.tests += 1
        if self.wrong and self.random.random() < self.wrong:
            return self._wrong(test)
        broken = [fault for fault in self.faults if fault.breaks(test.hosts)]
        if test.purpose == "links":
            dead = {link for fault in broken for link in _links(fault, test.hosts)}
            return TestResult(test, not broken, unanswered=frozenset(dead))
        faults = [fault for fault in broken if self.random.random() < self.telling]
        missing = {f.hosts[0] for f in faults if f.is_host}
        unanswered = {(f.hosts[0], f.hosts[1]) for f in faults if not f.is_host}
        if broken and self.random.random() < self.lying:
            missing.add(self.random.choice(test.hosts))
            unanswered.add((test.hosts[0], self.random.choice(test.hosts[1:])))
        return TestResult(test, not broken, frozenset(missing), frozenset(unanswered))

    def _wrong(self, test: Test) -> TestResult:
        """The opposite of what is so, with nothing that names anybody."""
        return TestResult(test, any(fault.breaks(test.hosts) for fault in self.faults))


def _links(fault: Fault, hosts: Sequence[str]) -> set[tuple[str, str]]:
    """The directions between two hosts that a fault closes."""
    host, peer = hosts
    if fault.direction == "one-way":
        return {(fault.hosts[0], fault.hosts[1])}
    return {(host, peer), (peer, host)}


def fleet(
    size: int, nodes: int, pairs: int = 0, seed: int = 0, telling: float = 0.0, one_way: float = 0.5
) -> SimulatedFleet:
    """A fleet with so many broken hosts and broken pairs, all of them disjoint.

    Args:
        size: how many hosts.
        nodes: how many are broken.
        pairs: how many pairs are.
        seed: another one, another fleet.
        telling: see ``SimulatedFleet``.
        one_way: the share of pairs that are broken in one direction alone.
    """
    random = Random(seed)  # noqa: S311
    hosts = tuple(f"gpu{number:04}" for number in range(size))
    drawn = random.sample(hosts, nodes + 2 * pairs)
    faults: list[Fault] = [Fault((host,)) for host in drawn[:nodes]]
    for number in range(pairs):
        near, far = drawn[nodes + 2 * number : nodes + 2 * number + 2]
        faults.append(
            Fault((near, far), "one-way")
            if random.random() < one_way
            else Fault((min(near, far), max(near, far)), "both")
        )
    return SimulatedFleet(hosts, tuple(faults), telling, random)
