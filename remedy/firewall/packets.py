"""Packets between a host and its peers, and what a condition of a rule says of them.

A part of the traffic is a set of packets: from or to some peers, from some ports to some ports, in one state of
connection tracking, with one mark. A condition either narrows that set (addresses, ports), holds or fails for
the whole of it, or cannot be answered from rules and facts alone: a rate, a time of day, the user of a
process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from remedy.firewall import spans
from remedy.firewall.spans import Spans

NEW, ESTABLISHED, UNTRACKED, INVALID = "new", "established", "untracked", "invalid"
REQUEST, REPLY = "request", "reply"
SOLICITS, ADVERTISES = "nd-neighbor-solicit", "nd-neighbor-advert"
"""States of parts; the last two are operations of ARP."""

PEERS, SPORTS, DPORTS = range(3)
"""What a condition can narrow."""

_ALL = {
    "ip": (spans.ALL_ADDRESSES, spans.ALL_PORTS, spans.ALL_PORTS),
    "ip6": (spans.ALL_IPV6_ADDRESSES, spans.ALL_PORTS, spans.ALL_PORTS),
    "arp": (spans.ALL_ADDRESSES, spans.ALL_PORTS, spans.ALL_PORTS),
    "nd": (spans.ALL_IPV6_ADDRESSES, spans.ALL_PORTS, spans.ALL_PORTS),
}

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
_LATER = frozenset({ACK, PSH | ACK, FIN | ACK, FIN | PSH | ACK, RST, RST | ACK})


class Box(NamedTuple):
    """Addresses of peers, ports where packets come from, ports where they go to; None: all of them."""

    peers: Spans | None = None
    sports: Spans | None = None
    dports: Spans | None = None


EVERYTHING = Box()


class Part(NamedTuple):
    """A set of packets.

    ``state``: what connection tracking says of them; of ARP the operation. ``reply``: whether they answer, so
    that ``sports`` are the ports of the service. ``mark``: None where it is not known. ``why``: the rule on
    which it depends whether they get here at all; "" where they do. ``opens``: whether they
    are the first answer of a connection. ``zoned``: whether connection tracking has them in a zone of
    their own.
    """

    peers: Spans
    sports: Spans
    dports: Spans
    state: str = NEW
    reply: bool = False
    mark: int | None = 0
    why: str = ""
    opens: bool = False
    zoned: bool = False

    @property
    def ports(self) -> Spans:
        """The ports of the service, on whichever side it is."""
        return self.sports if self.reply else self.dports


@dataclass(frozen=True)
class Condition:
    """One condition of a rule.

    Args:
        field: what it looks at, a key of this module's tables; any other word cannot be answered.
        values: numbers, or words; None where they are not known.
        negated: whether it holds for all others.
        mask: of a mark or of flags: the bits that count.
    """

    field: str
    values: Spans | frozenset[str] | None = None
    negated: bool = False
    mask: int = 2**32 - 1


@dataclass(frozen=True)
class Either:
    """A condition that holds where all conditions of one of its alternatives do."""

    alternatives: tuple[tuple[Condition, ...], ...]
    negated: bool = False


Test: TypeAlias = "Condition | Either"


@dataclass(frozen=True)
class Flow:
    """The way of packets through this host's hooks.

    Args:
        way: whether peers send them or get them.
        interfaces: by one of which they pass; () where that is not known.
        address: of this host, in the cluster; None where it is not known.
        ether: what an Ethernet frame carries: "ip", "ip6" or "arp"; "nd" is neighbour discovery over IPv6.
        bridged: whether the interface is a bridge, of which ``interfaces`` are the ports.
        bridge: its name.
        symmetric: whether the route back to each peer leads through the same interface; None: not known.
        connection_marks: whether some rule of this host gives connections a mark.
        marks_given: the bits that marks can have which rules of this host give.
        local: of forwarded packets, the addresses on this side in place of ``address``; () for all others.
        onward: of forwarded packets, the interfaces by one of which they leave.
    """

    way: Literal["in", "out"]
    interfaces: tuple[str, ...] = ()
    address: int | None = None
    ether: Literal["ip", "ip6", "arp", "nd"] = "ip"
    bridged: bool = False
    bridge: str = ""
    symmetric: bool | None = None
    connection_marks: bool = False
    marks_given: int = 2**32 - 1
    local: Spans = ()
    onward: tuple[str, ...] = ()


Answer: TypeAlias = "tuple[int, Spans] | bool | None"
"""The dimension that a condition narrows and to what; or whether it holds; None: that is not known."""

FEWEST_HOPS = 32
"""A rule that gives packets as many hops, or more, loses none on the way to a peer."""

SMALLEST_SEGMENT = 536
"""Bytes that every host of IPv4 takes at once (RFC 9293); below that connections crawl."""

OF_PARTS = frozenset({"mark", "state", "direction", "flags", "mss", "arp-operation", "icmpv6 type"})
"""Conditions that hold for some parts and fail for others, see ``check``."""


def ask(condition: Condition, flow: Flow) -> Answer:
    """Return what a condition says of all packets of a flow."""
    if condition.field == "never" or flow.ether not in _carried(condition.field):
        return False  # of another protocol: the rule is about none of these packets, negated or not
    answer = _positive(condition, flow)
    if not condition.negated or answer is None:
        return answer
    if isinstance(answer, bool):
        return not answer
    dimension, numbers = answer
    return dimension, spans.minus(_ALL[flow.ether][dimension], numbers)


_CARRIED = {
    **dict.fromkeys(("saddr", "daddr"), ("ip",)),
    **dict.fromkeys(("saddr6", "daddr6"), ("ip6", "nd")),
    **dict.fromkeys(("sport", "dport", "flags", "mss"), ("ip", "ip6")),
    "l4proto": ("ip", "ip6", "nd"),
    "icmpv6 type": ("nd",),
    **dict.fromkeys(("arp-saddr", "arp-daddr", "arp-operation"), ("arp",)),
}
_FAMILY = {"ipv4": "ip", "ipv6": "ip6", "arp": "arp"}


def _carried(field: str) -> tuple[str, ...]:
    """Return which of the protocols in a frame have what a condition looks at."""
    first = field.partition(" ")[0]  # another field of one of them: "ip ttl"
    frames = ("ip6", "nd") if first == "ip6" else (first,)
    return _CARRIED.get(field) or (frames if first in _ALL else tuple(_ALL))


def _positive(condition: Condition, flow: Flow) -> Answer:
    field, values = condition.field, condition.values
    if values is None:
        return None
    if field in ("sport", "dport"):
        return (SPORTS if field == "sport" else DPORTS), _numbers(values)
    address = field.removeprefix("arp-").removesuffix("6")
    if address in ("saddr", "daddr"):
        if flow.ether == "nd" and address == "daddr":
            return None  # a group that many hosts are in, or whoever has asked (RFC 4861)
        if (address == "saddr") is (flow.way == "in"):
            return PEERS, _numbers(values)
        return _of_this_side(_numbers(values), flow)
    if field == "connection-mark":
        return None if flow.connection_marks else spans.holds(_numbers(values), 0)
    return _of_words(field, _words(values), flow)


def _of_this_side(numbers: Spans, flow: Flow) -> bool | None:
    """Return whether the addresses on this side are among some; None: some of them, or not known."""
    if not flow.local:
        return None if flow.address is None else spans.holds(numbers, flow.address)
    common = spans.meet(numbers, flow.local)
    return True if common == flow.local else None if common else False


def _of_words(field: str, words: frozenset[str], flow: Flow) -> bool | None:
    """Return the answer to a condition whose values are words."""
    if field in ("iif", "oif"):
        return _of_device(field, words, flow)
    if field == "bridge-name":
        return flow.bridged and _matches(words, flow.bridge)
    if field in ("fib-daddr", "fib-saddr"):
        is_local = not flow.onward and (field == "fib-daddr") is (flow.way == "in")
        return ("local" if is_local else "unicast") in words
    if field == "reverse-path":
        return "same" in words if flow.symmetric and flow.way == "in" else None
    if field == "connection-status":
        return False if words <= {"dnat", "snat"} else None
    if field == "physical-port":
        return None if flow.bridged else False
    if field == "fragments":
        return False  # of TCP none after the first, while paths are found to be as wide as they are
    if flow.ether == "nd":
        known = _OF_DISCOVERY
    else:
        known = {
            "ethertype": (flow.ether,),
            "nfproto": tuple(name for name, ether in _FAMILY.items() if ether == flow.ether),
            **dict.fromkeys(("l4proto", "ip protocol", "ip6 nexthdr"), ("tcp",)),
            "packet-type": ("host",),
        }
    return not words.isdisjoint(known[field]) if field in known else None


def _of_device(field: str, words: frozenset[str], flow: Flow) -> bool | None:
    """Return the answer to a condition on the interface by which packets come, or leave."""
    if flow.onward:
        return _by_interface(words, flow.interfaces if field == "iif" else flow.onward)
    return (field == "iif") is (flow.way == "in") and _by_interface(words, flow.interfaces)


_OF_DISCOVERY: Mapping[str, tuple[str, ...]] = {
    "ethertype": ("ip6",),
    "nfproto": ("ipv6",),
    **dict.fromkeys(("l4proto", "ip6 nexthdr"), ("icmpv6", "ipv6-icmp", "58")),
    "ip6 hoplimit": ("255",),
}


def _by_interface(patterns: frozenset[str], interfaces: tuple[str, ...]) -> bool | None:
    answers = {_matches(patterns, name) for name in interfaces}
    return answers.pop() if len(answers) == 1 else None


def _matches(patterns: frozenset[str], name: str) -> bool:
    """Return whether a name is among them, or begins with what stands before a ``*`` at the end."""
    return name in patterns or any(
        pattern.endswith("*") and name.startswith(pattern[:-1]) for pattern in patterns
    )


def _numbers(values: Spans | frozenset[str]) -> Spans:
    return values if isinstance(values, tuple) else ()


def _words(values: Spans | frozenset[str]) -> frozenset[str]:
    return values if isinstance(values, frozenset) else frozenset()


def check(condition: Condition, part: Part) -> bool | None:
    """Return whether a condition of ``OF_PARTS`` holds for a part; None: for some of it, or not known."""
    answer = _checked(condition, part)
    return answer if answer is None else answer is not condition.negated


def _checked(condition: Condition, part: Part) -> bool | None:
    values = condition.values
    if values is None:
        return None
    if condition.field == "mark":
        if part.mark is None:
            return None
        return spans.holds(_numbers(values), part.mark & condition.mask)
    if condition.field == "flags":
        numbers = _numbers(values)
        answers = {spans.holds(numbers, flags & condition.mask) for flags in _flags(part)}
        return answers.pop() if len(answers) == 1 else None
    if condition.field == "mss":
        return _largest_segment(_numbers(values), part)
    if condition.field == "icmpv6 type":
        return (ADVERTISES if part.reply else SOLICITS) in _words(values)
    if condition.field == "direction":
        return ("reply" if part.reply else "original") in _words(values)
    return part.state in _words(values)


SEGMENTS = ((SMALLEST_SEGMENT, 65495),)
"""Largest segments that hosts offer: of the least MTU to be expected (RFC 9293), and of the largest."""


def _largest_segment(numbers: Spans, part: Part) -> bool | None:
    """Return whether the largest segment that packets offer is among some numbers; most packets offer none."""
    if part.state != NEW and not part.opens:
        return False if part.state == ESTABLISHED else None
    common = spans.meet(numbers, SEGMENTS)
    return True if common == SEGMENTS else None if common else False


def _flags(part: Part) -> frozenset[int]:
    """Return the flags of TCP that packets of a part can have."""
    if part.state == NEW:
        return frozenset({SYN})
    if part.opens:
        return frozenset({SYN | ACK})
    return _LATER if part.state == ESTABLISHED else _LATER | {SYN, SYN | ACK}


def discovery(flow: Flow) -> Flow:
    """Return the flow of questions for hardware addresses over IPv6, and of the answers."""
    return replace(flow, ether="nd")


def arp(flow: Flow) -> Flow:
    """Return the flow of the ARP packets that go the same way."""
    return replace(flow, ether="arp")
