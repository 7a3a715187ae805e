"""Every firewall that packets of IPv6 between a host and its peers pass, and what it drops; none is changed.

What lets the cluster through over IPv4 is remedy's work; over IPv6 hosts talk only where names lead there, and
those are put right. So rules of IPv6 are judged as the others are, and named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from remedy.firewall import iptables_rules
from remedy.firewall.boot.armed import PacketQuestion
from remedy.firewall.boot.ipv6 import armed_ipv6
from remedy.firewall.hooks import Gate, Tables
from remedy.firewall.walls import NO_RULES, Wall, wall_of
from remedy.probe import Firewalls, HostState
from remedy.values import Unknown

TOOLS = {"iptables": "ip6tables", "iptables-legacy": "ip6tables-legacy"}


def walls_of_ipv6(host: HostState, walls: Firewalls, question: PacketQuestion) -> tuple[Wall, ...]:
    """Return what is in force, and what the next boot loads, as far as it drops or may drop packets of IPv6.

    Args:
        host: the host.
        walls: its rules.
        question: about packets between addresses of IPv6.
    """
    groups: dict[tuple[str, str], list[Gate]] = {}
    for gate in question.ask(tables_of_ipv6(walls)):  # of a connection, and of neighbour discovery
        groups.setdefault((gate.kind, gate.place), []).append(gate)
    now = [_wall(group) for group in groups.values()]
    now = [wall for wall in now if wall.drops or wall.doubts or wall.exhausted]
    known = {words for wall in now for words in _words(wall)}
    later = [
        Wall(later.name, later.incoming, later.outgoing, later.arp, later.doubts)
        for later in armed_ipv6(host, question)
    ]
    return (*now, *(wall for wall in later if _words(wall) - known))


def unknown_ipv6(walls: Firewalls) -> Iterator[tuple[str, str]]:
    """Yield each firewall of which it is not known what it does with packets of IPv6, and why."""
    for name, fact in (
        ("ip6tables", walls.ip6tables),
        ("ip6tables (legacy tables)", walls.ip6tables_legacy),
    ):
        if isinstance(fact, Unknown):
            yield name, fact.reason


def _words(wall: Wall) -> set[str]:
    """Return the rules that a firewall drops by, or may drop by."""
    return {*wall.incoming.words, *wall.outgoing.words, *(doubt.words for doubt in wall.doubts)}


def tables_of_ipv6(walls: Firewalls) -> Tables:
    """Return the rules for packets of IPv6, each once: those of ip6tables are among nftables' as well."""
    texts = _texts(walls)
    nft = NO_RULES if isinstance(walls.nft, Unknown) else walls.nft
    foreign = {("ip6", table) for table in iptables_rules.tables_of(texts.get("nft", ""))}
    chains = tuple(chain for chain in nft.chains if (chain.family, chain.table) not in foreign)
    return Tables(
        nft=nft.model_copy(update={"chains": chains}),
        iptables={},
        ipsets=None if isinstance(walls.ipsets, Unknown) else walls.ipsets,
        ebtables="" if isinstance(walls.ebtables, Unknown) else walls.ebtables,
        ip6tables=texts,
    )


def _texts(walls: Firewalls) -> Mapping[str, str]:
    """Return what ip6tables-save prints, by variant; a link to the legacy tool prints the same tables twice."""
    known = {"nft": walls.ip6tables, "legacy": walls.ip6tables_legacy}
    texts = {variant: text for variant, text in known.items() if isinstance(text, str) and text}
    if texts.get("nft") == texts.get("legacy"):
        texts.pop("nft", None)
    return texts


def _wall(group: Sequence[Gate]) -> Wall:
    """Return one base chain as a firewall of its own, and the command that lists it."""
    gate = group[0]
    if gate.kind in TOOLS:
        table, chain = gate.place.split(" ")
        tool = TOOLS[gate.kind]
        show = f"{tool} -t {table} -S"
        return wall_of(f"{tool}, table {table}, chain {chain}", group, None, show=show)
    if gate.chain is None:
        return wall_of(gate.kind, group, None, show=f"{gate.kind}-legacy -L")
    show = f"nft list table {gate.chain.family} {gate.chain.table}"
    return wall_of(f"nftables ({gate.place})", group, None, show=show)
