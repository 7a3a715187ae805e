"""Ways to peers on real hosts: routes, rules, neighbours, traffic control and IPsec that lose packets."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from remedy.lab.faults import fault
from remedy.lab.host import Host
from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

APPLY = ("--yes", "--no-verify", "--json")


def peer(host: Host, place: int = 0) -> str:
    """Return the cluster address of one of the other hosts."""
    return host.peers[place].cluster_address


@fault("route-unreachable", "a route of the type unreachable leads to the first peer")
def route_unreachable(host: Host) -> None:
    host.must(["ip", "route", "replace", "unreachable", peer(host)])


@fault("route-elsewhere", "the route to the second peer leads to the bridge of the containers")
def route_elsewhere(host: Host) -> None:
    host.must(["ip", "route", "replace", peer(host, 1), "dev", "docker0"])


@fault("route-gone", "the route of the cluster's own network is gone")
def route_gone(host: Host) -> None:
    host.must(f"ip route del {host.lab.cluster} 2>/dev/null; true")


@fault("rule-prohibits", "a routing rule prohibits the first peer")
def rule_prohibits(host: Host) -> None:
    words = f"to {peer(host)} prohibit priority 90"
    host.must(f"ip rule del {words} 2>/dev/null; ip rule add {words}")


@fault("rule-for-some-ports", "a routing rule drops what goes to some ports of the second peer")
def rule_for_some_ports(host: Host) -> None:
    words = f"to {peer(host, 1)} ipproto tcp dport 40000-40010 blackhole priority 91"
    host.must(f"ip rule del {words} 2>/dev/null; ip rule add {words}")


@fault("neighbour-wrong", "the first peer's hardware address is fixed, and wrong")
def neighbour_wrong(host: Host) -> None:
    words = [
        "lladdr",
        "02:00:00:00:00:99",
        "dev",
        host.record.cluster_interface,
        "nud",
        "permanent",
    ]
    host.must(["ip", "neigh", "replace", peer(host), *words])


@fault("interface-without-arp", "the cluster interface does not answer who asks for its address")
def interface_without_arp(host: Host) -> None:
    host.must(["ip", "link", "set", "dev", host.record.cluster_interface, "arp", "off"])


@fault("ipsec-blocks", "a policy of IPsec blocks what goes to the first peer")
def ipsec_blocks(host: Host) -> None:
    words = f"src {host.record.cluster_address}/32 dst {peer(host)}/32 dir out action block"
    host.must(f"ip xfrm policy update {words}")


@fault("queue-blackhole", "the queue of the cluster interface drops everything")
def queue_blackhole(host: Host) -> None:
    host.must(["tc", "qdisc", "replace", "dev", host.record.cluster_interface, "root", "blackhole"])


@fault("queue-slow", "the queue of the cluster interface sends a Mbit a second")
def queue_slow(host: Host) -> None:
    words = "root tbf rate 1mbit burst 32k latency 400ms"
    host.must(f"tc qdisc replace dev {host.record.cluster_interface} {words}")


@fault("filter-redirects", "a filter sends what comes from the first peer elsewhere")
def filter_redirects(host: Host) -> None:
    interface = host.record.cluster_interface
    host.must(
        f"tc qdisc replace dev {interface} ingress; tc filter replace dev {interface} ingress protocol ip"
        f" pref 7 handle 800::800 u32 match ip src {peer(host)} action mirred egress redirect dev docker0"
    )


FAULTS: Mapping[str, tuple[str, ...]] = {
    "gpu01": ("route-unreachable", "route-elsewhere", "rule-for-some-ports"),
    "gpu02": ("route-gone", "ipsec-blocks"),
    "gpu03": ("rule-prohibits", "neighbour-wrong", "filter-redirects"),
    "gpu04": ("interface-without-arp", "queue-blackhole"),
}
REMEDIES = ("peer_routes", "neighbours", "ipsec", "traffic_control")


def reached(cluster: Cluster, host: str) -> list[str]:
    """Return the peers that answer a ping from a host's cluster address."""
    own = cluster.host(host)
    pings = "; ".join(
        f"ping -q -c1 -W2 -I {own.record.cluster_address} {other.cluster_address} >&2 && echo {other.name}"
        for other in own.peers
    )
    return cluster.run(host, pings).stdout.split()


def dump(cluster: Cluster) -> dict[str, str]:
    """Return what decides about packets on each host, without what changes by itself."""
    look = (
        "ip route show table all | grep -v ^fe80 | sort; ip rule; ip neigh show nud permanent; ip xfrm policy;"
        " tc qdisc show | sed 's/refcnt [0-9]*//'; ip link | grep -o NOARP"
    )
    return {host: cluster.run(host, look).stdout for host in cluster.hosts}


def findings(site: Site) -> list[dict[str, str]]:
    """Return what `remedy check` finds on the hosts."""
    hosts = site.remedy("check", "--json").document["hosts"]
    every = [finding for host in hosts.values() for finding in host["findings"]]
    # Who did not answer a question for its hardware address is a matter of who asked lately.
    return [finding for finding in every if finding["kind"] != "report"]


def test_they_are_found_repaired_and_taken_back(cluster: Cluster) -> None:
    site = Site(cluster)
    assert site.remedy("apply", *APPLY).code == 0
    for host, names in FAULTS.items():
        cluster.fault(host, *names)
        cluster.fault(host, *names)
    before = dump(cluster)
    assert reached(cluster, "gpu01") == []
    found = findings(site)
    by_host = {
        host: {
            (f["remedy"], f["kind"]) for f in found if f["host"] == host and f["remedy"] in REMEDIES
        }
        for host in FAULTS
    }
    assert by_host == {
        "gpu01": {("peer_routes", "drift"), ("peer_routes", "unknown")},
        "gpu02": {("peer_routes", "drift"), ("ipsec", "drift")},
        "gpu03": {
            ("peer_routes", "drift"),
            ("neighbours", "drift"),
            ("traffic_control", "unknown"),
        },
        "gpu04": {("neighbours", "drift"), ("traffic_control", "drift")},
    }
    labels = {f["label"] for f in found if f["remedy"] in REMEDIES}
    assert labels == {"route-to-peer", "neighbour-entry", "ipsec-policy", "traffic-control"}

    applied = site.remedy("apply", *APPLY)
    # What is left is what remedy does not decide: the filter and the rule for some ports.
    left = {f["host"] for f in findings(site)}
    assert left == {"gpu01", "gpu03"}
    cluster.run(
        "gpu03", f"tc qdisc del dev {cluster.host('gpu03').record.cluster_interface} ingress"
    )
    for host in cluster.hosts:
        assert reached(cluster, host) == [name for name in cluster.hosts if name != host], host
    assert site.remedy("apply", *APPLY).document["plan"]["changes"] == []

    cluster.fault("gpu03", "filter-redirects")
    back = site.remedy("rollback", applied.document["run"], "--yes")
    assert back.code == 0, back.text
    assert dump(cluster) == before


def test_what_is_right_is_accepted_by_its_text(cluster: Cluster) -> None:
    site = Site(cluster)
    assert site.remedy("apply", *APPLY).code == 0
    cluster.fault("gpu01", "rule-for-some-ports", "queue-slow")
    cluster.fault("gpu03", "filter-redirects")
    found = findings(site)
    assert {f["kind"] for f in found} == {"unknown", "blocked"}
    accepted = {
        remedy: [line.partition("accept in remedy.yaml: ")[2].strip('"') for line in lines]
        for remedy in ("peer_routes", "traffic_control")
        if (lines := [f["fix"] for f in found if f["remedy"] == remedy])
    }
    spec = "".join(f"{remedy}: {{accept: {texts!r}}}\n" for remedy, texts in accepted.items())
    (site.folder / "remedy.yaml").write_text(spec)
    assert findings(site) == [], spec
    assert site.remedy("check").code == 0
