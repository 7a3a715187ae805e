"""Faults that remedy reports and does not repair: they are the network's, the site's or somebody's choice."""

from __future__ import annotations

from ipaddress import IPv4Network

from remedy.lab.fault import HEALTHY, REPAIRED, no_log
from remedy.lab.faults import fault
from remedy.lab.host import Host

# Set aside for documentation (RFC 5737): nobody answers there.
_DEAD_SERVER = "192.0.2.53"
_PROXY = "http://proxy.example:3128"
# The first of the cluster's addresses that no host gets (see remedy/lab/net.py), and how many there are.
_SPARE, _SPARES = 211, 18


@fault(
    "mtu-mismatch",
    "the cluster interface has an MTU of 1400, the peers' 1500; ends with a reboot",
    repair=REPAIRED,
    log=HEALTHY,
)
def mtu_mismatch(host: Host) -> None:
    host.must(["ip", "link", "set", "dev", host.record.cluster_interface, "mtu", "1400"])


@fault(
    "rp-filter-strict",
    "a second interface has an address of the cluster's, and filtering is strict; ends with a reboot",
    repair=REPAIRED,
    log=HEALTHY,
)
def rp_filter_strict(host: Host) -> None:
    # Without a prefix no route comes with it: the lab's own traffic goes as before.
    spare = IPv4Network(host.lab.cluster)[_SPARE + host.record.number % _SPARES]
    host.must(["ip", "address", "replace", f"{spare}/32", "dev", "eth0"])
    host.must(["sysctl", "-q", "-w", "net.ipv4.conf.all.rp_filter=1"])


@fault(
    "nsswitch-dns-first",
    "the resolver asks DNS before the hosts file",
    repair=REPAIRED,
    log=HEALTHY,
)
def nsswitch_dns_first(host: Host) -> None:
    host.must(["sed", "-i", "s/^hosts:.*/hosts:          dns files/", "/etc/nsswitch.conf"])


@fault(
    "dead-name-server",
    "no answer from the only name server",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="the names are in the hosts files",
)
def dead_name_server(host: Host) -> None:
    host.write("/etc/resolv.conf", f"nameserver {_DEAD_SERVER}\n".encode())


@fault(
    "proxy-set",
    "every session has an HTTP proxy, without exceptions for the cluster",
    repair=REPAIRED,
    log=HEALTHY,
)
def proxy_set(host: Host) -> None:
    line = f"http_proxy={_PROXY}"
    host.must(f"grep -qx '{line}' /etc/environment 2>/dev/null || echo '{line}' >>/etc/environment")


@fault(
    "low-max-startups",
    "sshd drops connections at random once two are logging in",
    repair=REPAIRED,
    log=HEALTHY,
)
def low_max_startups(host: Host) -> None:
    host.write("/etc/ssh/sshd_config.d/10-hardening.conf", b"MaxStartups 2:30:10\n")
    host.must(["systemctl", "reload", "ssh"])


@fault(
    "other-torch",
    "torch has a different version than on the other hosts, by its metadata",
    repair=REPAIRED,
    log=HEALTHY,
)
def other_torch(host: Host) -> None:
    host.must("mkdir -p /usr/local/lib/python3.11/dist-packages/torch-2.1.0.dist-info")


@fault(
    "two-pythons",
    "torchrun on the PATH belongs to a different installation than python3",
    repair=REPAIRED,
    log=HEALTHY,
)
def two_pythons(host: Host) -> None:
    host.write("/usr/local/bin/torchrun", b"#!/bin/sh\nexec /opt/other/bin/torchrun\n")
    host.must(["chmod", "755", "/usr/local/bin/torchrun"])


@fault(
    "libcuda-elsewhere",
    "NVIDIA's driver is loaded, and its libcuda is where no program looks for it; ends with a reboot",
    repair=REPAIRED,
    log=no_log("a host of the lab has no GPU"),
)
def libcuda_elsewhere(host: Host) -> None:
    mounted, version = "/opt/driver/lib64", "580.65.06"
    host.must(["mkdir", "-p", mounted])
    host.must(f"touch {mounted}/libcuda.so.{version}")
    host.must(["ln", "-sf", f"libcuda.so.{version}", f"{mounted}/libcuda.so.1"])
    # In place of the driver: what the probe asks before it runs nvidia-smi.
    host.must("[ -e /proc/driver/nvidia ] || mount -t tmpfs driver /proc/driver")
    host.must(["mkdir", "-p", "/proc/driver/nvidia"])
    line = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Release Build\n"
    host.write("/proc/driver/nvidia/version", line.encode())
    host.must(["touch", "/dev/nvidiactl"])
    host.write("/usr/local/bin/nvidia-smi", b"#!/bin/sh\nexit 0\n")
    host.must(["chmod", "755", "/usr/local/bin/nvidia-smi"])
