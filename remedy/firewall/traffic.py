"""What the rules of a firewall do with packets between a host and its peers.

Packets are treated as sets, so that the answer holds for every peer and every port, whatever their number. A
condition that cannot be answered (a rate limit, a set that programs fill) makes a rule uncertain: its packets
are followed both ways, as if it matched and as if it did not. Where only one of the two ends in a drop, that
is a doubt, with the words of the rule on which it depends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from remedy.firewall.packets import (
    EVERYTHING,
    PEERS,
    SPORTS,
    UNTRACKED,
    Box,
    Condition,
    Part,
    check,
)
from remedy.firewall.spans import Spans, meet, merge, minus

DEEPEST = 32
"""Chains called one from another; the kernel allows 16 in nftables."""

MANY = 256
"""Ports: who sends as many elsewhere means all connections, and not those of one service."""

MOST_STEPS = 400_000
"""Rules times parts of the traffic, a second or two of work; beyond it nothing is said of a chain."""


@dataclass(frozen=True)
class Rule:
    """One rule, as far as the packets of a flow are concerned.

    Args:
        action: "accept", "drop", "jump", "goto", "return", "divert" (to somewhere else) or "pass" (the next
            rule
            decides).
        target: the chain of a jump or goto.
        box: what it matches.
        certain: whether nothing else decides if it matches, apart from ``checks`` and ``unless``.
        words: the rule as its firewall shows it.
        checks: conditions that depend on the part.
        unless: what it does not match.
        mark: which bits of the mark it keeps, and which it flips then; None: it leaves the mark alone; bits to
            flip that are None: not known.
        untracks: whether it takes the packets out of connection tracking.
        zones: whether it gives them a zone of connection tracking of their own.
        unread: what makes it uncertain, in a word or two each.
    """

    action: str
    target: str = ""
    box: Box = EVERYTHING
    certain: bool = True
    words: str = ""
    checks: tuple[Condition, ...] = ()
    unless: tuple[Box, ...] = ()
    mark: tuple[int, int | None] | None = None
    untracks: bool = False
    unread: tuple[str, ...] = ()
    zones: bool = False


@dataclass(frozen=True)
class Chain:
    """Rules in order, and what happens at their end ("accept" or "drop"; "" goes back to the caller)."""

    rules: tuple[Rule, ...]
    policy: str = ""


@dataclass(frozen=True)
class Traffic:
    """All TCP connections between a host and its peers.

    Args:
        peers: their addresses.
        ports: what has to be open on this host.
        peer_ports: what has to be open on the peers.
        client_ports: from which this host connects.
        peer_client_ports: from which the peers connect.
        fixed: those of ``ports`` and ``peer_ports`` that a program needs and no other.
    """

    peers: Spans
    ports: Spans
    peer_ports: Spans = ()
    client_ports: Spans = ()
    peer_client_ports: Spans = ()
    fixed: Spans = ()


@dataclass(frozen=True)
class Dropped:
    """Which packets are lost: their peers, the ports of the service, and the rules that drop them."""

    peers: Spans = ()
    ports: Spans = ()
    words: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.words)


NOTHING = Dropped()


@dataclass(frozen=True)
class Doubt:
    """A rule of which it is not known whether packets are lost by it.

    Args:
        words: the rule as its firewall shows it.
        unread: what cannot be answered in it, in a word or two each.
        outcome: where its packets end: the words of the rule that drops them, "" where it is the rule itself.
    """

    words: str
    unread: tuple[str, ...] = ()
    outcome: str = ""


@dataclass(frozen=True)
class Judgement:
    """What a base chain does with packets.

    Args:
        dropped: what is lost for certain.
        doubts: rules by which some may be lost.
        passed: all packets as they leave the chain, those that it drops too, so that the next is judged as
            well.
        exhausted: whether the chain is too long to be judged; then nothing else is said.
    """

    dropped: Dropped = NOTHING
    doubts: tuple[Doubt, ...] = ()
    passed: tuple[Part, ...] = ()
    exhausted: bool = False


class _Exhausted(Exception):  # noqa: N818 - the quiet end of a walk
    """There are too many rules and parts."""


@dataclass
class _Walk:
    chains: Mapping[str, Chain]
    accepted: frozenset[str]
    fixed: Spans
    label: str
    dropped: list[tuple[Part, str]] = field(default_factory=list)
    doubts: dict[tuple[str, str], Doubt] = field(default_factory=dict)
    passed: dict[Part, None] = field(default_factory=dict)
    unread: dict[str, tuple[str, ...]] = field(default_factory=dict)
    results: dict[tuple[str, tuple[Part, ...]], list[Part]] = field(default_factory=dict)
    steps: int = 0

    def through(self, name: str, parts: Iterable[Part], depth: int = 0) -> list[Part]:
        """Send packets through a chain; return what comes back to the caller, where there is one."""
        traffic = list(dict.fromkeys(parts))
        chain = self.chains.get(name)
        if chain is None or depth > DEEPEST:
            return traffic
        key = (name, tuple(traffic))
        if key in self.results:
            return self.results[key]  # whatever was lost on the way has been noted before
        self.results[key] = traffic  # to a chain that calls itself, which the kernel does not take
        back: list[Part] = []
        for rule in chain.rules:
            if not traffic:
                break
            traffic = self._step(rule, traffic, back, depth)
        leaving = _several([*back, *traffic])
        for part in leaving if chain.policy else ():
            self.passed[part] = None
            if chain.policy == "drop":
                self._lose(part, f"chain {self.label}: policy drop")
        self.results[key] = leaving
        return leaving

    def _step(self, rule: Rule, traffic: list[Part], back: list[Part], depth: int) -> list[Part]:
        """Send packets through one rule; return those that come to the next."""
        self.steps += len(traffic)
        if self.steps > MOST_STEPS:
            raise _Exhausted
        remaining: list[Part] = []
        changed = False
        for part in traffic:
            certain = _certain(rule, part)
            if certain is None or (not certain and rule.words in self.accepted):
                remaining.append(part)
                continue
            hits, missed = split(part, rule)
            if not hits:
                remaining.append(part)
                continue
            changed = True
            marked = [_altered(hit, rule) for hit in hits]
            if certain:
                remaining += missed
                remaining += self._take(rule, marked, back, depth)
                continue
            self.unread.setdefault(rule.words, rule.unread)
            possible = [hit._replace(why=hit.why or rule.words) for hit in marked]
            plain = {hit._replace(why="") for hit in hits}
            after = self._take(rule, possible, back, depth)
            remaining.append(part)
            remaining += (later for later in after if later._replace(why="") not in plain)
        return _several(remaining) if changed else remaining

    def _take(self, rule: Rule, hits: list[Part], back: list[Part], depth: int) -> list[Part]:
        """Do with packets what the action of a rule says; return those that come to the next rule."""
        if rule.action == "pass":
            return hits
        if rule.action == "jump":
            return self.through(rule.target, hits, depth + 1)
        if rule.action == "goto":
            back += self.through(rule.target, hits, depth + 1)
        elif rule.action == "return":
            back += hits
        else:
            for hit in hits:
                self.passed[hit] = None
                if rule.action == "drop":
                    self._lose(hit, rule.words)
                elif rule.action == "divert" and (meet(hit.ports, self.fixed) or _many(hit.ports)):
                    self._doubt(hit.why or rule.words, rule.words, ("sends packets elsewhere",))
        return []

    def _lose(self, part: Part, words: str) -> None:
        if part.why:
            self._doubt(part.why, words, ())
        else:
            self.dropped.append((part, words))

    def _doubt(self, words: str, outcome: str, unread: tuple[str, ...]) -> None:
        if words in self.accepted:
            return
        known = self.unread.get(words, ()) or unread
        outcome = "" if outcome == words else outcome
        self.doubts.setdefault((words, outcome), Doubt(words, known, outcome))


def _certain(rule: Rule, part: Part) -> bool | None:
    """Return whether it is certain that a rule matches where its box does; None: it certainly does not."""
    certain = rule.certain
    for condition in rule.checks:
        answer = check(condition, part)
        if answer is False:
            return None
        certain = certain and answer is True
    return certain


def _many(ports: Spans) -> bool:
    return sum(high - low + 1 for low, high in ports) >= MANY


def _altered(part: Part, rule: Rule) -> Part:
    """Return packets as a rule leaves them."""
    if rule.untracks:
        part = part._replace(state=UNTRACKED)
    if rule.zones:
        part = part._replace(zoned=True)
    if rule.mark is None:
        return part
    keep, flip = rule.mark
    if flip is None or (part.mark is None and keep != 0):
        return part._replace(mark=None)
    return part._replace(mark=((part.mark or 0) & keep) ^ flip)


def _several(parts: Iterable[Part]) -> list[Part]:
    """Return each part once, and none that may come where the same comes for certain."""
    known = dict.fromkeys(parts)
    return [part for part in known if not (part.why and part._replace(why="") in known)]


def split(part: Part, rule: Rule) -> tuple[list[Part], list[Part]]:
    """Return the parts of a part that a rule matches, and those that it does not."""
    hit, missed = _cut(part, rule.box)
    hits = [] if hit is None else [hit]
    for box in rule.unless:
        remaining: list[Part] = []
        for piece in hits:
            excluded, kept = _cut(piece, box)
            remaining += kept
            missed += [] if excluded is None else [excluded]
        hits = remaining
    return hits, missed


def _cut(part: Part, box: Box) -> tuple[Part | None, list[Part]]:
    """Return what of a part is in a box, and the rest."""
    missed: list[Part] = []
    for dimension, numbers in enumerate(box):
        if numbers is None:
            continue
        current = (part.peers, part.sports, part.dports)[dimension]
        common = meet(current, numbers)
        if not common:
            return None, [*missed, part]
        if common != current:
            missed.append(_limited(part, dimension, minus(current, common)))
            part = _limited(part, dimension, common)
    return part, missed


def _limited(part: Part, dimension: int, numbers: Spans) -> Part:
    """Return a part with other peers or ports."""
    if dimension == PEERS:
        return part._replace(peers=numbers)
    return part._replace(sports=numbers) if dimension == SPORTS else part._replace(dports=numbers)


def judge(
    chains: Mapping[str, Chain],
    base: str,
    parts: Iterable[Part],
    *,
    label: str = "",
    accepted: frozenset[str] = frozenset(),
    fixed: Spans = (),
) -> Judgement:
    """Return what the base chain ``base`` does with packets.

    Args:
        chains: all chains that can be called from it, by name.
        base: where packets come in.
        parts: the packets; a part without peers or ports is none.
        label: the base chain as people know it.
        accepted: the words of uncertain rules that the user has accepted: they are taken to match nothing.
        fixed: ports that packets must not be sent away from.
    """
    known = [part for part in parts if part.peers and part.sports and part.dports]
    walk = _Walk(chains, accepted, fixed, label or base)
    try:
        walk.through(base, known)
    except _Exhausted:
        return Judgement(passed=tuple(known), exhausted=True)
    return Judgement(
        Dropped(
            merge(span for part, _ in walk.dropped for span in part.peers),
            merge(span for part, _ in walk.dropped for span in part.ports),
            tuple(dict.fromkeys(words for _, words in walk.dropped)),
        ),
        _named_once(walk),
        _unsplit(known, walk.passed),
    )


def _named_once(walk: _Walk) -> tuple[Doubt, ...]:
    """Return the doubts, without those that end in a rule which is named anyway."""
    own = {doubt.words for doubt in walk.doubts.values() if not doubt.outcome}
    named = own | {words for _, words in walk.dropped}
    return tuple(doubt for doubt in walk.doubts.values() if doubt.outcome not in named)


def _unsplit(before: list[Part], after: Iterable[Part]) -> tuple[Part, ...]:
    """Return packets as they leave a chain; as they came, where nothing but their grouping has changed."""
    known = {(part.state, part.mark, part.zoned) for part in before}
    leaving = [
        part for part in after if not part.why or (part.state, part.mark, part.zoned) not in known
    ]
    if all((part.state, part.mark, part.zoned) in known for part in leaving):
        return tuple(before)
    return tuple(_several(leaving))
