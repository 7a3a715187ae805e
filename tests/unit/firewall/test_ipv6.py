"""Firewalls, routes and neighbours where hosts talk over IPv6, where they could, and where they do not."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from remedy.deploys.firewall import FirewallSpec
from remedy.deploys.hosts_file import HostsFileSpec
from remedy.plan import FindingKind, make_plan
from remedy.plan.change import Finding
from remedy.probe import (
    Address,
    FibRoute,
    HostState,
    Neighbour,
    Network,
    NftChain,
    NftRule,
    NftRuleset,
    PolicyRule,
    Routing,
    Unit,
)
from remedy.spec import Spec
from tests.unit.build import WHEN, fleet, with_section
from tests.unit.firewall.firewall_bench import file, match, saved, walled

PREFIX = "2001:db8::"
FIRST = {"a": (f"{PREFIX}1", "10.0.0.1"), "b": (f"{PREFIX}2", "10.0.0.2")}
LAST = {name: tuple(reversed(answer)) for name, answer in FIRST.items()}
ALONE = {name: answer[1:] for name, answer in FIRST.items()}
UNITS = ("nftables.service", "netfilter-persistent.service", "ufw.service", "firewalld.service")


def host(name: str, number: int, *, peers: object = FIRST, **walls: object) -> HostState:
    """Return a host with an address in each family."""
    state = walled(name, f"10.0.0.{number}", **walls)  # type: ignore[arg-type]
    assert isinstance(state.network, Network)
    (interface,) = state.network.interfaces
    other = Address(address=f"{PREFIX}{number}", prefix=64, scope="global")
    interface = interface.model_copy(
        update={"addresses": (*interface.addresses, other), "mac": f"02:00:00:00:00:0{number}"}
    )
    network = state.network.model_copy(update={"interfaces": (interface,)})
    names = state.names.model_copy(update={"peers": peers})
    units = {
        unit: Unit(name=unit, load="loaded", active="active", enabled="enabled") for unit in UNITS
    }
    return state.model_copy(update={"network": network, "names": names, "units": units})


def settings(*, manage: bool = False, accepted: Sequence[str] = ()) -> Spec:
    """Return settings by which names stay as they are, or are put right."""
    spec = with_section("hosts_file", HostsFileSpec(manage=manage))
    firewall = FirewallSpec(accepted_rules=tuple(accepted))
    return Spec({**spec.sections, "firewall": firewall})


def said(
    state: HostState, remedy: str = "firewall", *, spec: Spec | None = None, peers: object = FIRST
) -> list[Finding]:
    """Return what is said of a host beside another."""
    hosts = fleet(state, host("b", 2, peers=peers), spec=spec or settings())
    findings = make_plan(hosts, WHEN, only=remedy).findings
    return [f for f in findings if f.host == "a" and "IPv6" in f.title]


DROP = "-A INPUT -s 2001:db8::/64 -p tcp -m tcp --dport 29500 -j DROP"
TEXT = saved(DROP, policy="ACCEPT")


def test_nothing_is_said_of_ipv6_where_hosts_talk_over_ipv4_alone() -> None:
    assert said(host("a", 1, peers=ALONE, ip6tables=TEXT), peers=ALONE) == []


@pytest.mark.parametrize(
    ("peers", "manage", "kind"),
    [
        (FIRST, False, FindingKind.BLOCKED),
        (FIRST, True, FindingKind.REPORT),  # the names are put right in the same run
        (LAST, False, FindingKind.REPORT),  # IPv4 is tried first
    ],
)
def test_it_is_wrong_where_they_talk_over_it_and_worth_knowing_where_they_could(
    peers: object, manage: bool, kind: FindingKind
) -> None:
    state = host("a", 1, peers=peers, ip6tables=TEXT)
    (finding,) = said(state, spec=settings(manage=manage), peers=peers)
    assert finding.kind is kind
    assert DROP in finding.evidence
    assert "ip6tables -t filter -S" in finding.fix


def test_what_nccl_is_told_decides_too() -> None:
    state = host("a", 1, peers=ALONE, ip6tables=TEXT)
    state = state.model_copy(update={"environment": {"NCCL_SOCKET_FAMILY": "AF_INET6"}})
    (finding,) = said(state, peers=ALONE)
    assert finding.kind is FindingKind.BLOCKED
    assert "NCCL_SOCKET_FAMILY" in finding.evidence[-1]


DISCOVERY = [
    f"-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type {number} -m hl --hl-eq 255 -j ACCEPT"
    for number in (135, 136)
]
CONNTRACK = "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"


@pytest.mark.parametrize(
    ("rules", "policy", "is_open"),
    [
        (["-A INPUT -m rt --rt-type 0 -j DROP"], "ACCEPT", True),
        (["-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 135 -m hl --hl-eq 255 -j DROP"], "ACCEPT", False),
        (["-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 128 -j DROP"], "ACCEPT", True),
        (["-A INPUT -p ipv6-icmp -j DROP"], "ACCEPT", False),
        (["-A INPUT -s fd00::/8 -j DROP"], "ACCEPT", True),
        (["-A INPUT ! -s 2001:db8::/64 -j DROP"], "ACCEPT", True),
        (["-A INPUT ! -s fd00::/8 -j REJECT"], "ACCEPT", False),
        ([CONNTRACK], "DROP", False),
        ([CONNTRACK, "-A INPUT -s 2001:db8::/64 -p tcp -j ACCEPT"], "DROP", False),
        ([CONNTRACK, "-A INPUT -s 2001:db8::/64 -p tcp -j ACCEPT", *DISCOVERY], "DROP", True),
        ([CONNTRACK, "-A INPUT -s 2001:db8::/64 -p tcp -j ACCEPT", *DISCOVERY[:1]], "DROP", False),
        (["-A INPUT -m iprange --src-range 2001:db8::1-2001:db8::f -j DROP"], "ACCEPT", False),
    ],
)  # fmt: skip
def test_rules_of_ip6tables(rules: list[str], policy: str, is_open: bool) -> None:
    known = said(host("a", 1, ip6tables=saved(*rules, policy=policy)))
    assert [f.kind for f in known] == [FindingKind.BLOCKED] * (not is_open)
    assert said(host("a", 1, ip6tables_legacy=saved(*rules, policy=policy))) or is_open


def test_an_ipset_holds_the_addresses_of_its_family_alone() -> None:
    rule = "-A INPUT -m set --match-set bad src -j DROP"
    sets = "create bad hash:net family {family}\nadd bad {entry}\n"
    for family, entry, is_open in (
        ("inet6", f"{PREFIX}/64", False),
        ("inet6", "fd00::/8", True),
        ("inet", "10.0.0.0/8", True),
    ):
        text = sets.format(family=family, entry=entry)
        state = host("a", 1, ip6tables=saved(rule, policy="ACCEPT"), ipsets=text)
        assert (said(state) == []) is is_open


def chains(*expressions: object, hook: str = "input", family: str = "ip6") -> NftRuleset:
    """Return one base chain that accepts what its rules do not drop."""
    rules = tuple(NftRule(n, "", json.dumps(e)) for n, e in enumerate(expressions, 1))
    chain = NftChain(family, "t", "c", hook, 0, "accept", rules)
    return NftRuleset(tables=((family, "t"),), chains=(chain,), sets=())


DPORT = {
    "match": {
        "op": "==",
        "left": {"payload": {"protocol": "tcp", "field": "dport"}},
        "right": 29500,
    }
}
NET = {"prefix": {"addr": PREFIX, "len": 64}}
L4 = {"match": {"op": "==", "left": {"meta": {"key": "nfproto"}}, "right": "ipv6"}}


@pytest.mark.parametrize(
    ("rules", "is_open"),
    [
        (chains([match("saddr", NET, "ip6"), {"drop": None}]), False),
        (chains([match("daddr", NET, "ip6"), {"drop": None}], hook="output"), False),
        (chains([match("saddr", NET, "ip6"), {"drop": None}], family="inet"), False),
        (chains([L4, {"drop": None}], family="inet"), False),
        (chains([match("nexthdr", "tcp", "ip6"), {"reject": None}]), False),
        (chains([match("saddr", "10.0.0.2", "ip"), {"drop": None}], family="inet"), True),
        (chains([match("protocol", "tcp", "ip"), {"drop": None}], family="inet"), True),
        (chains([match("saddr", NET, "ip6"), {"drop": None}], family="ip"), True),
        (chains([match("ttl", 1, "ip"), {"drop": None}], family="inet"), True),
        (chains([match("type", "nd-neighbor-solicit", "icmpv6"), {"drop": None}]), False),
        (chains([match("type", 136, "icmpv6"), {"drop": None}]), False),
        (
            chains([match("type", "nd-neighbor-advert", "icmpv6"), {"drop": None}], hook="output"),
            False,
        ),
        (chains([match("type", "echo-request", "icmpv6"), {"drop": None}]), True),
        (chains([match("nexthdr", "icmpv6", "ip6"), {"drop": None}]), False),
        (
            chains(
                [match("nexthdr", "ipv6-icmp", "ip6"), {"accept": None}], [DPORT, {"drop": None}]
            ),
            False,
        ),
        (chains([match("hoplimit", 255, "ip6"), {"accept": None}]), True),
    ],
)
def test_rules_of_nftables(rules: NftRuleset, is_open: bool) -> None:
    assert (said(host("a", 1, nft=rules)) == []) is is_open


def test_a_rule_for_ipv6_says_nothing_of_ipv4_and_the_other_way_round() -> None:
    v6 = host("a", 1, peers=ALONE, nft=chains([L4, {"drop": None}], family="inet"))
    hosts = fleet(v6, host("b", 2, peers=ALONE), spec=settings())
    assert not [f for f in make_plan(hosts, WHEN, only="firewall").findings if f.host == "a"]


def test_a_rate_is_unknown_until_it_is_accepted() -> None:
    rule = "-A INPUT -m hashlimit --hashlimit-above 2/sec --hashlimit-mode srcip --hashlimit-name x -j DROP"
    state = host("a", 1, ip6tables=saved(rule, policy="ACCEPT"))
    assert [f.kind for f in said(state)] == [FindingKind.UNKNOWN]
    assert said(state, spec=settings(accepted=[rule])) == []


NFT_CONF = b"table ip6 t { chain c { type filter hook input priority 0; policy drop; } }\n"
UFW_RULES = {
    "before": "-A ufw6-before-input -m rt --rt-type 0 -j DROP",
    "user": "-A ufw6-user-input -p tcp --dport 22 -j ACCEPT",
    "after": "-A ufw6-after-input -p udp --dport 137 -j DROP",
}
UFW = {
    "/etc/default/ufw": b'IPV6=yes\nDEFAULT_INPUT_POLICY="DROP"\nDEFAULT_OUTPUT_POLICY="ACCEPT"\n',
    **{
        f"/etc/ufw/{part}6.rules": f"*filter\n:ufw6-{part}-input - [0:0]\n{rule}\nCOMMIT\n".encode()
        for part, rule in UFW_RULES.items()
    },
}
ZONE = b"""<zone target="ACCEPT"><rule family="ipv6"%s><source address="2001:db8::/64"/><drop/></rule></zone>"""
FIREWALLD = {"/etc/firewalld/firewalld.conf": b"DefaultZone=own\n"}


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"/etc/nftables.conf": NFT_CONF}, "nftables after the next boot"),
        ({"/etc/iptables/rules.v6": TEXT.encode()}, "ip6tables after the next boot"),
        (UFW, "ufw after the next boot"),
        ({**UFW, "/etc/default/ufw": b"IPV6=no\n"}, "ufw after the next boot"),
        ({**FIREWALLD, "/etc/firewalld/zones/own.xml": ZONE % b""}, "firewalld after the next boot"),
    ],
)  # fmt: skip
def test_what_the_next_boot_loads_is_judged(files: dict[str, bytes], name: str) -> None:
    known = [file(path, content) for path, content in files.items()]
    state = host("a", 1, files=known, ufw="/etc/default/ufw" in files)
    findings = said(state)
    assert findings
    assert {(f.kind, f.title.startswith(name)) for f in findings} == {(FindingKind.BLOCKED, True)}
    assert said(host("a", 1, peers=ALONE, files=known), peers=ALONE) == []


MAIN = PolicyRule(
    priority=32766, source="all", destination="all", inverted=False, conditions=(), action="lookup",
    table="main", suppress=-1, plain=True, text="from all lookup main priority 32766",
)  # fmt: skip


def route(kind: str, destination: str) -> FibRoute:
    return FibRoute(
        kind=kind, destination=destination, gateway="", interface="eth0", table="main", protocol="boot",
        metric=1024, source="", plain=True, text=f"{kind} {destination}",
    )  # fmt: skip


def routed(*routes: FibRoute, mac: str = "02:00:00:00:00:02") -> HostState:
    entry = Neighbour(address=f"{PREFIX}2", mac=mac, interface="eth0", state="PERMANENT")
    inner = Routing(routes=routes, rules=(MAIN,), neighbours=(entry,), ipsec=())
    outer = Routing(routes=(), rules=(), neighbours=(), ipsec=(), ipv6=inner)
    return host("a", 1).model_copy(update={"routing": outer})


@pytest.mark.parametrize(
    ("routes", "words"),
    [
        ([route("unicast", "2001:db8::/64")], ""),
        ([route("unicast", "::/0")], ""),
        ([], "there is no route to b"),
        ([route("unicast", "::/0"), route("blackhole", f"{PREFIX}2")], "a route drops"),
        ([route("unicast", "::/0"), route("unreachable", "2001:db8::/64")], "a route drops"),
        ([route("unicast", "::/0"), route("unreachable", "fd00::/8")], ""),
    ],
)
def test_routes_that_lose_peers_are_named(routes: list[FibRoute], words: str) -> None:
    known = said(routed(*routes), "peer_routes")
    assert [words in f.title for f in known] == [True] * bool(words)


def test_a_wrong_hardware_address_is_named() -> None:
    assert said(routed(), "neighbours") == []
    (finding,) = said(routed(mac="02:00:00:00:00:99"), "neighbours")
    assert "does not have, over IPv6" in finding.title
