"""Faults of the links themselves, which no connection attempt shows."""

from __future__ import annotations

from remedy.lab.fault import HEALTHY, LIKE_A_FIREWALL, by_hand, no_log
from remedy.lab.faults import fault
from remedy.lab.host import Host


@fault(
    "slow-link",
    "the cluster interface sends at 100 Mbit/s at most; ends with a reboot",
    repair=by_hand("Mbit/s"),
    log=HEALTHY,
)
def slow_link(host: Host) -> None:
    device = host.record.cluster_interface
    shape = ["rate", "100mbit", "burst", "64kb", "latency", "100ms"]
    host.must(["tc", "qdisc", "replace", "dev", device, "root", "tbf", *shape])


@fault(
    "loopback-small-packets",
    "a script gives the loopback interface an MTU of 68, now and at each boot",
    repair=by_hand("ip link set dev lo mtu 65536"),
    log=no_log("ranks of one host stall, and a job of the corpus has one on each"),
)
def loopback_small_packets(host: Host) -> None:
    line = "ip link set lo mtu 68"
    host.write("/etc/rc.local", f"#!/bin/sh\n{line}\n".encode())
    host.must(f"chmod 755 /etc/rc.local && {line}")


@fault(
    "cluster-small-packets",
    "the cluster interface has an MTU of 68; ends with a reboot",
    repair=by_hand("ip link set dev"),
    log=LIKE_A_FIREWALL,
)
def cluster_small_packets(host: Host) -> None:
    host.must(["ip", "link", "set", "dev", host.record.cluster_interface, "mtu", "68"])
