"""Each word that iptables-extensions(8) has for a target, a module or an option, and what it comes to."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.firewall import spans
from remedy.firewall.iptables_options import OPTIONS, mark
from remedy.firewall.iptables_rules import read_chain, read_rule, tables_of
from remedy.firewall.packets import ACK, FIN, PSH, RST, SYN, Condition, Either

ONE, TWO = spans.of_networks(["10.0.0.1"]), spans.of_networks(["10.0.0.1", "10.1.0.0/16"])


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize(
    ("options", "value", "field", "values"),
    [
        ("-s --source --src", "10.0.0.1,10.1.0.0/16", "saddr", TWO),
        ("-d --destination --dst", "10.0.0.1", "daddr", ONE),
        ("--src-range", "10.0.0.1-10.0.0.1", "saddr", ONE),
        ("--dst-range", "10.0.0.1", "daddr", ONE),
        ("--sport --sports --source-port --source-ports", "1,3:4", "sport", ((1, 1), (3, 4))),
        ("--dport --dports --destination-port --destination-ports", "7:", "dport", ((7, 65535),)),
        ("--mss", ":7", "mss", ((0, 7),)),
        ("-p --protocol --proto --ctproto", "UDP", "l4proto", {"udp"}),
        ("-p", "6", "l4proto", {"tcp"}),
        ("-p", "17", "l4proto", {"udp"}),
        ("-p", "1", "l4proto", {"icmp"}),
        ("-p", "58", "l4proto", {"icmpv6"}),
        ("-p", "0", "l4proto", {"tcp"}),
        ("-p", "ALL", "l4proto", {"tcp"}),
        ("-i --in-interface", "eth+", "iif", {"eth*"}),
        ("-o --out-interface", "e+h0", "oif", {"e+h0"}),
        ("--ctstate --state", "NEW,RELATED", "state", {"new", "related"}),
        ("--ctdir", "REPLY", "direction", {"reply"}),
        ("--ctstatus", "DNAT,SNAT", "connection-status", {"dnat", "snat"}),
        ("--dst-type", "LOCAL,UNICAST", "fib-daddr", {"local", "unicast"}),
        ("--src-type", "LOCAL", "fib-saddr", {"local"}),
        ("--pkt-type", "Unicast", "packet-type", {"host"}),
        ("--pkt-type", "BROADCAST", "packet-type", {"broadcast"}),
        ("--physdev-in --physdev-out --physdev-is-in --physdev-is-out --physdev-is-bridged", "x",
         "physical-port", {"any"}),
        ("-f --fragment", "x", "fragments", {"any"}),
        ("--rt-type --rt-segsleft --rt-len --rt-0-res --rt-0-addrs --hbh-len --hbh-opts", "x", "fragments",
         {"any"}),
        ("--dst-len --dst-opts --fragid --fragres --fraglen --fragfirst --fragmore --fraglast", "x",
         "fragments", {"any"}),
        ("--opcode", "1", "arp-operation", {"request"}),
        ("--opcode", "2", "arp-operation", {"reply"}),
        ("--opcode", "Reply", "arp-operation", {"reply"}),
        ("--h-length --h-type --proto-type", "x", "ethertype", {"arp"}),
        ("--limit-iface-in", "x", "limit-iface-in", None),
        ("--limit-iface-out", "x", "limit-iface-out", None),
    ],
)  # fmt: skip
def test_an_option_is_a_condition(
    options: str, value: str, field: str, values: Any, negated: bool
) -> None:
    expected = frozenset(values) if isinstance(values, set) else values
    for option in options.split():
        assert OPTIONS[option]([value], negated) == Condition(field, expected, negated)


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("option", ["--port", "--ports"])
def test_a_port_of_either_side_is_two_alternatives(option: str, negated: bool) -> None:
    numbers = ((1, 2), (5, 5))
    sides = tuple((Condition(field, numbers),) for field in ("sport", "dport"))
    assert OPTIONS[option](["1:2,5"], negated) == Either(sides, negated)


ALL_FLAGS = 63


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize(
    ("mask", "expected", "bits", "value"),
    [
        ("FIN", "NONE", FIN, 0),
        ("SYN", "SYN", SYN, SYN),
        ("RST", "RST", RST, RST),
        ("PSH,ACK", "PSH", PSH | ACK, PSH),
        ("ACK", "ACK", ACK, ACK),
        ("URG", "URG", 32, 32),
        ("ALL", "FIN,SYN", ALL_FLAGS, FIN | SYN),
        ("ALL", "ALL", ALL_FLAGS, ALL_FLAGS),
        ("syn,ack", "syn,", SYN | ACK, SYN),
    ],
)
def test_flags_are_bits_under_a_mask(
    mask: str, expected: str, bits: int, value: int, negated: bool
) -> None:
    read = OPTIONS["--tcp-flags"]([mask, expected, "left"], negated)
    assert read == Condition("flags", ((value, value),), negated, bits)
    syn = OPTIONS["--syn"]([], negated)
    assert syn == Condition("flags", ((SYN, SYN),), negated, FIN | SYN | RST | ACK)


@pytest.mark.parametrize(
    ("text", "values", "mask"),
    [
        ("5", ((5, 5),), 2**32 - 1),
        ("0x10/0xff", ((16, 16),), 255),
        ("0x10/7", ((16, 16),), 7),
        ("x", None, 2**32 - 1),
        ("1/x", None, 2**32 - 1),
    ],
)
def test_a_mark_is_a_number_under_a_mask(text: str, values: Any, mask: int) -> None:
    assert mark("mark", text, False) == Condition("mark", values, False, mask)
    assert mark("mark", text, True) == Condition("mark", values, True, mask)


@pytest.mark.parametrize(
    ("targets", "action", "is_read"),
    [
        ("ACCEPT SNAT MASQUERADE", "accept", True),
        ("DROP REJECT TARPIT STEAL DELUDE CHAOS", "drop", True),
        ("RETURN", "return", True),
        ("CONTINUE", "pass", True),
        ("DNAT REDIRECT NETMAP SAME BALANCE", "divert", True),
        ("LOG NFLOG ULOG AUDIT TRACE CT MARK CONNMARK TCPMSS NOTRACK SET", "pass", True),
        ("CLASSIFY DSCP TOS ECN SECMARK CONNSECMARK HMARK IDLETIMER", "pass", True),
        ("LED RATEEST TCPOPTSTRIP TEE CHECKSUM", "pass", True),
        ("TTL HL mangle QUEUE NFQUEUE TPROXY SYNPROXY", "drop", False),
        ("mine", "jump", True),
    ],
)
def test_a_target_is_an_action(targets: str, action: str, is_read: bool) -> None:
    for target in targets.split():
        for option in ("-j", "--jump"):
            rule = read_rule(f"-A INPUT {option} {target}")
            assert (rule.action, rule.target) == (action, target)
            assert rule.unread == (() if is_read else (f"target {target}",))
            assert rule.untracks is (target == "NOTRACK")


@pytest.mark.parametrize("option", ["-g", "--goto"])
def test_a_chain_that_does_not_come_back(option: str) -> None:
    rule = read_rule(f"-A INPUT {option} mine")
    assert (rule.action, rule.target) == ("goto", "mine")


@pytest.mark.parametrize("option", ["-m", "--match"])
def test_a_module_whose_options_are_all_read_says_nothing_by_itself(option: str) -> None:
    known = (
        "tcp udp icmp icmp6 sctp dccp udplite ah esp comment multiport conntrack state addrtype mark connmark "
        "set iprange pkttype physdev tcpmss rt hbh dst frag mh"
    )
    for module in known.split():
        assert read_rule(f"-A INPUT {option} {module} -j DROP").unread == ()
        assert read_rule(f"-A INPUT {option} {module} --new 3 -j DROP").unread == ("--new",)
    assert read_rule("-A INPUT -m limit --limit 3/min --limit-burst 5 -j DROP").unread == ("limit",)
    assert read_rule("-A INPUT --unheard-of 3 -j DROP").unread == ("--unheard-of",)


@pytest.mark.parametrize(
    "option", ["--loose", "--validmark", "--accept-local", "--invert", "--comment text"]
)
def test_an_option_that_asks_nothing_by_itself(option: str) -> None:
    assert read_rule(f"-A INPUT {option} -j DROP").unread == ()


@pytest.mark.parametrize("invert", [False, True])
def test_the_way_back_is_asked_for_by_a_module_alone(invert: bool) -> None:
    rule = read_rule(f"-A INPUT -m rpfilter{' --invert' * invert} -j DROP")
    assert rule.tests == (Condition("reverse-path", frozenset({"same"}), invert),)


@pytest.mark.parametrize(
    ("module", "field"), [("mark", "mark"), ("connmark", "connection-mark"), ("tcp", "mark")]
)
def test_whose_mark_it_is(module: str, field: str) -> None:
    rule = read_rule(f"-A INPUT -m {module} ! --mark 5 -j DROP")
    assert rule.tests == (Condition(field, ((5, 5),), True),)


@pytest.mark.parametrize(
    ("conditions", "unread"),
    [
        ("--dport ssh", "--dport"),
        ("--dport", "--dport"),
        ("-s host.example", "-s"),
        ("--tcp-flags ALL XMAS", "--tcp-flags"),
        ("--src-range 10.0.0.1-x", "--src-range"),
    ],
)
def test_a_value_of_another_form_is_not_read(conditions: str, unread: str) -> None:
    rule = read_rule(f"-A INPUT {conditions} -j DROP")
    assert (rule.tests, rule.unread, rule.action) == ((), (unread,), "drop")


@pytest.mark.parametrize("option", ["--comment", "--log-prefix", "--nflog-prefix"])
@pytest.mark.parametrize("text", ["-dashes", "! marks", "plain"])
def test_a_text_may_begin_as_an_option_does(option: str, text: str) -> None:
    rule = read_rule(f'-A INPUT -m comment {option} "{text}" -p udp -j DROP')
    assert Condition("l4proto", frozenset({"udp"})) in rule.tests
    assert rule.action == "drop"
    assert read_rule(f"-A INPUT -j LOG {option}").action == "pass"


def test_a_text_in_quotes_or_with_a_backslash_is_one_word() -> None:
    for text in ('"a -j DROP"', "'a -j DROP'", r"a\ -j\ DROP"):
        assert read_rule(f"-A INPUT --comment {text} -j ACCEPT").action == "accept"


@pytest.mark.parametrize(
    ("options", "is_certain"),
    [
        ("TTL --ttl-set 32", True),
        ("TTL --ttl-set 31", False),
        ("TTL --ttl-set x", False),
        ("HL --hl-set 32", True),
        ("HL --hl-set 31", False),
        ("TTL --ttl-inc 1", True),
        ("HL --hl-inc 1", True),
        ("TTL --ttl-dec 1", False),
        ("HL --hl-dec 1", False),
    ],
)
def test_packets_keep_hops_enough(options: str, is_certain: bool) -> None:
    rule = read_rule(f"-A INPUT -j {options}")
    assert (rule.action, rule.unread == ()) == ("pass" if is_certain else "drop", is_certain)


@pytest.mark.parametrize(
    ("value", "source"),
    [
        ("10.0.0.1", ONE),
        ("10.0.0.1:1024-2048", ONE),
        ("10.0.0.1-10.0.0.3", ((ONE[0][0], ONE[0][0] + 2),)),
        ("10.0.0.1-10.0.0.3:1024", ((ONE[0][0], ONE[0][0] + 2),)),
        ("host", ()),
    ],
)
def test_another_source_is_some_addresses(value: str, source: spans.Spans) -> None:
    assert read_rule(f"-A POSTROUTING -j SNAT --to-source {value}").source == source
    assert read_rule("-A POSTROUTING -j SNAT").source == ()


ALL = 2**32 - 1


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ("MARK --set-xmark 0x1/0xf", (ALL - 15, 1)),
        ("MARK --set-xmark 1", (0, 1)),
        ("MARK --set-mark 0x6/0x3", (ALL - 7, 6)),
        ("MARK --set-mark 5", (0, 5)),
        ("MARK --and-mark 0x3", (3, 0)),
        ("MARK --or-mark 0x3", (ALL - 3, 3)),
        ("MARK --xor-mark 0x3", (ALL, 3)),
        ("MARK --set-mark x", (0, None)),
        ("MARK --save-mark", (0, None)),
        ("MARK --set-other 5", (0, None)),
        ("CONNMARK --restore-mark", (0, None)),
        ("CONNMARK --set-mark 5", None),
        ("CONNMARK --save-mark", None),
        ("CLASSIFY --set-class 1:1", None),
    ],
)
def test_a_mark_is_kept_and_flipped(options: str, change: Any) -> None:
    rule = read_rule(f"-A INPUT -j {options}")
    assert rule.mark == change
    restores = "--restore-mark" in options
    assert rule.restores_mark is restores
    assert rule.connection_mark is ("CONNMARK" in options and not restores)


@pytest.mark.parametrize(
    "option", ["--set-xmark", "--set-mark", "--and-mark", "--or-mark", "--xor-mark"]
)
def test_a_connection_is_marked_in_every_way(option: str) -> None:
    assert read_rule(f"-A INPUT -j CONNMARK {option} 5").connection_mark


def test_tables_are_named_by_their_first_lines() -> None:
    assert tables_of("*raw\nCOMMIT\n*filter \n:INPUT DROP\nCOMMIT\n") == ("raw", "filter")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-p tcp -j DROP", "-t raw -A PREROUTING -p tcp -j DROP"),
        ("-j DROP\t", "-t raw -A PREROUTING -j DROP\\x09"),
    ],
)
def test_a_rule_is_shown_with_its_table(line: str, words: str) -> None:
    text = f"*raw\n:PREROUTING ACCEPT\n-A PREROUTING {line}\nCOMMIT\n"
    (rule,) = read_chain(text, "raw", "PREROUTING")
    assert rule.words == words


@pytest.mark.parametrize("option", ["-j", "-g"])
def test_a_chain_that_is_not_there_may_drop(option: str) -> None:
    text = f"*filter\n:INPUT ACCEPT\n-A INPUT -m limit {option} GONE\nCOMMIT\n"
    (rule,) = read_chain(text, "filter", "INPUT")
    assert (rule.action, rule.unread) == ("drop", ("limit", "target GONE"))


SETS = """\
create peers hash:ip family inet timeout 0
add peers 10.0.0.2 timeout 60
create fixed hash:ip family inet
add fixed 10.0.0.3
"""


@pytest.mark.parametrize(
    ("line", "certain"),
    [
        ("-m set --match-set peers src -j ACCEPT", [False]),
        ("-m set --match-set peers src -j DROP", [True]),
        ("-m set --match-set peers src -j REJECT", [True]),
        ("-m set ! --match-set peers src -j ACCEPT", [True]),
        ("-m set ! --match-set peers src -j DROP", [True, False]),
        ("-m set ! --match-set peers src -j REJECT --reject-with x", [True, False]),
        ("-m set ! --match-set peers src -j DROPPED", [True]),
        ("-m set --match-set fixed src -j ACCEPT", [True]),
        ("-m set ! --match-set fixed src -j DROP", [True]),
        ("-m set --match-set gone src -j ACCEPT", [False]),
    ],
)
def test_a_set_whose_entries_leave_it_is_asked_as_it_will_be(
    line: str, certain: list[bool]
) -> None:
    text = f"*filter\n:INPUT ACCEPT\n:DROPPED -\n-A INPUT {line}\nCOMMIT\n"
    read = read_chain(text, "filter", "INPUT", SETS)
    known = [
        all(isinstance(test, Condition) and test.values is not None for test in rule.tests)
        for rule in read
    ]
    assert known == certain
