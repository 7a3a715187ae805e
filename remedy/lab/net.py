"""The lab's networks: which addresses, and the bridges and links that carry them.

A lab has two, as a GPU cluster has: one for management, which this machine has a leg in, and one
for the cluster's own traffic, which it cannot reach. Both bridges are in a network namespace of the
lab's own, so that this machine's firewall, bridge filter and network manager have no say in what
hosts exchange.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, ip_network

from remedy.errors import LabError
from remedy.lab.machine import tool
from remedy.lab.paths import LabPaths
from remedy.lab.record import HostRecord

# Management and cluster ranges: each lab takes one /24 of either, a large one a /23. The first pair is private
# (RFC 1918), the second is set aside for measuring network devices (RFC 2544).
RANGES = (("10.213.0.0/16", "10.214.0.0/16"), ("198.18.0.0/16", "198.19.0.0/16"))
# Addresses below are for gateways; 254 has none on purpose (see `host_batch`), and faults use some before it.
FIRST_HOST = 10
MOST_IN_24 = 200
"""Hosts of a lab that takes a /24; the others of a larger one follow in the second half of its /23."""
MAX_HOSTS = MOST_IN_24 + 254

# What an idle dockerd leaves on each host, the same everywhere: the interface NCCL must not choose.
DOCKER_BRIDGE = "172.17.0.1/16"


def choose(networks: Iterable[str], hosts: int = 1) -> tuple[str, str]:
    """Choose a management and a cluster subnet.

    Args:
        networks: that are taken.
        hosts: how many are to have addresses there.

    Returns:
        the two subnets.

    Raises:
        LabError: every candidate overlaps with one that is taken.
    """
    # A default route leads everywhere and so claims nothing.
    used = [
        net for net in (ip_network(text, strict=False) for text in networks) if net.prefixlen > 0
    ]
    used4 = [net for net in used if isinstance(net, IPv4Network)]
    prefix = 24 if hosts <= MOST_IN_24 else 23
    for management, cluster in RANGES:
        pairs = zip(
            IPv4Network(management).subnets(new_prefix=prefix),
            IPv4Network(cluster).subnets(new_prefix=prefix),
            strict=True,
        )
        for pair in pairs:
            if not any(mine.overlaps(net) for mine in pair for net in used4):
                return str(pair[0]), str(pair[1])
    raise LabError(
        "every address range the lab could use is in use on this machine",
        next_step=f"Free one /{prefix} in each of two of these: {', '.join(sum(RANGES, ()))}.",
    )


def capacity(subnet: str) -> int:
    """Return how many hosts of a lab have addresses in a subnet."""
    return MOST_IN_24 if IPv4Network(subnet).prefixlen == 24 else MAX_HOSTS


def networks_in_use() -> list[str]:
    """Return the IPv4 networks this machine has addresses in or routes to."""
    networks: list[str] = []
    for route in json.loads(tool("ip", "-j", "-4", "route", "show", "table", "all").stdout or "[]"):
        if route["dst"] != "default":
            networks.append(route["dst"])
    for link in json.loads(tool("ip", "-j", "-4", "address").stdout or "[]"):
        for address in link.get("addr_info", []):
            networks.append(f"{address['local']}/{address['prefixlen']}")
    return networks


def make_host(name: str, number: int, management: str, cluster: str) -> HostRecord:
    """Give a host its addresses and the name of its cluster interface."""
    place = FIRST_HOST + number if number <= MOST_IN_24 else 256 + number - MOST_IN_24
    return HostRecord(
        name=name,
        number=number,
        management_address=str(IPv4Network(management)[place]),
        cluster_address=str(IPv4Network(cluster)[place]),
        # Two generations of machines: a setting that names an interface fits only half of them.
        cluster_interface="eno2" if number % 2 == 0 else "enp194s0f1",
        faults=[],
    )


def switch_batch(host: HostRecord, netns: str) -> str:
    """Return the ``ip -batch`` lines, run in the switch, that plug a host in."""
    management, cluster = f"m{host.number}", f"c{host.number}"
    # Hardware addresses that stay: this machine and the peers remember the last one for up to a
    # minute.
    lines = []
    high, low = divmod(host.number, 256)
    for link, inside, bridge, mac in (
        (management, "eth0", "management", f"02:4c:41:42:{high}1:{low:02x}"),
        (cluster, host.cluster_interface, "cluster", f"02:4c:41:42:{high}2:{low:02x}"),
    ):
        lines += [
            # The link of the boot before, whose namespace goes in its own time and takes it along.
            f"link del {link}",
            # One line: where the old link goes by itself at this moment, ip keeps its number in mind, and
            # a line of its own that plugs the link in would ask for that one and leave the host unplugged.
            f"link add {link} up master {bridge} type veth peer name {inside} address {mac} netns {netns}",
        ]
    return "\n".join(lines) + "\n"


def host_batch(host: HostRecord, management: str) -> str:
    """Return the ``ip -batch`` lines, run in a host's namespace, that configure its interfaces."""
    network = IPv4Network(management)
    # Nobody has this address: the hosts have a default route, and nothing they send leaves the lab.
    gateway, prefix = network[254], network.prefixlen
    lines = [
        "link set lo up",
        f"address add {host.management_address}/{prefix} dev eth0",
        "link set eth0 up",
        f"address add {host.cluster_address}/{prefix} dev {host.cluster_interface}",
        f"link set {host.cluster_interface} up",
        "link add docker0 type bridge",
        f"address add {DOCKER_BRIDGE} dev docker0",
        "link set docker0 up",
        f"route add default via {gateway} dev eth0",
    ]
    return "\n".join(lines) + "\n"


def up(paths: LabPaths, management: str) -> None:
    """Make the switch and this machine's link into the management network."""
    switch, uplink = paths.switch, paths.uplink
    tool("ip", "netns", "add", switch)
    tool("ip", "-netns", switch, "link", "set", "lo", "up")
    for bridge in ("management", "cluster"):
        tool("ip", "-netns", switch, "link", "add", bridge, "type", "bridge")
        tool("ip", "-netns", switch, "link", "set", bridge, "up")
    tool("ip", "link", "add", uplink, "type", "veth", "peer", "name", "uplink", "netns", switch)
    tool("ip", "-netns", switch, "link", "set", "uplink", "master", "management", "up")
    tool("ip", "link", "set", uplink, "alias", f"remedy lab {paths.folder}")
    network = IPv4Network(management)
    tool("ip", "address", "add", f"{network[1]}/{network.prefixlen}", "dev", uplink)
    tool("ip", "link", "set", uplink, "up")


def is_up(paths: LabPaths) -> bool:
    """Return whether the switch is there."""
    return paths.switch in namespaces(paths)


def namespaces(paths: LabPaths) -> Sequence[str]:
    """Return the network namespaces that belong to a lab, by what is really there."""
    names = [line.split()[0] for line in tool("ip", "netns", "list").stdout.splitlines() if line]
    return [name for name in names if name == paths.switch or name.startswith(f"{paths.switch}-")]


def down(paths: LabPaths) -> int:
    """Remove a lab's namespaces and its link, by what is really there.

    Returns:
        how many namespaces there were.
    """
    tool("ip", "link", "del", paths.uplink, check=False)
    names = namespaces(paths)
    for name in names:
        tool("ip", "netns", "del", name, check=False)
    return len(names)
