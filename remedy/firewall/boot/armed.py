"""What a firewall does at the next boot, and what all of them are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from remedy.firewall.hooks import Gate, Path, Tables, gates
from remedy.firewall.spans import merge
from remedy.firewall.step import Amendment, Opening
from remedy.firewall.traffic import NOTHING, Doubt, Dropped, Traffic
from remedy.probe import File, HostState, NftChain
from remedy.values import Unknown


@dataclass(frozen=True)
class Armed:
    """What one firewall does at the next boot.

    Args:
        name: what the user knows it as.
        incoming: what it drops of packets from the peers.
        outgoing: what it drops of packets to them.
        arp: what it drops of ARP.
        doubts: rules of which it is not known whether they drop such packets, or why it cannot be read.
        propose: how its files come to hold an opening; None where remedy does not change them.
        chains: the base chains of nftables that drop packets.
    """

    name: str
    incoming: Dropped = NOTHING
    outgoing: Dropped = NOTHING
    arp: Dropped = NOTHING
    doubts: tuple[Doubt, ...] = ()
    propose: Callable[[Opening], Amendment] | None = None
    chains: tuple[NftChain, ...] = ()


@dataclass(frozen=True)
class PacketQuestion:
    """What is asked of each firewall: the packets, their way, and the rules that the user has accepted."""

    traffic: Traffic
    path: Path
    accepted: frozenset[str] = frozenset()

    def ask(self, tables: Tables) -> tuple[Gate, ...]:
        """Return what rules do with the packets."""
        return tuple(gates(tables, self.traffic, self.path, self.accepted))


def starts(host: HostState, service: str) -> bool:
    """Return whether the next boot starts a service; where that is not known it may."""
    if isinstance(host.units, Unknown):
        return True
    unit = host.units.get(service)
    return unit is not None and unit.enabled in ("enabled", "static")


def if_started(host: HostState, firewall: Armed) -> Armed:
    """Return a firewall as doubts where it is not known whether the next boot starts it."""
    if not isinstance(host.units, Unknown):
        return firewall
    reason = f"whether the next boot starts it: {host.units.reason}"
    words = (*firewall.incoming.words, *firewall.outgoing.words, *firewall.arp.words)[:1]
    doubts = [Doubt(text, (reason,)) for text in words]
    doubts += [Doubt(doubt.words, (*doubt.unread, reason)) for doubt in firewall.doubts]
    return Armed(firewall.name, doubts=tuple(doubts))


def gathered(name: str, gates: Sequence[Gate], accepted: frozenset[str]) -> Armed:
    """Return what base chains together do, as a firewall that the user knows as ``name``."""
    doubts = dict.fromkeys(doubt for gate in gates for doubt in gate.judgement.doubts)
    return Armed(
        name,
        _dropped([gate for gate in gates if gate.way == "in" and not gate.arp]),
        _dropped([gate for gate in gates if gate.way == "out" and not gate.arp]),
        _dropped([gate for gate in gates if gate.arp]),
        tuple(doubt for doubt in doubts if doubt.words not in accepted),
    )


def _dropped(passed: Sequence[Gate]) -> Dropped:
    known = [gate.judgement.dropped for gate in passed]
    return Dropped(
        merge(span for dropped in known for span in dropped.peers),
        merge(span for dropped in known for span in dropped.ports),
        tuple(dict.fromkeys(words for dropped in known for words in dropped.words)),
    )


def is_there(host: HostState, path: str) -> bool:
    file = host.file(path)
    return isinstance(file, File) and file.exists


def text_of(file: File) -> str:
    return file.content.decode("utf-8", "replace")


def unread(name: str, path: str, reason: str, question: PacketQuestion) -> Armed:
    """Return a firewall of which it is not known what it does at boot."""
    words = f"{path}: {reason}"
    doubts = () if words in question.accepted else (Doubt(words, ("the file",)),)
    return Armed(name, doubts=doubts)


def starts_ufw(host: HostState) -> bool:
    """Return whether ufw is on, and the next boot starts it."""
    walls = host.firewalls
    is_on = not isinstance(walls, Unknown) and walls.ufw is True
    return is_on and starts(host, "ufw.service")


@dataclass(frozen=True)
class Missing:
    """A file without which it is not known what is loaded, and why it could not be read."""

    path: str
    reason: str


def texts_of(host: HostState, paths: Mapping[str, str]) -> dict[str, str] | Missing:
    """Return the texts of files by their short names."""
    texts = {}
    for part, path in paths.items():
        file = host.file(path)
        if isinstance(file, Unknown) or not file.exists:
            reason = file.reason if isinstance(file, Unknown) else "it is not there"
            return Missing(path, reason)
        texts[part] = text_of(file)
    return texts
