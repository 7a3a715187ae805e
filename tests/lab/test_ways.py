"""Ways to peers on real hosts: routes, rules, neighbours, traffic control and IPsec that lose packets."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

APPLY = ("--yes", "--no-verify", "--json")


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


@pytest.mark.full
def test_what_is_right_is_accepted_by_its_text(cluster: Cluster) -> None:
    site = Site(cluster)
    assert site.remedy("apply", *APPLY).code == 0
    cluster.fault("gpu01", "rule-for-some-ports", "slow-link")
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
