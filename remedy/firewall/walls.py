"""Every firewall that packets between a host and its peers pass, what it drops, and how it is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from remedy.firewall import firewalld, iptables, iptables_rules, nftables, ufw
from remedy.firewall.boot.armed import PacketQuestion
from remedy.firewall.boot.walls import armed, armed_nftables, is_armed
from remedy.firewall.hooks import Gate, Path, Tables, gates
from remedy.firewall.iptables import IptablesTable
from remedy.firewall.spans import merge
from remedy.firewall.step import Amendment, Note, Opening
from remedy.firewall.traffic import NOTHING, Doubt, Dropped, Traffic
from remedy.plan.change import FindingKind
from remedy.probe import File, Firewalls, HostState, LoginSession, NftChain, NftRuleset
from remedy.values import Fact, Unknown

AT_BOOT = "what nftables loads at boot"
NO_RULES = NftRuleset(tables=(), chains=(), sets=())

_VARIANTS = {"iptables": "nft", "iptables-legacy": "legacy"}
_FOR_FRAMES = ("arptables", "ebtables")


@dataclass(frozen=True)
class Wall:
    """One firewall, or one table that nobody manages.

    Args:
        name: what the user knows it as.
        incoming: what it drops of packets from the peers.
        outgoing: what it drops of packets to them.
        arp: what it drops of ARP, without which no packet finds its peer.
        doubts: rules of which it is not known whether they drop such packets.
        exhausted: whether it has too many rules to be judged.
        propose: how it comes to hold an opening; None where remedy does not change it.
        switch: what it is switched off by; "" where it has no switch.
        leftover: whether its rules are in force although it is switched off.
        show: the command that lists its rules.
    """

    name: str
    incoming: Dropped = NOTHING
    outgoing: Dropped = NOTHING
    arp: Dropped = NOTHING
    doubts: tuple[Doubt, ...] = ()
    exhausted: bool = False
    propose: Callable[[Opening], Amendment] | None = None
    switch: str = ""
    leftover: bool = False
    show: str = ""

    @property
    def drops(self) -> bool:
        """Whether it drops anything for certain."""
        return bool(self.incoming or self.outgoing or self.arp)


def unknowns(
    host: HostState, walls: Firewalls, *, bridged: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield each firewall of which it is not known what it does, and why.

    Args:
        host: the host.
        walls: its rules.
        bridged: whether packets of the cluster pass a bridge, so that ebtables has a say.
    """
    session = host.session
    for name, fact in (
        ("nftables", walls.nft),
        ("iptables", walls.iptables),
        ("iptables (legacy tables)", walls.iptables_legacy),
        ("firewalld", walls.firewalld),
        ("ufw", walls.ufw),
        ("arptables", walls.arptables),
        *((("ebtables", walls.ebtables),) if bridged else ()),
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
        or is_armed(host)
        or _is_there(host.files.get(nftables.INCLUDED))
        or next(tables(walls), None) is not None
        or (isinstance(walls.nft, NftRuleset) and bool(walls.nft.chains))
        or any(text and not isinstance(text, Unknown) for text in _others(walls))
    )


def _others(walls: Firewalls) -> tuple[Fact[str], ...]:
    """Return the rules that are for other packets than those of IPv4."""
    return walls.arptables, walls.ebtables, walls.ip6tables, walls.ip6tables_legacy


def walls_of(
    host: HostState,
    walls: Firewalls,
    traffic: Traffic,
    path: Path,
    accepted: frozenset[str] = frozenset(),
) -> Iterator[Wall]:
    """Yield every firewall of a host, with what it does with packets between the host and its peers.

    Args:
        host: the host.
        walls: its rules.
        traffic: the packets.
        path: their way through the host.
        accepted: the words of uncertain rules that the user has accepted.
    """
    known = {table.variant: table for table in tables(walls)}
    ruleset = _native(walls)
    passed = list(gates(_tables(walls, known, ruleset), traffic, path, accepted))
    for variant, table in known.items():
        yield from _iptables_walls(host, walls, table, _of(passed, _VARIANTS, variant))
    native: list[NftChain] = []
    managed: list[Gate] = []
    for chain, group in _by_chain(passed):
        if (chain.family, chain.table) == firewalld.TABLE:
            managed += group
            continue
        wall = wall_of(
            f"nftables ({chain.family} {chain.table} {chain.name})",
            group,
            partial(nftables.propose, chain) if chain.family != "arp" else None,
            show=f"nft list table {chain.family} {chain.table}",
        )
        if wall.incoming or wall.outgoing or nftables.own_rules(chain):
            native.append(chain)
        if wall.drops or wall.doubts or wall.exhausted or nftables.own_rules(chain):
            yield wall
    if managed:
        off = not isinstance(walls.firewalld, str)
        propose = partial(firewalld.propose, host, ruleset)
        yield wall_of("firewalld", managed, propose, switch="firewalld", leftover=off)
    for name in _FOR_FRAMES:
        group = [gate for gate in passed if gate.kind == name]
        if group:
            yield wall_of(name, group, None, show=f"{name}-legacy -L")
    yield from _saved_nftables(host, native, PacketQuestion(traffic, path, accepted))


def _saved_nftables(
    host: HostState, native: Sequence[NftChain], question: PacketQuestion
) -> Iterator[Wall]:
    """Yield what nftables loads at boot, where it holds rules that matter here."""
    armed = armed_nftables(host, AT_BOOT, question, native)
    places = {chain[:3] for chain in native}
    chains = [*native, *(chain for chain in armed.chains if chain[:3] not in places)]
    if chains or armed.arp or armed.doubts or _is_there(host.files.get(nftables.INCLUDED)):
        propose = partial(nftables.propose_saved, host, chains)
        yield Wall(
            AT_BOOT,
            armed.incoming,
            armed.outgoing,
            armed.arp,
            armed.doubts,
            propose=propose,
            show=f"cat {' '.join(nftables.MAIN_FILES)}",
        )


def with_the_next_boot(
    host: HostState, walls: Sequence[Wall], question: PacketQuestion
) -> tuple[Wall, ...]:
    """Return the firewalls in force and those that only the next boot starts, or starts with other rules.

    Args:
        host: the host.
        walls: those in force.
        question: what is asked of them.
    """
    is_doubted = any(wall.doubts for wall in walls if wall.name != AT_BOOT)
    handled = [
        wall.name
        for wall in walls
        if wall.drops or (wall.propose and wall.propose(Opening()).present is not None)
    ]
    known = [replace(w, doubts=()) if w.name == AT_BOOT and is_doubted else w for w in walls]
    for later in armed(host, question, handled):
        doubts = () if is_doubted else later.doubts
        known.append(
            Wall(
                later.name, later.incoming, later.outgoing, later.arp, doubts, propose=later.propose
            )
        )
    return tuple(known)


def rules_in_force(walls: Firewalls) -> Tables:
    """Return all rules of a host."""
    return _tables(walls, {table.variant: table for table in tables(walls)}, _native(walls))


def _native(walls: Firewalls) -> NftRuleset:
    """Return the rules of nftables without those that iptables keeps there."""
    if isinstance(walls.nft, Unknown):
        return NO_RULES
    foreign = {("ip", name) for name in _saved_tables(walls)}
    chains = tuple(c for c in walls.nft.chains if (c.family, c.table) not in foreign)
    return walls.nft.model_copy(update={"chains": chains})


def _tables(walls: Firewalls, known: Mapping[str, IptablesTable], ruleset: NftRuleset) -> Tables:
    return Tables(
        nft=ruleset,
        iptables={variant: table.text for variant, table in known.items()},
        ipsets=None if isinstance(walls.ipsets, Unknown) else walls.ipsets,
        arptables="" if isinstance(walls.arptables, Unknown) else walls.arptables,
        ebtables="" if isinstance(walls.ebtables, Unknown) else walls.ebtables,
    )


def _of(passed: Sequence[Gate], variants: Mapping[str, str], variant: str) -> list[Gate]:
    return [gate for gate in passed if variants.get(gate.kind) == variant]


def _by_chain(passed: Sequence[Gate]) -> Iterator[tuple[NftChain, list[Gate]]]:
    """Yield each base chain of nftables with all that is known of it."""
    groups: dict[tuple[str, str, str], list[Gate]] = {}
    for gate in passed:
        if gate.chain is not None:
            key = (gate.chain.family, gate.chain.table, gate.chain.name)
            groups.setdefault(key, []).append(gate)
    for group in groups.values():
        chain = group[0].chain
        assert chain is not None
        yield chain, group


def _iptables_walls(
    host: HostState, walls: Firewalls, table: IptablesTable, group: Sequence[Gate]
) -> Iterator[Wall]:
    """Yield the firewall that table ``filter`` belongs to, and each other table that drops packets."""
    main = [gate for gate in group if gate.place in ("filter INPUT", "filter OUTPUT")]
    in_nft = isinstance(walls.nft, NftRuleset) and any(
        (c.family, c.table) == firewalld.TABLE for c in walls.nft.chains
    )
    if iptables_rules.filter_lines(table.text):
        if ufw.active(table):
            propose = partial(ufw.propose, host, table)
            yield wall_of("ufw", main, propose, switch="ufw", leftover=walls.ufw is not True)
        elif isinstance(walls.firewalld, str) and not in_nft:
            propose = partial(firewalld.propose, host, None)
            yield wall_of("firewalld", main, propose, switch="firewalld")
        elif isinstance(walls.firewalld, str) and _has_direct_rules(host):
            yield wall_of("firewalld's direct rules", main, partial(_direct, table))
        else:
            yield wall_of(table.name, main, partial(iptables.propose, host, table))
    for gate in group:
        if gate in main:
            continue
        name, chain = gate.place.split(" ")
        wall = wall_of(
            f"{table.name}, table {name}, chain {chain}",
            [gate],
            None,
            show=f"{'iptables-legacy' if table.variant == 'legacy' else 'iptables'} -t {name} -S",
        )
        if wall.drops or wall.doubts or wall.exhausted:
            yield wall


def _has_direct_rules(host: HostState) -> bool:
    """Return whether firewalld keeps direct rules: what is in iptables is put there again by each reload."""
    file = host.files.get(firewalld.DIRECT_FILE)
    return isinstance(file, File) and file.exists and b"ipv=" in file.content


def _direct(table: IptablesTable, opening: Opening) -> Amendment:
    """Return what can be done about direct rules: a reload of firewalld would undo any change to them."""
    present = iptables.present(table)
    if not (opening.sources or opening.targets):
        return Amendment(present)
    note = Note(
        FindingKind.BLOCKED,
        "firewalld puts its direct rules ahead of everything, and again after each reload",
        (f"kept in {firewalld.DIRECT_FILE}",),
        "Remove the rule: firewall-cmd --direct --get-all-rules, then firewall-cmd --permanent --direct "
        "--remove-rule with its words, and firewall-cmd --reload.",
    )
    return Amendment(present, notes=(note,))


def wall_of(
    name: str,
    group: Sequence[Gate],
    propose: Callable[[Opening], Amendment] | None,
    *,
    switch: str = "",
    leftover: bool = False,
    show: str = "",
) -> Wall:
    """Return the firewall that some base chains belong to."""
    return Wall(
        name,
        _dropped([g for g in group if g.way == "in" and not g.arp]),
        _dropped([g for g in group if g.way == "out" and not g.arp]),
        _dropped([g for g in group if g.arp]),
        tuple(dict.fromkeys(doubt for gate in group for doubt in gate.judgement.doubts)),
        any(gate.judgement.exhausted for gate in group),
        propose,
        switch,
        leftover,
        show,
    )


def _dropped(group: Sequence[Gate]) -> Dropped:
    """Return what several base chains drop together."""
    known = [gate.judgement.dropped for gate in group]
    return Dropped(
        merge(span for dropped in known for span in dropped.peers),
        merge(span for dropped in known for span in dropped.ports),
        tuple(dict.fromkeys(words for dropped in known for words in dropped.words)),
    )


def _is_there(file: Fact[File] | None) -> bool:
    return isinstance(file, File) and file.exists


def tables(walls: Firewalls) -> Iterator[IptablesTable]:
    """Yield the tables of iptables that hold rules, of each variant."""
    legacy = "" if isinstance(walls.iptables_legacy, Unknown) else walls.iptables_legacy
    current = "" if isinstance(walls.iptables, Unknown) else walls.iptables
    # Where iptables is a link to the legacy tool, both answers are the same tables.
    if current and current != legacy and _holds_rules(current):
        yield IptablesTable("nft", current)
    if _holds_rules(legacy):
        yield IptablesTable("legacy", legacy)


def _holds_rules(text: str) -> bool:
    return bool(iptables_rules.filter_lines(text)) or "\n-A " in text or " DROP" in text


def _saved_tables(walls: Firewalls) -> tuple[str, ...]:
    """Return the tables of nftables that belong to iptables."""
    return () if isinstance(walls.iptables, Unknown) else iptables_rules.tables_of(walls.iptables)
