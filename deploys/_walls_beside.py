"""What firewalls do with packets that go another way than those between hosts. Not a remedy.

Processes of one host meet by its cluster address, too: those packets pass the loopback interface, and its
rules. Containers with a network of their own send theirs through the host, by the hook forward: named where
routes of the hosts lead to each other's containers, as Kubernetes' networks have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from remedy.deploys import _interfaces as nic
from remedy.deploys._walls import MOST_DOUBTS, Reasons, accept, evidence_of, report_powerless
from remedy.deploys.hosts_file import HostsFileSpec
from remedy.firewall import spans
from remedy.firewall.boot.armed import PacketQuestion
from remedy.firewall.forward import ContainerSide, forwarded
from remedy.firewall.hooks import Gate, Path
from remedy.firewall.spans import Spans
from remedy.firewall.walls import Wall, rules_in_force
from remedy.firewall.walls_ipv6 import TOOLS, tables_of_ipv6
from remedy.plan import Fleet, Workbench
from remedy.plan.fleet import once_a_fleet
from remedy.probe import Firewalls, HostState, Network, Sysctls
from remedy.values import Unknown

LOOPBACK = "lo"
FORWARD = "net.ipv4.ip_forward"
TUNNELS = frozenset(("vxlan", "geneve", "ipip", "gre", "sit", "wireguard", "tun", "ip6tnl"))


def note_beside(
    bench: Workbench[Any],
    firewalls: Firewalls,
    walls: Sequence[Wall],
    question: PacketQuestion,
    reasons: Reasons,
) -> None:
    """Say what rules do with packets of the host to itself, and with those that it sends on.

    Args:
        bench: with the host.
        firewalls: its rules.
        walls: what they do with packets between the host and its peers, which was said already.
        question: what was asked of them.
        reasons: what the ports are needed for.
    """
    report_powerless(bench, firewalls, walls)
    named = {
        words
        for wall in walls
        for words in (
            *wall.incoming.words,
            *wall.outgoing.words,
            *(doubt.words for doubt in wall.doubts),
            *(doubt.outcome for doubt in wall.doubts),
        )
    }
    own = question.path.address
    for address in (*([] if own is None else [own]), *_by_own_name(bench, own)):
        traffic = replace(question.traffic, peers=spans.of_networks([address]))
        path = Path(LOOPBACK, address, symmetric=True)
        asked = PacketQuestion(traffic, path, question.accepted)
        by = "its cluster address" if address == own else f"{address}, to which its own name leads"
        rules = tables_of_ipv6(firewalls) if path.family == "ip6" else rules_in_force(firewalls)
        for gate in asked.ask(rules):
            if not gate.arp:
                what = f"what processes of this host send to each other by {by}"
                _note_gate(bench, gate, what, named, reasons, ipv6=path.family == "ip6")
    near, far = _sides(bench.fleet, bench.host)
    if near.networks and far.networks:
        what = "what containers of this host and of others send to each other"
        for gate in forwarded(rules_in_force(firewalls), near, far, question.accepted):
            _note_gate(bench, gate, what, named, reasons)


def _by_own_name(bench: Workbench[Any], cluster: str | None) -> tuple[str, ...]:
    """Return the address that the own name leads to, by which processes meet, where it is not the cluster's.

    gloo takes the first; a loopback address of either family, or one of IPv6, goes by the same interface.
    """
    names = bench.host.names
    if isinstance(names, Unknown) or isinstance(names.local, Unknown):
        return ()
    if bench.fleet.spec.section("hosts_file", HostsFileSpec).manage:
        return ()  # that name is put right
    return tuple(address for address in names.local[:1] if address != cluster)


def _note_gate(
    bench: Workbench[Any],
    gate: Gate,
    what: str,
    named: set[str],
    reasons: Reasons,
    *,
    ipv6: bool = False,
) -> None:
    """Name what a base chain drops, or may drop, unless its rules were named already."""
    tool = TOOLS.get(gate.kind, gate.kind) if ipv6 else gate.kind
    dropped, name = gate.judgement.dropped, f"{tool} ({gate.place})"
    show = f"nft list table {gate.place.rpartition(' ')[0]}"
    if gate.kind != "nft":
        show = f"{tool} -t {gate.table} -S"
    if set(dropped.words) - named:
        named.update(dropped.words)
        needed = reasons.at_this_host if gate.way == "in" else reasons.in_fleet
        note = bench.report if reasons.leaves else bench.blocked
        note(
            f"{name} drops {what}",
            evidence_of(dropped, needed),
            f"Remove that rule, or let them through ahead of it. To see all: {show}",
        )
    for doubt in gate.judgement.doubts[:MOST_DOUBTS]:
        if {doubt.words, doubt.outcome or doubt.words} & named:
            continue
        named.add(doubt.words)
        reason = [f"depends on: {', '.join(doubt.unread)}"] if doubt.unread else []
        bench.unknown(f"{name}: a rule may drop {what}", (doubt.words, *reason), accept(doubt))


def note_forwarding(bench: Workbench[Any]) -> None:
    """Name a host that sends nothing on, though others have routes through it to its containers."""
    near, _ = _sides(bench.fleet, bench.host)
    sysctls = bench.host.sysctls
    live = sysctls.live.get(FORWARD, "") if isinstance(sysctls, Sysctls) else ""
    if near.networks and live == "0":
        bench.blocked(
            f"this host sends nothing on to its containers, to which other hosts have routes: {FORWARD} = 0",
            (f"{FORWARD} = 0", f"containers' interfaces: {', '.join(near.interfaces)}"),
            f"Set it: sysctl -w {FORWARD}=1, and in a file of /etc/sysctl.d",
            label="network-unreachable",
        )


# --- whose containers are where ------------------------------------------------------------------------------

Found = tuple[tuple[Spans, str], ...]
"""Networks, each with the interface by which a host reaches it."""


def _sides(fleet: Fleet, host: HostState) -> tuple[ContainerSide, ContainerSide]:
    """Return the networks of a host's containers to which others have routes, and those of theirs."""
    own, routed = _containers(fleet).get(host.host, ((), ()))
    there, asked = _everywhere(fleet)
    return _side(own, asked.beside(host.host)), _side(routed, there.beside(host.host))


def _side(walls: Found, within: Spans) -> ContainerSide:
    common = [(spans.meet(networks, within), name) for networks, name in walls]
    real = [(networks, name) for networks, name in common if networks]
    networks = spans.merge(span for each, _ in real for span in each)
    return ContainerSide(networks, tuple(dict.fromkeys(name for _, name in real)))


class _Everywhere(NamedTuple):
    """Networks of all hosts together, and those parts of them that one host alone has."""

    every: Spans
    alone: Mapping[str, Spans]

    def beside(self, host: str) -> Spans:
        """Return the networks that other hosts have."""
        return spans.minus(self.every, self.alone.get(host, ()))


def _together(walls: Mapping[str, Found]) -> _Everywhere:
    sets = {
        name: spans.merge(s for each, _ in known for s in each) for name, known in walls.items()
    }
    alone = dict(zip(sets, spans.only_in(list(sets.values())), strict=True))
    return _Everywhere(spans.merge(s for each in sets.values() for s in each), alone)


@once_a_fleet
def _everywhere(fleet: Fleet) -> tuple[_Everywhere, _Everywhere]:
    """Return the networks of all hosts' containers, and all those that hosts have routes to."""
    known = _containers(fleet).items()
    return _together({n: own for n, (own, _) in known}), _together({n: to for n, (_, to) in known})


@once_a_fleet
def _containers(fleet: Fleet) -> Mapping[str, tuple[Found, Found]]:
    """Return of each host the networks of its own containers, and those that it has routes to."""
    clustered = spans.of_networks(list(fleet.known_addresses))
    containers = {}
    for name, state in fleet.states.items():
        if not isinstance(state.network, Network) or isinstance(state.routing, Unknown):
            continue
        own: list[tuple[Spans, str]] = []
        routed: list[tuple[Spans, str]] = []
        for route in state.routing.routes:
            if route.table != "main" or route.kind != "unicast" or route.destination == "default":
                continue
            networks = spans.of_networks([route.destination])
            interface = state.network.interface(route.interface)
            if interface is None or spans.meet(networks, clustered):
                continue
            if route.gateway or interface.kind in TUNNELS:
                routed.append((networks, route.interface))
            elif nic.internal(interface, state.network):
                own.append((networks, route.interface))
        containers[name] = tuple(own), tuple(routed)
    return containers
