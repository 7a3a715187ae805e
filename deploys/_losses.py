"""What is wrong with the ways of packets to peers, and the route or rule that it comes from. Not a remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

from remedy.deploys import _interfaces as nic
from remedy.deploys._peers import Place
from remedy.deploys._ways import LOST, NO_ROUTE, Way, hops_of, ways
from remedy.firewall import spans
from remedy.firewall.packets import SMALLEST_SEGMENT
from remedy.firewall.spans import Spans
from remedy.probe import FibRoute, PolicyRule, Routing
from remedy.probe.routing import TO_MANY
from remedy.text import is_number

SMALLEST_MTU = 1280
"""Bytes that every link carries where IPv6 is spoken (RFC 8200); no path of a cluster has less."""
_LEAST_METRICS = (
    ("window", 16_384, "few bytes at a time"),
    ("advmss", SMALLEST_SEGMENT, "small packets"),
)
"""Metrics of routes that have peers hold back (ip-route(8)), with what each has to be at least."""
_LEAST_SEGMENTS = 10
"""Segments of TCP that Linux begins with on their way at once (RFC 6928); no route may clamp to fewer."""
_WAITS = ("rto_min", "rtt", "rttvar")
"""Metrics of routes that say how long TCP waits before it sends once more; Linux waits 0.2 s and more."""
_LONGEST_WAIT = 1000
"""Milliseconds, which Linux waits for the answer to a first packet (RFC 6298)."""


@dataclass(frozen=True)
class Loss:
    """Peers that are not reached as they have to be.

    Args:
        peers: their addresses.
        title: what happens to packets, with "{peers}" for their names.
        culprit: the route or rule, None where one is missing.
        doubt: whether that can be right.
        rule: by which the route's table is looked up, where that is not the main table.
    """

    peers: Spans
    title: str
    culprit: FibRoute | PolicyRule | None
    doubt: bool = False
    rule: PolicyRule | None = None

    @property
    def evidence(self) -> tuple[str, ...]:
        """The culprit, and the rule that leads to it."""
        return (self.text, *([f"routing rule: {self.rule.text}"] if self.rule else []))

    @property
    def text(self) -> str:
        """The culprit as its tool shows it."""
        if self.culprit is None:
            return "ip route shows none"
        return f"{noun(self.culprit)}: {self.culprit.text}"


def losses(
    routing: Routing,
    place: Place,
    accepted: frozenset[str],
    earlier: Sequence[Loss],
    marks: Sequence[int | None],
) -> Iterator[Loss]:
    """Yield what is wrong with the ways to peers and is not among ``earlier``."""
    seen = {(loss.text, loss.title) for loss in earlier}
    texts = {text for text, _ in seen}
    for peers, source, mark in product(
        (place.on_link, place.beyond), (place.address, None), (0, *marks)
    ):
        for way in ways(routing, peers, source, mark):
            loss = _judge(way, place)
            if loss is None:
                continue
            if mark != 0:
                loss = _of_marked(loss, mark)
            if (loss.text, loss.title) in seen or (mark != 0 and loss.text in texts):
                continue
            if loss.culprit is None or loss.culprit.text not in accepted:
                yield loss


def _of_marked(loss: Loss, mark: int | None) -> Loss:
    """Return what happens to those packets alone that rules of a firewall mark."""
    which = "whose mark is not known" if mark is None else f"with the mark {mark:#x}"
    return replace(loss, title=f"{loss.title}, of packets {which}", doubt=True)


def _judge(way: Way, place: Place) -> Loss | None:
    """Return what is wrong with a way, None where nothing is."""
    route = way.route
    culprit = route or way.rule
    if culprit is None:
        return Loss(way.peers, "there is no route to {peers}", None)
    if way.outcome == NO_ROUTE:
        title = "a throw route leaves {peers} to other tables, and none of them has a route there"
        return Loss(way.peers, title, culprit)
    if way.outcome in LOST:
        verb = "drops" if way.certain else "may drop"
        title = f"a {noun(culprit)} {verb} what this host sends to {{peers}}"
        return Loss(way.peers, title, culprit, doubt=not way.certain)
    if way.outcome in TO_MANY:
        title = f"a route makes {{peers}} an address of many hosts ({way.outcome}), so no TCP gets there"
        return Loss(way.peers, title, culprit, doubt=not way.certain)
    if route is None or way.outcome not in ("unicast", "local"):
        return None  # address translation of old kernels
    if way.outcome == "local":
        return Loss(way.peers, "this host keeps what it sends to {peers} for itself", route)
    return _judge_unicast(way, route, place)


def _judge_unicast(way: Way, route: FibRoute, place: Place) -> Loss | None:
    """Return what is wrong with a way that leads out, or to this host."""
    by_interface = _judge_interface if route.interface else _judge_hops
    loss = by_interface(way.peers, route, place) or _judge_metrics(way.peers, route, place)
    if loss is not None and not way.certain:
        loss = replace(loss, title=f"{loss.title}, of some packets", doubt=True)
    if loss is not None and way.rule is not None and way.rule.table != "main":
        return replace(loss, rule=way.rule)
    return loss


def _judge_interface(peers: Spans, route: FibRoute, place: Place) -> Loss | None:
    """Return what is wrong with a route that leads out."""
    name, sent = route.interface, "what this host sends to {peers}"
    if not spans.meet(peers, place.subnet):
        interface = place.network.interface(name)
        if interface is None or name == place.carrier.name:
            return None
        if not nic.internal(interface, place.network):
            return None
        return Loss(peers, f"{sent} goes to {name}, which leads nowhere", route)
    if name not in place.rails:
        title = (
            f"{sent} leaves by {name}, and not by {place.carrier.name}, which is in their network"
        )
        return Loss(peers, title, route)
    if route.source and route.source not in place.sources:
        title = f"{sent} has the source {route.source}, which is not in their network"
        return Loss(peers, title, route)
    if route.gateway:
        title = f"{sent} goes through {route.gateway}, though they are on the same network"
        return Loss(peers, title, route, doubt=True)
    return None


def _judge_hops(peers: Spans, route: FibRoute, place: Place) -> Loss | None:
    """Return what is wrong with a route of several ways, of which the kernel takes any."""
    near = bool(spans.meet(peers, place.subnet))
    for name, gateway in hops_of(route):
        interface = place.network.interface(name)
        if near and name not in place.rails:
            by = f"leaves by {name}, and not by {place.carrier.name}, which is in their network"
        elif near and gateway:
            title = (
                f"a part of what this host sends to {{peers}} goes through {gateway}, though they are on the "
                "same network"
            )
            return Loss(peers, title, route, doubt=True)
        elif not near and interface is not None and nic.internal(interface, place.network):
            by = f"goes to {name}, which leads nowhere"
        else:
            continue
        return Loss(peers, f"a part of what this host sends to {{peers}} {by}", route)
    return None


def _judge_metrics(peers: Spans, route: FibRoute, place: Place) -> Loss | None:
    """Return what a route does to packets that it sends the right way."""
    words = route.text.split()
    values = dict(pairwise(words))
    sent = "what this host sends to {peers}"
    if "encap" in values:
        title = f"a route wraps {sent} ({values['encap']}), and whether it arrives is not known"
        return Loss(peers, title, route, doubt=True)
    mtu = values.get("mtu", "")
    if is_number(mtu) and int(mtu) < min(SMALLEST_MTU, place.carrier.mtu):
        title = f"a route cuts {sent} into packets of {mtu} bytes"
        return Loss(peers, title, route, doubt=True)
    for metric, least, what in _LEAST_METRICS:
        value = values.get(metric, "")
        if is_number(value) and int(value) < least:
            title = f"a route has peers send {what} ({metric} {value}) in answer to {sent}"
            return Loss(peers, title, route, doubt=True)
    segments = values.get("cwnd", "")
    if is_number(segments) and int(segments) < _LEAST_SEGMENTS:
        title = f"a route holds {sent} back: at most {segments} segments are on their way at once (cwnd)"
        return Loss(peers, title, route, doubt=True)
    for metric in _WAITS:
        value = values.get(metric, "")
        if is_number(value) and int(value) > _LONGEST_WAIT:
            title = f"a route has TCP wait long before {sent} is sent once more ({metric} {value})"
            return Loss(peers, title, route, doubt=True)
    return None


def noun(culprit: FibRoute | PolicyRule) -> str:
    return "route" if isinstance(culprit, FibRoute) else "routing rule"
