"""Lines of iptables-save: which packets a rule is about, and whether that is certain."""

from __future__ import annotations

import pytest

from remedy.firewall import spans
from remedy.firewall.iptables_rules import (
    chains,
    read_chain,
    read_rule,
)
from remedy.firewall.packets import ESTABLISHED, EVERYTHING, NEW, Flow, Part, check
from remedy.firewall.reading import narrow
from remedy.firewall.spans import Spans
from remedy.firewall.traffic import Rule

IN = Flow("in", ("eth0",), spans.of_networks(["10.0.0.1"])[0][0], symmetric=True)
OUT = Flow("out", ("eth0",), spans.of_networks(["10.0.0.1"])[0][0], symmetric=True)
BLIND = Flow("in")
FIRST = Part(spans.ALL_ADDRESSES, spans.ALL_PORTS, spans.ALL_PORTS, NEW)
LATER = FIRST._replace(state=ESTABLISHED)
ANSWER = LATER._replace(reply=True)
SETS = """\
create peers hash:ip family inet hashsize 1024 maxelem 65536
add peers 10.0.0.2
add peers 10.0.0.8-10.0.0.9
create nets hash:net family inet hashsize 1024 maxelem 65536
add nets 10.1.0.0/16
create six hash:ip family inet6 hashsize 1024 maxelem 65536
add six fe80::1
create pairs hash:ip,port family inet hashsize 1024 maxelem 65536
add pairs 10.0.0.2,tcp:22
add pairs 10.0.0.3,udp:53
add pairs 10.0.0.3,tcp:80-90
create all list:set size 8
add all peers
add all nets
create cards hash:mac hashsize 1024 maxelem 65536
add cards 00:11:22:33:44:55
create holes hash:net family inet hashsize 1024 maxelem 65536
add holes 10.0.0.0/8
add holes 10.0.0.2 nomatch
create services bitmap:port range 0-65535
add services 22
"""


def rules(conditions: str, flow: Flow = IN, sets: str | None = None) -> tuple[Rule, ...]:
    return narrow([read_rule(f"-A INPUT {conditions}", sets)], flow, EVERYTHING, "").rules


def rule(conditions: str, flow: Flow = IN, sets: str | None = None) -> Rule:
    (found,) = rules(conditions, flow, sets)
    return found


def answer(conditions: str, part: Part = FIRST, flow: Flow = IN) -> bool | None:
    """Return whether conditions hold for the packets of a part; None: that is not known."""
    found = rules(f"{conditions} -j DROP", flow)
    if not found:
        return False
    ((only),) = found
    answers = [check(condition, part) for condition in only.checks]
    if False in answers:
        return False
    return True if only.certain and None not in answers else None


@pytest.mark.parametrize(
    ("target", "action", "chain"),
    [
        ("-j ACCEPT", "accept", ""),
        ("-j DROP", "drop", ""),
        ("-j REJECT --reject-with tcp-reset", "drop", ""),
        ("-j RETURN", "return", ""),
        ("-j own", "jump", "own"),
        ("-g own", "goto", "own"),
        ("-j MASQUERADE --random-fully", "accept", ""),
        ("-j REDIRECT --to-ports 22", "divert", ""),
        ("-j DNAT --to-destination 172.17.0.2:80", "divert", ""),
        ("-j TARPIT", "drop", ""),
    ],
)
def test_what_a_rule_does_with_what_it_matches(target: str, action: str, chain: str) -> None:
    found = rule(f"-p tcp {target}")
    assert (found.action, found.certain) == (action, True)
    assert action not in ("jump", "goto") or found.target == chain


@pytest.mark.parametrize(
    "target",
    [
        "-j LOG --log-prefix x --log-level 4", "-j NFLOG --nflog-group 2", "-j ULOG", "-j AUDIT --type accept",
        "-j TRACE", "-j TCPMSS --clamp-mss-to-pmtu", "-j TCPMSS --set-mss 1360", "-j CT --helper ftp",
        "-j CT --zone 0",
        "-j CONNMARK --save-mark --nfmask 0xffffffff --ctmask 0xffffffff", "-j SET --add-set seen src",
        "-j CLASSIFY --set-class 1:1", "-j TTL --ttl-inc 1", "-j TTL --ttl-set 64",
        "-j DSCP --set-dscp 0x2e", "",
    ],
)  # fmt: skip
def test_a_rule_that_only_notes_does_nothing(target: str) -> None:
    assert rules(f"-p tcp {target}") == ()


@pytest.mark.parametrize(
    "target", ["TTL --ttl-set 0", "TTL --ttl-dec 64", "HL --hl-set 1", "TCPMSS --set-mss 40"]
)
def test_packets_with_few_hops_left_or_small_ones_need_not_arrive(target: str) -> None:
    found = rule(f"-p tcp -j {target}")
    assert (found.action, found.certain) == ("drop", False)


@pytest.mark.parametrize(
    ("addresses", "lost"),
    [("192.0.2.1", True), ("192.0.2.1-192.0.2.9:1024-2048", True), ("2001:db8::1", False)],
)
def test_peers_need_not_answer_to_another_source(addresses: str, lost: bool) -> None:
    (found,) = rules(f"-p tcp -j SNAT --to-source {addresses}", flow=OUT)
    assert (found.action, found.certain) == (("drop", False) if lost else ("accept", True))


@pytest.mark.parametrize(
    "target", ["QUEUE", "NFQUEUE --queue-num 1 --queue-bypass", "TPROXY --on-port 1", "SYNPROXY"]
)
def test_what_a_program_decides_is_not_certain(target: str) -> None:
    found = rule(f"-p tcp -j {target}")
    assert (found.action, found.certain) == ("drop", False)
    assert target.split()[0] in found.unread[0]


@pytest.mark.parametrize("target", ["NOTRACK", "CT --notrack"])
def test_what_is_not_tracked_is_noted(target: str) -> None:
    assert rule(f"-p tcp -j {target}").untracks


@pytest.mark.parametrize(
    ("target", "before", "after"),
    [
        ("--set-xmark 0x1/0xffffffff", 0x70, 0x1),
        ("--set-xmark 0x1/0x1", 0x70, 0x71),
        ("--set-xmark 0x0/0x70", 0x71, 0x1),
        ("--set-mark 0x6/0xf", 0x71, 0x76),
        ("--and-mark 0x1", 0x71, 0x1),
        ("--or-mark 0x8", 0x71, 0x79),
        ("--xor-mark 0x1", 0x71, 0x70),
    ],
)
def test_marks_are_given_as_the_kernel_gives_them(target: str, before: int, after: int) -> None:
    keep, flip = rule(f"-j MARK {target}").mark or (0, None)
    assert (before & keep) ^ (flip or 0) == after


def test_the_mark_of_a_connection_is_none_where_no_rule_gives_one() -> None:
    line = "-j CONNMARK --restore-mark --nfmask 0xffffffff --ctmask 0xffffffff"
    assert rule(line).mark == (0, 0)
    marked = Flow("in", connection_marks=True)
    assert rule(line, marked).mark == (0, None)
    assert answer("-m connmark --mark 0x0") is True
    assert answer("-m connmark --mark 0x1") is False
    assert answer("-m connmark --mark 0x1", flow=marked) is None


HOLDS = [
    "-p tcp", "--protocol tcp", "-p 6", "-p all", "-p 0", "! -p udp",
    "-i eth0", "--in-interface eth0", "-i eth+", "-i +", "! -i lo", "! -o eth0",
    "-d 10.0.0.1/32", "--destination 10.0.0.0/24", "-d 10.9.0.0/16,10.0.0.0/16", "! -d 127.0.0.0/8",
    "-m conntrack --ctstate NEW", "-m state --state NEW,ESTABLISHED", "-m conntrack ! --ctstate INVALID",
    "-m conntrack --ctdir ORIGINAL", "-m conntrack --ctproto tcp",
    "-m addrtype --dst-type LOCAL", "-m addrtype ! --dst-type BROADCAST", "-m addrtype --src-type UNICAST",
    "-p tcp --syn", "-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN", "--tcp-flags ALL SYN",
    "--tcp-flags FIN,ACK NONE", "! --tcp-flags ALL NONE",
    "-m mark --mark 0x0", "-m mark --mark 0/0xff", "-m mark ! --mark 1",
    "-m comment --comment hello", "-m comment --comment -dashes",
    "-m pkttype --pkt-type unicast", "-m physdev ! --physdev-is-bridged", "! -f", "-m rpfilter",
]  # fmt: skip


@pytest.mark.parametrize("condition", HOLDS)
def test_conditions_that_hold_for_the_first_packet_of_a_connection(condition: str) -> None:
    assert answer(condition) is True
    assert rule(f"{condition} -j ACCEPT").box == EVERYTHING


FAILS = [
    "-p udp", "! -p tcp", "-p 17", "-p ipv4", "-p ipencap",
    "-p icmp -m icmp --icmp-type 8", "-i lo", "! -i eth0", "! -i eth+", "-i eth",
    "-o eth0", "--out-interface lo",
    "-d 10.0.0.2/32", "! -d 10.0.0.0/24", "--ctstate ESTABLISHED,RELATED", "! --ctstate NEW",
    "--state INVALID", "--ctstate SNAT", "-m conntrack --ctdir REPLY", "--dst-type BROADCAST",
    "! --dst-type LOCAL",
    "! --syn", "--tcp-flags SYN,ACK SYN,ACK", "--tcp-flags ALL NONE", "--tcp-flags FIN,ACK FIN",
    "--tcp-flags FIN,SYN FIN,SYN", "--tcp-flags ALL ALL",
    "-m mark --mark 0x8000/0x8000", "-m mark --mark 1", "-m mark ! --mark 0",
    "-m pkttype --pkt-type broadcast", "-m physdev --physdev-in tap0", "-f", "-m rpfilter --invert",
    "-m conntrack --ctstatus DNAT",
]  # fmt: skip


@pytest.mark.parametrize("condition", FAILS)
def test_conditions_that_fail_for_the_first_packet_of_a_connection(condition: str) -> None:
    assert answer(condition) is False


UNREADABLE = [
    "-m limit --limit 3/min", "-m recent --rcheck --name bad --rsource", "-m set --match-set peers src",
    "-m hashlimit --hashlimit-above 5/sec --hashlimit-burst 5 --hashlimit-mode srcip --hashlimit-name n",
    "-m connlimit --connlimit-above 16 --connlimit-mask 32 --connlimit-saddr",
    "-m string --string x --algo bm --to 65535", "-m time --timestart 08:00:00 --timestop 09:00:00",
    "-m owner --uid-owner 1000", "-m cgroup --path user.slice", "-m quota --quota 1000", "-m u32 --u32 0=0",
    "-m statistic --mode random --probability 0.05000000000", "-m length --length 1000:65535",
    "-m ttl --ttl-eq 1", "-m mac --mac-source 00:11:22:33:44:55", "-m bpf --bytecode 4,48",
    "-m helper --helper ftp",
    "-m connbytes --connbytes 10", "-m addrtype --dst-type LOCAL --limit-iface-in",
    "-m policy --dir in --pol none",
    "-p tcp --tcp-option 64", "-m unheard-of", "-m socket --transparent", "--unheard-of 3", "--dport ssh",
    "-s nonsense", "-m conntrack --ctorigdst 10.0.0.1",
]  # fmt: skip


@pytest.mark.parametrize("condition", UNREADABLE)
def test_what_the_rules_alone_cannot_decide_is_not_certain(condition: str) -> None:
    assert answer(condition) is None
    assert rule(f"{condition} -p tcp -j ACCEPT").unread
    # What it matches beside that keeps it from being a doubt.
    assert rules(f"{condition} -p udp -j DROP") == ()
    assert rules(f"-i docker0 {condition} -j DROP") == ()


@pytest.mark.parametrize(
    "condition", ["-i eth0", "! -i eth0", "-d 10.0.0.1", "-m rpfilter --invert"]
)
def test_of_a_host_that_was_not_read_nothing_is_certain(condition: str) -> None:
    assert answer(condition, flow=BLIND) is None


@pytest.mark.parametrize(
    ("condition", "first", "later", "reply"),
    [
        ("--ctstate NEW", True, False, False),
        ("--ctstate RELATED,ESTABLISHED", False, True, True),
        ("-p tcp --syn", True, False, False),
        ("-p tcp ! --syn", False, True, True),
        ("--tcp-flags SYN,ACK SYN,ACK", False, False, False),
        ("-m tcpmss --mss 1000:65535", None, False, False),
        ("-m tcpmss ! --mss 536:65535", False, True, True),
        ("-m tcpmss --mss 1:500", False, False, False),
        ("--tcp-flags RST RST", False, None, None),
        ("-m conntrack --ctdir REPLY", False, False, True),
    ],
)
def test_packets_of_a_connection_differ(
    condition: str, first: bool | None, later: bool | None, reply: bool | None
) -> None:
    assert [answer(condition, part) for part in (FIRST, LATER, ANSWER)] == [first, later, reply]


def test_the_first_answer_has_flags_and_a_largest_segment_of_its_own() -> None:
    """Rules against odd segments are about no packet of a host like others."""
    opens = ANSWER._replace(opens=True)
    assert answer("--tcp-flags SYN,ACK SYN,ACK", opens) is True
    for part in (FIRST, LATER, ANSWER, opens):
        odd = "-p tcp -m tcp --tcp-flags SYN,RST SYN -m tcpmss ! --mss 536:65535"
        assert answer(odd, part) is False


def test_of_what_leaves_the_host_the_peer_is_the_destination() -> None:
    assert rule("-d 10.0.0.2 -j DROP", OUT).box.peers == spans.of_networks(["10.0.0.2"])
    assert rules("-s 10.0.0.2 -j DROP", OUT) == ()
    assert answer("-s 10.0.0.1", flow=OUT) is True
    assert answer("-o eth0", flow=OUT) is True
    assert answer("-i eth0", flow=OUT) is False
    assert answer("-m addrtype --dst-type LOCAL", flow=OUT) is False
    assert answer("-m addrtype --src-type LOCAL", flow=OUT) is True


@pytest.mark.parametrize(
    ("condition", "sources"),
    [
        ("-s 10.0.0.2", ["10.0.0.2"]),
        ("--source 10.0.0.0/30", ["10.0.0.0/30"]),
        ("-s 10.0.0.2,10.0.0.9/32", ["10.0.0.2", "10.0.0.9"]),
        ("-s 10.0.0.0/29 -s 10.0.0.4/30", ["10.0.0.4/30"]),
        ("-m iprange --src-range 10.0.0.4-10.0.0.7", ["10.0.0.4/30"]),
    ],
)
def test_sources_are_those_that_every_condition_names(condition: str, sources: list[str]) -> None:
    assert rule(f"{condition} -j ACCEPT").box.peers == spans.of_networks(sources)


def test_a_negated_source_is_every_other_one() -> None:
    assert rule("! -s 0.0.0.0/1 -j DROP").box.peers == ((2**31, 2**32 - 1),)
    # A negation is for the next condition only.
    assert rule("! -s 0.0.0.0/1 -s 0.0.0.0/0 -p tcp -j DROP").box.peers == ((2**31, 2**32 - 1),)


@pytest.mark.parametrize(
    ("condition", "ports"),
    [
        ("--dport 22", ((22, 22),)),
        ("--destination-port 22", ((22, 22),)),
        ("-m multiport --dports 80,443,8000:8010", ((80, 80), (443, 443), (8000, 8010))),
        ("--destination-ports 1:2,3", ((1, 3),)),
        ("--dport :1023", ((0, 1023),)),
        ("--dport 1024:", ((1024, 65535),)),
        ("! --dport 1:65535", ((0, 0),)),
        ("! --dport :22", ((23, 65535),)),
        ("--dport 10:20 --dports 15:30,40", ((15, 20),)),
    ],
)
def test_ports_are_those_that_every_condition_names(condition: str, ports: Spans) -> None:
    assert rule(f"-p tcp {condition} -j ACCEPT").box.dports == ports
    assert (
        rule(
            f"-p tcp {condition.replace('dport', 'sport').replace('destination', 'source')} -j ACCEPT"
        ).box.sports
        == ports
    )


def test_a_port_of_either_side_is_two_rules_and_its_negation_leaves_both_out() -> None:
    boxes = [found.box for found in rules("-p tcp -m multiport --ports 22 -j DROP")]
    assert [(box.sports, box.dports) for box in boxes] == [(((22, 22),), None), (None, ((22, 22),))]
    negated = rule("-p tcp -m multiport ! --ports 22 -j DROP")
    assert [box.dports or box.sports for box in negated.unless] == [((22, 22),), ((22, 22),)]


# --- sets of ipset -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("match", "peers"),
    [
        ("peers src", ["10.0.0.2", "10.0.0.8/31"]),
        ("nets src", ["10.1.0.0/16"]),
    ],
)
def test_a_set_of_addresses_is_what_it_holds(match: str, peers: list[str]) -> None:
    found = rule(f"-m set --match-set {match} -j DROP", sets=SETS)
    assert (found.box.peers, found.certain) == (spans.of_networks(peers), True)
    others = rule(f"-m set ! --match-set {match} -j DROP", sets=SETS)
    assert others.box.peers == spans.minus(spans.ALL_ADDRESSES, spans.of_networks(peers))
    assert rules(f"-m set --match-set {match} -j DROP", OUT, SETS) == ()


def test_sets_of_pairs_and_of_sets_are_read_entry_by_entry() -> None:
    pairs = rules("-p tcp -m set --match-set pairs src,dst -j DROP", sets=SETS)
    assert [(found.box.peers, found.box.dports) for found in pairs] == [
        (spans.of_networks(["10.0.0.2"]), ((22, 22),)),
        (spans.of_networks(["10.0.0.3"]), ((80, 90),)),
    ]
    together = rules("-m set --match-set all src -j DROP", sets=SETS)
    assert [found.box.peers for found in together] == [
        spans.of_networks(["10.0.0.2", "10.0.0.8/31"]),
        spans.of_networks(["10.1.0.0/16"]),
    ]
    assert rules("-m set --match-set six src -j DROP", sets=SETS) == ()
    assert rule("-m set --match-set services dst -j DROP", sets=SETS).box.dports == ((22, 22),)


@pytest.mark.parametrize("match", ["cards src", "holes src", "gone src", "pairs src"])
def test_a_set_that_is_not_read_leaves_a_rule_uncertain(match: str) -> None:
    found = rule(f"-m set --match-set {match} -j DROP", sets=SETS)
    assert not found.certain
    assert match.split()[0] in found.unread[0]


def test_a_set_that_rules_fill_says_nothing_of_the_next_packet() -> None:
    text = (
        "*filter\n:INPUT ACCEPT\n-A INPUT -p tcp --dport 23 -j SET --add-set peers src\n"
        "-A INPUT -m set --match-set peers src -j DROP\nCOMMIT\n"
    )
    found = chains(text, "filter", IN, EVERYTHING, SETS)["INPUT"].rules
    assert [(r.certain, r.box.peers is None) for r in found] == [(True, False), (False, True)]


@pytest.mark.parametrize(
    ("entry", "line", "certain"),
    [
        ("10.0.0.2 timeout 60", "-m set --match-set for-now src -j ACCEPT", [False]),
        ("10.0.0.2 timeout 0", "-m set --match-set for-now src -j ACCEPT", [True]),
        ("10.0.0.2 timeout 60", "-m set --match-set for-now src -j DROP", [True]),
        ("10.0.0.2 timeout 60", "-m set ! --match-set for-now src -j DROP", [True, False]),
    ],
)
def test_what_a_set_lets_through_for_a_while_is_not_certain(
    entry: str, line: str, certain: list[bool]
) -> None:
    text = f"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT {line}\nCOMMIT\n"
    sets = f"create for-now hash:ip family inet timeout 0\nadd for-now {entry}\n"
    chain = narrow(read_chain(text, "filter", "INPUT", sets), IN, EVERYTHING, "accept")
    assert [found.certain for found in chain.rules] == certain
