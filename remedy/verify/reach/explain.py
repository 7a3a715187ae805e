"""Dead links, explained by the fewest hosts and links. Pure.

Where there are too many to keep each, whole hosts are found by counting: 2,048 hosts have four million ordered
pairs, and what is held of them then grows with the hosts, and as bits with the pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from remedy.values import Record
from remedy.verify.verdict import ENDINGS, Culprit, DeadLink, LinkEnding, LinkOutcome

Link = tuple[str, str]

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
        endings: how these end; all of them are of names, or none is. Empty where it took no part.
        detail: why they were not tested, where that is one reason.
    """

    kind: Literal["in", "out", "host", "link"]
    host: str
    target: str = ""
    count: int = 1
    endings: tuple[LinkEnding, ...]
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
        if self.kind == "host":
            return f"{self.host}: took no part in the test of the links: {self.detail}"
        first, *others = self.endings
        on = _on(first)
        if self.kind == "link" and not others:
            return f"{self.name}{on}: {ENDINGS[first.outcome]}"
        if self.kind == "link":
            ends = ", ".join(f"{ENDINGS[end.outcome]}{_on(end)}" for end in self.endings)
            return f"{self.name}: {ends}"
        if first.outcome == "no name" and self.kind == "in":
            verb = "resolves" if self.count == 1 else "resolve"
            return f"{self.host}: {self._hosts(peers, sampled)} {verb} its name wrongly"
        if first.outcome == "no name":
            return f"{self.host}: resolves the names of {self._hosts(peers, sampled)} wrongly"
        if first.outcome == "dropped" and not others and self.kind == "in":
            hosts = self._hosts(peers, sampled, "any of the")
            return f"{self.host}: no answer{on} from {hosts} (dropped on the way)"
        way, word = {"in": ("connections from", "from"), "out": ("its connections to", "to")}[
            self.kind
        ]
        subject = f"{self.host}: {way} {self._hosts(peers, sampled)}"
        if not others:
            why = f": {self.detail}" if self.detail else ""
            return f"{subject}{on} {_PLURAL[first.outcome]}{why}"
        ends = ", ".join(
            f"{word} {end.count}{_on(end)} they {_PLURAL[end.outcome]}" for end in self.endings
        )
        return f"{subject} fail: {ends}"

    def _hosts(self, peers: int, sampled: bool, article: str = "the") -> str:
        if peers == 1:
            return "the other host"
        if sampled:
            return f"{min(self.count, peers)} of the {peers} hosts that it was tried with"
        if self.count >= peers:
            return f"{article} other {peers} hosts"
        return f"{self.count} of the other {peers} hosts"


def _on(ending: LinkEnding) -> str:
    """Return on which ports, in words; "" for all."""
    ports = sorted(port for port in ending.ports if port)
    listing = ", ".join(map(str, ports[:PORTS_SHOWN])) + ", ..." * (len(ports) > PORTS_SHOWN)
    return f" on port{'s' * (len(ports) > 1)} {listing}" if ports else ""


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
        reason, endings = end.message(peers, sampled=sampled), end.endings
        known = culprits.get(end.name)
        if known is not None:
            reason = f"{known.reason}; {reason.removeprefix(f'{end.name}: ')}"
            endings = (*known.endings, *endings)
        hosts = (end.host, end.target) if end.target else (end.host,)
        culprits[end.name] = Culprit(name=end.name, hosts=hosts, reason=reason, endings=endings)
    return list(culprits.values())


def explain(dead: Sequence[DeadLink], peers: int) -> tuple[DeadEnd, ...]:
    """Explain dead links by the fewest hosts and links, hosts first.

    Names are explained apart from connections: a host whose firewall is closed is not the one that has an old
    address in its hosts file.

    Args:
        dead: in the order in which they are to be reported.
        peers: how many links lead to each host, and as many from it.
    """
    names, connections = _apart(dead)
    ends = [*_explained(names, peers), *_explained(connections, peers)]
    return tuple(sorted(ends, key=lambda end: (end.kind == "link", -end.count)))


def _apart(dead: Iterable[DeadLink]) -> tuple[list[DeadLink], list[DeadLink]]:
    """Return the links of names that resolve wrongly, and those of connections."""
    parts: tuple[list[DeadLink], list[DeadLink]] = ([], [])
    for link in dead:
        parts[link.outcome != "no name"].append(link)
    return parts


def _explained(dead: Sequence[DeadLink], peers: int) -> Iterator[DeadEnd]:
    """Explain links of one of the two kinds."""
    by_link: dict[Link, list[DeadLink]] = {}
    for link in dead:
        by_link.setdefault((link.source, link.target), []).append(link)
    for cover in cover_links(by_link, peers):
        links = [link for pair in cover.links for link in by_link[pair]]
        yield DeadEnd(
            kind=cover.kind,
            host=cover.host,
            target=cover.target,
            count=len(cover.links),
            endings=_endings(cover.kind, links),
            detail=_untested(links),
        )


def _endings(
    way: Literal["in", "out", "link"], links: Iterable[DeadLink]
) -> tuple[LinkEnding, ...]:
    """Count how links end, what most of them do first."""
    pairs: dict[LinkOutcome, set[Link]] = {}
    ports: dict[LinkOutcome, set[int]] = {}
    for link in links:
        pairs.setdefault(link.outcome, set()).add((link.source, link.target))
        ports.setdefault(link.outcome, set()).add(link.port)
    endings = (
        LinkEnding(way=way, outcome=end, count=len(pairs[end]), ports=tuple(sorted(ports[end])))
        for end in pairs
    )
    return tuple(sorted(endings, key=lambda ending: (-ending.count, ending.outcome)))


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
    """The dead links of one kind to, or from, one host."""

    def __init__(self) -> None:
        self.peers = 0  # a bit a host
        self.ends: dict[LinkOutcome, int] = {}  # the peers of those that end in one way
        self.ports: dict[LinkOutcome, set[int]] = {}

    def add(self, bit: int, link: DeadLink) -> None:
        self.peers |= bit
        self.ends[link.outcome] = self.ends.get(link.outcome, 0) | bit
        self.ports.setdefault(link.outcome, set()).add(link.port)

    def dead_end(self, kind: Literal["in", "out"], host: str, peers: int) -> DeadEnd:
        counts = {end: (bits & peers).bit_count() for end, bits in self.ends.items()}
        endings = (
            LinkEnding(way=kind, outcome=end, count=n, ports=tuple(sorted(self.ports[end])))
            for end, n in counts.items()
            if n
        )
        return DeadEnd(
            kind=kind,
            host=host,
            count=peers.bit_count(),
            endings=tuple(sorted(endings, key=lambda end: (-end.count, end.outcome))),
        )


class _Tallies:
    """The dead links of one kind, by host, and the hosts that most of them fail to or from."""

    def __init__(self, bit: Mapping[str, int]) -> None:
        self.bit = bit
        self.into = {host: _LinkTally() for host in bit}
        self.out = {host: _LinkTally() for host in bit}
        self.closed: frozenset[str] = frozenset()
        self.mute: frozenset[str] = frozenset()

    def add(self, link: DeadLink) -> None:
        self.into[link.target].add(self.bit[link.source], link)
        self.out[link.source].add(self.bit[link.target], link)

    def dead_ends(self, peers: int) -> Iterator[DeadEnd]:
        """Name hosts; from then on ``explains`` says which links they explain."""
        enough = max(FEWEST, SHARE * peers)
        self.closed = frozenset(h for h, t in self.into.items() if t.peers.bit_count() >= enough)
        yield from (
            tally.dead_end("in", host, tally.peers)
            for host, tally in self.into.items()
            if host in self.closed
        )
        closed_bits = sum(self.bit[host] for host in self.closed)
        # So many links from each host are left, as hosts that are not named already are among those it calls.
        enough = max(FEWEST, SHARE * peers * (1 - len(self.closed) / len(self.bit)))
        left = {host: tally.peers & ~closed_bits for host, tally in self.out.items()}
        self.mute = frozenset(host for host, bits in left.items() if bits.bit_count() >= enough)
        yield from (
            tally.dead_end("out", host, left[host])
            for host, tally in self.out.items()
            if host in self.mute
        )

    def explains(self, link: DeadLink) -> bool:
        return link.target in self.closed or link.source in self.mute


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
    names, connections = _Tallies(bit), _Tallies(bit)
    for link in links():
        (names if link.outcome == "no name" else connections).add(link)
    ends = (*names.dead_ends(peers), *connections.dead_ends(peers))
    unexplained = (
        link
        for link in links()
        if not (names if link.outcome == "no name" else connections).explains(link)
    )
    return ends, tuple(islice(unexplained, most))
