"""What Open MPI does with the interfaces and ports of a host unless it is told. Not a remedy itself.

It connects over every interface that is up, docker0 too, which has the same address on every host: the job
then hangs, or dies with "cannot find a corresponding process entry". The daemons of mpirun do the same. Its
transport listens from port 1024 upwards, whatever the kernel's range is (opal/mca/btl/tcp/btl_tcp_component.c;
both seen with Open MPI 4.1.4).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from remedy.deploys import _interfaces as nic
from remedy.deploys._settings import MCA_PREFIX, settings, targets
from remedy.probe import HostState, Interface, Network
from remedy.text import is_number
from remedy.values import Unknown

INCLUDE = f"{MCA_PREFIX}btl_tcp_if_include"
DAEMONS = f"{MCA_PREFIX}oob_tcp_if_include"
FIRST_PORT = f"{MCA_PREFIX}btl_tcp_port_min_v4"
PORT_COUNT = f"{MCA_PREFIX}btl_tcp_port_range_v4"
# Of each the list of what is taken, and of what is not: Open MPI refuses both at once.
CHOICES: Mapping[str, str] = {
    INCLUDE: f"{MCA_PREFIX}btl_tcp_if_exclude",
    DAEMONS: f"{MCA_PREFIX}oob_tcp_if_exclude",
}
IFNAMES = tuple(CHOICES)
HIGHEST = 65535


def chosen_ports(host: HostState) -> tuple[int, int] | None:
    """Return the first and last port of Open MPI's transport where a line that is not remedy's sets it."""
    values = {
        setting.name: setting.value
        for setting in settings(host, targets(host, user_files=False))
        if not setting.ours and setting.name in (FIRST_PORT, PORT_COUNT)
    }
    first, count = values.get(FIRST_PORT, ""), values.get(PORT_COUNT, "")
    if not is_number(first) or not 1 <= int(first) <= HIGHEST:
        return None
    last = int(first) + int(count) - 1 if is_number(count) and int(count) > 0 else HIGHEST
    return int(first), min(last, HIGHEST)


def confinement(bounds: tuple[int, int]) -> Mapping[str, str]:
    """Return the settings that keep the transport within these ports."""
    first, last = bounds
    return {FIRST_PORT: str(first), PORT_COUNT: str(last - first + 1)}


def further_interfaces(network: Network, carrier: Interface) -> tuple[str, ...]:
    """Return the interfaces besides the cluster's that Open MPI connects over unless it is told not to.

    Whether one has a carrier does not count: docker0 often has none, and peers get its address all the same.
    """
    return tuple(
        i.name
        for i in network.interfaces
        if i.up and i.ipv4 and i.name != carrier.name and i.kind != "loopback"
    )


def goes_astray(network: Network, carrier: Interface) -> str | None:
    """Return what Open MPI would connect over that leads nowhere; None where all leads to peers."""
    further = further_interfaces(network, carrier)
    astray = [i.name for i in network.interfaces if i.name in further and nic.internal(i, network)]
    if not astray:
        return None
    return f"Open MPI takes {', '.join(astray)} too, which does not leave the host"


def wrong_include(value: str, network: Network, carrier: Interface, *, strict: bool) -> str | None:
    """Return why an include list cannot work, None when it can.

    Args:
        value: names and networks with their prefix, with commas between.
        network: the host's.
        carrier: the interface with the cluster address.
        strict: whether another interface that peers could reach is wrong too: the user named the network.
    """
    words = [word.strip() for word in value.split(",") if word.strip()]
    selected = {name for word in words for name in _selected(word, network)}
    if carrier.name in selected:
        return None
    if not selected:
        return f"no interface here is {' or in '.join(words) or 'named'}"
    interfaces = [i for i in network.interfaces if i.name in selected]
    if all(nic.internal(i, network) or i.kind == "loopback" for i in interfaces):
        return f"{', '.join(sorted(selected))} does not leave this host"
    return f"the cluster address is on {carrier.name}" if strict else None


def _selected(word: str, network: Network) -> Iterator[str]:
    """Yield the interfaces that a name or a network selects."""
    try:
        among = ipaddress.IPv4Network(word, strict=False) if "/" in word else None
    except ValueError:
        return
    for interface in network.interfaces:
        if among is None:
            if interface.name == word:
                yield interface.name
        elif any(ipaddress.IPv4Address(address) in among for address in interface.ipv4):
            yield interface.name


def is_there(host: HostState) -> bool:
    """Return whether a host has Open MPI, as far as its PATH shows."""
    return not isinstance(host.session, Unknown) and host.session.has("mpirun")
