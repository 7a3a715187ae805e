"""Who calls whom: everybody all others, and in very large fleets some of them, of every group. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

# Above this many hosts they call each other group by group, each group called by one other at a time.
GROUP = 128
# Above this many hosts not every pair is tried: neither a host's script nor its work grows with the fleet.
ALL = 512
# Hosts of each other group that a host calls at least.
FEWEST = 4


@dataclass(frozen=True)
class Calls:
    """The calls among so many hosts, which are numbered, neighbours in the network next to each other.

    Within a group everybody calls all others. Up to ``ALL`` hosts so it is between groups; above, each host
    calls an equal share of every other group, another one in each run. So a host that nobody reaches, or that
    reaches nobody, shows as surely as two groups that do not reach each other; one dead link between groups may
    be overlooked.

    Args:
        count: how many hosts.
        seed: another one, other calls between groups.
    """

    count: int
    seed: str

    @cached_property
    def groups(self) -> Sequence[range]:
        """The numbers of the hosts of each group."""
        groups = max(1, -(-self.count // GROUP))
        size = -(-self.count // groups)
        return [range(at, min(at + size, self.count)) for at in range(0, self.count, size)]

    @cached_property
    def each(self) -> int:
        """How many hosts of every other group a host calls; all of them up to ``ALL`` hosts."""
        if self.count <= ALL:
            return len(self.groups[0])
        return max(FEWEST, (ALL - GROUP) // (len(self.groups) - 1))

    @cached_property
    def links(self) -> int:
        """How many ordered pairs are tried."""
        return sum(len(group) * len(self.order(group[0])) for group in self.groups)

    @cached_property
    def callers(self) -> list[int]:
        """By how many others each host is called."""
        counts = [0] * self.count
        for me in range(self.count):
            for peer in self.order(me):
                counts[peer] += 1
        return counts

    @cached_property
    def peers(self) -> int:
        """How many others each host calls, and is called by, at least."""
        return min(min(self.callers), *(len(self.order(group[0])) for group in self.groups))

    @property
    def missing(self) -> float:
        """The chance that a single dead link between two groups is not tried; 0 where every pair is."""
        own = sum(len(group) * (len(group) - 1) for group in self.groups)
        between = self.count * (self.count - 1) - own
        return 1 - (self.links - own) / between if between else 0.0

    def order(self, me: int) -> list[int]:
        """List whom a host calls, in which order: its own group from the next one on, then group by group.

        Args:
            me: its number.
        """
        at = me // len(self.groups[0])
        called = [
            host for host in _turned(self.groups[at], me - self.groups[at][0] + 1) if host != me
        ]
        for wave in range(1, len(self.groups)):
            other = (at + wave) % len(self.groups)
            called += self._between(at, other, me - self.groups[at][0])
        return called

    def _between(self, at: int, other: int, place: int) -> Sequence[int]:
        """Whom the host at a place of a group calls in another one."""
        group = self.groups[other]
        if len(group) <= self.each:
            return _turned(group, place + 1)
        begin = place + self._turns[at][other]
        return [
            group[(begin + step * len(group) // self.each) % len(group)]
            for step in range(self.each)
        ]

    @cached_property
    def _turns(self) -> list[list[int]]:
        """By how much the calls from each group to each are turned."""
        random = Random(self.seed)  # noqa: S311  (who calls whom is no secret)
        return [[random.randrange(GROUP) for _ in self.groups] for _ in self.groups]


def _turned(group: range, begin: int) -> list[int]:
    """A group, begun somewhere else."""
    begin %= len(group)
    return [*group[begin:], *group[:begin]]
