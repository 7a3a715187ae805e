"""What is sent on between networks of containers, and what processes of one host send each other."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys.hosts_file import HostsFileSpec
from remedy.firewall import spans
from remedy.firewall.forward import ContainerSide, forwarded
from remedy.firewall.hooks import Gate, Tables
from remedy.plan import Finding, make_plan
from remedy.probe import (
    Address,
    FibRoute,
    Firewalls,
    HostState,
    Interface,
    Names,
    Network,
    NftChain,
    Routing,
    Sysctls,
)
from remedy.spec import Spec
from tests.unit.build import NO_FIREWALL, WHEN, fleet, host_state, record
from tests.unit.firewall.firewall_bench import NO_NFT

NEAR = ContainerSide(spans.of_networks(["10.77.1.0/24"]), ("cni0",))
FAR = ContainerSide(spans.of_networks(["10.77.2.0/24", "10.77.3.0/24"]), ("eth0",))
HEAD = "*filter\n:INPUT ACCEPT\n:FORWARD {}\n:OUTPUT ACCEPT\n"


def sent_on(*rules: str, policy: str = "ACCEPT", **more: Any) -> list[Gate]:
    text = HEAD.format(policy) + "".join(f"{rule}\n" for rule in rules) + "COMMIT\n"
    return list(forwarded(Tables(NO_NFT, {"nft": text}, **more), NEAR, FAR))


@pytest.mark.parametrize(
    ("rules", "policy", "ways"),
    [
        ((), "ACCEPT", []),
        ((), "DROP", ["in", "out"]),
        (
            ("-A FORWARD -s 10.77.0.0/16 -j ACCEPT", "-A FORWARD -d 10.77.0.0/16 -j ACCEPT"),
            "DROP",
            [],
        ),
        (("-A FORWARD -i cni0 -j ACCEPT",), "DROP", ["in"]),
        (("-A FORWARD -o cni0 -j ACCEPT",), "DROP", ["out"]),
        (("-A FORWARD -i eth0 -o cni0 -j DROP",), "ACCEPT", ["in"]),
        (("-A FORWARD -i docker0 -j DROP",), "ACCEPT", []),
        (("-A FORWARD -d 10.99.0.0/16 -j DROP",), "ACCEPT", []),
        (("-A FORWARD -m addrtype --dst-type LOCAL -j DROP",), "ACCEPT", []),
        (("-A FORWARD -d 10.77.1.5/32 -j DROP",), "ACCEPT", []),  # one container's
        (
            ("-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",),
            "DROP",
            ["in", "out"],
        ),
    ],
)
def test_what_drops_packets_between_containers(
    rules: tuple[str, ...], policy: str, ways: list[str]
) -> None:
    found = sent_on(*rules, policy=policy)
    assert [gate.way for gate in found if gate.judgement.dropped] == ways
    assert not [gate for gate in found if gate.judgement.doubts]


def test_what_depends_on_more_than_the_container_is_a_doubt() -> None:
    rule = "-A FORWARD -m hashlimit --hashlimit-above 9/sec --hashlimit-name x -j DROP"
    assert {doubt.words for gate in sent_on(rule) for doubt in gate.judgement.doubts} == {rule}


def test_chains_of_nftables_count() -> None:
    chain = NftChain("inet", "t", "forward0", "forward", 0, "drop", ())
    ruleset = NO_NFT.model_copy(update={"chains": (chain,)})
    found = list(forwarded(Tables(ruleset, {}), NEAR, FAR))
    assert [gate.place for gate in found if gate.judgement.dropped] == ["inet t forward0"] * 2


# --- by the facts of hosts ----------------------------------------------------------------------------------


def route(destination: str, interface: str, gateway: str = "") -> FibRoute:
    return record(
        FibRoute,
        kind="unicast",
        destination=destination,
        interface=interface,
        gateway=gateway,
        table="main",
    )


def interface(name: str, kind: str, address: str, prefix: int = 24) -> Interface:
    own = (Address(address=address, prefix=prefix, scope="global"),)
    found: Interface = record(
        Interface, name=name, kind=kind, addresses=own, up=True, running=True, state="UP"
    )
    return found


def host(name: str, number: int, text: str = "", forward: str = "1") -> HostState:
    other = 3 - number
    state = host_state(name, f"10.0.0.{number}")
    eth0 = interface("eth0", "physical", f"10.0.0.{number}")
    cni0 = interface("cni0", "bridge", f"10.77.{number}.1")
    routes = (
        route("10.0.0.0/24", "eth0"),
        route(f"10.77.{number}.0/24", "cni0"),
        route("172.17.0.0/16", "cni0"),
        route(f"10.77.{other}.0/24", "eth0", f"10.0.0.{other}"),
    )
    assert isinstance(NO_FIREWALL, Firewalls)
    return state.model_copy(
        update={
            "network": record(Network, interfaces=(eth0, cni0)),
            "routing": Routing(routes=routes, rules=(), neighbours=(), ipsec=()),
            "sysctls": Sysctls(live={"net.ipv4.ip_forward": forward}, persisted=(), unread=()),
            "firewalls": NO_FIREWALL.model_copy(update={"iptables": text}),
        }
    )


def found(remedy: str, *states: HostState) -> list[Finding]:
    plan = make_plan(fleet(*states), WHEN, only=remedy)
    return [finding for finding in plan.findings if finding.host == "a"]


def test_routes_to_containers_of_others_have_the_hook_judged() -> None:
    text = HEAD.format("DROP") + "COMMIT\n"
    (finding,) = found("firewall", host("a", 1, text), host("b", 2))
    assert finding.kind.value == "blocked"
    assert finding.title == (
        "iptables (filter FORWARD) drops what containers of this host and of others send to each other"
    )
    assert finding.evidence[0] == "chain filter FORWARD: policy drop"
    # Without such routes it is a host of its own containers, as Docker leaves it.
    assert found("firewall", host("a", 1, text), host_state("b", "10.0.0.2")) == []


def test_a_host_that_sends_nothing_on_is_named() -> None:
    findings = found("network_health", host("a", 1, forward="0"), host("b", 2))
    assert [finding.title for finding in findings] == [
        (
            "this host sends nothing on to its containers, to which other hosts have routes: "
            "net.ipv4.ip_forward = 0"
        )
    ]
    assert found("network_health", host("a", 1), host("b", 2)) == []


def test_rules_of_loopback_are_judged_for_what_the_host_sends_itself() -> None:
    rule = "-A INPUT -i lo -d 10.0.0.1/32 -p tcp -j DROP"
    text = HEAD.format("ACCEPT") + f"{rule}\nCOMMIT\n"
    (finding,) = found("firewall", host("a", 1, text), host_state("b", "10.0.0.2"))
    assert finding.kind.value == "blocked"
    assert "what processes of this host send to each other" in finding.title
    assert finding.evidence[0] == rule
    for fine in ("-A INPUT -i lo -j ACCEPT", "-A INPUT -i lo -d 10.0.0.9/32 -j DROP"):
        text = HEAD.format("ACCEPT") + f"{fine}\nCOMMIT\n"
        assert found("firewall", host("a", 1, text), host_state("b", "10.0.0.2")) == []


def test_a_policy_that_keeps_peers_out_as_well_is_named_once() -> None:
    text = "*filter\n:INPUT DROP\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\nCOMMIT\n"
    kinds = {
        f.kind.value for f in found("firewall", host("a", 1, text), host_state("b", "10.0.0.2"))
    }
    assert "drift" in kinds
    assert not [
        f
        for f in found("firewall", host("a", 1, text), host_state("b", "10.0.0.2"))
        if "processes" in f.title
    ]


@pytest.mark.parametrize(
    ("address", "tool", "rule"),
    [
        ("::1", "ip6tables", "-A INPUT -i lo -d ::1/128 -p tcp -j DROP"),
        ("fd00::1", "ip6tables", "-A INPUT -i lo -s fd00::/64 -p tcp -j DROP"),
        ("127.0.1.1", "iptables", "-A INPUT -i lo -d 127.0.0.0/8 -p tcp -j DROP"),
    ],
)
def test_rules_of_loopback_are_judged_for_the_address_of_the_own_name(
    address: str, tool: str, rule: str
) -> None:
    plain, text = HEAD.format("ACCEPT") + "COMMIT\n", HEAD.format("ACCEPT") + f"{rule}\nCOMMIT\n"
    rules = {"iptables": plain, "ip6tables": plain, tool: text}
    state = host("a", 1)
    assert isinstance(state.firewalls, Firewalls)
    state = state.model_copy(
        update={
            "firewalls": state.firewalls.model_copy(update=rules),
            "names": record(Names, local=(address,), peers={}),
        }
    )
    kept = Spec({"hosts_file": HostsFileSpec(manage=False)})
    other = host_state("b", "10.0.0.2")
    plan = make_plan(fleet(state, other, spec=kept), WHEN, only="firewall")
    (finding,) = (f for f in plan.findings if f.host == "a")
    assert finding.title == (
        f"{tool} (filter INPUT) drops what processes of this host send to each other by {address}, "
        "to which its own name leads"
    )
    assert (finding.kind.value, finding.evidence[0]) == ("blocked", rule)
    assert finding.fix.endswith(f"{tool} -t filter -S")
    # Where that name is put right, nobody meets there.
    assert found("firewall", state, other) == []
