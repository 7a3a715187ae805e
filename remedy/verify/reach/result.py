"""What reachability showed: which links do not work, and the hosts that explain them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Literal

from pydantic import Field

from remedy.text import counted
from remedy.values import Record
from remedy.verify.accusations import summary
from remedy.verify.reach.explain import DeadEnd, culprits_of, explain
from remedy.verify.verdict import Culprit, DeadLink, LateLink, NarrowLink, Rung

SEEN = 3  # attempts that are shown of each culprit


class Reach(Record):
    """Which hosts reach which.

    Args:
        hosts: those that were tested.
        attempts: how many calls were made.
        links: how many ordered pairs of hosts were tried; None where each was.
        peers: how many others each host was tried with, at least; None where with each.
        missing: the chance that a single dead link between two groups of hosts was not tried.
        dead: the links that do not work; a link that was not tested is one of them. Where there are too many,
            some of those that ``worst`` does not explain.
        count: how many there are in all, a port each.
        late: links that worked when they were tried again by themselves.
        worst: hosts that most links fail to or from, where there are too many to keep each.
        failures: hosts that reported nothing, and why.
        waited: hosts that ran until their time was up, because calls or callers were missing.
        narrow: the links of ``echo_links`` that have a smaller MTU than the interface they begin at.
        echo_links: on how many links echo requests were sent that must not be cut, and answered if small ones.
        seconds: wall clock.
    """

    hosts: tuple[str, ...]
    attempts: int = 0
    links: int | None = None
    peers: int | None = None
    missing: float = 0.0
    dead: tuple[DeadLink, ...] = ()
    count: int = 0
    late: tuple[LateLink, ...] = ()
    worst: tuple[DeadEnd, ...] = ()
    failures: Mapping[str, str] = Field(default_factory=dict)
    waited: tuple[str, ...] = ()
    narrow: tuple[NarrowLink, ...] = ()
    echo_links: int = 0
    seconds: float = 0.0

    @property
    def silent(self) -> bool:
        """Whether no host reported anything."""
        return self.attempts == 0 and len(self.failures) == len(self.hosts)

    @property
    def sampled(self) -> str:
        """What was not tried, in a sentence; "" when everything was."""
        every = len(self.hosts) * (len(self.hosts) - 1)
        if self.links in (None, every):
            return ""
        return (
            f"{self.links:,} of {every:,} links were tried: each host with those near it, and with some of"
            " every other group of hosts; one dead link between groups is overlooked with a chance of"
            f" {self.missing:.0%}"
        )

    @property
    def passed(self) -> bool:
        """Whether every link that was tried works."""
        return not (self.count or self.dead or self.worst)

    @cached_property
    def dead_ends(self) -> tuple[DeadEnd, ...]:
        """The fewest hosts and links that explain what does not work."""
        absent = tuple(
            DeadEnd(kind="host", host=host, endings=(), detail=why)
            for host, why in self.failures.items()
        )
        # What a host did not do explains every link to it and from it, unless packets to it are lost besides.
        rest = [link for link in self.dead if not self._absent(link)]
        present = 1 - len(self.failures) / max(len(self.hosts) - 1, 1)
        return (*self.worst, *absent, *explain(rest, max(round(self._tried * present), 1)))

    @property
    def _tried(self) -> int:
        """How many others each host was tried with."""
        return len(self.hosts) - 1 if self.peers is None else self.peers

    def _absent(self, link: DeadLink) -> bool:
        """Whether a link has no other fault than that one of its ends took no part."""
        if link.source in self.failures:
            return link.outcome != "no name"
        return link.target in self.failures and link.outcome in ("no listener", "not tested")

    @cached_property
    def culprits(self) -> list[Culprit]:
        """The hosts and links that are named for it, each with what was seen of it."""
        return [
            culprit.model_copy(update={"facts": tuple(self._seen(culprit))})
            for culprit in culprits_of(self.dead_ends, self._tried, sampled=bool(self.sampled))
        ]

    def _seen(self, culprit: Culprit) -> Iterator[str]:
        """The first attempts on the links that it is named for, one for each way in which they end."""
        ways = {(ending.way, ending.outcome) for ending in culprit.endings}
        kinds = set()
        for link in self.dead:
            way: Literal["in", "out", "link"] | None = (
                "link"
                if culprit.hosts == (link.source, link.target)
                else "in"
                if culprit.hosts == (link.target,)
                else "out"
                if culprit.hosts == (link.source,)
                else None
            )
            kind = (way, link.outcome, link.detail)
            if (way, link.outcome) in ways and link.outcome != "not tested" and kind not in kinds:
                kinds.add(kind)
                yield f"tried: {link.message}"
            if len(kinds) == SEEN:
                return

    @property
    def mtu(self) -> str:
        """What packets that must not be cut showed, in a sentence; "" when all of them arrived."""
        if self.narrow:
            links = [f"{link.source} -> {link.target} ({link.size} bytes)" for link in self.narrow]
            more = f" and {len(links) - 3} more" if len(links) > 3 else ""
            where = ", ".join(links[:3]) + more
            return f"MTU: packets as large as the sender's interface takes do not arrive: {where}"
        if self.attempts and not self.echo_links:
            return "MTU unknown: no echo request is answered"
        return ""

    @property
    def slow(self) -> str:
        """Which links are slow and not dead, in a sentence; "" where none is."""
        if not self.late:
            return ""
        links = [
            f"{link.source} -> {link.target} ({link.first}; then {link.seconds:.2g} s)"
            for link in self.late[:SEEN]
        ]
        more = f" and {len(self.late) - SEEN} more" if len(self.late) > SEEN else ""
        host, count = Counter(
            name for link in self.late for name in (link.source, link.target)
        ).most_common(1)[0]
        load = f"; {host} is an end of {count} of them: check its load"
        slowest = max(link.seconds for link in self.late)
        are = "is" if len(self.late) == 1 else "are"
        return (
            f"{counted(len(self.late), 'link')} {are} slow, not dead: failed while all hosts"
            f" called each other, and answered within {slowest:.2g} s when tried again a few at a time:"
            f" {', '.join(links)}{more}{load if 2 * count > len(self.late) > 2 else ''}"
        )

    @property
    def rung(self) -> Rung:
        """The rung that it is."""
        sampled = bool(self.sampled)
        bad = summary(self.culprits)
        links = len(self.hosts) * (len(self.hosts) - 1) if self.links is None else self.links
        good = (
            f"{self.attempts:,} connections"
            if sampled
            else f"{counted(links, 'link')}, {counted(self.attempts, 'connection')}"
        )
        message = "; ".join(filter(None, [bad or good, self.slow, self.sampled, self.mtu]))
        return Rung(name="reachability", passed=self.passed, message=message, seconds=self.seconds)

    @property
    def evidence(self) -> tuple[str, ...]:
        """The first of the dead links, a line each."""
        return tuple(link.message for link in self.dead[:20])
