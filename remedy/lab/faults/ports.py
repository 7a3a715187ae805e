"""Faults of the ports that new sockets get, and of IPv6."""

from __future__ import annotations

from remedy.lab.fault import HEALTHY, REPAIRED
from remedy.lab.faults import fault
from remedy.lab.host import Host

_RANGE = "/proc/sys/net/ipv4/ip_local_port_range"
_RESERVED = "/proc/sys/net/ipv4/ip_local_reserved_ports"


@fault(
    "ports-widened",
    "new sockets get ports from 1024 to 65535, those of launchers among them; 8080 is reserved",
    repair=REPAIRED,
    log=HEALTHY,
)
def ports_widened(host: Host) -> None:
    text = "net.ipv4.ip_local_port_range = 1024 65535\nnet.ipv4.ip_local_reserved_ports = 8080\n"
    host.write("/etc/sysctl.d/50-site.conf", text.encode())
    host.must(f"echo 1024 65535 >{_RANGE} && echo 8080 >{_RESERVED}")


@fault(
    "ports-set-late",
    "a file that is applied last at boot gives new sockets a different range",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="no launcher's port is in that range",
)
def ports_set_late(host: Host) -> None:
    host.write("/etc/sysctl.d/99-tuning.conf", b"net.ipv4.ip_local_port_range = 40000 50000\n")
    host.must(f"echo 40000 50000 >{_RANGE}")


@fault(
    "ipv6-off",
    "IPv6 is switched off by a file of settings, now and after a reboot",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="the hosts talk over IPv4",
)
def ipv6_off(host: Host) -> None:
    text = "net.ipv6.conf.all.disable_ipv6 = 1\nnet.ipv6.conf.default.disable_ipv6 = 1\n"
    host.write("/etc/sysctl.d/60-no-ipv6.conf", text.encode())
    host.must("for f in all default; do echo 1 >/proc/sys/net/ipv6/conf/$f/disable_ipv6; done")


@fault(
    "ipv6-address",
    "the cluster interface has an IPv6 address of its own; ends with a reboot",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="the hosts talk over IPv4",
)
def ipv6_address(host: Host) -> None:
    address = f"fd00:6c61:62::{host.record.number:x}/64"
    device = host.record.cluster_interface
    host.must(["ip", "-6", "address", "replace", address, "dev", device, "nodad"])
