"""Faults of /etc/hosts."""

from __future__ import annotations

from ipaddress import IPv4Network

from remedy.errors import LabError
from remedy.lab.fault import HEALTHY, REPAIRED, by_hand, no_log
from remedy.lab.faults import fault
from remedy.lab.host import Host
from remedy.lab.record import HostRecord

HOSTS = "/etc/hosts"
# Beyond the addresses that hosts get (see remedy/lab/net.py): nobody has these.
_OLD, _GONE, _WRONG = 230, 231, 250
HUGE_LINES = 50_000


def _lines(host: Host) -> list[bytes]:
    return host.read(HOSTS).split(b"\n")


def _names(line: bytes) -> list[bytes]:
    """Return the names a line gives to its address."""
    return line.split(b"#", 1)[0].split()[1:]


def _peer(host: Host) -> HostRecord:
    """Return the host after this one, round the lab."""
    later = [peer for peer in host.peers if peer.number > host.record.number]
    if not host.peers:
        raise LabError(f"{host.name} has no peers", next_step="The fault needs a lab of two hosts.")
    return (later or host.peers)[0]


def _nobody(host: Host, number: int) -> bytes:
    """Return a cluster address that no host has."""
    return str(IPv4Network(host.lab.cluster)[number]).encode()


@fault(
    "no-peer-entries",
    "the hosts file names no other host of the lab, nor this one by its own name",
    repair=REPAIRED,
    log=HEALTHY,
)
def no_peer_entries(host: Host) -> None:
    lab = {host_of_lab.name.encode() for host_of_lab in host.lab.hosts}
    remaining = [line for line in _lines(host) if not lab.intersection(_names(line))]
    host.write(HOSTS, b"\n".join(remaining))


@fault(
    "loopback-name",
    "the host's own name resolves to 127.0.1.1, as Debian's installer writes it",
    repair=REPAIRED,
    log=HEALTHY,
)
def loopback_name(host: Host) -> None:
    line = b"127.0.1.1\t" + host.name.encode()
    lines = [entry for entry in _lines(host) if not entry.startswith(b"127.0.1.1")]
    at = next((i + 1 for i, entry in enumerate(lines) if entry.startswith(b"127.0.0.1")), 0)
    host.write(HOSTS, b"\n".join([*lines[:at], line, *lines[at:]]))


@fault(
    "stale-peer-entry",
    "a peer has the address from before its replacement; a host that left is listed",
    repair=REPAIRED,
    log=HEALTHY,
)
def stale_peer_entry(host: Host) -> None:
    peer = _peer(host).name.encode()
    lines = _lines(host)
    stale = _nobody(host, _OLD) + b"\t" + peer
    departure = _nobody(host, _GONE) + b"\t" + host.lab.prefix.encode() + b"-left"
    at = next((i for i, line in enumerate(lines) if peer in _names(line)), None)
    if at is None:
        # Keep the file ending in a newline.
        at = len(lines) - (lines[-1] == b"")
        lines.insert(at, stale)
    else:
        lines[at] = stale
    if departure not in lines:
        lines.insert(at + 1, departure)
    host.write(HOSTS, b"\n".join(lines))


@fault(
    "conflicting-line",
    "a line written by hand gives a peer's name a wrong address",
    repair=REPAIRED,
    log=HEALTHY,
)
def conflicting_line(host: Host) -> None:
    line = (
        _nobody(host, _WRONG) + b"   " + _peer(host).name.encode() + b" storage-old  # do not touch"
    )
    lines = _lines(host)
    if line not in lines:
        host.write(HOSTS, b"\n".join([*lines[:1], line, *lines[1:]]))


@fault(
    "hosts-crlf",
    "the hosts file has CRLF line endings",
    repair=REPAIRED,
    log=HEALTHY,
)
def hosts_crlf(host: Host) -> None:
    host.write(HOSTS, host.read(HOSTS).replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))


@fault(
    "hosts-not-utf8",
    "the hosts file holds bytes that are not UTF-8",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="the names resolve",
)
def hosts_not_utf8(host: Host) -> None:
    host.write(HOSTS, host.read(HOSTS) + b"192.0.2.77\tprinter\t# B\xfcro, 2. Stock \xff\xfe\n")


@fault(
    "hosts-huge",
    f"the hosts file has {HUGE_LINES:,} lines more, none about the lab",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="the names resolve",
)
def hosts_huge(host: Host) -> None:
    lines = (
        f"10.{99 + i // 65536}.{i // 256 % 256}.{i % 256}\tleaf-{i:05d}.example leaf-{i:05d}"
        for i in range(HUGE_LINES)
    )
    host.write(HOSTS, host.read(HOSTS) + "\n".join(lines).encode() + b"\n")


@fault(
    "hosts-symlink",
    "the hosts file is a symbolic link to /etc/site/hosts",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="the names resolve",
    order=1,
)
def hosts_symlink(host: Host) -> None:
    host.must(
        "[ -L /etc/hosts ] || { mkdir -p /etc/site && mv /etc/hosts /etc/site/hosts"
        " && ln -s site/hosts /etc/hosts; }"
    )


@fault(
    "hosts-immutable",
    "the hosts file cannot be changed or replaced (chattr +i)",
    repair=by_hand("immutable"),
    log=HEALTHY,
    harmless="nothing is to be written",
    order=2,
)
def hosts_immutable(host: Host) -> None:
    host.must(["chattr", "+i", HOSTS])


@fault(
    "loopback-long-name",
    "the host's own name, with a domain in front, resolves to 127.0.1.1, as Debian's installer writes it",
    repair=REPAIRED,
    log=no_log("its words are those of lab-loopback-name"),
)
def loopback_long_name(host: Host) -> None:
    line = f"127.0.1.1\t{host.name}.lab.example {host.name}".encode()
    lines = [entry for entry in _lines(host) if not entry.startswith(b"127.0.1.1")]
    host.write(HOSTS, b"\n".join([*lines[:1], line, *lines[1:]]))
