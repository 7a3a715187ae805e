"""The values of an isolation: tests, their results, and faults."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Link = tuple[str, str]
"""From one host to another: the direction in which a connection is opened."""

Purpose = Literal["fleet", "rest", "screen", "half", "cross", "confirm", "seek", "links"]


@dataclass(frozen=True)
class Test:
    """A group of hosts that are to work together, apart from all others.

    Args:
        hosts: at least two.
        purpose: "fleet" is everybody; "rest" everybody who is not suspected; "screen" one of many groups;
            "half" a part of a group that failed; "cross" one host with a part of others that work together;
            "confirm" a suspect with a partner that is known to be good; "seek" two hosts that might be good
            partners; "links" two hosts, both directions apart.
    """

    __test__ = False  # not a test of pytest's

    hosts: tuple[str, ...]
    purpose: Purpose


@dataclass(frozen=True)
class TestResult:
    """How a test ended.

    Args:
        passed: whether the group worked; a group of which nothing was heard did not.
        missing: hosts that the group itself reported as absent. A hint, never a proof.
        unanswered: links on which a host got no answer. A hint as well, but for "links", where they are the
            result.
    """

    __test__ = False

    test: Test
    passed: bool
    missing: frozenset[str] = frozenset()
    unanswered: frozenset[Link] = frozenset()


@dataclass(frozen=True)
class Fault:
    """What is broken: a host that works with nobody, or two that work with others and not with each other.

    Args:
        hosts: one or two; where only one direction fails, the first of two opens the connection.
        direction: of two hosts: "one-way" where one direction fails, "both" where each does, "unknown" where it
            could not be determined.
    """

    hosts: tuple[str, ...]
    direction: Literal["one-way", "both", "unknown"] = "unknown"

    @property
    def is_host(self) -> bool:
        """Whether a host is broken, and not a pair."""
        return len(self.hosts) == 1

    def breaks(self, hosts: Iterable[str]) -> bool:
        """Say whether a group of these hosts fails because of it."""
        return set(self.hosts) <= set(hosts)

    def __str__(self) -> str:
        return (" -> " if self.direction == "one-way" else " <-> ").join(self.hosts)
