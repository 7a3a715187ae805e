"""Every firewall of a host that a packet from a peer has to pass, what it keeps out, and how it is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from remedy.firewall import firewalld, iptables, iptables_rules, nftables, nftables_rules, ufw
from remedy.firewall.iptables import IptablesTable
from remedy.firewall.step import Amendment, Opening, Path
from remedy.firewall.traffic import Dropped, Traffic, dropped_by
from remedy.probe import File, Firewalls, HostState, LoginSession, NftChain, NftRuleset
from remedy.values import Fact, Unknown

AT_BOOT = "what nftables loads at boot"
NO_RULES = NftRuleset(tables=(), chains=(), sets=())


@dataclass(frozen=True)
class Wall:
    """One firewall.

    Args:
        name: what the user knows it as.
        dropped: what it keeps out of the traffic that was asked about.
        propose: how it comes to hold an opening.
        switch: what it is switched off by; "" where it has no switch.
        leftover: whether its rules are in force although it is switched off.
    """

    name: str
    dropped: Dropped
    propose: Callable[[Opening], Amendment]
    switch: str = ""
    leftover: bool = False


def unknowns(host: HostState, walls: Firewalls) -> Iterator[tuple[str, str]]:
    """Yield each firewall of which it is not known what it does, and why."""
    session = host.session
    for name, fact in (
        ("nftables", walls.nft),
        ("iptables", walls.iptables),
        ("iptables (legacy tables)", walls.iptables_legacy),
        ("firewalld", walls.firewalld),
        ("ufw", walls.ufw),
    ):
        if not isinstance(fact, Unknown):
            continue
        if name == "nftables" and isinstance(session, LoginSession) and not session.has("nft"):
            continue  # without the tool there are no rules but those of iptables, which prints its own
        yield name, fact.reason


def any_rules(host: HostState, walls: Firewalls) -> bool:
    """Return whether there is anything that ``walls_of`` would have to look at."""
    return (
        isinstance(walls.firewalld, str)
        or _is_there(host.files.get(nftables.INCLUDED))
        or next(tables(walls), None) is not None
        or (isinstance(walls.nft, NftRuleset) and bool(walls.nft.chains))
    )


def walls_of(host: HostState, walls: Firewalls, traffic: Traffic, path: Path) -> Iterator[Wall]:
    """Yield every firewall of a host, with what it keeps out of ``traffic`` that comes by ``path``."""
    ruleset = NO_RULES if isinstance(walls.nft, Unknown) else walls.nft
    in_nft = any((c.family, c.table) == firewalld.TABLE for c in ruleset.chains)
    for table in tables(walls):
        dropped = dropped_by(iptables_rules.chains(table.text, path), iptables.BASE, traffic)
        if ufw.active(table):
            propose = partial(ufw.propose, host, table)
            yield Wall("ufw", dropped, propose, "ufw", leftover=walls.ufw is not True)
        elif isinstance(walls.firewalld, str) and not in_nft:
            yield Wall("firewalld", dropped, partial(firewalld.propose, host, None), "firewalld")
        else:
            yield Wall(table.name, dropped, partial(iptables.propose, host, table))
    foreign = {("ip", name) for name in _saved_tables(walls)}
    native: list[NftChain] = []
    for chain in nftables_rules.base_chains(ruleset):
        place = (chain.family, chain.table)
        if place in foreign:
            continue
        dropped = dropped_by(nftables_rules.chains(ruleset, *place, path), chain.name, traffic)
        if place == firewalld.TABLE:
            if chain.hook == "input":
                propose = partial(firewalld.propose, host, ruleset)
                off = not isinstance(walls.firewalld, str)
                yield Wall("firewalld", dropped, propose, "firewalld", leftover=off)
        elif dropped or nftables.own_rules(chain):
            native.append(chain)
            yield Wall(
                f"nftables ({' '.join(place)} {chain.name})",
                dropped,
                partial(nftables.propose, chain),
            )
    if native or _is_there(host.files.get(nftables.INCLUDED)):
        yield Wall(AT_BOOT, Dropped(), partial(nftables.propose_saved, host, native))


def _is_there(file: Fact[File] | None) -> bool:
    return isinstance(file, File) and file.exists


def tables(walls: Firewalls) -> Iterator[IptablesTable]:
    """Yield the filter tables of iptables that are there."""
    legacy = "" if isinstance(walls.iptables_legacy, Unknown) else walls.iptables_legacy
    current = "" if isinstance(walls.iptables, Unknown) else walls.iptables
    # Where iptables is a link to the legacy tool, both answers are the same tables.
    if current and current != legacy and iptables_rules.filter_lines(current):
        yield IptablesTable("nft", current)
    if iptables_rules.filter_lines(legacy):
        yield IptablesTable("legacy", legacy)


def _saved_tables(walls: Firewalls) -> Iterator[str]:
    """Yield the tables of nftables that belong to iptables."""
    if not isinstance(walls.iptables, Unknown):
        yield from (line[1:] for line in walls.iptables.splitlines() if line.startswith("*"))
