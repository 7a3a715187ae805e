"""Which machine answers at which entry's address: swapped addresses, and machines that are another entry's.

The name of an entry becomes the name of the machine that answers at its address. Where that machine is by all
signs the one of another entry, the inventory may be wrong rather than the machine: the operator decides. The
signs are its names, and its machine-id and boot-id beside those that the last run saw at each address.

A name that two machines carry is no such sign where one of them is at its place: clones of one image are
renamed without a question. A name counts without its domain where one entry alone has it so; of entries such as
``node1.east`` and ``node1.west`` it counts whole.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from remedy.inventory import Inventory
from remedy.plan.change import Finding, FindingKind
from remedy.plan.claimed import interface_addresses
from remedy.plan.fleet import Fleet
from remedy.probe import HostState, Identity
from remedy.text import listed


@dataclass(frozen=True)
class Claim:
    """An entry at whose address the machine of another entry answers.

    Args:
        host: the entry.
        owner: the entry that the machine is by its signs.
        signs: what says so, a line each.
        same: whether both entries lead to this machine.
    """

    host: str
    owner: str
    signs: tuple[str, ...] = field(compare=False)
    same: bool = False


def machine_mark(machine_id: str) -> str:
    """Return what stands for a machine-id where it is kept; the id itself stays on its host (machine-id(5))."""
    return hashlib.sha256(f"remedy machine {machine_id}".encode()).hexdigest()[:32]


def claims(fleet: Fleet) -> tuple[Claim, ...]:
    """Return the entries at whose address another entry's machine answers, in the inventory's order."""
    claims_by_host: dict[str, Claim] = {}
    for first, second in _same_machine(fleet):
        sign = f"{first} and {second}: one boot-id, and the same addresses on its interfaces"
        claims_by_host.setdefault(second, Claim(second, first, (sign,), same=True))
    entries = _Entries(fleet)
    for name in fleet.inventory.names:
        identity = identity_of(fleet, name)
        if identity is not None and name not in claims_by_host:
            by_owner: dict[str, list[str]] = {}
            for owner, sign in _signs(fleet, entries, name, identity):
                by_owner.setdefault(owner, []).append(sign)
            for owner, signs in list(by_owner.items())[:1]:
                claims_by_host[name] = Claim(name, owner, tuple(signs))
    return tuple(claims_by_host[name] for name in fleet.inventory.names if name in claims_by_host)


def findings(inventory: Inventory, claims: Iterable[Claim]) -> tuple[Finding, ...]:
    """Return a finding for each claim, with both ways out."""
    every = {claim.host: claim for claim in claims}
    return tuple(_finding(inventory, claim, every) for claim in every.values())


def in_words(finding: Finding) -> str:
    """Return a finding about a machine in one line, with its signs and both ways out."""
    return f"{finding.host}: {finding.title} ({listed(finding.evidence)}). {finding.fix}"


def identity_of(fleet: Fleet, name: str) -> Identity | None:
    """Return what the machine at an entry's address says of itself; None where it could not be read."""
    state = fleet.states.get(name)
    return state.identity if state is not None and isinstance(state.identity, Identity) else None


class _Entries:
    """The entries by what a machine may show of them: looked up for each host, and made once."""

    def __init__(self, fleet: Fleet) -> None:
        names = fleet.inventory.names
        shorts = Counter(map(_short, names))
        self._by_name = {_short(entry): entry for entry in names if shorts[_short(entry)] == 1}
        self._by_name |= {entry.lower(): entry for entry in names}
        self.by_machine = _owners(fleet.known_machines)
        self.by_boot = _owners(fleet.known_boots)

    def called(self, identity: Identity) -> Mapping[str, str]:
        """Return the entries whose names a machine carries, each with the name."""
        owners: dict[str, str] = {}
        for name in (identity.transient_name, identity.static_name):
            entry = self._by_name.get(name.lower()) or self._by_name.get(_short(name))
            if entry is not None:
                owners.setdefault(entry, name)
        return owners


def _signs(
    fleet: Fleet, entries: _Entries, name: str, identity: Identity
) -> Iterator[tuple[str, str]]:
    """Yield each other entry that a machine seems to be, with the sign."""
    named = entries.called(identity)
    for entry, called in named.items() if name not in named else ():
        if not _is_at_its_place(fleet, entries, entry):
            yield entry, f"it is called {called!r}"
    for kind, mark, known, owners in (
        (
            "machine-id",
            machine_mark(identity.machine_id),
            fleet.known_machines,
            entries.by_machine,
        ),
        ("boot-id", identity.boot_id, fleet.known_boots, entries.by_boot),
    ):
        owner = owners.get(mark)
        if owner not in (None, name) and known.get(name) != mark and owner in fleet.inventory:
            assert owner is not None
            other = identity_of(fleet, owner)
            marks = () if other is None else (machine_mark(other.machine_id), other.boot_id)
            if mark not in marks:
                yield owner, f"it has the {kind} that the last run saw at the address of {owner}"


def _is_at_its_place(fleet: Fleet, entries: _Entries, owner: str) -> bool:
    """Say whether the machine that answers at an entry's own address carries its name."""
    identity = identity_of(fleet, owner)
    return identity is not None and owner in entries.called(identity)


def _short(name: str) -> str:
    return name.split(".")[0].lower()


def _owners(known: Mapping[str, str]) -> Mapping[str, str]:
    """Return the only entry with each mark; clones share one, which then leads to none of them."""
    counts = Counter(known.values())
    return {mark: entry for entry, mark in known.items() if mark and counts[mark] == 1}


def _same_machine(fleet: Fleet) -> Iterator[tuple[str, str]]:
    """Yield entries that lead to one machine: hosts in containers may share a boot-id, but no address."""
    seen: dict[tuple[object, ...], str] = {}
    boots = Counter(
        identity.boot_id for name in fleet.states if (identity := identity_of(fleet, name))
    )
    for name, state in fleet.states.items():
        identity = identity_of(fleet, name)
        if identity is None or not identity.boot_id or boots[identity.boot_id] < 2:
            continue
        addresses = _addresses(state)
        key = (identity.boot_id, identity.machine_id, addresses)
        if addresses and key in seen:
            yield seen[key], name
        seen.setdefault(key, name)


def _addresses(state: HostState) -> tuple[str, ...]:
    return tuple(sorted(str(address) for address in interface_addresses(state)))


def _finding(inventory: Inventory, claim: Claim, every: Mapping[str, Claim]) -> Finding:
    host, owner = claim.host, claim.owner
    back = every.get(owner)
    swapped = not claim.same and back is not None and back.owner == host
    at = {name: inventory.node(name).ssh_address for name in (host, owner)}
    if claim.same:
        title = f"{host} and {owner} are one machine: it answers at {at[host]} and at {at[owner]}"
        fix = f"Correct ssh_hostname of {host} or of {owner} in the inventory."
    else:
        title = f"at the address of {host} ({at[host]}) answers the machine of {owner}"
        title += f", and the other way round: {listed(sorted((host, owner)))} are swapped" * swapped
        other = f"those of {host} and {owner}" if swapped else f"ssh_hostname of {host}"
        fix = (
            f"Either the inventory is wrong: {'swap' if swapped else 'correct'} {other} there "
            f"(ssh_hostname, cluster_address). Or the machine is to become {host}: remedy apply without "
            "--yes asks, and renames it."
        )
    return Finding(
        host=host,
        remedy="identity",
        kind=FindingKind.BLOCKED,
        label="",
        title=title,
        evidence=claim.signs,
        fix=fix,
    )
