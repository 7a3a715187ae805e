"""Faults of the ways to peers: routes, rules, neighbours, IPsec, traffic control; all end with a reboot."""

from __future__ import annotations

from remedy.lab.fault import LIKE_A_FIREWALL, REPAIRED, by_hand
from remedy.lab.faults import fault
from remedy.lab.host import Host


def _peer(host: Host, place: int = 0) -> str:
    """Return the cluster address of one of the other hosts; of the last where there are not so many."""
    return host.peers[min(place, len(host.peers) - 1)].cluster_address


@fault(
    "route-unreachable",
    "a route of the type unreachable leads to the first peer",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
)
def route_unreachable(host: Host) -> None:
    host.must(["ip", "route", "replace", "unreachable", _peer(host)])


@fault(
    "route-elsewhere",
    "the route to the second peer leads to the bridge of the containers",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
)
def route_elsewhere(host: Host) -> None:
    host.must(["ip", "route", "replace", _peer(host, 1), "dev", "docker0"])


@fault(
    "route-gone",
    "the route of the cluster's own network is gone",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
)
def route_gone(host: Host) -> None:
    host.must(f"ip route del {host.lab.cluster} 2>/dev/null; true")


@fault(
    "rule-prohibits",
    "a routing rule prohibits the first peer",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
)
def rule_prohibits(host: Host) -> None:
    words = f"to {_peer(host)} prohibit priority 90"
    host.must(f"ip rule del {words} 2>/dev/null; ip rule add {words}")


@fault(
    "rule-for-some-ports",
    "a routing rule drops what goes to some ports of the second peer",
    repair=by_hand("peer_routes.accept"),
    log=LIKE_A_FIREWALL,
)
def rule_for_some_ports(host: Host) -> None:
    words = f"to {_peer(host, 1)} ipproto tcp dport 40000-40010 blackhole priority 91"
    host.must(f"ip rule del {words} 2>/dev/null; ip rule add {words}")


@fault(
    "neighbour-wrong",
    "the first peer's hardware address is fixed, and wrong",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
)
def neighbour_wrong(host: Host) -> None:
    words = [
        "lladdr",
        "02:00:00:00:00:99",
        "dev",
        host.record.cluster_interface,
        "nud",
        "permanent",
    ]
    host.must(["ip", "neigh", "replace", _peer(host), *words])


@fault(
    "interface-without-arp",
    "the cluster interface does not answer who asks for its address",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
)
def interface_without_arp(host: Host) -> None:
    host.must(["ip", "link", "set", "dev", host.record.cluster_interface, "arp", "off"])


@fault(
    "ipsec-blocks",
    "a policy of IPsec blocks what goes to the first peer",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
)
def ipsec_blocks(host: Host) -> None:
    words = f"src {host.record.cluster_address}/32 dst {_peer(host)}/32 dir out action block"
    host.must(f"ip xfrm policy update {words}")


@fault(
    "queue-blackhole",
    "the queue of the cluster interface drops everything",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
)
def queue_blackhole(host: Host) -> None:
    host.must(["tc", "qdisc", "replace", "dev", host.record.cluster_interface, "root", "blackhole"])


@fault(
    "filter-redirects",
    "a filter sends what comes from the first peer elsewhere",
    repair=by_hand("traffic_control.accept"),
    log=LIKE_A_FIREWALL,
)
def filter_redirects(host: Host) -> None:
    interface = host.record.cluster_interface
    host.must(
        f"tc qdisc replace dev {interface} ingress; tc filter replace dev {interface} ingress protocol ip"
        f" pref 7 handle 800::800 u32 match ip src {_peer(host)} action mirred egress redirect dev docker0"
    )


@fault(
    "neighbours-unasked",
    "the cluster interface never asks for the hardware addresses of peers",
    repair=by_hand("mcast_solicit"),
    log=LIKE_A_FIREWALL,
)
def neighbours_unasked(host: Host) -> None:
    interface = host.record.cluster_interface
    host.must(
        f"sysctl -qw net.ipv4.neigh.{interface}.mcast_solicit=0; ip neigh flush dev {interface}"
    )


@fault(
    "prefix-too-long",
    "the cluster address has the prefix /32, so that peers are beyond a router",
    repair=by_hand("/32"),
    log=LIKE_A_FIREWALL,
)
def prefix_too_long(host: Host) -> None:
    address, interface = host.record.cluster_address, host.record.cluster_interface
    host.must(f"ip addr flush dev {interface} && ip addr add {address}/32 dev {interface}")


@fault(
    "own-address-gone",
    "the host does not take packets for its own cluster address any more",
    repair=by_hand("no route of the type local"),
    log=LIKE_A_FIREWALL,
)
def own_address_gone(host: Host) -> None:
    own, interface = host.record.cluster_address, host.record.cluster_interface
    host.must(f"ip route del local {own} dev {interface} table local 2>/dev/null; true")


@fault(
    "interface-in-bridge",
    "the cluster interface is a member of a bridge that is down",
    repair=by_hand("is a member of the bridge"),
    log=LIKE_A_FIREWALL,
)
def interface_in_bridge(host: Host) -> None:
    host.must(
        "ip link show br-odd >/dev/null 2>&1 || ip link add br-odd type bridge; "
        f"ip link set dev {host.record.cluster_interface} master br-odd"
    )


@fault(
    "route-in-parts",
    "a part of what goes to the first peer leaves by the bridge of containers",
    repair=by_hand("ip -4 route del"),
    log=LIKE_A_FIREWALL,
)
def route_in_parts(host: Host) -> None:
    hops = f"nexthop dev {host.record.cluster_interface} nexthop dev docker0"
    host.must(f"ip link set dev docker0 up; ip route replace {_peer(host)} {hops}")


@fault(
    "marked-and-lost",
    "iptables marks what goes to peers, and a routing rule drops that mark",
    repair=by_hand("fwmark 0x7"),
    log=LIKE_A_FIREWALL,
)
def marked_and_lost(host: Host) -> None:
    mark = f"OUTPUT -d {host.lab.cluster} -p tcp -j MARK --set-mark 7"
    rule = "fwmark 7 blackhole priority 92"
    host.must(
        f"iptables-nft -t mangle -C {mark} 2>/dev/null || iptables-nft -t mangle -A {mark}; "
        f"ip rule del {rule} 2>/dev/null; ip rule add {rule}"
    )


@fault(
    "queue-short",
    "the queue of the cluster interface holds 1000 bytes: no large packet",
    repair=by_hand("bfifo"),
    log=LIKE_A_FIREWALL,
)
def queue_short(host: Host) -> None:
    words = ["root", "bfifo", "limit", "1000"]
    host.must(["tc", "qdisc", "replace", "dev", host.record.cluster_interface, *words])


@fault(
    "rule-for-some-users",
    "a routing rule sends what some users send to a bridge of containers",
    repair=by_hand("of some packets"),
    log=LIKE_A_FIREWALL,
)
def rule_for_some_users(host: Host) -> None:
    rule = "uidrange 0-65535 lookup 77 priority 93"
    host.must(
        f"ip link set dev docker0 up; ip route replace {host.lab.cluster} dev docker0 table 77; "
        f"ip rule del {rule} 2>/dev/null; ip rule add {rule}"
    )


@fault(
    "route-thrown",
    "a route of the type throw keeps the first peer from having one",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
)
def route_thrown(host: Host) -> None:
    host.must(["ip", "route", "replace", "throw", _peer(host)])


@fault(
    "route-that-waits",
    "a route has TCP wait 20 s before it sends once more to the first peer",
    repair=by_hand("rto_min 20000"),
    log=LIKE_A_FIREWALL,
)
def route_that_waits(host: Host) -> None:
    words = f"{_peer(host)} dev {host.record.cluster_interface} rto_min 20s"
    host.must(["ip", "route", "replace", *words.split()])


@fault(
    "route-with-small-window",
    "a route lets the first peer send 2000 bytes at a time",
    repair=by_hand("window 2000"),
    log=LIKE_A_FIREWALL,
)
def route_with_small_window(host: Host) -> None:
    host.must(
        [
            "ip",
            "route",
            "replace",
            _peer(host),
            "dev",
            host.record.cluster_interface,
            "window",
            "2000",
        ]
    )


@fault(
    "route-by-a-dead-router",
    "a part of what goes to the first peer goes to a router that is not there",
    repair=by_hand("though they are on the same network"),
    log=LIKE_A_FIREWALL,
)
def route_by_a_dead_router(host: Host) -> None:
    interface = host.record.cluster_interface
    nobody = host.lab.cluster.rpartition(".")[0] + ".250"
    hops = f"nexthop dev {interface} nexthop via {nobody} dev {interface}"
    host.must(f"ip route replace {_peer(host)} {hops}")


@fault(
    "loopback-down",
    "the loopback interface is down",
    repair=by_hand("lo is down"),
    log=LIKE_A_FIREWALL,
)
def loopback_down(host: Host) -> None:
    host.must(["ip", "link", "set", "dev", "lo", "down"])


@fault(
    "loopback-lossy",
    "the queue of the loopback interface drops everything",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
)
def loopback_lossy(host: Host) -> None:
    host.must(["tc", "qdisc", "replace", "dev", "lo", "root", "blackhole"])
