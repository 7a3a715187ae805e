"""One rule of a configuration of nftables: each word of it becomes what libnftables-json(5) has for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from remedy.firewall.boot.nft_rule import expression
from remedy.firewall.boot.nft_text import tokens_of

DROP = {"drop": None}


def read(rule: str) -> list[dict[str, Any]]:
    return expression(tokens_of(rule))


def payload(protocol: str, name: str) -> dict[str, Any]:
    return {"payload": {"protocol": protocol, "field": name}}


def match(left: object, right: object, op: str = "==") -> dict[str, Any]:
    return {"match": {"op": op, "left": left, "right": right}}


DPORT, SADDR, MARK = payload("tcp", "dport"), payload("ip", "saddr"), {"meta": {"key": "mark"}}
STATE, IIFNAME = {"ct": {"key": "state"}}, {"meta": {"key": "iifname"}}
FLAGS = payload("tcp", "flags")
HEADERS = {
    "ip": "saddr daddr protocol version ttl dscp id length frag-off checksum",
    "ip6": "saddr daddr nexthdr hoplimit dscp flowlabel length",
    "tcp": "dport sport flags sequence ackseq window doff",
    "udp": "dport sport length",
    "th": "dport sport",
    "sctp": "dport sport",
    "dccp": "dport sport type",
    "udplite": "dport sport",
    "icmp": "type code id sequence mtu gateway",
    "icmpv6": "type code id sequence mtu",
    "ether": "saddr daddr type",
    "arp": "operation htype ptype saddr daddr",
    "vlan": "id type",
}
"""Of nft(8), PAYLOAD EXPRESSIONS."""
META = (
    "iif oif iifname oifname iiftype oiftype mark l4proto nfproto protocol pkttype skuid skgid cpu length "
    "priority cgroup iifgroup oifgroup"
)


@pytest.mark.parametrize(
    ("header", "name"), [(header, name) for header, all_ in HEADERS.items() for name in all_.split()]
)  # fmt: skip
def test_a_field_of_a_header_is_read(header: str, name: str) -> None:
    assert read(f"{header} {name} 7 drop") == [match(payload(header, name), 7), DROP]


@pytest.mark.parametrize("key", META.split())
def test_what_the_kernel_knows_of_a_packet_is_read(key: str) -> None:
    assert read(f"meta {key} 7 drop") == [match({"meta": {"key": key}}, 7), DROP]


@pytest.mark.parametrize(
    "key", ["iif", "oif", "iifname", "oifname", "mark", "pkttype", "skuid", "skgid"]
)
def test_some_of_it_needs_no_meta(key: str) -> None:
    assert read(f"{key} 7 drop") == [match({"meta": {"key": key}}, 7), DROP]


@pytest.mark.parametrize("key", ["state", "status", "mark", "direction"])
def test_what_is_known_of_a_connection_is_read(key: str) -> None:
    assert read(f"ct {key} 7 drop") == [match({"ct": {"key": key}}, 7, "in"), DROP]
    assert read(f"ct {key} != 7 drop") == [match({"ct": {"key": key}}, 7, "!="), DROP]


@pytest.mark.parametrize(
    ("word", "op"),
    [*((op, op) for op in ("==", "!=", "<", ">", "<=", ">=")), ("eq", "=="), ("ne", "!=")],
)
def test_an_operator_is_read(word: str, op: str) -> None:
    assert read(f"tcp dport {word} 22 drop") == [match(DPORT, 22, op), DROP]


@pytest.mark.parametrize(
    ("name", "port"),
    [
        ("ssh", 22), ("domain", 53), ("http", 80), ("https", 443), ("ntp", 123), ("nfs", 2049), ("sunrpc", 111),
        ("smtp", 25), ("bootps", 67), ("bootpc", 68), ("snmp", 161), ("ldap", 389), ("mysql", 3306),
        ("postgresql", 5432),
    ],
)  # fmt: skip
def test_a_service_is_its_port(name: str, port: int) -> None:
    assert read(f"tcp dport {name} drop") == [match(DPORT, port), DROP]
    assert read(f"tcp dport {name}-65535 drop") == [match(DPORT, {"range": [port, 65535]}), DROP]


NETWORK = {"prefix": {"addr": "10.0.0.0", "len": 8}}


@pytest.mark.parametrize(
    ("text", "left", "right"),
    [
        ("tcp dport 1-5", DPORT, {"range": [1, 5]}),
        ("tcp dport {22, 80-90}", DPORT, {"set": [22, {"range": [80, 90]}]}),
        ("tcp dport { 22, }", DPORT, {"set": [22]}),
        ("tcp dport 22, 23, 24", DPORT, [22, 23, 24]),
        ("ip saddr 10.0.0.0/8", SADDR, NETWORK),
        ("ip saddr 10.0.0.1-10.0.0.9", SADDR, {"range": ["10.0.0.1", "10.0.0.9"]}),
        ("ip6 saddr fe80::1-fe80::9", payload("ip6", "saddr"), {"range": ["fe80::1", "fe80::9"]}),
        ("ip saddr @trusted", SADDR, "@trusted"),
        ("ip saddr { 10.0.0.1 timeout 5s expires 3s, 10.0.0.2 comment \"b\", 10.0.0.3 counter }", SADDR,
         {"set": ["10.0.0.1", "10.0.0.2", "10.0.0.3"]}),
        ("ip saddr { 10.0.0.0/8, 10.1.0.1 }", SADDR, {"set": [NETWORK, "10.1.0.1"]}),
        ("meta mark 0x1f", MARK, 31),
        ("iifname *", IIFNAME, "*"),
        ('iifname "22"', IIFNAME, "22"),
        ("iifname eth0-lan", IIFNAME, "eth0-lan"),
        ("iifname eth-", IIFNAME, "eth-"),
        ("iifname bond1-2", IIFNAME, "bond1-2"),
        ("tcp flags syn", FLAGS, "syn"),
        ("tcp flags & (fin | syn) == syn", {"&": [FLAGS, ["fin", "syn"]]}, "syn"),
        ("tcp flags & syn == 0", {"&": [FLAGS, ["syn"]]}, 0),
        ("tcp flags & (fin|syn) == fin | syn", {"&": [FLAGS, ["fin", "syn"]]}, ["fin", "syn"]),
        ("fib daddr type local", {"fib": {"result": "type", "flags": ["daddr"]}}, "local"),
        ("fib saddr . iif oif missing", {"fib": {"result": "oif", "flags": ["saddr", "iif"]}}, "missing"),
        ("fib saddr . mark . iif oif 0", {"fib": {"result": "oif", "flags": ["saddr", "mark", "iif"]}}, 0),
    ],
)  # fmt: skip
def test_values_are_read(text: str, left: object, right: object) -> None:
    assert read(f"{text} drop") == [match(left, right), DROP]


def test_flags_that_must_not_be_are_read() -> None:
    left = {"&": [FLAGS, ["syn"]]}
    assert read("tcp flags & syn != syn drop") == [match(left, "syn", "!="), DROP]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("{ 22 : accept, 23 : drop }", [[22, {"accept": None}], [23, DROP]]),
        ("{ 22: return, 25: continue, }", [[22, {"return": None}], [25, {"continue": None}]]),
        ("{ 80 : jump web, 443 : goto web }",
         [[80, {"jump": {"target": "web"}}], [443, {"goto": {"target": "web"}}]]),
        ("{ 1-5 : drop, ssh: accept }", [[{"range": [1, 5]}, DROP], [22, {"accept": None}]]),
    ],
)  # fmt: skip
def test_a_map_of_verdicts_is_read(entries: str, expected: list[object]) -> None:
    vmap = {"vmap": {"key": DPORT, "data": {"set": expected}}}
    assert read(f"tcp dport vmap {entries} drop") == [vmap, DROP]


def test_a_map_may_have_a_name() -> None:
    assert read("tcp dport vmap @ports drop") == [{"vmap": {"key": DPORT, "data": "@ports"}}, DROP]


@pytest.mark.parametrize(
    ("rule", "kinds"),
    [
        ("counter drop", "counter drop"),
        ("counter packets 3 bytes 9 drop", "counter drop"),
        ("counter name web drop", "counter drop"),
        ("log drop", "log drop"),
        ('log prefix "a" level warn group 3 snaplen 9 queue-threshold 2 flags all drop', "log drop"),
        ("notrack drop", "notrack drop"),
        ('drop comment "why"', "drop"),
        ("reject with icmp type host-prohibited counter", "reject counter"),
        ("reject with icmpv6 type no-route counter", "reject counter"),
        ("reject with tcp reset counter", "reject counter"),
        ("reject counter", "reject counter"),
        ("continue counter", "continue counter"),
        ("limit rate 5/second drop", "limit drop"),
        ("limit rate over 5/minute drop", "limit drop"),
        ("limit rate 5/second burst 9 packets drop", "limit drop"),
        ("limit rate over 5/second burst 9 packets drop", "limit drop"),
        ("limit rate 10 bytes/second drop", "limit drop"),
        ("limit rate over 10 kbytes/second drop", "limit drop"),
        ("limit rate 10 mbytes/second burst 9 kbytes drop", "limit drop"),
        ("masquerade random", "masquerade"),
        ("snat to 10.0.0.9", "snat"),
        ("dnat to 10.0.0.9:80", "dnat"),
        ("redirect to :80", "redirect"),
        ("queue num 3 bypass", "queue"),
        ("meta mark set 5 drop", "mangle drop"),
        ("ct mark set 5 drop", "mangle drop"),
    ],
)  # fmt: skip
def test_a_statement_ends_where_the_next_begins(rule: str, kinds: str) -> None:
    assert [next(iter(statement)) for statement in read(rule)] == kinds.split()


def test_a_statement_that_changes_a_packet_names_what() -> None:
    assert read("meta mark set 5") == [{"mangle": {"key": MARK, "value": 5}}]


@pytest.mark.parametrize("word", ["masquerade", "limit"])
def test_a_statement_that_is_not_taken_apart_is_shown_in_part(word: str) -> None:
    ((value),) = [statement[word]["text"] for statement in read(f"{word} to {'x' * 500}")]
    assert value.startswith(f"{word} to xxx")
    assert len(value) == 120


@pytest.mark.parametrize(
    "rule",
    [
        "frobnicate 3",
        "tcp frobnicate 3",
        "meta frobnicate 3",
        "ct frobnicate 3",
        "ip saddr & 255.0.0.0 == 10.0.0.0",
        "ip saddr and 255.0.0.0 == 10.0.0.0",
        "ip saddr | 255.0.0.0 == 10.0.0.0",
        "ip saddr ^ 255.0.0.0 == 10.0.0.0",
        "ip saddr . tcp dport { 10.0.0.1 . 22 }",
        "tcp flags & (fin | syn = syn",
        "tcp flags & (fin | syn) < syn",
        "meta mark 1 & 3",
        "meta mark 1 | 3",
        "meta mark 1 / 3",
        "meta mark 1 and 3",
        "meta mark 1 or 3",
        "tcp dport ! 22",
        "tcp dport = 22",
        "tcp dport ( 22 )",
        "tcp dport != { 22 . 23 }",
        "tcp dport , 22",
        "ip saddr 10.0.0.0/x",
        "meta mark 0xzz",
        "tcp dport vmap 22",
        "tcp dport vmap { 22 80 : jump x }",
    ],
)
@pytest.mark.parametrize("verdict", ["accept", "drop", "continue", "return", "reject"])
def test_what_is_not_understood_is_shown_and_keeps_its_verdict(rule: str, verdict: str) -> None:
    assert read(f"counter {rule} {verdict}") == [
        {"counter": None},
        {"unread": " ".join(tokens_of(f"{rule} {verdict}"))},
        {verdict: None} if "jump" not in rule else {"jump": {"target": "x"}},
    ]


@pytest.mark.parametrize(
    ("rule", "ending"),
    [
        ("frobnicate jump x", [{"jump": {"target": "x"}}]),
        ("frobnicate goto x", [{"goto": {"target": "x"}}]),
        ("frobnicate jump", []),
        ('frobnicate "drop"', []),
        ('frobnicate "drop" accept', [{"accept": None}]),
        ("tcp dport", []),
        ("tcp dport {", []),
        ("tcp dport { 22", []),
        ("tcp dport vmap { 22", []),
    ],
)
def test_how_a_rule_ends_that_is_not_understood(rule: str, ending: list[object]) -> None:
    first, *rest = read(rule)
    assert list(first) == ["unread"]
    assert rest == ending


def test_only_the_begin_of_it_is_shown() -> None:
    ((unread),) = read("frobnicate " + "x" * 500)
    assert unread["unread"].startswith("frobnicate x")
    assert len(json.dumps(unread)) < 150
