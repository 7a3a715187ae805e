"""What isolation speaks of: tests, their results, and the two kinds of faults."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Way = tuple[str, str]
"""From one host to another: the direction in which a connection is opened."""

Purpose = Literal["fleet", "rest", "screen", "half", "cross", "confirm", "seek", "ways"]


@dataclass(frozen=True)
class Test:
    """A group of hosts that are to work together, apart from all others.

    Args:
        hosts: at least two.
        purpose: "fleet" is everybody; "rest" everybody who is not suspected; "screen" one of many groups;
            "half" a part of a group that failed; "cross" one host with a part of others that work together;
            "confirm" a suspect with a partner that is known to be good; "seek" two hosts that might be good
            partners; "ways" two hosts, of which
            both directions are to be told apart.
    """

    __test__ = False  # not a test of pytest's

    hosts: tuple[str, ...]
    purpose: Purpose


@dataclass(frozen=True)
class Result:
    """What came of a test.

    Args:
        test: which one.
        passed: whether the group worked; a group of which nothing was heard did not.
        missing: hosts that the group itself said were not there. A hint, never a proof.
        unanswered: ways of which a host said that nobody answered. A hint as well, but for "ways", where
            they are the answer.
    """

    test: Test
    passed: bool
    missing: frozenset[str] = frozenset()
    unanswered: frozenset[Way] = frozenset()


@dataclass(frozen=True)
class NodeFault:
    """A host that works with nobody."""

    host: str

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that the fault concerns."""
        return (self.host,)

    def breaks(self, hosts: Iterable[str]) -> bool:
        """Whether a group of these hosts fails because of it."""
        return self.host in hosts

    def __str__(self) -> str:
        return self.host


@dataclass(frozen=True)
class PairFault:
    """Two hosts that work with others, but not with each other.

    Args:
        source: where the connection is opened that fails.
        target: where it leads.
        direction: "one-way" where only this direction fails, "both" where each does, "unknown" where it could
            not be told; then source and target are in no order.
    """

    source: str
    target: str
    direction: Literal["one-way", "both", "unknown"] = field(default="unknown")

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that the fault concerns."""
        return (self.source, self.target)

    def breaks(self, hosts: Iterable[str]) -> bool:
        """Whether a group of these hosts fails because of it."""
        return {self.source, self.target} <= set(hosts)

    def __str__(self) -> str:
        arrow = "->" if self.direction == "one-way" else "<->"
        return f"{self.source} {arrow} {self.target}"


Fault = NodeFault | PairFault
