"""Which addresses a host can have that it says are its own, and which network all hosts share."""

from __future__ import annotations

from ipaddress import IPv4Interface
from pathlib import Path

import pytest

from remedy.inventory import Inventory, Node
from remedy.plan.claimed import (
    implausible,
    interface_addresses,
    plausible_claims,
    shared_network,
    why_not,
)
from remedy.probe import Address, HostState, Interface, Network
from remedy.values import Unknown
from tests.unit.build import record

WIDE = "{} would be in a network larger than any"
NO_HOST = "{} is no address of a host (RFC 6890)"
EDGE = "{} is the address of the network {} itself, or its broadcast"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("10.0.0.1/8", ""),
        ("10.0.0.1/7", WIDE.format("10.0.0.1/7")),
        ("0.0.0.0/0", WIDE.format("0.0.0.0/0")),
        ("192.168.0.1/31", ""),
        ("192.168.0.0/31", ""),
        ("192.168.0.1/32", ""),
        ("192.168.0.0/30", EDGE.format("192.168.0.0", "192.168.0.0/30")),
        ("192.168.0.3/30", EDGE.format("192.168.0.3", "192.168.0.0/30")),
        ("192.168.0.2/30", ""),
        *((f"{ip}/24", NO_HOST.format(ip)) for ip in (
            "0.1.2.3", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "224.0.0.1", "239.1.1.1",
            "240.0.0.1", "255.1.1.1", "127.0.0.1",
        )),
        ("172.16.0.1/12", ""),
        ("8.8.8.8/24", ""),
        ("100.64.0.1/10", ""),
    ],
)  # fmt: skip
def test_which_address_a_host_can_have(text: str, reason: str) -> None:
    address = IPv4Interface(text)
    assert implausible(address) == reason
    words = f"; {reason}, so what it says is not used" if reason else ""
    assert why_not([IPv4Interface("10.0.0.9/24"), address]) == words


def test_of_several_claims_that_cannot_be_the_first_is_named() -> None:
    claims = [IPv4Interface("224.0.0.1/24"), IPv4Interface("240.0.0.1/24")]
    assert why_not(claims) == f"; {NO_HOST.format('224.0.0.1')}, so what it says is not used"


def host(name: str, *addresses: str) -> HostState:
    interfaces = tuple(
        record(
            Interface,
            name=f"eth{at}",
            addresses=(
                Address(
                    address=text.partition("/")[0],
                    prefix=int(text.partition("/")[2]),
                    scope="global",
                ),
            ),
        )
        for at, text in enumerate(addresses)
    )
    return record(HostState, host=name).model_copy(
        update={"network": record(Network, interfaces=interfaces)}
    )


def claims_of(*states: HostState, nodes: tuple[Node, ...] = ()) -> dict[str, list[str]]:
    inventory = Inventory(path=Path("inventory.py"), nodes=nodes)
    claims = plausible_claims({state.host: state for state in states}, inventory)
    return {name: [str(address) for address in known] for name, known in claims.items()}


def test_what_peers_cannot_reach_is_no_address_of_a_host() -> None:
    state = host("a", "127.0.0.1/8", "169.254.0.1/16", "10.0.0.1/24", "fd00::1/64")
    assert [str(address) for address in interface_addresses(state)] == ["10.0.0.1/24"]
    assert interface_addresses(None) == ()
    blind = state.model_copy(update={"network": Unknown(reason="x")})
    assert interface_addresses(blind) == ()


def test_an_address_of_two_hosts_or_of_another_in_the_inventory_is_nobodys() -> None:
    a = host("a", "172.17.0.1/16", "10.0.0.1/24", "10.0.0.2/24", "10.0.0.3/24", "10.0.0.4/24")
    b = host("b", "172.17.0.1/16", "10.0.0.9/24")
    twice = host("c", "10.1.0.1/24", "10.1.0.1/24")
    nodes = (
        Node(name="a", ssh_address="10.0.0.1"),
        Node(name="b", ssh_address="10.0.0.2"),
        Node(name="c", ssh_address="gpu03", data={"cluster_address": "10.0.0.3"}),
        # Ports of one address, forwarded to several hosts.
        Node(name="d", ssh_address="10.0.0.4"),
        Node(name="e", ssh_address="10.0.0.4"),
    )
    assert claims_of(a, b, twice, nodes=nodes) == {
        "a": ["10.0.0.1/24", "10.0.0.4/24"],
        "b": ["10.0.0.9/24"],
        "c": ["10.1.0.1/24", "10.1.0.1/24"],
    }


def shared(*states: HostState) -> str | None:
    by_name = {state.host: state for state in states}
    claims = plausible_claims(by_name, Inventory(path=Path("inventory.py"), nodes=()))
    network = shared_network(by_name, claims)
    return None if network is None else str(network)


BLIND = host("z").model_copy(update={"network": Unknown(reason="x")})


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ((host("a", "10.0.0.1/24"), host("b", "10.0.0.2/24")), "10.0.0.0/24"),
        ((host("a", "10.0.0.1/24"), host("b", "10.0.1.2/24")), None),
        # The first that all share, in the order of interfaces.
        (
            (host("a", "10.1.0.1/24", "10.0.0.1/24"), host("b", "10.0.0.2/24", "10.1.0.2/24")),
            "10.1.0.0/24",
        ),
        # More than half have to call it by that prefix, and the others be inside.
        (
            (host("a", "10.0.0.1/24"), host("b", "10.0.0.2/24"), host("c", "10.0.0.3/25")),
            "10.0.0.0/24",
        ),
        ((host("a", "10.0.0.1/24"), host("b", "10.0.0.2/25")), None),
        ((host("a", "10.0.0.1/24"), host("b", "10.0.0.2/24"), host("c", "10.0.1.3/25")), None),
        # A host that has nothing plausible to say is not asked; one that was not read is.
        ((host("a", "10.0.0.1/24"), host("b", "10.0.0.2/24"), host("c", "224.0.0.1/24")), "10.0.0.0/24"),
        ((host("a", "10.0.0.1/24"), host("b", "10.0.0.2/24"), BLIND), None),
        ((), None),
    ],
)  # fmt: skip
def test_the_network_that_all_hosts_share(
    states: tuple[HostState, ...], expected: str | None
) -> None:
    assert shared(*states) == expected
