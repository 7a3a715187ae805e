"""Faults of the links themselves, which no connection attempt shows."""

from __future__ import annotations

from remedy.lab.fault import HEALTHY, by_hand
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
