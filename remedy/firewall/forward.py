"""What rules do with packets that a host sends on: between networks of its containers and those of other hosts.

The hook ``forward`` alone, where Docker's policy and those of others are. What a rule says of some containers
and not of all is their owner's affair, and no doubt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from remedy.firewall import iptables_rules, nftables_rules
from remedy.firewall.hooks import Gate, Tables
from remedy.firewall.packets import ESTABLISHED, NEW, Flow, Part
from remedy.firewall.reading import bounds_of
from remedy.firewall.spans import Spans
from remedy.firewall.step import Way
from remedy.firewall.traffic import Chain, Judgement, judge

TABLES = ("mangle", "filter", "security")
PORTS: Spans = ((1024, 65535),)
_OF_SOME = frozenset(("iif", "oif", "saddr", "daddr", "mark", "connection-mark", "reverse-path"))
"""What differs from container to container, or was given before the hook."""


@dataclass(frozen=True)
class ContainerSide:
    """Networks of containers, and the interfaces by which they are reached."""

    networks: Spans
    interfaces: tuple[str, ...]


def forwarded(
    tables: Tables, near: ContainerSide, far: ContainerSide, accepted: frozenset[str] = frozenset()
) -> Iterator[Gate]:
    """Yield the base chains by which packets are sent on, with what each does.

    Args:
        tables: all rules of the host.
        near: of its own containers.
        far: of those of other hosts.
        accepted: the words of uncertain rules that the user has accepted.
    """
    ways: tuple[tuple[Way, ContainerSide, ContainerSide], ...] = (
        ("in", far, near),
        ("out", near, far),
    )
    for way, source, target in ways:
        flow = Flow(way, source.interfaces, local=near.networks, onward=target.interfaces)
        parts = (
            Part(far.networks, PORTS, PORTS, NEW),
            Part(far.networks, PORTS, PORTS, ESTABLISHED),
            Part(far.networks, PORTS, PORTS, ESTABLISHED, reply=True, opens=True),
            Part(far.networks, PORTS, PORTS, ESTABLISHED, reply=True),
        )
        for kind, place, base, chains in _bases(tables, flow, parts):
            judgement = judge(chains, base, parts, label=place, accepted=accepted)
            yield Gate(kind, place, way, False, _of_all(judgement))


def _bases(
    tables: Tables, flow: Flow, parts: tuple[Part, ...]
) -> Iterator[tuple[str, str, str, Mapping[str, Chain]]]:
    """Yield kind, place, name and table of each base chain of the hook."""
    bounds = bounds_of(parts)
    for variant, text in tables.iptables.items():
        kind = "iptables" if variant == "nft" else "iptables-legacy"
        for table in TABLES:
            if iptables_rules.has_chain(text, "FORWARD", table):
                chains = iptables_rules.chains(text, table, flow, bounds, tables.ipsets)
                yield kind, f"{table} FORWARD", "FORWARD", chains
    for chain in tables.nft.chains:
        if chain.hook == "forward" and chain.family in ("ip", "inet"):
            read = nftables_rules.chains(tables.nft, chain.family, chain.table, flow, bounds)
            yield "nft", nftables_rules.place(chain), chain.name, read


def _of_all(judgement: Judgement) -> Judgement:
    """Return a judgement without the doubts that are about some containers."""
    doubts = (d for d in judgement.doubts if d.unread and _OF_SOME.isdisjoint(d.unread))
    return replace(judgement, doubts=tuple(doubts))
