"""Where a host stands among its peers, how packets get to it, and which ports it needs."""

from __future__ import annotations

import pytest

from remedy.deploys._packets import all_client_ports, client_ports, path_of
from remedy.deploys._peers import is_among, names_of, place_of
from remedy.deploys.firewall import FirewallSpec, needs
from remedy.deploys.port_range import PortRangeSpec
from remedy.firewall import spans
from remedy.probe import Address, HostState, Interface, Network, Sysctls, SysctlSetting
from remedy.probe.network import RoutingRule
from remedy.values import Unknown
from tests.unit.build import fleet, host_state, record, with_section

RANGE = "net.ipv4.ip_local_port_range"


def link(
    name: str, *addresses: tuple[str, int], kind: str = "physical", master: str = ""
) -> Interface:
    own = tuple(Address(address=text, prefix=prefix, scope="global") for text, prefix in addresses)
    found: Interface = record(Interface, name=name, kind=kind, master=master, addresses=own)
    return found


def host(*links: Interface, rules: int = 3) -> HostState:
    state = host_state("a", "10.0.0.1")
    known = tuple(RoutingRule(source="all", table="main") for _ in range(rules))
    network = record(Network, interfaces=(link("eth0", ("10.0.0.1", 24)), *links), rules=known)
    return state.model_copy(update={"network": network})


OTHERS = (host_state("b", "10.0.0.2"), host_state("c", "10.7.0.3"))


@pytest.mark.parametrize(
    ("more", "rails", "sources"),
    [
        (link("r1", ("10.0.0.9", 24)), {"eth0", "r1"}, {"10.0.0.1", "10.0.0.9"}),
        (link("r1", ("10.0.0.9", 16)), {"eth0", "r1"}, {"10.0.0.1", "10.0.0.9"}),
        (link("r1", ("10.0.0.9", 25)), {"eth0"}, {"10.0.0.1"}),
        (link("r1", ("10.1.0.9", 24)), {"eth0"}, {"10.0.0.1"}),
        (link("r1", ("fd00::9", 24)), {"eth0"}, {"10.0.0.1"}),
    ],
)
def test_interfaces_in_the_clusters_network(
    more: Interface, rails: set[str], sources: set[str]
) -> None:
    state = host(more)
    place = place_of(fleet(state, *OTHERS), state)
    assert place is not None
    assert (place.address, place.prefix, place.cidr) == ("10.0.0.1", 24, "10.0.0.0/24")
    assert (set(place.rails), set(place.sources)) == (rails, sources)
    assert place.carrier.name == "eth0"
    assert place.on_link == spans.of_networks(["10.0.0.2"])
    assert place.beyond == spans.of_networks(["10.7.0.3"])
    assert place.peers == spans.of_networks(["10.0.0.2", "10.7.0.3"])


def test_a_host_without_a_place() -> None:
    state = host()
    assert place_of(fleet(state), state) is None
    hosts = fleet(state, *OTHERS)
    for network in (Unknown(reason="no ip"), record(Network)):
        assert place_of(hosts, state.model_copy(update={"network": network})) is None
    assert names_of(hosts, spans.of_networks(["10.0.0.0/24"])) == "a,b"
    span = ((5, 7),)
    assert [is_among(f"0.0.0.{n}", span) for n in (4, 5, 7, 8)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("more", "rules", "symmetric"),
    [
        ((), 3, True), ((), 4, None), ((link("x", ("10.0.0.9", 24)),), 3, None),
        ((link("x", ("10.9.0.9", 24)),), 3, True), ((link("x", ("::1", 0)),), 3, True),
        ((link("x", ("10.0.0.9", 30)),), 3, True),
    ],
)  # fmt: skip
def test_whether_packets_come_the_way_they_go(
    more: tuple[Interface, ...], rules: int, symmetric: bool
) -> None:
    peers = spans.of_networks(["10.0.0.2"])
    path = path_of(host(*more, rules=rules), "10.0.0.1", peers)
    assert path.symmetric is symmetric
    far = path_of(host(*more, rules=rules), "10.0.0.1", spans.of_networks(["10.7.0.3"]))
    assert far.symmetric is None


def test_what_lies_below_the_carrier() -> None:
    peers = spans.of_networks(["10.0.0.2"])
    bond = host(link("x", master="eth0"), link("y", master="other"), link("z", master="eth0"))
    path = path_of(bond, "10.0.0.1", peers)
    assert (path.interface, path.address, path.lower, path.bridged) == (
        "eth0",
        "10.0.0.1",
        ("x", "z"),
        False,
    )
    state = host_state("a", "10.0.0.1")
    for kind, below in (("vlan", ("br",)), ("bridge", ())):
        links = (link("br.7", ("10.0.0.1", 24), kind=kind), link("br"))
        made = state.model_copy(update={"network": record(Network, interfaces=links)})
        path = path_of(made, "10.0.0.1", peers)
        assert (path.lower, path.bridged) == (below, kind == "bridge")
    lone = record(Network, interfaces=(link("br.7", ("10.0.0.1", 24), kind="vlan"),))
    assert path_of(state.model_copy(update={"network": lone}), "10.0.0.1", peers).lower == ()
    for address in (None, "10.0.0.77"):
        path = path_of(bond, address, peers)
        assert (path.interface, path.address) == (None, address)


def ports(live: str = "", stored: str = "") -> HostState:
    line = SysctlSetting(key=RANGE, value=stored, path="/etc/sysctl.d/9.conf", line=1)
    sysctls = Sysctls(
        live={RANGE: live} if live else {}, persisted=(line,) if stored else (), unread=()
    )
    return host_state("a", "10.0.0.1").model_copy(update={"sysctls": sysctls})


def test_ports_from_which_hosts_connect() -> None:
    assert client_ports(ports("40000 50000")) == ((40000, 50000),)
    assert client_ports(ports()) == ((1024, 65535),)
    assert client_ports(host_state("a", "10.0.0.1")) == ((1024, 65535),)
    other = ports("60000 60999").model_copy(update={"host": "b"})
    both = ((40000, 50000), (60000, 60999))
    other = other.model_copy(update={"network": host_state("b", "10.0.0.2").network})
    assert all_client_ports(fleet(ports("40000 50000"), other)) == both
    assert all_client_ports(fleet(ports("40000 50000"), absent=("c",))) == ((1024, 65535),)


@pytest.mark.parametrize(
    ("live", "stored", "chosen", "expected"),
    [
        ("32768 60999", "", None, [(32768, 60999, "")]),
        ("32768 60999", "32768 60999", None, [(32768, 60999, "")]),
        ("32768 60999", "40000 50000", None, [(32768, 60999, ""), (40000, 50000, " after the next boot")]),
        ("32768 60999", "40000 50000", (50000, 60999), [(50000, 60999, "")]),
        ("", "", None, []),
    ],
)  # fmt: skip
def test_ports_that_new_sockets_need(
    live: str, stored: str, chosen: tuple[int, int] | None, expected: list[tuple[int, int, str]]
) -> None:
    state = ports(live, stored)
    spec = with_section("port_range", PortRangeSpec(range=chosen))
    found = [
        need for need in needs(fleet(state, spec=spec), state, FirewallSpec()) if RANGE in need.why
    ]
    workers = ": NCCL, gloo, MPI and c10d between the workers"
    assert [(n.low, n.high, n.why) for n in found] == [
        (low, high, RANGE + (rest or workers)) for low, high, rest in expected
    ]
    wished = needs(fleet(state, spec=spec), state, FirewallSpec(ports=("9000-9100",)))
    assert (9000, 9100, "firewall.ports of the spec") in [(n.low, n.high, n.why) for n in wished]
