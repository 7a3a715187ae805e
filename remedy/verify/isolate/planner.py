"""The planner: which groups to test in the next round, from all that the rounds before have shown.

1. The whole fleet. Green: done, with one test.
2. Hosts that the failed test itself named are left out, and the rest is tested.
3. Otherwise the rest is screened in groups, all at once, and a hunt starts in each group that fails.
4. What nobody is after any more is tested together, until every two hosts that are not accused were once in
   a group that worked. Only then is nothing left to find.

The tests of a round have no host in common, so that they run at the same time without disturbing each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from remedy.verify.isolate.hunt import Answer, Ask, Span, Steps, confirm, hunt, partner_of
from remedy.verify.isolate.model import Fault, NodeFault, PairFault, Result, Test

# Groups of the first screening: enough that five faults among 232 hosts mostly fall into different ones, and
# few enough that a single fault is not paid for with many tests.
SCREEN = 18
SMALLEST = 4
# A fleet this small is tested pair by pair: there are hardly partners that could be known to be good.
TINY = 4
# The fleet is told as a whole to be broken when this many rounds brought no two hosts that work together.
HOPELESS = 4


class Isolation:
    """One isolation, from the whole fleet to its faults.

    Args:
        hosts: at least two, neighbours in the network next to each other.
        fleet_failed: the whole fleet was tested already, with this result, and failed.
    """

    def __init__(self, hosts: Sequence[str], fleet_failed: Result | None = None) -> None:
        self.hosts = tuple(hosts)
        self.faults: list[Fault] = []
        self.results: list[Result] = []
        self.rounds = 0
        self._place = {host: number for number, host in enumerate(self.hosts)}
        # For each host, as a bit mask, the hosts with which it was in a group that worked.
        self._fine = [1 << number for number in range(len(self.hosts))]
        self._hunts: list[_Hunt] = []
        self._stage = self._fleet
        self._screens = 0
        self._doubted: set[str] = set()
        self._given: dict[Test, _Hunt | None] = {}
        if fleet_failed is not None:
            self._given = {fleet_failed.test: None}
            self.take([fleet_failed])

    @property
    def tests(self) -> int:
        """How many tests were held."""
        return len(self.results)

    @property
    def untested(self) -> tuple[str, ...]:
        """Hosts that are neither accused nor were ever in a group that worked."""
        accused = {host for fault in self.faults for host in fault.hosts}
        return tuple(
            host
            for number, host in enumerate(self.hosts)
            if host not in accused and self._fine[number] == 1 << number
        )

    def next_round(self) -> tuple[Test, ...]:
        """The tests to hold now; none when everything is known."""
        raise NotImplementedError

    def take(self, results: Iterable[Result]) -> None:
        """Take the results of the round."""
        raise NotImplementedError
