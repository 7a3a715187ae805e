"""Every table of a host that packets between it and its peers pass, in order, and what each does with them.

netfilter's hooks: for what comes in ingress, the bridge's, prerouting, input; for what goes out output,
postrouting, the bridge's, egress. At one hook the chain with the smallest priority is first. A packet has to
pass all of
them: what one drops is lost, whatever the others say. Marks, and being untracked, travel along; so each chain
gets the packets as the one before has left them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from remedy.firewall import ebtables_rules, iptables_rules, marks, nftables_rules, spans
from remedy.firewall.packets import (
    ESTABLISHED,
    INVALID,
    NEW,
    REPLY,
    REQUEST,
    UNTRACKED,
    Box,
    Flow,
    Part,
    arp,
    discovery,
)
from remedy.firewall.reading import bounds_of
from remedy.firewall.spans import Spans
from remedy.firewall.step import Way
from remedy.firewall.traffic import Chain, Judgement, Traffic, judge
from remedy.probe import NftChain, NftRuleset

LEGACY_HOOKS = {
    "PREROUTING": ("prerouting", {"raw": -300, "mangle": -150, "nat": -100}),
    "INPUT": ("input", {"mangle": -150, "filter": 0, "security": 50, "nat": 100}),
    "OUTPUT": ("output", {"raw": -300, "mangle": -150, "nat": -100, "filter": 0, "security": 50}),
    "POSTROUTING": ("postrouting", {"mangle": -150, "nat": 100}),
}
"""Which tables of iptables are at which hook, at which priority (NF_IP_PRI_*, netfilter_ipv4.h)."""

_IN = ("ingress", "bridge prerouting", "bridge input", "inet ingress", "prerouting", "input")
_OUT = ("output", "postrouting", "bridge output", "bridge postrouting", "egress")
_WAYS: tuple[tuple[Way, tuple[str, ...]], ...] = (("in", _IN), ("out", _OUT))


@dataclass(frozen=True)
class Path:
    """How packets of the cluster get into a host and out of it.

    Args:
        interface: that has the cluster address; None where it is not known.
        address: the cluster address, of IPv4 or IPv6; None where it is not known.
        lower: the interfaces below it: the members of a bond or a bridge, what a VLAN is on.
        bridged: whether it is a bridge.
        symmetric: whether the route to each peer leads through it; None where that is not known.
        marked: whether traffic control marks what comes in, before any rule.
    """

    interface: str | None = None
    address: str | None = None
    lower: tuple[str, ...] = ()
    bridged: bool = False
    symmetric: bool | None = None
    marked: bool = False

    @property
    def family(self) -> Literal["ip", "ip6"]:
        """Whose addresses the packets have: "ip" or "ip6"."""
        return "ip6" if self.address is not None and ":" in self.address else "ip"


@dataclass(frozen=True)
class Tables:
    """The rules of one host.

    Args:
        nft: the ruleset of nftables, without what iptables keeps there.
        iptables: what iptables-save prints, by variant ("nft", "legacy").
        ipsets: what ``ipset save`` prints; None where that is not known.
        arptables: what arptables-save prints.
        ebtables: what ebtables-save prints.
        ip6tables: what ip6tables-save prints, by variant.
    """

    nft: NftRuleset
    iptables: Mapping[str, str]
    ipsets: str | None = None
    arptables: str = ""
    ebtables: str = ""
    ip6tables: Mapping[str, str] = field(default_factory=dict)

    def of(self, family: str) -> Mapping[str, str]:
        """Return the texts of the tool for packets of "ip" or "ip6"."""
        return self.ip6tables if family == "ip6" else self.iptables


@dataclass(frozen=True)
class Gate:
    """A base chain that packets pass.

    Args:
        kind: whose rules they are: "nft", "iptables", "iptables-legacy" (of ip6tables, too), "arptables" or
            "ebtables".
        place: the chain, as that tool takes it: "filter INPUT", "inet filter input".
        way: "in" or "out".
        arp: whether the packets are those of ARP, or of neighbour discovery over IPv6.
        judgement: what it does with them.
        chain: the chain, where it is one of nftables.
    """

    kind: str
    place: str
    way: str
    arp: bool
    judgement: Judgement
    chain: NftChain | None = None

    @property
    def table(self) -> str:
        """The table that the chain is in."""
        return self.place.split(" ")[-2]


@dataclass(frozen=True)
class _HookStep:
    """A base chain before it is judged; ``order`` sorts the chains of one way."""

    order: tuple[int, int]
    kind: str
    place: str
    base: str
    read: Callable[[Flow, Box], Mapping[str, Chain]]
    hook: str
    chain: NftChain | None = None
    nat: bool = False

    @property
    def devices(self) -> tuple[str, ...]:
        """The interfaces that it is bound to; () for all of them, or where they are not known."""
        return self.chain.devices if self.chain is not None else ()


def gates(
    tables: Tables, traffic: Traffic, path: Path, accepted: frozenset[str] = frozenset()
) -> Iterator[Gate]:
    """Yield every base chain that packets between a host and its peers pass, with what it does.

    Args:
        tables: all rules of the host.
        traffic: the packets.
        path: their way.
        accepted: the words of uncertain rules that the user has accepted.
    """
    steps = list(_steps(tables, path.family))
    texts = tuple(tables.of(path.family).values())
    tracked = any(map(iptables_rules.marks_connections, texts))
    tracked = tracked or nftables_rules.marks_connections(tables.nft)
    marks_by_rule = marks.given_by(texts, tables.nft)
    untracked: dict[str, list[Part]] = {}
    zoned: dict[str, list[Part]] = {}
    for way, hooks in _WAYS:
        flow = replace(_flow(way, path, marks=tracked), marks_given=marks_by_rule)
        parts = _parts(way, traffic)
        if path.marked and way == "in":
            parts = tuple(part._replace(mark=None) for part in parts)
        for step in _at(steps, hooks):
            if step.kind == "arptables" or (step.chain and step.chain.family == "arp"):
                continue
            narrowed = _narrowed(step, flow, path)
            if narrowed is None:
                continue
            judgement = _judged(step, narrowed, parts, accepted, traffic.fixed)
            # Only the first packet of a connection passes the chains of nat; marks of these stay on it.
            later = [part for part in parts if part.state != NEW] if step.nat else []
            parts = (*judgement.passed, *later)
            yield Gate(step.kind, step.place, way, False, judgement, step.chain)
        untracked[way] = [part for part in parts if part.state == UNTRACKED]
        zoned[way] = [part for part in parts if part.zoned and part.state != UNTRACKED]
        yield from _arp_gates(steps, hooks, flow, path, traffic, accepted)
    yield from _answers(steps, path, untracked, zoned, traffic, accepted, marks=tracked)


def _steps(tables: Tables, family: str) -> Iterator[_HookStep]:
    """Yield every base chain of a host that packets of a family, or ARP for them, can pass."""
    for variant, text in tables.of(family).items():
        kind = "iptables" if variant == "nft" else "iptables-legacy"
        for base, (hook, priorities) in LEGACY_HOOKS.items():
            for table, priority in priorities.items():
                if iptables_rules.has_chain(text, base, table):
                    read = partial(_read_iptables, text, table, tables.ipsets)
                    order = (_place_of(hook), priority)
                    nat = table == "nat"
                    yield _HookStep(order, kind, f"{table} {base}", base, read, hook, nat=nat)
    for chain in tables.nft.chains:
        hook = _hook_of(chain, family)
        if hook:
            read = partial(nftables_rules.chains, tables.nft, chain.family, chain.table)
            order = (_place_of(hook), chain.priority)
            where = nftables_rules.place(chain)
            yield _HookStep(order, "nft", where, chain.name, read, hook, chain, chain.kind == "nat")
    for base, hook in (("INPUT", "input"), ("OUTPUT", "output")):
        if iptables_rules.has_chain(tables.arptables, base):
            read = partial(iptables_rules.arp_chains, tables.arptables)
            yield _HookStep((_place_of(hook), 0), "arptables", f"filter {base}", base, read, hook)
    for table, base, hook in ebtables_rules.BASES:
        if iptables_rules.has_chain(tables.ebtables, base, table):
            read = partial(ebtables_rules.chains, tables.ebtables, table)
            order = (_place_of(f"bridge {hook}"), 0)
            yield _HookStep(order, "ebtables", f"{table} {base}", base, read, f"bridge {hook}")


def _read_iptables(
    text: str, table: str, ipsets: str | None, flow: Flow, bounds: Box
) -> Mapping[str, Chain]:
    return iptables_rules.chains(text, table, flow, bounds, ipsets)


_USUAL = ("prerouting", "input", "output", "postrouting")
_HOOKS: Mapping[str, Mapping[str, str]] = {
    "ip": {hook: hook for hook in _USUAL},
    "ip6": {hook: hook for hook in _USUAL},
    "inet": {"ingress": "inet ingress", **{hook: hook for hook in _USUAL}},
    "bridge": {hook: f"bridge {hook}" for hook in _USUAL},
    "netdev": {"ingress": "ingress", "egress": "egress"},
    "arp": {"input": "input", "output": "output"},
}


def _hook_of(chain: NftChain, family: str) -> str:
    """Return the hook of a base chain of nftables that packets of a family or ARP pass, "" for none."""
    if chain.family in ("ip", "ip6") and chain.family != family:
        return ""
    return _HOOKS.get(chain.family, {}).get(chain.hook, "")


def _place_of(hook: str) -> int:
    return (_IN if hook in _IN else _OUT).index(hook)


def _at(steps: list[_HookStep], hooks: tuple[str, ...]) -> list[_HookStep]:
    """Return the base chains of one way, in the order in which packets pass them."""
    return sorted((step for step in steps if step.hook in hooks), key=lambda step: step.order)


def _flow(way: Way, path: Path, *, marks: bool) -> Flow:
    address = None if path.address is None else spans.of_networks([path.address])[0][0]
    return Flow(
        way,
        (path.interface,) if path.interface else (),
        address,
        symmetric=path.symmetric,
        ether=path.family,
        connection_marks=marks,
    )


def _narrowed(step: _HookStep, flow: Flow, path: Path) -> Flow | None:
    """Return the flow as it passes one base chain; None where it does not pass it at all."""
    if step.hook.startswith("bridge "):
        if not path.bridged:
            return None
        return replace(flow, interfaces=path.lower, bridged=True, bridge=path.interface or "")
    if not step.hook.endswith("gress"):
        return flow
    if not step.devices:
        return replace(flow, interfaces=())  # it may be on any
    ours = (*((path.interface,) if path.interface else ()), *path.lower)
    if not ours:
        return replace(flow, interfaces=())  # any of them
    passed = tuple(name for name in ours if name in step.devices)
    return replace(flow, interfaces=passed) if passed else None


def _parts(way: str, traffic: Traffic) -> tuple[Part, ...]:
    """Return the packets of one way: of connections from the peers, and of those to them."""
    if way == "in":
        asked, answered = (
            (traffic.peer_client_ports, traffic.ports),
            (traffic.peer_ports, traffic.client_ports),
        )
    else:
        asked, answered = (
            (traffic.client_ports, traffic.peer_ports),
            (traffic.ports, traffic.peer_client_ports),
        )
    return (
        Part(traffic.peers, *asked, NEW),
        Part(traffic.peers, *asked, ESTABLISHED),
        Part(traffic.peers, *answered, ESTABLISHED, reply=True, opens=True),
        Part(traffic.peers, *answered, ESTABLISHED, reply=True),
    )


def _judged(
    step: _HookStep, flow: Flow, parts: tuple[Part, ...], accepted: frozenset[str], fixed: Spans
) -> Judgement:
    known = [part for part in parts if part.state == NEW] if step.nat else list(parts)
    chains = step.read(flow, bounds_of(known))
    asked = known
    if step.hook.endswith("gress") and not step.devices:
        why = f"{step.place}: a chain of an interface that is not known"
        asked = [] if why in accepted else [part._replace(why=part.why or why) for part in known]
    judgement = judge(chains, step.base, asked, label=step.place, accepted=accepted, fixed=fixed)
    return judgement if asked is known else replace(judgement, passed=tuple(known))


def _arp_gates(
    steps: list[_HookStep],
    hooks: tuple[str, ...],
    flow: Flow,
    path: Path,
    traffic: Traffic,
    accepted: frozenset[str],
) -> Iterator[Gate]:
    """Yield the base chains that packets of ARP pass: without an answer to them no packet finds its peer."""
    if path.family == "ip6":
        yield from _discovery_gates(steps, hooks, discovery(flow), path, traffic, accepted)
        return
    flow, ports = arp(flow), spans.ALL_PORTS
    parts = tuple(Part(traffic.peers, ports, ports, state) for state in (REQUEST, REPLY))
    for step in _at(steps, hooks):
        family = step.chain.family if step.chain is not None else step.kind
        if family not in ("arp", "arptables", "netdev", "bridge", "ebtables"):
            continue
        narrowed = _narrowed(step, flow, path)
        if narrowed is not None:
            judgement = _judged(step, narrowed, parts, accepted, ())
            yield Gate(step.kind, step.place, flow.way, True, judgement, step.chain)


def _discovery_gates(
    steps: list[_HookStep],
    hooks: tuple[str, ...],
    flow: Flow,
    path: Path,
    traffic: Traffic,
    accepted: frozenset[str],
) -> Iterator[Gate]:
    """Yield the base chains that packets of ICMPv6 pass by which hosts find each other, as ARP for IPv4.

    Connection tracking leaves them alone (nf_conntrack_proto_icmpv6.c).
    """
    ports = spans.ALL_PORTS
    parts = tuple(
        Part(traffic.peers, ports, ports, UNTRACKED, reply=reply) for reply in (False, True)
    )
    for step in _at(steps, hooks):
        family = step.chain.family if step.chain is not None else step.kind
        narrowed = (
            None if step.nat or family in ("arp", "arptables") else _narrowed(step, flow, path)
        )
        if narrowed is not None:
            judgement = _judged(step, narrowed, parts, accepted, ())
            yield Gate(step.kind, step.place, flow.way, True, judgement, step.chain)


def _answers(
    steps: list[_HookStep],
    path: Path,
    untracked: Mapping[str, list[Part]],
    zoned: Mapping[str, list[Part]],
    traffic: Traffic,
    accepted: frozenset[str],
    *,
    marks: bool,
) -> Iterator[Gate]:
    """Yield the base chains once more for the answers to packets that no connection is known of.

    Where one way is untracked and the other is not, connection tracking calls the answers invalid; where one
    way has a zone of its own, all but the first packet of a connection.
    """
    for way, hooks in _WAYS:
        back: Way = "out" if way == "in" else "in"
        opposite = [*untracked[back], *(zoned[back] if not zoned[way] else ())]
        parts = tuple(
            Part(part.peers, part.dports, part.sports, INVALID, not part.reply, why=part.why)
            for part in opposite
        )
        if not zoned[back]:
            apart = (part for part in zoned[way] if part.state == ESTABLISHED)
            parts = (*parts, *(part._replace(state=INVALID) for part in apart))
        if not parts or untracked[way]:
            continue
        flow = _flow(way, path, marks=marks)
        for step in _at(steps, hooks):
            if step.nat or (step.chain and step.chain.family == "arp") or step.kind == "arptables":
                continue
            narrowed = _narrowed(step, flow, path)
            if narrowed is not None:
                judgement = _judged(step, narrowed, parts, accepted, traffic.fixed)
                yield Gate(step.kind, step.place, way, False, judgement, step.chain)
