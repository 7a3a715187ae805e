"""What ip and tc print, read into facts."""

from __future__ import annotations

import json

import pytest

from remedy.probe import HostState, Queueing, Routing
from remedy.probe.routing import MOST
from remedy.values import Unknown
from tests.unit.probe_data import parse, section

ROUTES = [
    {"type": "unicast", "dst": "default", "gateway": "10.0.0.254", "dev": "eth0", "table": "main",
     "protocol": "dhcp", "scope": "global", "metric": 100, "flags": []},
    {"type": "unicast", "dst": "10.0.0.0/24", "dev": "eth0", "table": "main", "protocol": "kernel",
     "scope": "link", "prefsrc": "10.0.0.1", "flags": []},
    {"type": "blackhole", "dst": "10.0.0.9", "table": "7", "protocol": "boot", "scope": "global", "flags": []},
    {"type": "unicast", "dst": "10.7.0.0/24", "dev": "eth0", "table": "main", "protocol": "boot",
     "scope": "link", "flags": [], "metrics": [{"mtu": 1300}]},
    {"type": "unicast", "dst": "10.3.0.0/24", "table": "main", "protocol": "boot", "scope": "global",
     "flags": [], "nexthops": [{"gateway": "10.0.0.8", "dev": "eth0", "weight": 1, "flags": []}]},
    {"type": "broadcast", "dst": "10.0.0.255", "dev": "eth0", "table": "local"},
    {"type": "unicast", "dst": "fe80::/64", "dev": "eth0", "table": "main"},
]  # fmt: skip
RULES = [
    {"priority": 0, "src": "all", "table": "local", "protocol": "kernel"},
    {"priority": 5, "src": "all", "goto": 32766, "protocol": "unspec"},
    {"priority": 9, "src": "all", "dst": "10.0.0.4", "action": "prohibit", "protocol": "unspec"},
    {"priority": 10, "not": None, "src": "10.0.0.0", "srclen": 24, "fwmark": "0x1", "fwmask": "0xff",
     "table": "main", "suppress_prefixlen": 0},
    {"priority": 11, "src": "all", "uid_start": 0, "uid_end": 99, "ipproto": "tcp", "dport_start": 80,
     "dport_end": 90, "action": "blackhole"},
]  # fmt: skip
NEIGHBOURS = [
    {"dst": "10.0.0.5", "dev": "eth0", "lladdr": "02:00:00:00:00:05", "state": ["PERMANENT"]},
    {"dst": "10.0.0.6", "dev": "eth0", "state": ["FAILED"]},
    {"dst": "ff02::16", "dev": "eth0", "lladdr": "33:33:00:00:00:16", "state": ["NOARP"]},
]
POLICIES = """\
src 10.0.0.1/32 dst 10.0.0.3/32
	dir out priority 0 ptype main
	tmpl src 10.0.0.1 dst 10.0.0.3
		proto esp reqid 0 mode transport
src 10.0.0.1/32 dst 10.0.0.7/32
	dir out action block priority 5 ptype main
src 10.0.0.0/24 dst 10.0.0.1/32 proto tcp dport 80
	dir in action block priority 0 ptype main
src fd00::1/128 dst fd00::2/128
	dir in action block priority 0 ptype main
src 0.0.0.0/0 dst 0.0.0.0/0
	socket in action allow index 3 priority 0 ptype main
"""
TC = """\
qdisc noqueue 0: dev lo root refcnt 2
qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 100ms loss 10%
qdisc clsact ffff: dev eth0 parent ffff:fff1
qdisc pfifo 0: dev eth1 parent 8:10 limit 1000p
filters eth0 root
filters eth0 ingress
filter protocol ip pref 49152 u32 chain 0
filter protocol ip pref 49152 u32 chain 0 fh 800: ht divisor 1
filter protocol ip pref 49152 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 terminal flowid not_in_hw
  match 0a000009/ffffffff at 12
	action order 1: gact action drop
	random type none pass val 0
	index 1 ref 1 bind 1
filters eth0 egress
filter protocol all pref 1 bpf chain 0
filter protocol all pref 1 bpf chain 0 handle 0x1 to_netdev direct-action not_in_hw id 77 tag 0a1b jited
"""


def state(routing: str = "", queueing: str = "") -> HostState:
    """Return what is read from these two sections."""
    return parse(section("routing", routing) + section("queueing", queueing))


def printed(policies: str = POLICIES) -> str:
    """Return what section ``routing`` prints."""
    arrays = "\n".join(json.dumps(array) for array in (ROUTES, RULES, NEIGHBOURS))
    return f"{arrays}\n{policies}\nipsec known\n"


def routing_of(text: str) -> Routing:
    routing = state(text).routing
    assert isinstance(routing, Routing), routing
    return routing


def test_routes_come_as_they_are_typed() -> None:
    assert [route.text for route in routing_of(printed()).routes] == [
        "10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.1",
        "10.3.0.0/24 proto boot nexthop via 10.0.0.8 dev eth0",
        "10.7.0.0/24 dev eth0 proto boot scope link mtu 1300",
        "blackhole 10.0.0.9 table 7 proto boot",
        "default via 10.0.0.254 dev eth0 proto dhcp metric 100",
    ]
    plain = {route.destination: route.plain for route in routing_of(printed()).routes}
    assert plain == {
        "10.0.0.0/24": True,
        "10.3.0.0/24": False,  # several ways
        "10.7.0.0/24": False,  # with an MTU of its own
        "10.0.0.9": True,
        "default": True,
    }


def test_rules_come_with_all_their_conditions() -> None:
    rules = routing_of(printed()).rules
    assert [(rule.text, rule.action, rule.plain) for rule in rules] == [
        ("from all lookup local priority 0", "lookup", True),
        ("from all goto 32766 priority 5", "goto", False),
        ("from all to 10.0.0.4 prohibit priority 9", "prohibit", True),
        (
            "not from 10.0.0.0/24 fwmark 0x1/0xff lookup main suppress_prefixlength 0 priority 10",
            "lookup",
            False,
        ),
        (
            "from all ipproto tcp dport 80-90 uidrange 0-99 blackhole priority 11",
            "blackhole",
            False,
        ),
    ]


def test_neighbours_and_policies_of_ipv4_are_read() -> None:
    routing = routing_of(printed())
    assert [(n.address, n.mac, n.state) for n in routing.neighbours] == [
        ("10.0.0.5", "02:00:00:00:00:05", "PERMANENT"),
        ("10.0.0.6", "", "FAILED"),
    ]
    assert not isinstance(routing.ipsec, Unknown)
    assert [(p.destination, p.direction, p.action, p.plain) for p in routing.ipsec] == [
        ("10.0.0.3/32", "out", "ipsec", False),
        ("10.0.0.7/32", "out", "block", True),
        ("10.0.0.1/32", "in", "block", False),  # for one port
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "more than 1 MB"),
        ("[" + "1," * MOST, "more than 1 MB"),
        ("Option -j is unknown\n\nipsec \n", "no JSON"),
    ],
)
def test_what_cannot_be_read_is_unknown(text: str, reason: str) -> None:
    routing = state(text).routing
    assert isinstance(routing, Unknown)
    assert reason in routing.reason


def test_disciplines_and_filters_are_read_without_what_changes_by_itself() -> None:
    queueing = state(queueing=TC).queueing
    assert isinstance(queueing, Queueing)
    assert [(d.interface, d.kind, d.place) for d in queueing.disciplines] == [
        ("lo", "noqueue", "root"),
        ("eth0", "netem", "root"),
        ("eth0", "clsact", "clsact"),
        ("eth1", "pfifo", "parent 8:10"),
    ]
    assert queueing.disciplines[1].text == (
        "qdisc netem 8001: dev eth0 root limit 1000 delay 100ms loss 10%"
    )
    assert [(f.direction, len(f.text)) for f in queueing.filters] == [("ingress", 5), ("egress", 1)]
    assert queueing.filters[1].text[0].endswith("to_netdev direct-action not_in_hw")


def test_policies_that_asking_could_load_a_module_for_are_unknown() -> None:
    routing = routing_of(printed("").replace("ipsec known", "ipsec unknown"))
    assert isinstance(routing.ipsec, Unknown)
    assert len(routing.routes) == 5
