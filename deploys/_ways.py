"""Where the kernel sends what goes to peers: its rules and tables, looked up as it does. Not a remedy.

A host can have thousands of peers, so they are looked up together, as ranges of addresses: each route takes its
part of what is left. Sources: ip-rule(8), ip-route(8); Linux net/ipv4/fib_rules.c (fib4_rule_match,
fib4_rule_suppress).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise

from remedy.firewall import spans
from remedy.firewall.spans import Spans
from remedy.probe import FibRoute, PolicyRule, Routing
from remedy.probe.routing import in_text_order
from remedy.values import once_alike

LOST = ("unreachable", "blackhole", "prohibit")
"""Types of routes and actions of rules by which a packet goes nowhere."""

NO_ROUTE = "no route"
_THROW = "throw"
"""Type of a route that leaves a packet to the rules after it (ip-route(8))."""
UNPRIVILEGED, SSH = 1024, 22
MOST_TABLES = 64
"""Tables of which the order is remembered while a host is judged."""

# Conditions that no packet of a training job meets: it leaves from this host, bound to no device.
_NEVER = ("iif", "oif", "l3mdev", "tun_id", "tos")


@dataclass(frozen=True)
class Way:
    """Where packets to some peers go.

    Args:
        peers: their addresses.
        outcome: "unicast", one of ``LOST``, "local", or ``NO_ROUTE``.
        rule: that looked up the table, or lost the packet itself; None where no rule matched.
        route: that was found, None where there is none; of ``NO_ROUTE`` the one that left them to other tables.
        certain: whether nothing else decides if ``rule`` is for them.
    """

    peers: Spans
    outcome: str
    rule: PolicyRule | None = None
    route: FibRoute | None = None
    certain: bool = True


def ways(
    routing: Routing, peers: Spans, source: str | None, mark: int | None = 0
) -> tuple[Way, ...]:
    """Return where packets to ``peers`` go.

    Args:
        routing: of the host.
        peers: addresses.
        source: of the packets; None while the kernel has yet to choose one of IPv4, "::" one of IPv6.
        mark: of the packets, by which rules choose (fwmark); None where it is not known.
    """
    return tuple(_from(routing, 0, peers, source, mark)) if peers else ()


def _from(
    routing: Routing, at: int, peers: Spans, source: str | None, mark: int | None
) -> Iterator[Way]:
    """Try the rules from the one at position ``at`` on."""
    thrown: list[Way] = []
    for place, rule in enumerate(routing.rules[at:], at):
        part, certain = _matched(rule, peers, source, mark)
        if not part:
            continue
        if rule.action == "goto":
            hits = _jumped(routing, place, part, source, mark) if certain else ()
        else:
            every = tuple(_by_rule(routing, rule, part, certain=certain))
            thrown += (way for way in every if way.outcome == _THROW)
            hits = tuple(way for way in every if way.outcome != _THROW)
        yield from hits
        if certain:
            peers = spans.minus(peers, _together(hits))
    for way in thrown:
        if part := spans.meet(peers, way.peers):
            yield Way(part, NO_ROUTE, way.rule, way.route)
            peers = spans.minus(peers, part)
    if peers:
        yield Way(peers, NO_ROUTE)


def _together(hits: Sequence[Way]) -> Spans:
    """Return all peers of some ways."""
    if len(hits) == 1:
        return hits[0].peers
    return spans.merge(span for way in hits for span in way.peers)


def _jumped(
    routing: Routing, at: int, peers: Spans, source: str | None, mark: int | None
) -> tuple[Way, ...]:
    """Go on from the rule to which the one at position ``at`` leads; without it, that one is passed over."""
    target = routing.rules[at].text.partition("goto ")[2].split(" ")[0]
    for place, rule in enumerate(routing.rules[at + 1 :], at + 1):
        if str(rule.priority) == target:
            return tuple(_from(routing, place, peers, source, mark))
    return ()


def _by_rule(routing: Routing, rule: PolicyRule, peers: Spans, *, certain: bool) -> Iterator[Way]:
    """Yield where a rule sends peers; those that it does not settle are left to the next."""
    if rule.action in LOST:
        yield Way(peers, rule.action, rule, certain=certain)
    elif rule.action == "lookup":
        for route, hit in _looked_up(routing, rule, peers):
            yield Way(hit, route.kind, rule, route, certain)


def _matched(
    rule: PolicyRule, peers: Spans, source: str | None, mark: int | None
) -> tuple[Spans, bool]:
    """Return those of ``peers`` that a rule is for, and whether that is certain."""
    certain = True
    for condition in rule.conditions:
        key, _, value = condition.partition(" ")
        if (key, value) in (("iif", "lo"), ("ipproto", "tcp"), ("ipproto", "6")):
            continue
        marked = is_marked(value, mark) if key == "fwmark" else None
        if key in ("sport", "dport") and not _is_ours(value):
            marked = False
        if key in (*_NEVER, "ipproto") or marked is False:
            return (peers, True) if rule.inverted else ((), True)
        certain = certain and marked is True  # ports, users: for some packets
    part = peers
    if rule.destination != "all":
        part = spans.meet(part, spans.of_networks([rule.destination]))
    if rule.source != "all":
        address = spans.of_networks([source or "0.0.0.0"])  # noqa: S104 - what an unbound socket has
        if not spans.meet(address, spans.of_networks([rule.source])):
            part = ()
    if rule.inverted:
        part = spans.minus(peers, part)
    return part, certain


def _is_ours(ports: str) -> bool:
    """Return whether some of a rule's ports are those of launchers, of workers or of sshd."""
    low, _, high = ports.partition("-")
    if not (low.isdecimal() and (high or low).isdecimal()):
        return True
    return int(high or low) >= UNPRIVILEGED or int(low) <= SSH <= int(high or low)


def is_marked(value: str, mark: int | None) -> bool | None:
    """Return whether packets with a mark are those of a rule's ``fwmark VALUE[/MASK]``; None: not known."""
    number, _, mask = value.partition("/")
    try:
        target, bits = int(number, 0), int(mask, 0) if mask else 2**32 - 1
    except ValueError:
        return None
    return None if mark is None else (mark ^ target) & bits == 0


def _looked_up(
    routing: Routing, rule: PolicyRule, peers: Spans
) -> Iterator[tuple[FibRoute, Spans]]:
    """Yield each route of a rule's table with the peers that it takes."""
    for route in _in_order(routing.routes)(rule.table):
        if not peers:
            return
        part = spans.meet(peers, covered(route))
        peers = spans.minus(peers, part)
        if part and (route.kind == _THROW or length(route) > rule.suppress):
            yield route, part


@once_alike
def _in_order(routes: Sequence[FibRoute]) -> Callable[[str], list[FibRoute]]:
    """Return what gives the routes of a table in order: each is asked for many times."""
    return lru_cache(maxsize=MOST_TABLES)(partial(in_order, routes))


def in_order(routes: Sequence[FibRoute], table: str) -> list[FibRoute]:
    """Return the routes of a table, that which is tried first first."""
    alive = (r for r in routes if r.table == table and "dead" not in r.text.split())
    return sorted(alive, key=lambda route: (-length(route), route.metric))


def covered(route: FibRoute) -> Spans:
    """Return the addresses that a route is for."""
    if route.destination == "default":
        return spans.ALL_ADDRESSES
    return spans.of_networks([route.destination])


def hops_of(route: FibRoute) -> tuple[tuple[str, str], ...]:
    """Return interface and gateway ("" for none) of each way of a route of several; () of any other."""
    _, *hops = route.text.split(" nexthop ")
    pairs = (dict(pairwise(hop.split())) for hop in hops)
    return tuple((pair["dev"], pair.get("via", "")) for pair in pairs if "dev" in pair)


def length(route: FibRoute) -> int:
    """Return the length of a route's prefix."""
    if route.destination == "default":
        return 0
    return int(route.destination.partition("/")[2] or (128 if ":" in route.destination else 32))


def without(routing: Routing, culprit: FibRoute | PolicyRule) -> Routing:
    """Return the routing once a route or a rule is gone."""
    if isinstance(culprit, FibRoute):
        routes = tuple(route for route in routing.routes if route != culprit)
        return routing.model_copy(update={"routes": routes})
    rules = tuple(rule for rule in routing.rules if rule != culprit)
    return routing.model_copy(update={"rules": rules})


def with_one(routing: Routing, addition: FibRoute | PolicyRule) -> Routing:
    """Return the routing with one more route or rule."""
    if isinstance(addition, FibRoute):
        routes = in_text_order((*routing.routes, addition))
        return routing.model_copy(update={"routes": routes})
    rules = sorted((*routing.rules, addition), key=lambda rule: rule.priority)
    return routing.model_copy(update={"rules": tuple(rules)})


def route_of(words: Sequence[str]) -> FibRoute:
    """Return the plain route that is typed like this after `ip route add`."""
    kind = "unicast" if words[0][:1].isdigit() or words[0] == "default" else words[0]
    rest = words[kind != "unicast" :]
    values = dict(zip(rest[1::2], rest[2::2], strict=True))
    return FibRoute(
        kind=kind,
        destination=rest[0],
        gateway=values.get("via", ""),
        interface=values.get("dev", ""),
        table=values.get("table", "main"),
        protocol=values.get("proto", ""),
        metric=int(values.get("metric", 0)),
        source=values.get("src", ""),
        plain=True,
        text=" ".join(words),
    )


def rule_of(words: Sequence[str]) -> PolicyRule:
    """Return the plain rule that is typed like this after `ip rule add`, of those that lose packets."""
    action = next(word for word in words if word in LOST)
    rest = [word for word in words if word != action]
    values = dict(zip(rest[::2], rest[1::2], strict=True))
    return PolicyRule(
        priority=int(values["priority"]),
        source=values.get("from", "all"),
        destination=values.get("to", "all"),
        inverted=False,
        conditions=(),
        action=action,
        table="",
        suppress=-1,
        plain=True,
        text=" ".join(words),
    )
