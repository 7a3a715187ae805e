"""What each word of a rule stands for, and what findings and steps say: which file or chain, what next."""

from __future__ import annotations

import json
from typing import Any

import pytest

from remedy.firewall import iptables, nftables, spans
from remedy.firewall.iptables import IptablesTable
from remedy.firewall.iptables_rules import filter_lines
from remedy.firewall.nftables_rules import read_rule
from remedy.firewall.nftables_values import field_of, mark_change, values_of
from remedy.firewall.nftables_values import tests_of as conditions_of
from remedy.firewall.packets import Condition
from remedy.firewall.ports import RANGE_KEY, boot_range, kernel_range, reserved
from remedy.firewall.step import CommandStep, Opening, Side
from remedy.plan import FindingKind
from remedy.probe import NftChain, NftRule, Sysctls
from tests.unit.build import fleet
from tests.unit.firewall.firewall_bench import (
    FIREWALLD,
    OPENING,
    file,
    fleet_of,
    is_dropped,
    judgements,
    nft,
    plan_of,
    saved,
    walled,
)

FLAGS = {"payload": {"protocol": "tcp", "field": "flags"}}


@pytest.mark.parametrize(
    ("flag", "bit"),
    [("fin", 1), ("syn", 2), ("rst", 4), ("psh", 8), ("ack", 16), ("urg", 32), ("ecn", 64), ("cwr", 128)],
)  # fmt: skip
def test_a_flag_of_tcp_is_its_bit(flag: str, bit: int) -> None:
    assert values_of("flags", [flag]) == ((bit, bit),)
    other = "syn" if flag != "syn" else "ack"
    both = bit | (2 if flag != "syn" else 16)
    assert values_of("flags", [{"|": [flag, other]}]) == ((both, both),)
    assert field_of({"&": [FLAGS, [flag, other]]}) == ("flags", both)
    assert conditions_of(FLAGS, "==", [flag, other], {}) == (Condition("flags", ((both, both),)),)
    assert conditions_of(FLAGS, "in", flag, {}) == (Condition("flags", ((0, 0),), True, bit),)


@pytest.mark.parametrize(
    ("left", "name"),
    [
        *(({"meta": {"key": key}}, name) for key, name in {
            "iifname": "iif", "iif": "iif", "oifname": "oif", "oif": "oif", "l4proto": "l4proto",
            "nfproto": "nfproto", "protocol": "ethertype", "mark": "mark", "pkttype": "packet-type",
            "ibrname": "bridge-name", "obrname": "bridge-name", "skuid": "meta skuid",
        }.items()),
        *(({"ct": {"key": key}}, name) for key, name in {
            "state": "state", "mark": "connection-mark", "direction": "direction",
            "status": "connection-status", "zone": "ct zone",
        }.items()),
        *(({"payload": {"protocol": protocol, "field": field}}, name) for protocol, field, name in [
            ("ip", "saddr", "saddr"), ("ip", "daddr", "daddr"), ("ip6", "saddr", "saddr6"),
            ("ip6", "daddr", "daddr6"), ("tcp", "dport", "dport"), ("tcp", "sport", "sport"),
            ("th", "dport", "dport"), ("th", "sport", "sport"), ("tcp", "flags", "flags"),
            ("ether", "type", "ethertype"), ("arp", "saddr ip", "arp-saddr"), ("arp", "daddr ip", "arp-daddr"),
            ("arp", "operation", "arp-operation"), ("arp", "htype", "arp htype"), ("ip", "ttl", "ip ttl"),
            ("tcp", "window", "tcp window"), ("udp", "dport", "never"), ("icmp", "type", "never"),
            ("icmpv6", "type", "icmpv6 type"), ("igmp", "type", "never"), ("sctp", "dport", "never"),
            ("dccp", "dport", "never"), ("udplite", "dport", "never"), ("ah", "spi", "never"),
            ("esp", "spi", "never"), ("comp", "cpi", "never"),
        ]),
        *(({"fib": {"result": result, "flags": flags}}, name) for result, flags, name in [
            ("type", "daddr", "fib-daddr"), ("type", ["saddr"], "fib-saddr"),
            ("type", ["daddr", "iif"], "fib-daddr"), ("oif", ["saddr", "iif"], "reverse-path"),
            ("type", ["daddr", "mark"], "fib daddr . mark type"), ("oif", ["saddr"], "fib saddr oif"),
            ("type", ["daddr", "oif"], "fib daddr . oif type"),
            ("oif", ["daddr", "iif"], "fib daddr . iif oif"),
        ]),
        ({"tcp option": {"name": "maxseg", "field": "size"}}, "mss"),
        ({"exthdr": {"name": "frag"}}, "never"),
        ({"ct": {"key": "mark", "dir": "original"}}, "ct"),
        ({"socket": {"key": "mark"}}, "socket"),
        ("text", "something"),
    ],
)  # fmt: skip
def test_what_a_match_looks_at_has_a_word(left: object, name: str) -> None:
    assert field_of(left) == (name, 2**32 - 1)


@pytest.mark.parametrize(
    ("name", "items", "expected"),
    [
        ("dport", [22, {"range": [80, 90]}, "443"], ((22, 22), (80, 90), (443, 443))),
        ("mark", [1, {"range": [3, 4]}], ((1, 1), (3, 4))),
        ("saddr", [{"elem": {"val": "0.0.0.9", "timeout": 3}}], ((9, 9),)),
        ("saddr", [{"prefix": {"addr": "0.0.1.0", "len": 24}}], ((256, 511),)),
        ("daddr6", ["::5"], ((5, 5),)),
        ("dport", [True], None),
        ("dport", ["ssh"], None),
        ("reverse-path", [False, 0, "0"], frozenset({"another"})),
        ("reverse-path", ["eth0"], None),
        ("l4proto", [6, "udp"], frozenset({"tcp", "udp"})),
        ("ip protocol", [6], frozenset({"tcp"})),
        ("ip6 nexthdr", [6], frozenset({"tcp"})),
        ("ethertype", [0x800, "0x806", 0x86DD, "8021q"], frozenset({"ip", "arp", "ip6", "8021q"})),
        ("direction", [0], frozenset({"original"})),
        ("direction", [1, "original"], frozenset({"reply", "original"})),
        ("packet-type", ["unicast", "broadcast"], frozenset({"host", "broadcast"})),
        ("iif", ["eth0", ["eth1", "eth2"]], frozenset({"eth0", "eth1", "eth2"})),
        ("iif", [7], None),
        ("iif", [None], None),
        ("iif", [{"range": [1, 2]}], None),
    ],
)
def test_values_stand_for_numbers_or_words(name: str, items: list[Any], expected: object) -> None:
    assert values_of(name, items) == expected


@pytest.mark.parametrize(
    ("op", "right", "expected"),
    [
        ("<", 22, ((0, 21),)), ("<=", 22, ((0, 22),)), (">", 22, ((23, 65535),)), (">=", 22, ((22, 65535),)),
        ("<", 0, ()), (">", 65535, ()), (">=", 65535, ((65535, 65535),)), ("<=", 0, ((0, 0),)),
    ],
)  # fmt: skip
def test_more_and_less_are_numbers_below_and_above(
    op: str, right: int, expected: spans.Spans
) -> None:
    dport = {"payload": {"protocol": "tcp", "field": "dport"}}
    assert conditions_of(dport, op, right, {}) == (Condition("dport", expected),)
    assert conditions_of({"meta": {"key": "iif"}}, op, right, {}) == (Condition("iif", None),)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, (0, 5)),
        ({"meta": {"key": "mark"}}, (2**32 - 1, 0)),
        ({"&": [{"meta": {"key": "mark"}}, 15]}, (15, 0)),
        ({"|": [{"meta": {"key": "mark"}}, 1]}, (2**32 - 2, 1)),
        ({"^": [{"meta": {"key": "mark"}}, 3]}, (2**32 - 1, 3)),
        ({"|": [{"&": [{"meta": {"key": "mark"}}, 15]}, 1]}, (14, 1)),
        ({"^": [5, 3]}, (0, 6)),
        (True, (0, None)),
        ({"ct": {"key": "mark"}}, (0, None)),
        ({"|": [1]}, (0, None)),
        ({"+": [1, 2]}, (0, None)),
    ],
)
def test_a_mark_keeps_bits_and_flips_bits(value: object, expected: object) -> None:
    assert mark_change(value) == expected


def certain(*statements: object) -> bool:
    """Return whether it is known of every rule that the statements make what it does."""
    found = read_rule(NftRule(1, "", json.dumps(statements)), {})
    assert found
    return not any(rule.unread for rule in found)


SET = {"op": "add", "elem": {"payload": {"protocol": "ip", "field": "saddr"}}, "set": "@seen"}


@pytest.mark.parametrize(
    ("statement", "is_certain"),
    [
        *(({kind: None}, True) for kind in (
            "counter", "log", "ct helper", "ct timeout", "ct expectation", "flow", "dup", "last", "secmark",
            "reset", "optstrip", "comment",
        )),
        *(({kind: None}, False) for kind in ("limit", "quota", "ct count", "frobnicate")),
        ({"set": SET}, True),
        ({"set": {**SET, "stmt": [{"limit": {"rate": 1}}]}}, False),
        ({"set": {**SET, "stmt": {"limit": {"rate": 1}}}}, False),
        ({"xt": {"type": "match", "name": "mine"}}, False),
    ],
)  # fmt: skip
def test_which_statements_leave_no_doubt(statement: object, is_certain: bool) -> None:
    assert certain(statement, {"drop": None}) is is_certain


@pytest.mark.parametrize("limit", [{"limit": {"rate": 1}}, [{"limit": {"rate": 1}}]])
def test_the_condition_inside_a_set_is_named(limit: object) -> None:
    (rule,) = read_rule(
        NftRule(1, "", json.dumps([{"set": {**SET, "stmt": limit}}, {"drop": None}])), {}
    )
    assert rule.unread == ("limit",)


@pytest.mark.parametrize(("key", "is_marked"), [("mark", True), ("zone", False)])
def test_a_rule_may_mark_a_connection(key: str, is_marked: bool) -> None:
    mangle = {"mangle": {"key": {"ct": {"key": key}}, "value": 5}}
    (rule,) = read_rule(NftRule(1, "", json.dumps([mangle, {"accept": None}])), {})
    assert rule.connection_mark is is_marked


# ---- ports


def sysctls(live: str, *persisted: Any) -> Sysctls:
    return Sysctls(live={RANGE_KEY: live}, persisted=persisted, unread=())


@pytest.mark.parametrize(
    ("text", "expected"),
    [("32768 60999", (32768, 60999)), ("60999 32768", None), ("", None), ("x y", None)],
)
def test_the_range_of_the_kernel(text: str, expected: object) -> None:
    assert kernel_range(sysctls(text)) == expected
    assert boot_range(sysctls(text)) is None


def test_reserved_ports_are_numbers_and_ranges_between_commas() -> None:
    assert reserved("8080, 9000-9100,x,,12") == ((12, 12), (8080, 8080), (9000, 9100))
    assert reserved("") == ()


# ---- what steps and notes say

HOSTS = spans.of_networks(["10.0.0.2"])


def test_the_ways_of_an_opening_have_digests_of_their_own() -> None:
    assert Side("in", HOSTS, ((1, 1),)).digest != Side("out", HOSTS, ((1, 1),)).digest


CHAIN = NftChain("inet", "filter", "input", "input", 0, "drop", ())


@pytest.mark.parametrize(
    ("hook", "opening", "words"),
    [
        ("input", OPENING, "let the cluster's hosts in"),
        ("output", Opening(targets=HOSTS, target_ports=((1, 1),)), "let the cluster's hosts be reached"),
    ],
)  # fmt: skip
def test_a_step_says_what_it_does_with_which_chain(hook: str, opening: Opening, words: str) -> None:
    chain = CHAIN._replace(hook=hook)
    (step,) = nftables.propose(chain, opening).steps
    assert isinstance(step, CommandStep)
    assert step.title.startswith(f"nftables chain inet filter input: {words}")
    assert step.disrupts == ""
    own = NftRule(1, "remedy 123456789abc", json.dumps([{"accept": None}]))
    (back,) = nftables.propose(chain._replace(rules=(own,)), Opening()).steps
    assert back.title == "nftables chain inet filter input: take remedy's rule out"
    assert nftables.propose(chain, Opening()).steps == ()


def test_who_takes_firewalld_s_rules_hears_what_it_disturbs() -> None:
    state = walled("a", "10.0.0.1", nft=FIREWALLD, firewalld="public\n")
    (change,) = plan_of(fleet_of(state, walled("b", "10.0.0.2"))).for_host("a")
    assert "reload" in str(change.disrupts)


@pytest.mark.parametrize(
    ("walls", "words"),
    [({"nft": nft(policy="drop")}, "nftables"), ({"iptables": saved()}, "iptables")],
)
def test_rules_that_nothing_loads_at_boot_are_reported_with_what_to_do(
    walls: dict[str, Any], words: str
) -> None:
    plan = plan_of(fleet(walled("a", "10.0.0.1", **walls), walled("b", "10.0.0.2")))
    (report,) = (f for f in plan.findings if f.host == "a" and f.kind is FindingKind.REPORT)
    assert words in report.title
    assert "boot" in report.title
    assert "`remedy check`" in str(report.fix)
    paths = nftables.MAIN_FILES if words == "nftables" else iptables.SAVED
    assert all(path in "".join(report.evidence) for path in paths)


def test_the_steps_of_iptables_name_the_table_and_the_file() -> None:
    path = "/etc/iptables/rules.v4"
    host = walled("a", "10.0.0.1", iptables=saved(), files=[file(path, saved().encode())])
    titles = [s.title for s in iptables.propose(host, IptablesTable("nft", saved()), OPENING).steps]
    assert any(
        t.startswith("iptables: let the cluster's hosts in") and iptables.INCOMING.name in t
        for t in titles
    )
    assert f"write the same rules into {path}, which is loaded at boot" in titles


def test_saved_tables_are_read_with_their_counters_and_apart() -> None:
    text = "-A INPUT -j NOWHERE\n*nat\n-A INPUT -j OTHER\nCOMMIT\n-A INPUT -j LOST\n"
    text += "*filter\n:INPUT DROP [1:60]\n-A INPUT -j ACCEPT\nCOMMIT\n"
    assert filter_lines(text) == (":INPUT DROP [1:60]", "-A INPUT -j ACCEPT")
    assert not is_dropped(judgements(iptables=text))
    assert is_dropped(judgements(iptables=text.replace("-A INPUT -j ACCEPT\n", "")))
