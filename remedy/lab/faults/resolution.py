"""Faults of how names resolve: which family comes first, who is asked first, and for whom."""

from __future__ import annotations

from ipaddress import IPv4Network

from remedy.lab.fault import HEALTHY, REPAIRED, JobLog
from remedy.lab.faults import fault
from remedy.lab.faults.hosts_file import HOSTS
from remedy.lab.host import Host

NSSWITCH = "/etc/nsswitch.conf"
# Of a network that nobody else has (RFC 4193).
_PREFIX = "fd5e:11ab::"
_SERVER = "/usr/local/lib/stale-name-server"
# Beyond the addresses that hosts get (see remedy/lab/net.py).
_STALE = 229

# Answers what it is asked for with one address, as a zone does that nobody has kept (RFC 1035).
_SERVER_TEXT = """\
import socket, sys
answer = socket.inet_aton(sys.argv[1])
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
while True:
    query, asker = server.recvfrom(512)
    end = query.index(b"\\0", 12) + 5
    is_a = query[end - 4 : end - 2] == b"\\0\\1"
    head = query[:2] + b"\\x81\\x80\\0\\1" + (b"\\0\\1" if is_a else b"\\0\\0") + b"\\0\\0\\0\\0"
    record = b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\x3c\\0\\4" + answer if is_a else b""
    server.sendto(head + query[12:end] + record, asker)
"""


def _add_line(host: Host, line: str) -> None:
    """Add a line to the hosts file, once."""
    content = host.read(HOSTS)
    if line.encode() not in content.splitlines():
        host.write(HOSTS, content + line.encode() + b"\n")


@fault(
    "own-name-ipv6-loopback",
    "the host's own name is on the line of ::1, too",
    repair=REPAIRED,
    log=JobLog("ipv6-issue", "loopback-hostname"),
)
def own_name_ipv6_loopback(host: Host) -> None:
    _add_line(host, f"::1\t{host.name} {host.name}-local")


@fault(
    "own-name-ipv6-first",
    "the host has an IPv6 address, which the hosts file gives to its own name",
    repair=REPAIRED,
    log=JobLog("ipv6-issue"),
)
def own_name_ipv6_first(host: Host) -> None:
    address = f"{_PREFIX}{host.record.number:x}"
    interface = host.record.cluster_interface
    host.must(["ip", "-6", "address", "replace", f"{address}/64", "dev", interface, "nodad"])
    _add_line(host, f"{address}\t{host.name}")


@fault(
    "hosts-root-only",
    "only root can read the hosts file (mode 0600)",
    repair=REPAIRED,
    log=HEALTHY,
)
def hosts_root_only(host: Host) -> None:
    host.must(["chmod", "600", HOSTS])


@fault(
    "nsswitch-root-only",
    "only root can read /etc/nsswitch.conf (mode 0600)",
    repair=REPAIRED,
    log=HEALTHY,
)
def nsswitch_root_only(host: Host) -> None:
    host.must(["chmod", "600", NSSWITCH])


@fault(
    "stale-dns-first",
    "DNS is asked before the hosts file, and gives every name an address that nobody has",
    repair=REPAIRED,
    log=HEALTHY,
)
def stale_dns_first(host: Host) -> None:
    stale = str(IPv4Network(host.lab.cluster)[_STALE])
    host.write(_SERVER, _SERVER_TEXT.encode())
    unit = "stale-name-server"
    host.must(
        f"systemctl is-active -q {unit} || systemd-run -q --unit {unit} python3 {_SERVER} {stale}"
    )
    host.write("/etc/resolv.conf", b"nameserver 127.0.0.1\n")
    host.must(["sed", "-i", "s/^hosts:.*/hosts:\\t\\tdns files/", NSSWITCH])
