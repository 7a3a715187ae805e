"""Hosts with addresses and machines with names, for tests of what a fleet is decided about as a whole."""

from __future__ import annotations

from pathlib import Path

from remedy.inventory import Inventory, Node
from remedy.plan import Fleet, section_models
from remedy.probe import Address, HostState, Identity, Interface, Network
from remedy.spec import load_spec
from tests.unit.build import host_state, record

NAMES = ("gpu01", "gpu02", "gpu03")


def machine(at: str, called: str, number: int, **identity: str) -> HostState:
    """Return what answers at an entry's address: a machine of some name, with ids of its own."""
    state = host_state(at, f"10.0.0.{NAMES.index(at) + 1}", running=called, static=called)
    assert isinstance(state.identity, Identity)
    ids = {"machine_id": f"machine-{number}", "boot_id": f"boot-{number}", **identity}
    return state.model_copy(update={"identity": state.identity.model_copy(update=ids)})


def with_addresses(name: str, *addresses: str) -> HostState:
    """Return a host with an interface for each address in CIDR notation, IPv6 or IPv4."""
    interfaces = tuple(
        record(
            Interface,
            name=f"eth{n}",
            addresses=(
                Address(address=a.split("/")[0], prefix=int(a.split("/")[1]), scope="global"),
            ),
        )
        for n, a in enumerate(addresses)
    )
    state = host_state(name, "192.0.2.1")
    return state.model_copy(update={"network": record(Network, interfaces=interfaces)})


def addressed(
    *states: HostState,
    ssh: dict[str, str],
    given: dict[str, str] | None = None,
    subnet: str | None = None,
) -> Fleet:
    """Return the fleet of the hosts that ``ssh`` gives an ssh address; those without a state were not read."""
    spec = load_spec(None, section_models())
    spec.sections["cluster"] = spec.cluster.model_copy(update={"subnet": subnet})
    nodes = tuple(
        Node(name=name, ssh_address=address, data={"cluster_address": (given or {}).get(name)})
        for name, address in ssh.items()
    )
    inventory = Inventory(path=Path("inventory.py"), nodes=nodes)
    return Fleet(inventory, {state.host: state for state in states}, spec)
