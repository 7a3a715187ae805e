"""Dead links, explained by the fewest hosts and links. Pure.

Where there are too many to keep each, whole hosts are found by counting: 2,048 hosts have four million ordered
pairs, and what is held of them then grows with the hosts, and as bits with the pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from remedy.values import Record
from remedy.verify.verdict import ENDINGS, Culprit, DeadLink, LinkOutcome

Link = tuple[str, str]
Side = Literal["in", "out", "host"]

# A host is named for its links, rather than each link for itself, where at least this share of them fails:
# a host with a closed firewall may still be reached by the few that had a connection open.
SHARE = 0.6
FEWEST = 2
PORTS_SHOWN = 4

# How connections end, said of many.
_PLURAL: dict[LinkOutcome, str] = {
    "refused": "are refused (reset by a firewall)",
    "rejected": "are rejected (by a firewall, or no route)",
    "dropped": "get no answer (dropped on the way)",
    "stalled": "carry small messages and no large ones (MTU)",
    "no listener": "find no listener",
    "no name": "are not tried, because the name resolves wrongly",
    "foreign": "are answered by another program or host",
    "mute": "are opened and never answered",
    "not tested": "were not tested",
}


class DeadEnd(Record):
    """A host, or one link.

    Most others do not reach the host ("in"), it does not reach most others ("out"), it took no part ("host").

    Args:
        host: the host, or the source of the link.
        target: of the link.
        count: how many links it explains.
        outcomes: how these ended.
        ports: on which; 0 is all.
        detail: why they were not tested, where that is one reason.
    """

    kind: Literal["in", "out", "host", "link"]
    host: str
    target: str = ""
    count: int = 1
    outcomes: tuple[LinkOutcome, ...]
    ports: tuple[int, ...]
    detail: str = ""

    @property
    def name(self) -> str:
        """The host, or the link."""
        return f"{self.host} -> {self.target}" if self.target else self.host

    def message(self, peers: int, *, sampled: bool = False) -> str:
        """Describe it in one sentence.

        Args:
            peers: how many other hosts it was tried with.
            sampled: whether these are only some of the others.
        """
        ports = sorted(port for port in self.ports if port)
        listing = ", ".join(map(str, ports[:PORTS_SHOWN])) + ", ..." * (len(ports) > PORTS_SHOWN)
        on = f" on port{'s' * (len(ports) > 1)} {listing}" if ports else ""
        if self.kind == "host":
            return f"{self.host}: took no part in the test of the links: {self.detail}"
        if self.kind == "link":
            return f"{self.name}{on}: {' and '.join(ENDINGS[end] for end in self.outcomes)}"
        if self.outcomes == ("dropped",) and self.kind == "in":
            hosts = self._hosts(peers, sampled, "any of the")
            return f"{self.host}: no answer{on} from {hosts} (dropped on the way)"
        if self.outcomes == ("no name",) and self.kind == "in":
            verb = "resolves" if self.count == 1 else "resolve"
            return f"{self.host}: {self._hosts(peers, sampled)} {verb} its name wrongly"
        if self.outcomes == ("no name",):
            return f"{self.host}: resolves the names of {self._hosts(peers, sampled)} wrongly"
        way = "connections from" if self.kind == "in" else "its connections to"
        ends = " and ".join(_PLURAL[end] for end in self.outcomes)
        why = f": {self.detail}" if self.detail else ""
        return f"{self.host}: {way} {self._hosts(peers, sampled)}{on} {ends}{why}"

    def _hosts(self, peers: int, sampled: bool, article: str = "the") -> str:
        if peers == 1:
            return "the other host"
        if sampled:
            return f"{min(self.count, peers)} of the {peers} hosts that it was tried with"
        if self.count >= peers:
            return f"{article} other {peers} hosts"
        return f"{self.count} of the other {peers} hosts"


class Cover(NamedTuple):
    """Links that one host, or one link, explains."""

    kind: Literal["in", "out", "link"]
    host: str
    target: str
    links: frozenset[Link]


def culprits_of(ends: Iterable[DeadEnd], peers: int, *, sampled: bool = False) -> list[Culprit]:
    """Name the culprits of dead ends; a host that is neither reached nor reaches others is one culprit."""
    culprits: dict[str, Culprit] = {}
    for end in ends:
        reason = end.message(peers, sampled=sampled)
        if end.name in culprits:
            reason = f"{culprits[end.name].reason}; {reason}"
        hosts = (end.host, end.target) if end.target else (end.host,)
        culprits[end.name] = Culprit(name=end.name, hosts=hosts, reason=reason)
    return list(culprits.values())


def explain(dead: Sequence[DeadLink], peers: int) -> tuple[DeadEnd, ...]:
    """Explain dead links by the fewest hosts and links.

    Args:
        dead: in the order in which they are to be reported.
        peers: how many links lead to each host, and as many from it.
    """
    by_link: dict[Link, list[DeadLink]] = {}
    for link in dead:
        by_link.setdefault((link.source, link.target), []).append(link)
    return tuple(
        DeadEnd(
            kind=cover.kind,
            host=cover.host,
            target=cover.target,
            count=len(cover.links),
            outcomes=tuple(dict.fromkeys(link.outcome for link in links)),
            ports=tuple(sorted({link.port for link in links})),
            detail=_untested(links),
        )
        for cover in cover_links(by_link, peers)
        for links in (
            [link for pair, ends in by_link.items() if pair in cover.links for link in ends],
        )
    )


def _untested(links: Iterable[DeadLink]) -> str:
    """Return the one reason why links were not tested; "" where there are several, or they were."""
    reasons = {link.detail if link.outcome == "not tested" else "" for link in links}
    return reasons.pop() if len(reasons) == 1 else ""


def cover_links(dead: Collection[Link], peers: int) -> list[Cover]:
    """Cover dead links by the fewest hosts, and what is left one by one.

    Args:
        dead: links that do not work.
        peers: how many links lead to each host, and as many from it: the number of the others.
    """
    unexplained = set(dead)
    covers: list[Cover] = []
    while unexplained:
        bad_in, bad_out = Counter(t for _, t in unexplained), Counter(s for s, _ in unexplained)
        # The share counts what no other host explains already: a dead host must not drag its peers along.
        explained = set(dead) - unexplained
        explained_in, explained_out = (
            Counter(t for _, t in explained),
            Counter(s for s, _ in explained),
        )
        choices = [
            (count, kind, host)
            for kind, bad, known in (("in", bad_in, explained_in), ("out", bad_out, explained_out))
            for host, count in bad.items()
            if count >= FEWEST and count >= SHARE * (peers - known[host])
        ]
        if not choices:
            break
        _, kind, host = max(choices)
        side = 1 if kind == "in" else 0
        links = frozenset(link for link in unexplained if link[side] == host)
        covers.append(Cover("in" if kind == "in" else "out", host, "", links))
        unexplained -= links
    return [*covers, *(Cover("link", s, t, frozenset({(s, t)})) for s, t in sorted(unexplained))]


class _LinkTally:
    """The dead links to, or from, one host."""

    def __init__(self) -> None:
        self.peers = 0  # a bit a host
        self.ends: dict[tuple[LinkOutcome, int], None] = {}

    def add(self, bit: int, link: DeadLink) -> None:
        self.peers |= bit
        self.ends.setdefault((link.outcome, link.port))

    def dead_end(self, kind: Side, host: str, peers: int) -> DeadEnd:
        return DeadEnd(
            kind=kind,
            host=host,
            count=peers.bit_count(),
            outcomes=tuple(dict.fromkeys(outcome for outcome, _ in self.ends)),
            ports=tuple(sorted({port for _, port in self.ends})),
        )


def thin(
    links: Callable[[], Iterable[DeadLink]], hosts: Sequence[str], peers: int, most: int
) -> tuple[tuple[DeadEnd, ...], tuple[DeadLink, ...]]:
    """Name the hosts that most links fail to or from, and keep some of the links that no such host explains.

    Args:
        links: gives all dead links, anew each time.
        hosts: all hosts.
        peers: how many links lead to each host, and as many from it.
        most: how many links are kept.
    """
    bit = {host: 1 << number for number, host in enumerate(hosts)}
    into, out = ({host: _LinkTally() for host in hosts} for _ in range(2))
    for link in links():
        into[link.target].add(bit[link.source], link)
        out[link.source].add(bit[link.target], link)
    enough = max(FEWEST, SHARE * peers)
    closed = {host: tally for host, tally in into.items() if tally.peers.bit_count() >= enough}
    ends = [tally.dead_end("in", host, tally.peers) for host, tally in closed.items()]
    closed_bits = sum(bit[host] for host in closed)
    # So many links from each host are left, as hosts that are not named already are among those it calls.
    enough = max(FEWEST, SHARE * peers * (1 - len(closed) / len(hosts)))
    mute = {
        host: rest
        for host, t in out.items()
        if (rest := t.peers & ~closed_bits).bit_count() >= enough
    }
    ends += [out[host].dead_end("out", host, rest) for host, rest in mute.items()]
    examples: list[DeadLink] = []
    for link in _unexplained(links(), closed, mute):
        if len(examples) == most:
            break
        examples.append(link)
    return tuple(ends), tuple(examples)


def _unexplained(
    links: Iterable[DeadLink], closed: Collection[str], mute: Collection[str]
) -> Iterator[DeadLink]:
    return (link for link in links if link.target not in closed and link.source not in mute)
