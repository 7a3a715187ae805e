"""Faults that routes, rules and sizes do not show by themselves: each is named, and nothing else is."""

from __future__ import annotations

import pytest

from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.full]

APPLY = ("--yes", "--no-verify", "--json")
# What check says, by the label of the finding and words of its title, and what takes the fault back.
FAULTS = {
    "own-address-gone": (
        "route-to-peer",
        "does not take packets for",
        "ip route add local $OWN dev $IF table local proto kernel scope host src $OWN",
    ),
    "interface-in-bridge": (
        "route-to-peer",
        "is a member of the bridge br-odd, so that no peer reaches it",
        "ip link set dev $IF nomaster; ip link del br-odd",
    ),
    "route-in-parts": (
        "route-to-peer",
        "a part of what this host sends to gpu01 leaves by docker0",
        "ip route del $PEER",
    ),
    "marked-and-lost": (
        "route-to-peer",
        "of packets with the mark 0x7",
        "ip rule del priority 92; iptables-nft -t mangle -F OUTPUT",
    ),
    "queue-short": (
        "traffic-control",
        "bfifo drops packets that leave by",
        "tc qdisc del dev $IF root",
    ),
    "little-cpu-time": (
        "session-limit",
        "gives root only 1 minute of CPU",
        "rm /etc/security/limits.d/60-site.conf",
    ),
    "shm-for-root-only": (
        "storage-fault",
        "/dev/shm is not open to all users",
        "chmod 1777 /dev/shm",
    ),
    "small-buffers": (
        "kernel-setting",
        "4096 bytes at once, so that connections stall",
        "sysctl -qw net.ipv4.tcp_rmem='4096 131072 6291456' net.ipv4.tcp_wmem='4096 16384 4194304'",
    ),
    "small-segments": (
        "kernel-setting",
        "TCP begins with segments of 48 bytes, so that connections crawl",
        "rm /etc/sysctl.d/60-site.conf; sysctl -qw net.ipv4.tcp_base_mss=1024 net.ipv4.tcp_mtu_probing=0",
    ),
    "fixed-window": (
        "kernel-setting",
        "TCP takes 4096 bytes at once and never more",
        "rm /etc/sysctl.d/60*; sysctl -qw net.ipv4.tcp_moderate_rcvbuf=1",
    ),
    "boots-with-long-segments": (
        "kernel-setting",
        "after the next boot, TCP sends no segment shorter than 9000 bytes",
        "rm /etc/sysctl.d/60-site.conf",
    ),
    "loopback-small-packets": (
        "network-unreachable",
        "lo has an MTU of 68",
        "rm /etc/rc.local; ip link set lo mtu 65536",
    ),
    "cluster-small-packets": (
        "mtu-mismatch",
        " has an MTU of 68",
        "ip link set dev $IF mtu 1500",
    ),
    "boots-into-rescue": (
        "boot-differs",
        "the host comes up in rescue.target",
        "systemctl --no-reload --quiet set-default multi-user.target",
    ),
    "boots-with-ssh-masked": (
        "boot-differs",
        "ssh.service does not run: it runs now",
        "systemctl --quiet unmask ssh.service",
    ),
}


def found(site: Site, host: str) -> list[tuple[str, str]]:
    """Return label and title of what `remedy check` finds on a host, without reports."""
    document = site.remedy("check", "--json").document
    return [
        (finding["label"], finding["title"])
        for finding in document["hosts"][host]["findings"]
        if finding["kind"] != "report"
    ]


def test_each_is_named_and_gone_when_it_is_taken_back(cluster: Cluster) -> None:
    site = Site(cluster)
    assert site.remedy("apply", *APPLY).code == 0
    victim = "gpu02"
    host = cluster.host(victim)
    assert found(site, victim) == []
    places = (
        f"IF={host.record.cluster_interface} OWN={host.record.cluster_address} "
        f"PEER={host.peers[0].cluster_address}\n"
    )
    for name, (label, words, undo) in FAULTS.items():
        cluster.fault(victim, name)
        cluster.fault(victim, name)
        said = found(site, victim)
        assert {each for each, _ in said} == {label}, (name, said)
        assert any(words in title for _, title in said), (name, said)
        cluster.run(victim, places + undo)
        assert found(site, victim) == [], name


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("small-segments", "/etc/sysctl.d/60-site.conf:1: net.ipv4.tcp_base_mss = 48"),
        ("loopback-small-packets", "/etc/rc.local:2: ip link set lo mtu 68"),
    ],
)
def test_what_sets_it_at_boot_is_named_with_file_and_line(
    cluster: Cluster, name: str, line: str
) -> None:
    site = Site(cluster)
    cluster.fault("gpu02", name)
    document = site.remedy("check", "--json").document
    evidence = [e for f in document["hosts"]["gpu02"]["findings"] for e in f["evidence"]]
    assert line in evidence
