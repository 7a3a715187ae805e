"""Packets that rules of input and output do not show: marks, loopback, what is sent on, dormant tables."""

from __future__ import annotations

import pytest

from remedy.lab.faults import beside
from tests.lab.conftest import Cluster
from tests.lab.seen import APPLY, Seen, found, name_each
from tests.lab.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.full]

FAULTS = {
    "firewall-by-mark": Seen(
        "firewall-ports", "a rule may drop packets", "nft delete table inet lab_beside", "unknown"
    ),
    "firewall-loopback": Seen(
        "firewall-ports", "what processes of this host send to each other", "iptables-nft -F INPUT"
    ),
    "firewall-redirects-many": Seen(
        "firewall-ports", "a rule may drop packets", "iptables-nft -t nat -F PREROUTING", "unknown"
    ),
    "rule-for-some-users": Seen(
        "route-to-peer",
        "leaves by docker0",
        "ip rule del priority 93; ip route flush table 77; ip link set dev docker0 down",
        "unknown",
    ),
    "route-with-small-window": Seen(
        "route-to-peer",
        "a route has peers send few bytes at a time",
        "ip route del $PEER",
        "unknown",
    ),
    "route-by-a-dead-router": Seen(
        "route-to-peer", "though they are on the same network", "ip route del $PEER", "unknown"
    ),
    "loopback-down": Seen("network-unreachable", "lo is down", "ip link set dev lo up"),
}


def test_each_is_named_and_gone_when_it_is_taken_back(cluster: Cluster) -> None:
    name_each(cluster, FAULTS)


def test_a_queue_of_loopback_is_mended(cluster: Cluster) -> None:
    site = Site(cluster)
    assert site.remedy("apply", *APPLY).code == 0
    cluster.fault("gpu01", "loopback-lossy")
    assert [kind for _, _, kind in found(site, "gpu01")] == ["drift"]
    applied = site.remedy("apply", *APPLY, "--limit", "gpu01")
    assert applied.code == 0, applied.text
    assert "blackhole" not in cluster.host("gpu01").must("tc qdisc show dev lo")


def test_a_dormant_table_drops_nothing_and_is_no_drift(cluster: Cluster) -> None:
    site = Site(cluster)
    assert site.remedy("apply", *APPLY).code == 0
    cluster.fault("gpu01", "firewall-dormant")
    assert found(site, "gpu01") == []
    cluster.host("gpu01").must(
        "sed -i '/flags dormant/d' /run/lab_beside.nft; nft -f /run/lab_beside.nft"
    )
    assert [kind for _, _, kind in found(site, "gpu01")] == ["drift"]


def test_what_is_sent_on_between_containers_is_judged_where_routes_lead_to_them(
    cluster: Cluster,
) -> None:
    site = Site(cluster)
    assert site.remedy("apply", *APPLY).code == 0
    for name in cluster.hosts:
        beside.containers(cluster.host(name))
    assert found(site, "gpu02") == []
    cluster.fault("gpu02", "firewall-forward")
    (finding,) = found(site, "gpu02")
    assert "what containers of this host and of others send to each other" in finding[1]
    cluster.host("gpu02").must("iptables-nft -P FORWARD ACCEPT; sysctl -qw net.ipv4.ip_forward=0")
    (finding,) = found(site, "gpu02")
    assert "net.ipv4.ip_forward = 0" in finding[1]
