"""Faults of packets that rules of input and output do not show: marks, loopback, what is sent on."""

from __future__ import annotations

from remedy.lab.fault import LIKE_A_FIREWALL, REPAIRED, by_hand, no_log
from remedy.lab.faults import fault
from remedy.lab.host import Host

_TABLE = "table inet lab_beside\ndelete table inet lab_beside\ntable inet lab_beside {\n%s}\n"


def _load(host: Host, text: str) -> None:
    host.write("/run/lab_beside.nft", (_TABLE % text).encode())
    host.must(["nft", "-f", "/run/lab_beside.nft"])


@fault(
    "firewall-by-mark",
    "nftables drops what a program has marked (SO_MARK) as it goes out",
    repair=by_hand("meta mark"),
    log=LIKE_A_FIREWALL,
)
def firewall_by_mark(host: Host) -> None:
    _load(
        host,
        "chain out { type filter hook output priority 0; policy accept;\n"
        f"ip daddr {host.lab.cluster} meta mark 0x29 drop\n}}\n",
    )


@fault(
    "firewall-loopback",
    "iptables drops what the host's processes send to each other by its own address",
    repair=by_hand("-i lo -p tcp -j DROP"),
    log=LIKE_A_FIREWALL,
)
def firewall_loopback(host: Host) -> None:
    rule = f"INPUT -i lo -d {host.record.cluster_address}/32 -p tcp -j DROP"
    host.must(f"iptables-nft -C {rule} 2>/dev/null || iptables-nft -A {rule}")


def containers(host: Host) -> None:
    """Give a host a network of containers, and routes to those of its peers, as Kubernetes' networks do."""

    def network(number: int) -> str:
        """Return the first three numbers of the addresses of a host's containers."""
        return f"10.{77 + number // 256}.{number % 256}"

    lines = [
        "ip link show cni0 >/dev/null 2>&1 || ip link add cni0 type bridge",
        f"ip addr replace {network(host.record.number)}.1/24 dev cni0; ip link set dev cni0 up",
        "sysctl -qw net.ipv4.ip_forward=1",
        *(f"ip route replace {network(p.number)}.0/24 via {p.cluster_address}" for p in host.peers),
    ]
    host.must("; ".join(lines))


@fault(
    "firewall-forward",
    "the host sends nothing on to its containers: iptables' policy for that is DROP",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
    harmless="no other host has routes to its containers",
)
def firewall_forward(host: Host) -> None:
    containers(host)
    host.must("iptables-nft -P FORWARD DROP")


@fault(
    "firewall-dormant",
    "a table of nftables that drops what goes to high ports is dormant: no packet passes it",
    repair=REPAIRED,
    log=no_log("a job runs as before; no packet passes the table"),
    harmless="no packet passes a table that is dormant",
)
def firewall_dormant(host: Host) -> None:
    _load(
        host,
        "flags dormant\nchain in { type filter hook input priority 0; policy accept;\n"
        "tcp dport 1024-65535 drop\n}\n",
    )


@fault(
    "firewall-redirects-many",
    "iptables sends what goes to many ports to a proxy that does not run",
    repair=by_hand("--dport 40000:50000"),
    log=LIKE_A_FIREWALL,
)
def firewall_redirects_many(host: Host) -> None:
    rule = "PREROUTING -p tcp -m tcp --dport 40000:50000 -j REDIRECT --to-ports 3128"
    host.must(f"iptables-nft -t nat -C {rule} 2>/dev/null || iptables-nft -t nat -A {rule}")
