"""What reachability showed: which links do not work, and the hosts that explain them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from pydantic import Field

from remedy.values import Record
from remedy.verify.reach.explain import DeadEnd, culprits_of, explain
from remedy.verify.verdict import Culprit, DeadLink, Rung


class NarrowLink(Record):
    """A link on which small packets arrive and whole ones of ``size`` bytes do not (RFC 1191, DF set)."""

    source: str
    target: str
    size: int


class Reach(Record):
    """Which hosts reach which.

    Args:
        hosts: those that were tested.
        tried: how many calls were made.
        dead: the links that do not work; a link that was not tested is one of them. Where there are too many,
            some of those that ``worst`` does not explain.
        count: how many there are in all, a port each.
        worst: hosts that most links fail to or from, where there are too many to keep each.
        failures: hosts that reported nothing, and why.
        waited: hosts that ran until their time was up, because calls or callers were missing.
        narrow: the links of ``echo_links`` that have a smaller MTU than the interface they begin at.
        echo_links: on how many links echo requests were sent that must not be cut, and answered if small ones.
        seconds: wall clock.
    """

    hosts: tuple[str, ...]
    tried: int = 0
    dead: tuple[DeadLink, ...] = ()
    count: int = 0
    worst: tuple[DeadEnd, ...] = ()
    failures: Mapping[str, str] = Field(default_factory=dict)
    waited: tuple[str, ...] = ()
    narrow: tuple[NarrowLink, ...] = ()
    echo_links: int = 0
    seconds: float = 0.0

    @property
    def silent(self) -> bool:
        """Whether no host reported anything."""
        return self.tried == 0 and len(self.failures) == len(self.hosts)

    @property
    def passed(self) -> bool:
        """Whether every link of every pair works."""
        return not (self.count or self.dead or self.worst)

    @cached_property
    def dead_ends(self) -> tuple[DeadEnd, ...]:
        """The fewest hosts and links that explain what does not work."""
        return (*self.worst, *explain(self.dead, len(self.hosts) - 1))

    @cached_property
    def culprits(self) -> list[Culprit]:
        """The hosts and links that are named for it."""
        return culprits_of(self.dead_ends, len(self.hosts) - 1)

    @property
    def mtu(self) -> str:
        """What packets that must not be cut showed, in a sentence; "" when all of them arrived."""
        if self.narrow:
            links = [f"{link.source} -> {link.target} ({link.size} bytes)" for link in self.narrow]
            more = f" and {len(links) - 3} more" if len(links) > 3 else ""
            where = ", ".join(links[:3]) + more
            return f"MTU: packets as large as the sender's interface takes do not arrive: {where}"
        if self.tried and not self.echo_links:
            return "MTU unknown: no echo request is answered"
        return ""

    @property
    def rung(self) -> Rung:
        """The rung that it is."""
        bad = "; ".join(end.message(len(self.hosts) - 1) for end in self.dead_ends)
        good = f"{len(self.hosts) * (len(self.hosts) - 1)} links, {self.tried} connections"
        message = "; ".join(filter(None, [bad or good, self.mtu]))
        return Rung(name="reachability", passed=self.passed, message=message, seconds=self.seconds)

    @property
    def evidence(self) -> tuple[str, ...]:
        """The first of the dead links, a line each."""
        return tuple(link.message for link in self.dead[:20])
