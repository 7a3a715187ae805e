"""Faults of packets beside the usual firewalls: IPv6, units of systemd, firewalls that are used in odd ways."""

from __future__ import annotations

from ipaddress import IPv4Interface

from remedy.lab.fault import LIKE_A_FIREWALL, REPAIRED, WAY_BY_SSH, by_hand, no_log, out_of_reach
from remedy.lab.faults import fault
from remedy.lab.host import Host

PREFIX = "2001:db8:214::"
_PORTS = "29400:65535"


def talk_over_ipv6(host: Host) -> None:
    """Give a host an address of IPv6, and have its hosts file lead to those of all hosts first."""
    interface = host.record.cluster_interface
    own = f"{PREFIX}{host.record.number:x}/64"
    host.must(["ip", "-6", "address", "replace", own, "dev", interface, "nodad"])
    every = sorted([host.record, *host.peers], key=lambda record: record.number)
    lines = "".join(f"{PREFIX}{record.number:x}\t{record.name}\n" for record in every)
    host.must(
        f"grep -qF {PREFIX} /etc/hosts || {{ cat; cat /etc/hosts; }} >/etc/hosts.new <<'END'\n{lines}END\n"
        "[ ! -s /etc/hosts.new ] || cat /etc/hosts.new >/etc/hosts; rm -f /etc/hosts.new"
    )


@fault(
    "firewall-ip6tables",
    "names lead to IPv6 addresses, and ip6tables drops what peers send there",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
)
def firewall_ip6tables(host: Host) -> None:
    talk_over_ipv6(host)
    rule = f"INPUT -s {PREFIX}/64 -p tcp -m tcp --dport {_PORTS} -j DROP"
    host.must(f"ip6tables-nft -C {rule} 2>/dev/null || ip6tables-nft -A {rule}")


@fault(
    "firewall-nft-ip6",
    "names lead to IPv6 addresses, and nftables drops what goes there, and what comes from there",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
)
def firewall_nft_ip6(host: Host) -> None:
    talk_over_ipv6(host)
    table = (
        "table ip6 lab_fault\ndelete table ip6 lab_fault\ntable ip6 lab_fault {\n"
        "chain input { type filter hook input priority 0; policy accept;\n"
        f"ip6 saddr {PREFIX}/64 tcp dport 1024-65535 drop\n}}\n"
        "chain output { type filter hook output priority 0; policy accept;\n"
        f"ip6 daddr {PREFIX}/64 tcp dport 1024-65535 drop\n}}\n}}\n"
    )
    host.write("/run/lab_fault6.nft", table.encode())
    host.must(["nft", "-f", "/run/lab_fault6.nft"])


@fault(
    "route-ipv6-unreachable",
    "names lead to IPv6 addresses, and a route of the type unreachable leads to the first peer's",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
)
def route_ipv6_unreachable(host: Host) -> None:
    talk_over_ipv6(host)
    peer = f"{PREFIX}{host.peers[0].number:x}"
    host.must(["ip", "-6", "route", "replace", "unreachable", f"{peer}/128"])


@fault(
    "unit-denies-peers",
    "systemd keeps sessions of users from the cluster (IPAddressDeny)",
    repair=by_hand("IPAddressDeny"),
    log=LIKE_A_FIREWALL,
)
def unit_denies_peers(host: Host) -> None:
    host.must(["mkdir", "-p", "/etc/systemd/system/user.slice.d"])
    text = f"[Slice]\nIPAddressDeny={host.lab.cluster}\n"
    host.write("/etc/systemd/system/user.slice.d/closed.conf", text.encode())
    host.must(["systemctl", "daemon-reload"])


# --- firewalls that do more than let in and keep out -------------------------------------------------------


@fault(
    "firewall-ufw-limit",
    "ufw is on, and limits how often a host may connect to a launcher",
    repair=by_hand("accepted_rules"),
    log=no_log("whether a job notices is a matter of chance, and of how many connections it makes"),
)
def firewall_ufw_limit(host: Host) -> None:
    host.must(
        "ufw default allow incoming && ufw limit 29500/tcp && ufw --force enable && "
        "systemctl enable --quiet ufw"
    )


@fault(
    "firewall-firewalld-rich",
    "a rich rule of firewalld with a priority drops what the cluster sends, ahead of the zone's others",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
)
def firewall_firewalld_rich(host: Host) -> None:
    host.must("systemctl enable --quiet --now firewalld && firewall-cmd --quiet --state")
    rule = f'rule priority="-100" family="ipv4" source address="{host.lab.cluster}" drop'
    host.must(
        "firewall-cmd --quiet --set-default-zone=trusted && "
        f"firewall-cmd --quiet --permanent --zone=trusted --add-rich-rule='{rule}' && "
        "firewall-cmd --quiet --reload"
    )


@fault(
    "firewall-firewalld-lockdown",
    "firewalld keeps peers out, and nobody is on its list of who may change it (lockdown)",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
)
def firewall_firewalld_lockdown(host: Host) -> None:
    whitelist = '<?xml version="1.0" encoding="utf-8"?>\n<whitelist/>\n'
    host.must(["mkdir", "-p", "/etc/firewalld"])
    host.write("/etc/firewalld/lockdown-whitelist.xml", whitelist.encode())
    host.must(
        "sed -i 's/^Lockdown=.*/Lockdown=yes/' /etc/firewalld/firewalld.conf && "
        "systemctl enable --quiet firewalld && systemctl restart firewalld"
    )


@fault(
    "firewall-firewalld-panic",
    "firewalld drops every packet (panic mode), until a reboot",
    repair=out_of_reach("no connection|unreachable|silent"),
    log=WAY_BY_SSH,
)
def firewall_firewalld_panic(host: Host) -> None:
    host.must("systemctl enable --quiet --now firewalld && firewall-cmd --quiet --state")
    host.must("firewall-cmd --quiet --query-panic || firewall-cmd --quiet --panic-on")


@fault(
    "firewall-ipset",
    "iptables drops what hosts of an ipset send, and all peers are in it",
    repair=REPAIRED,
    log=LIKE_A_FIREWALL,
)
def firewall_ipset(host: Host) -> None:
    network = IPv4Interface(host.lab.cluster).network
    rule = "INPUT -p tcp -m set --match-set lab_fault src -j DROP"
    host.must(
        f"ipset create -exist lab_fault hash:net && ipset add -exist lab_fault {network} && "
        f"{{ iptables-nft -C {rule} 2>/dev/null || iptables-nft -A {rule}; }}"
    )
