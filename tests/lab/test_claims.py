"""Addresses that hosts claim, on real hosts: peers see who is there, and say so where nobody is."""

from __future__ import annotations

import pytest

from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab


def test_a_claim_that_no_peer_has_seen_is_asked_about_and_one_that_is_seen_is_not(
    cluster: Cluster,
) -> None:
    site = Site(cluster)
    hosts = ("gpu01", "gpu02", "gpu03", "gpu04")
    site.edit_inventory({name: {"cluster_address": None} for name in hosts})
    network = cluster.host("gpu02").record.cluster_address.rpartition(".")[0]
    (site.folder / "remedy.yaml").write_text(f"cluster: {{subnet: {network}.0/24}}\n")
    # A firewall that drops everything at one host: its hardware address is seen all the same.
    cluster.host("gpu03").must("iptables -I INPUT -s " + network + ".0/24 -j DROP")
    seen = site.remedy("check")
    assert "seen by nobody" not in seen.text
    assert f"{network}." in site.remedy("plan").text
    liar = cluster.host("gpu02").record
    # It keeps another address to itself: no question for its hardware address is answered.
    cluster.host("gpu02").must(
        f"ip address del {liar.cluster_address}/24 dev {liar.cluster_interface} && "
        "sysctl -qw net.ipv4.conf.all.arp_ignore=1 && "
        f"ip address add {network}.66/24 dev docker0"
    )
    claimed = site.remedy("check")
    assert f"{network}.66, which it says is its cluster address, is seen by nobody" in claimed.text
    refused = site.remedy("apply", "--yes", "--no-verify")
    assert refused.code == 4, refused.text
    assert f"{network}.66 (gpu02) is an address from which no peer got an answer" in refused.text
    for name in ("gpu01", "gpu03"):
        assert f"{network}.66" not in cluster.host(name).must(
            "cat /etc/hosts; iptables-save; nft list ruleset"
        )
