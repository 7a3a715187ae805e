"""Options of iptables(8) and its extensions (iptables-extensions(8)) that can be answered, as conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_

from remedy.firewall import spans
from remedy.firewall.packets import (
    ACK,
    ADVERTISES,
    FIN,
    PSH,
    RST,
    SOLICITS,
    SYN,
    Condition,
    Either,
    Test,
)
from remedy.firewall.spans import Spans

READABLE = frozenset(
    {"tcp", "udp", "icmp", "icmp6", "sctp", "dccp", "udplite", "ah", "esp", "comment", "multiport", "conntrack"}
    | {"state", "addrtype", "mark", "connmark", "set", "iprange", "pkttype", "physdev", "rpfilter", "tcpmss"}
    | {"rt", "hbh", "dst", "frag", "mh", "hl"}
)  # fmt: skip
"""Modules of which every option is read, or is found unreadable by itself."""

_OPERATIONS = {"1": "request", "2": "reply"}
_PROTOCOLS = {"6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6", "0": "all"}
_FLAGS = {
    "FIN": FIN,
    "SYN": SYN,
    "RST": RST,
    "PSH": PSH,
    "ACK": ACK,
    "URG": 32,
    "ALL": 63,
    "NONE": 0,
}


def _addresses(name: str) -> Callable[[Sequence[str], bool], Test]:
    return lambda values, negated: Condition(name, spans.of_networks(values[0].split(",")), negated)


def _range(name: str) -> Callable[[Sequence[str], bool], Test]:
    def read(values: Sequence[str], negated: bool) -> Test:
        low, _, high = values[0].partition("-")
        ((start, _),), ((_, end),) = spans.of_networks([low]), spans.of_networks([high or low])
        return Condition(name, ((start, end),), negated)

    return read


def _ports(name: str) -> Callable[[Sequence[str], bool], Test]:
    return lambda values, negated: Condition(name, _port_numbers(values[0]), negated)


def _port_numbers(text: str) -> Spans:
    ranges = []
    for part in text.split(","):
        low, colon, high = part.partition(":")
        ranges.append((int(low or 0), int(high or 65535) if colon else int(low)))
    return spans.merge(ranges)


def _either_port(values: Sequence[str], negated: bool) -> Test:
    numbers = _port_numbers(values[0])
    return Either(((Condition("sport", numbers),), (Condition("dport", numbers),)), negated)


def _of_words(name: str) -> Callable[[Sequence[str], bool], Test]:
    return lambda values, negated: Condition(name, frozenset(values[0].lower().split(",")), negated)


def _interface(name: str) -> Callable[[Sequence[str], bool], Test]:
    return lambda values, negated: Condition(
        name, frozenset({re.sub(r"\+$", "*", values[0])}), negated
    )


def _protocol(values: Sequence[str], negated: bool) -> Test:
    name = _PROTOCOLS.get(values[0].lower(), values[0].lower())
    names = frozenset({"tcp"}) if name == "all" else frozenset({name})
    return Condition("l4proto", names, negated)


def _is(name: str, *words: str) -> Callable[[Sequence[str], bool], Test]:
    return lambda _, negated: Condition(name, frozenset(words), negated)


def _syn(_: Sequence[str], negated: bool) -> Test:
    return Condition("flags", ((SYN, SYN),), negated, FIN | SYN | RST | ACK)


def _tcp_flags(values: Sequence[str], negated: bool) -> Test:
    mask, expected = (
        reduce(or_, (_FLAGS[name] for name in text.upper().split(",") if name), 0)
        for text in values[:2]
    )
    return Condition("flags", ((expected, expected),), negated, mask)


_DISCOVERY = {
    **dict.fromkeys(("135", "neighbour-solicitation", "neighbor-solicitation"), SOLICITS),
    **dict.fromkeys(("136", "neighbour-advertisement", "neighbor-advertisement"), ADVERTISES),
}


def _icmp_type(text: str) -> str:
    """Return a type of ICMPv6 as nftables has it, of those that matter here."""
    return _DISCOVERY.get(text.partition("/")[0], text)


def mark(name: str, text: str, negated: bool) -> Test:
    number, _, mask = text.partition("/")
    try:
        bits = int(mask, 0) if mask else 2**32 - 1
        expected = int(number, 0)
    except ValueError:
        return Condition(name, None, negated)
    return Condition(name, ((expected, expected),), negated, bits)


OPTIONS: Mapping[str, Callable[[Sequence[str], bool], Test]] = {
    **dict.fromkeys(("-s", "--source", "--src"), _addresses("saddr")),
    **dict.fromkeys(("-d", "--destination", "--dst"), _addresses("daddr")),
    "--src-range": _range("saddr"),
    "--dst-range": _range("daddr"),
    **dict.fromkeys(("--sport", "--sports", "--source-port", "--source-ports"), _ports("sport")),
    **dict.fromkeys(
        ("--dport", "--dports", "--destination-port", "--destination-ports"), _ports("dport")
    ),
    **dict.fromkeys(("--port", "--ports"), _either_port),
    **dict.fromkeys(("-p", "--protocol", "--proto"), _protocol),
    **dict.fromkeys(("-i", "--in-interface"), _interface("iif")),
    **dict.fromkeys(("-o", "--out-interface"), _interface("oif")),
    **dict.fromkeys(("--ctstate", "--state"), _of_words("state")),
    "--ctdir": _of_words("direction"),
    "--ctproto": _protocol,
    "--ctstatus": _of_words("connection-status"),
    "--dst-type": _of_words("fib-daddr"),
    "--src-type": _of_words("fib-saddr"),
    "--pkt-type": lambda values, negated: Condition(
        "packet-type", frozenset({values[0].lower().replace("unicast", "host")}), negated
    ),
    "--syn": _syn,
    "--mss": _ports("mss"),
    "--tcp-flags": _tcp_flags,
    **dict.fromkeys(
        ("--physdev-in", "--physdev-out", "--physdev-is-in", "--physdev-is-out"),
        _is("physical-port", "any"),
    ),
    "--physdev-is-bridged": _is("physical-port", "any"),
    **dict.fromkeys(("-f", "--fragment"), _is("fragments", "any")),
    # TCP of the cluster has none of the headers that IPv6 can have in front of it.
    **dict.fromkeys(
        (
            "--rt-type",
            "--rt-segsleft",
            "--rt-len",
            "--rt-0-res",
            "--rt-0-addrs",
            "--hbh-len",
            "--hbh-opts",
        ),
        _is("fragments", "any"),
    ),
    **dict.fromkeys(
        (
            "--dst-len",
            "--dst-opts",
            "--fragid",
            "--fragres",
            "--fraglen",
            "--fragfirst",
            "--fragmore",
            "--fraglast",
        ),
        _is("fragments", "any"),
    ),
    "--opcode": lambda values, negated: Condition(
        "arp-operation", frozenset({_OPERATIONS.get(values[0], values[0].lower())}), negated
    ),
    **dict.fromkeys(("--h-length", "--h-type", "--proto-type"), _is("ethertype", "arp")),
    **dict.fromkeys(
        ("--icmpv6-type",),
        lambda values, negated: Condition(
            "icmpv6 type", frozenset({_icmp_type(values[0])}), negated
        ),
    ),
    "--hl-eq": _of_words("ip6 hoplimit"),
    "--limit-iface-in": lambda _, negated: Condition("limit-iface-in", None, negated),
    "--limit-iface-out": lambda _, negated: Condition("limit-iface-out", None, negated),
}
