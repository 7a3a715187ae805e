"""Plans for a proved fleet that look right and break it: each is one change a host, with its way back."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from remedy.apply.start import origin
from remedy.inventory import Inventory
from remedy.plan import Change, CommandAction, Plan

# For one host: its name, its interface in the cluster, and the addresses of its peers by name.
Make = Callable[[str, str, Mapping[str, str]], CommandAction]


@dataclass(frozen=True)
class BadPlan:
    """A plan that breaks what it is made on.

    Args:
        name: of the case.
        make: the change of one host.
        waves: how many hosts are changed at a time; two where only changed hosts break each other's sum.
    """

    name: str
    make: Make
    waves: str = "1,100%"


def command(observe: str, before: str, after: str, do: str, undo: str) -> CommandAction:
    return CommandAction(observe=observe, before=before, after=after, do=do, undo=undo)


def rules(text: str, *, family: str = "inet") -> Make:
    """Rules in a table of their own; PEERS in ``text`` are the addresses of the peers."""

    def make(_: str, __: str, peers: Mapping[str, str]) -> CommandAction:
        table = f"{family} tuning"
        body = text.replace("PEERS", f"{{ {', '.join(peers.values())} }}")
        return command(
            f"nft list table {table} >/dev/null 2>&1 && echo there || echo gone",
            "gone",
            "there",
            f"nft {shlex.quote(f'table {table} {{ {body} }}')}",
            f"nft delete table {table}",
        )

    return make


def each_peer(do: str, undo: str, observe: str) -> Make:
    """A command for each peer: PEER is its address, DEV the interface; ``observe`` prints a line for each."""

    def make(_: str, interface: str, peers: Mapping[str, str]) -> CommandAction:
        def each(text: str) -> str:
            commands = (text.replace("PEER", address) for address in peers.values())
            return " && ".join(commands).replace("DEV", interface)

        return command(f"{observe} | grep -c . || :", "0", str(len(peers)), each(do), each(undo))

    return make


def line_in(
    path: str, line: Callable[[str, Mapping[str, str]], str], *, first: bool = False
) -> Make:
    """A line more in a file of the host."""

    def make(host: str, _: str, peers: Mapping[str, str]) -> CommandAction:
        text = shlex.quote(line(host, peers))
        add = f"{{ printf '%s\\n' {text}; cat {path}; }} >/root/new && cat /root/new >{path} && rm /root/new"
        if not first:
            add = f"printf '%s\\n' {text} >>{path}"
        take = f"grep -vxF -- {text} {path} >/root/new; cat /root/new >{path} && rm /root/new"
        return command(f"grep -cxF -- {text} {path} || :", "0", "1", add, take)

    return make


def mtu(_: str, interface: str, ___: Mapping[str, str]) -> CommandAction:
    # One segment a packet, as it is on a wire: the lab's links hand packets of many segments on as a whole.
    return command(
        f"cat /sys/class/net/{interface}/mtu",
        "1500",
        "9000",
        f"ip link set {interface} gso_max_segs 1 && ip link set {interface} mtu 9000",
        f"ip link set {interface} mtu 1500 && ip link set {interface} gso_max_segs 65535",
    )


def link_down(_: str, interface: str, ___: Mapping[str, str]) -> CommandAction:
    state = f"cat /sys/class/net/{interface}/operstate"
    return command(
        state, "up", "down", f"ip link set {interface} down", f"ip link set {interface} up"
    )


def ingress(host: str, interface: str, peers: Mapping[str, str]) -> CommandAction:
    hook = f"chain c {{ type filter hook ingress device {interface} priority 0;"
    drops = f"{hook} ip saddr PEERS tcp dport > 1024 drop; }}"
    return rules(drops, family="netdev")(host, interface, peers)


def few_files(_: str, __: str, ___: Mapping[str, str]) -> CommandAction:
    path = "/etc/security/limits.d/90-tuning.conf"
    there = f"test -e {path} && echo there || echo gone"
    return command(there, "gone", "there", f"echo 'root - nofile 16' >{path}", f"rm {path}")


ROUTES = "ip -4 route show | grep -E '^{} '"
INPUT = "chain c {{ type filter hook input priority -10; policy accept; {} }}"
OUTPUT = "chain c {{ type filter hook output priority -10; policy accept; {} }}"

BAD_PLANS = (
    BadPlan("mtu-beyond-the-bridge", mtu, waves="2,100%"),
    BadPlan("mtu-of-one-host", mtu),
    BadPlan("link-down", link_down),
    BadPlan("ingress-drops", ingress),
    BadPlan("few-open-files", few_files),
    BadPlan(
        "ipsec-that-no-peer-knows",
        each_peer(
            "ip xfrm policy add dst PEER dir out tmpl dst PEER proto esp mode transport",
            "ip xfrm policy del dst PEER dir out",
            "ip xfrm policy | grep ^src",
        ),
    ),
    BadPlan("rule-too-narrow", rules(INPUT.format("ip saddr PEERS tcp dport != { 22, 29400-29560 } drop"))),
    BadPlan("only-the-first-ports", rules(INPUT.format("ip saddr PEERS tcp dport 1024-65535 drop"))),
    BadPlan("input-rejects", rules(INPUT.format("ip saddr PEERS reject"))),
    BadPlan("output-drops", rules(OUTPUT.format("ip daddr PEERS drop"))),
    BadPlan("output-rejects", rules(OUTPUT.format("ip daddr PEERS reject"))),
    BadPlan(
        "raw-table",
        rules("chain c { type filter hook prerouting priority -300; ip saddr PEERS tcp dport > 1024 drop; }"),
    ),
    BadPlan(
        "redirected",
        rules("chain c { type nat hook prerouting priority -100;"
            " ip saddr PEERS tcp dport > 1024 redirect to :9; }"),
    ),
    BadPlan(
        "source-rewritten",
        rules("chain c { type nat hook postrouting priority 100; ip daddr PEERS snat ip to 10.255.255.9; }"),
    ),
    BadPlan("first-packets-only", rules(INPUT.format("ip saddr PEERS meta length > 600 drop"))),
    *(
        BadPlan(
            kind,
            each_peer(f"ip route add {kind} PEER/32", f"ip route del {kind} PEER/32", ROUTES.format(kind)),
        )
        for kind in ("blackhole", "unreachable", "prohibit")
    ),
    BadPlan(
        "policy-rule",
        each_peer(
            "ip rule add to PEER/32 prohibit pref 77", "ip rule del to PEER/32 prohibit pref 77",
            "ip rule show pref 77",
        ),
    ),
    BadPlan(
        "dead-gateway",
        each_peer(
            "ip route add PEER/32 via 169.254.9.9 dev DEV onlink", "ip route del PEER/32",
            "ip -4 route show | grep 169.254.9.9",
        ),
    ),
    BadPlan(
        "wrong-neighbour",
        each_peer(
            "ip neigh replace PEER lladdr 02:00:00:00:00:99 nud permanent dev DEV",
            "ip neigh del PEER dev DEV",
            "ip neigh show nud permanent",
        ),
    ),
    BadPlan("interface-lo", line_in("/etc/environment", lambda *_: "GLOO_SOCKET_IFNAME=lo")),
    BadPlan("interface-that-is-not-there", line_in("/etc/environment", lambda *_: "GLOO_SOCKET_IFNAME=eth7")),
    BadPlan(
        "own-name-elsewhere",
        line_in("/etc/hosts", lambda host, _: f"10.255.255.1 {host}", first=True),
    ),
    BadPlan(
        "peers-elsewhere",
        line_in("/etc/hosts", lambda _, peers: f"10.255.255.2 {' '.join(peers)}", first=True),
    ),
)  # fmt: skip


def plan_of(inventory: Inventory, interfaces: Mapping[str, str], bad: BadPlan) -> Plan:
    """Return the plan of a remedy that means well.

    Args:
        inventory: the fleet.
        interfaces: in the cluster's network, by host.
        bad: what the remedy does.
    """
    who = origin()
    addresses = {
        node.name: str(node.cluster_address or node.ssh_address) for node in inventory.nodes
    }
    changes = tuple(
        Change(
            id="01-tuning",
            host=host,
            remedy="tuning",
            title=bad.name,
            reason="it looked right",
            label="firewall-ports",
            action=bad.make(host, interface, {n: a for n, a in addresses.items() if n != host}),
        )
        for host, interface in interfaces.items()
    )
    return Plan(
        tool_version="test",
        created=who.created,
        author=who.author,
        inventory=inventory.path.name,
        inventory_digest=inventory.digest,
        spec_digest="",
        changes=changes,
    )
