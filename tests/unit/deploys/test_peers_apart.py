"""What keeps a host from its peers below the routes: entries, policies, disciplines, filters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from remedy.deploys import rails
from remedy.deploys._ipv6 import ipv6_peers
from remedy.deploys.ipsec import IpsecSpec, policy_of
from remedy.deploys.neighbours import NeighboursSpec, observation
from remedy.deploys.peer_routes import PeerRoutesSpec
from remedy.deploys.traffic_control import TrafficControlSpec
from remedy.plan import Plan, make_plan
from remedy.probe import (
    Discipline,
    HostState,
    Names,
    Neighbour,
    Network,
    PolicyRule,
    Queueing,
    Routing,
    Sysctls,
    SysctlSetting,
    TrafficFilter,
)
from remedy.spec import SpecSection
from remedy.values import Unknown
from tests.unit.build import WHEN, fleet, host_state, record, with_section
from tests.unit.deploys.ways_bench import LINK, MAIN, PEER, THIRD, host, routing, rule, said

WRONG = "02:00:00:00:00:99"


def entry(address: str = PEER, interface: str = "eth0", state: str = "PERMANENT") -> Neighbour:
    return Neighbour(address=address, mac=WRONG, interface=interface, state=state)


def with_entries(*entries: Neighbour) -> HostState:
    return host("a", "10.0.0.1", routing(LINK).model_copy(update={"neighbours": entries}))


def plan(remedy: str, state: HostState, settings: SpecSection | None = None) -> Plan:
    spec = None if settings is None else with_section(remedy, settings)
    states = (state, host("b", PEER), host("c", THIRD))
    return make_plan(fleet(*states, spec=spec), WHEN, only=remedy)


# ---- neighbours


@pytest.mark.parametrize(
    ("one", "kinds"),
    [
        (entry(), ["drift"]),
        (entry(interface="eth9"), []),
        (entry("10.9.9.9"), []),
        (entry("10.0.0.99"), []),  # in the network, and nobody's
        (entry(state="REACHABLE"), []),
        (entry(state="STALE"), []),
        (entry(state="FAILED"), ["report"]),
        (entry(interface="eth9", state="FAILED"), []),
        (entry("10.9.9.9", state="FAILED"), []),
    ],
)
def test_an_entry_counts_on_the_clusters_interface_and_for_a_peer(
    one: Neighbour, kinds: list[str]
) -> None:
    assert [kind for kind, _ in said(plan("neighbours", with_entries(one)))] == kinds


def test_an_entry_is_compared_without_regard_to_case_and_accepted_by_its_text() -> None:
    right = entry().model_copy(update={"mac": "02:00:00:00:00:02".upper()})
    assert said(plan("neighbours", with_entries(right))) == []
    accepted = NeighboursSpec(accept=(f"{PEER} lladdr {WRONG} PERMANENT",))
    assert said(plan("neighbours", with_entries(entry()), accepted)) == []
    assert said(plan("neighbours", with_entries(entry(state="NOARP")), accepted)) != []


def test_only_a_fixed_entry_is_one_that_was_set_by_hand() -> None:
    (change,) = plan("neighbours", with_entries(entry())).for_host("a")
    assert observation(with_entries(entry()), change) == "there"
    assert observation(with_entries(entry(state="NOARP")), change) == "there"
    assert observation(with_entries(entry(state="STALE")), change) == "absent"
    assert observation(with_entries(entry(THIRD)), change) == "absent"


def test_without_repair_what_to_do_is_said() -> None:
    settings = NeighboursSpec(repair=False)
    found = plan("neighbours", with_entries(entry()), settings)
    assert found.changes == ()
    assert [f.fix for f in found.findings] == ["Remove it: ip neigh del 10.0.0.2 dev eth0"]
    silent = plan("neighbours", host("a", "10.0.0.1", arp=False), settings)
    assert [f.fix for f in silent.findings] == ["Switch it on: ip link set dev eth0 arp on"]


@pytest.mark.parametrize(
    ("live", "stored", "titles"),
    [
        ({"all": "8"}, {}, ["this host answers nobody who asks for its hardware address"]),
        ({"eth0": "8"}, {}, ["this host answers nobody who asks for its hardware address"]),
        ({"eth9": "8"}, {}, []),
        ({"all": "2"}, {}, []),
        ({}, {"eth0": "8"}, [
            "after the next boot, this host answers nobody who asks for its hardware address",
        ]),
        ({}, {"eth0": "1"}, []),
    ],
)  # fmt: skip
def test_an_interface_that_answers_nobody_is_named(
    live: dict[str, str], stored: dict[str, str], titles: list[str]
) -> None:
    key = "net.ipv4.conf.{}.arp_ignore"
    lines = tuple(
        SysctlSetting(key=key.format(name), value=value, path="/etc/sysctl.d/9.conf", line=4)
        for name, value in stored.items()
    )
    values = {key.format(name): value for name, value in live.items()}
    state = host("a", "10.0.0.1").model_copy(
        update={"sysctls": Sysctls(live=values, persisted=lines, unread=())}
    )
    found = plan("neighbours", state).findings
    assert [f.title for f in found] == titles
    for finding in found:
        name = next(iter(live or stored))
        place = "/etc/sysctl.d/9.conf:4: " if stored else ""
        assert finding.evidence == (f"{place}{key.format(name)} = 8",)


@pytest.mark.parametrize(
    ("macs", "hosts"),
    [
        (("02:00:00:00:00:0a", "02:00:00:00:00:0A", "02:00:00:00:00:0c"), "[a-b]"),
        (("02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"), ""),
        (("00:00:00:00:00:00", "00:00:00:00:00:00", ""), ""),
    ],
)
def test_two_hosts_with_one_hardware_address_are_named(macs: tuple[str, ...], hosts: str) -> None:
    states = []
    for number, mac in enumerate(macs, 1):
        state = host("abc"[number - 1], f"10.0.0.{number}")
        assert isinstance(state.network, Network)
        (interface,) = state.network.interfaces
        links = (interface.model_copy(update={"mac": mac}),)
        network = state.network.model_copy(update={"interfaces": links})
        states.append(state.model_copy(update={"network": network}))
    found = make_plan(fleet(*states), WHEN, only="neighbours").findings
    assert [f.host for f in found] == ([None] if hosts else [])
    for finding in found:
        assert finding.title.endswith(" have one hardware address")
        assert "a,b" in finding.title or hosts in finding.title


# ---- policies of IPsec


@pytest.mark.parametrize(
    ("action", "direction", "expected"),
    [
        ("block", "in", [("drift", "a policy of IPsec blocks packets from b")]),
        ("block", "out", [("drift", "a policy of IPsec blocks packets to b")]),
        ("ipsec", "in", [
            ("unknown", "packets from b have to be encrypted, and whether both ends agree is not known"),
        ]),
        ("ipsec", "out", [
            ("unknown", "packets to b have to be encrypted, and whether both ends agree is not known"),
        ]),
        ("allow", "in", []),
        ("block", "fwd", []),
    ],
)  # fmt: skip
def test_a_policy_is_judged_by_what_it_does(
    action: str, direction: str, expected: list[tuple[str, str]]
) -> None:
    ends = (PEER, "10.0.0.1") if direction == "in" else ("10.0.0.1", PEER)
    text = f"src {ends[0]}/32 dst {ends[1]}/32 dir {direction} action {action} priority 7"
    policy = policy_of(text).model_copy(update={"action": action})
    state = host("a", "10.0.0.1", routing(LINK).model_copy(update={"ipsec": (policy,)}))
    assert said(plan("ipsec", state)) == expected
    assert said(plan("ipsec", state, IpsecSpec(accept=(text,)))) == []
    assert plan("ipsec", state, IpsecSpec(repair=False)).changes == ()
    for change in plan("ipsec", state).changes:
        assert "priority 7" in change.action.inverse().describe()
    blurred = policy.model_copy(update={"plain": False})
    state = host("a", "10.0.0.1", routing(LINK).model_copy(update={"ipsec": (blurred,)}))
    assert plan("ipsec", state).changes == ()
    unread = Unknown(reason="no xfrm")
    state = host("a", "10.0.0.1", routing(LINK).model_copy(update={"ipsec": unread}))
    assert said(plan("ipsec", state)) == [("unknown", "could not read the policies of IPsec")]


# ---- traffic control


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("", ("unknown", "could not read what queues packets on the cluster interface")),
        ("netem", ("unknown", "netem on the cluster interface")),
        ("mq", ("report", "filters of traffic control were not read")),
    ],
)
def test_where_tc_is_not_there_what_ip_shows_is_judged(
    shown: str, expected: tuple[str, str]
) -> None:
    state = host("a", "10.0.0.1")
    assert isinstance(state.network, Network)
    links = tuple(i.model_copy(update={"discipline": shown}) for i in state.network.interfaces)
    network = state.network.model_copy(update={"interfaces": links})
    blind = {"network": network, "queueing": Unknown(reason="tc is not installed")}
    (finding,) = plan("traffic_control", state.model_copy(update=blind)).findings
    assert finding.kind.value == expected[0]
    if shown == "netem":
        assert finding.title == "eth0 shapes what is sent, and what it drops is not known"
        assert finding.evidence == ("tc is not installed", "qdisc netem on eth0")
    else:
        assert finding.title == expected[1]
        assert finding.evidence == ("tc is not installed",)


def queued(*texts: str) -> HostState:
    disciplines = tuple(
        Discipline(interface="eth0", kind=text.split()[1], place=place, text=text)
        for text in texts
        for place in ["root" if " root" in text else "ingress"]
    )
    return host("a", "10.0.0.1", queueing=Queueing(disciplines=disciplines, filters=()))


NETEM = "qdisc netem 8001: dev eth0 root limit 1000 loss 10%"


@pytest.mark.parametrize(
    ("others", "is_removed"),
    [
        ((), True),
        (("qdisc ingress ffff: dev eth0 parent ffff:fff1",), True),
        (("qdisc clsact ffff: dev eth0 parent ffff:fff1",), True),
        (("qdisc fq 9: dev eth0 parent 8001:1",), False),
    ],
)
def test_a_lossy_discipline_goes_where_nothing_hangs_below_it(
    others: tuple[str, ...], is_removed: bool
) -> None:
    found = plan("traffic_control", queued(NETEM, *others))
    assert bool(found.changes) is is_removed
    settings = TrafficControlSpec(repair=False)
    assert [kind for kind, _ in said(plan("traffic_control", queued(NETEM), settings))] == [
        "report"
    ]
    assert said(plan("traffic_control", queued(NETEM), TrafficControlSpec(accept=(NETEM,)))) == []


@pytest.mark.parametrize(
    ("lines", "direction", "kind"),
    [
        (("filter protocol ip pref 7 flower handle 0x1", "dst_ip 10.0.0.2"), "egress", "blocked"),
        (("filter protocol ip pref 7 flower handle 0x1", "src_ip 10.0.0.2"), "egress", ""),
        (("filter protocol ip pref 7 flower handle 0x1", "dst_ip 10.0.0.1"), "ingress", "blocked"),
        (("filter protocol ip pref 7 flower handle 0x1", "dst_ip 10.0.0.9"), "ingress", ""),
        (("filter protocol arp pref 7 matchall handle 0x1",), "ingress", "blocked"),
        (("filter protocol ip pref 7 flower handle 0x1", "ip_proto tcp"), "ingress", "blocked"),
        (("filter protocol ip pref 7 flower handle 0x1", "skip_hw"), "ingress", "blocked"),
        (("filter protocol ip pref 7 flower handle 0x1", "in_hw"), "ingress", "blocked"),
        (("filter protocol ip pref 7 flower handle 0x1", "ct_state +est"), "ingress", "unknown"),
        (("filter protocol ip pref 7 fw handle 0x1",), "ingress", "unknown"),
        (("filter parent 1: protocol ip pref 7 matchall handle 0x1",), "egress", "blocked"),
        (("filter something else",), "ingress", "unknown"),
    ],
)
def test_a_filter_counts_by_its_side_and_its_words(
    lines: tuple[str, ...], direction: str, kind: str
) -> None:
    text = (*lines, "action order 1: gact action drop")
    one = TrafficFilter(interface="eth0", direction=direction, text=text)
    state = host("a", "10.0.0.1", queueing=Queueing(disciplines=(), filters=(one,)))
    found = plan("traffic_control", state).findings
    assert [f.kind.value for f in found] == ([kind] if kind else [])
    for finding in found:
        assert finding.evidence == (f"eth0 {direction}: {' '.join(text)}",)
        if kind == "blocked":
            place = "root" if "parent" in lines[0] else direction
            protocol = lines[0].partition("protocol ")[2].split()[0]
            words = f"tc filter del dev eth0 {place} protocol {protocol} pref 7"
            assert words in finding.fix
        accepted = TrafficControlSpec(accept=finding.evidence)
        assert said(plan("traffic_control", state, accepted)) == []
    elsewhere = one.model_copy(update={"interface": "eth9"})
    state = host("a", "10.0.0.1", queueing=Queueing(disciplines=(), filters=(elsewhere,)))
    assert said(plan("traffic_control", state)) == []


# ---- routes


def test_a_cable_that_is_out_is_told_from_an_interface_that_is_down() -> None:
    state = host("a", "10.0.0.1")
    assert isinstance(state.network, Network)
    links = tuple(
        i.model_copy(update={"running": False, "state": "DOWN"}) for i in state.network.interfaces
    )
    network = state.network.model_copy(update={"interfaces": links})
    (finding,) = plan("peer_routes", state.model_copy(update={"network": network})).findings
    assert finding.title == (
        "eth0, which has the cluster address, has no carrier, so no peer is reached"
    )
    assert finding.evidence == ("10.0.0.1 is on eth0: state DOWN",)
    assert finding.fix == "Check the cable and the port of the switch: ethtool eth0"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (rule(9, "blackhole", conditions=("dport 8000-8090",)), "unknown"),
        (rule(9, "blackhole", destination=PEER), "drift"),
        (rule(9, "blackhole", source="10.0.0.1"), "drift"),
        (rule(9, "blackhole", destination="10.0.0.0/16"), "blocked"),
        (rule(9, "blackhole"), "blocked"),
    ],
)
def test_a_rule_that_loses_peers_goes_where_it_is_about_them_alone(
    made: PolicyRule, expected: str
) -> None:
    state = host("a", "10.0.0.1", routing(LINK, rules=(made, MAIN)))
    found = plan("peer_routes", state)
    assert {f.kind.value for f in found.findings} == {expected}
    verb = "may drop" if expected == "unknown" else "drops"
    assert found.findings[0].title.startswith(f"a routing rule {verb} what this host sends to b")
    assert said(plan("peer_routes", state, PeerRoutesSpec(accept=(made.text,)))) == []
    assert plan("peer_routes", state, PeerRoutesSpec(repair=False)).changes == ()


@pytest.mark.parametrize("protocol", ["", "boot", "static", "unspec", "bird", "dhcp", "kernel"])
def test_a_route_of_a_daemon_stays(protocol: str) -> None:
    lost = f"unreachable {PEER}" + (f" proto {protocol}" if protocol else "")
    found = plan("peer_routes", host("a", "10.0.0.1", routing(LINK, lost)))
    assert bool(found.changes) is (protocol in ("", "boot", "static", "unspec"))


# ---- names


@pytest.mark.parametrize(
    ("name", "key"),
    [("eth0", "net.ipv4.conf.eth0.x"), ("eth0.100", "net.ipv4.conf.eth0/100.x")],
)
def test_a_dot_in_an_interfaces_name_is_a_slash(name: str, key: str) -> None:
    assert rails.key_of(name, "x") == key


@pytest.mark.parametrize(
    ("local", "used"),
    [
        (("fd00::1", "10.0.0.1"), "a resolves to fd00::1, 10.0.0.1 on a"),
        (("10.0.0.1", "fd00::1"), ""),
        (("::1",), None),
        (("fe80::1",), None),
        (("::ffff:10.0.0.1",), None),
        (("ff02::1",), None),
        (("::",), None),
        (Unknown(reason="x"), None),
    ],
)
def test_a_host_whose_own_name_leads_to_ipv6_is_reached_over_it(
    local: tuple[str, ...] | Unknown, used: str | None
) -> None:
    names = record(Names, local=local)
    state = host_state("a", "10.0.0.1").model_copy(update={"names": names})
    hosts = fleet(state, host_state("b", "10.0.0.2"))
    manual = with_section(
        "hosts_file", hosts.spec.sections["hosts_file"].model_copy(update={"manage": False})
    )
    peers = ipv6_peers(replace(hosts, spec=manual))
    assert peers.addresses == ({} if used is None else {"a": frozenset({"fd00::1"})})
    assert peers.used == (used or "")
    assert bool(peers.why) is (used is not None)
    assert ipv6_peers(hosts).used == ""


def test_the_routing_of_a_host_is_needed() -> None:
    state = host("a", "10.0.0.1").model_copy(update={"routing": Unknown(reason="no ip")})
    for remedy, title in (
        ("peer_routes", "could not read the routes and routing rules"),
        ("neighbours", "could not read the neighbour table"),
    ):
        assert said(plan(remedy, state)) == [("unknown", title)]
    assert said(plan("ipsec", state)) == []
    assert isinstance(host("a", "10.0.0.1").routing, Routing)
