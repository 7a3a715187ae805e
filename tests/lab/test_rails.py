"""Rails on real hosts: a second interface in the cluster's network, strict filtering, and what a peer gets."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from remedy.lab.faults import fault
from remedy.lab.host import Host
from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

APPLY = ("--yes", "--no-verify", "--json", "--limit", "gpu01")
SETTINGS = "all.arp_ignore all.arp_announce rail1.rp_filter all.rp_filter"


def rail_address(host: Host) -> str:
    """Return an address of the cluster's network that no host has."""
    return str(IPv4Network(host.lab.cluster)[-10])


@fault(
    "second-rail",
    "a second interface is in the cluster's network, and filtering is strict; ends with a reboot",
)
def second_rail(host: Host) -> None:
    cluster, prefix = host.record.cluster_interface, IPv4Network(host.lab.cluster).prefixlen
    # A macvlan has a MAC address of its own on the same wire.
    host.must(
        "ip link show dev rail1 >/dev/null 2>&1"
        f" || ip link add name rail1 link {cluster} type macvlan mode bridge"
    )
    host.must(["ip", "address", "replace", f"{rail_address(host)}/{prefix}", "dev", "rail1"])
    host.must(["ip", "link", "set", "dev", "rail1", "up"])
    host.must(["sysctl", "-q", "-w", "net.ipv4.conf.all.rp_filter=1"])


def in_force(cluster: Cluster) -> str:
    """Return what the host's kernel has."""
    names = " ".join(f"net.ipv4.conf.{name}" for name in SETTINGS.split())
    return " ".join(cluster.run("gpu01", f"sysctl -n {names}").stdout.split())


def neighbour(cluster: Cluster, address: str) -> str:
    """Return the MAC address that a peer gets for ``address``, asked anew; "" where no answer came."""
    interface = cluster.host("gpu02").record.cluster_interface
    look = (
        f"ip neigh flush to {address} dev {interface}; ping -q -c1 -W2 {address} >&2;"
        f" ip -j neigh show to {address} dev {interface} | grep -o '[0-9a-f:]\\{{17\\}}'"
    )
    return cluster.run("gpu02", look).stdout.strip()


def is_reached(cluster: Cluster, address: str, mac: str) -> bool:
    """Return whether a peer that sends to ``address`` by this MAC address gets an answer."""
    interface = cluster.host("gpu02").record.cluster_interface
    entry = f"{address} lladdr {mac} dev {interface}"
    look = (
        f"ip neigh replace {entry} nud permanent; ping -q -c1 -W2 {address} >&2 && echo reached;"
        f" ip neigh del {address} dev {interface}"
    )
    return "reached" in cluster.run("gpu02", look).stdout


def test_each_rail_answers_for_its_own_address(cluster: Cluster) -> None:
    site = Site(cluster)
    cluster.fault("gpu01", "second-rail")
    cluster.fault("gpu01", "second-rail")
    host = cluster.host("gpu01")
    macs = {
        site.addresses()["gpu01"]: host.must(
            f"cat /sys/class/net/{host.record.cluster_interface}/address"
        ).strip(),
        rail_address(host): host.must("cat /sys/class/net/rail1/address").strip(),
    }
    assert not is_reached(cluster, rail_address(host), macs[rail_address(host)])
    before = in_force(cluster)

    applied = site.remedy("apply", *APPLY)
    assert applied.code == 0, applied.text
    assert in_force(cluster) == "1 2 2 1"
    for address, mac in macs.items():
        assert is_reached(cluster, address, mac)
        for _ in range(5):
            assert neighbour(cluster, address) == mac
    assert site.remedy("apply", *APPLY).document["plan"]["changes"] == []

    back = site.remedy("rollback", applied.document["run"], "--yes")
    assert back.code == 0, back.text
    assert in_force(cluster) == before
    assert not is_reached(cluster, rail_address(host), macs[rail_address(host)])
    assert cluster.run("gpu01", "ls /etc/sysctl.d/*rails*").stdout == ""
