"""Every firewall of the host, as it is in force now. What is loaded at boot is in ``HostState.files``."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from remedy.bounds import read_json
from remedy.probe.frames import NoAnswerError, Sections, fact
from remedy.values import Fact, Record

_COUNTERS = re.compile(r" \[\d+:\d+\]$")
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


class NftRule(NamedTuple):
    """A rule of nftables; ``expression`` is its ``expr`` as canonical JSON (libnftables-json(5))."""

    handle: int
    comment: str
    expression: str


class NftChain(NamedTuple):
    """A chain of nftables; without a ``hook`` ("") it is no base chain and has no priority and no policy.

    ``kind``: "filter", "nat" or "route". ``devices``: the interfaces of a chain of hook ingress or egress; ()
    where they are not known.
    """

    family: str
    table: str
    name: str
    hook: str
    priority: int
    policy: str
    rules: tuple[NftRule, ...]
    kind: str = "filter"
    devices: tuple[str, ...] = ()


class NftSet(NamedTuple):
    """A set or map of nftables; ``definition`` is all of it as canonical JSON."""

    family: str
    table: str
    name: str
    definition: str


class NftRuleset(Record):
    """The whole ruleset of the kernel, tables that iptables-nft, ufw, firewalld and docker made included."""

    tables: tuple[tuple[str, str], ...]
    chains: tuple[NftChain, ...]
    sets: tuple[NftSet, ...]


class Firewalls(Record):
    """The firewalls between the host and its peers, each as its own tool prints it.

    ``iptables`` and so on are what iptables-save(8) prints without comments and counters, "" when they are not
    there; the plain ones are the rules that iptables keeps in nftables, the ``legacy`` ones those in the old
    tables of the kernel; the ``ip6`` ones are those of IPv6, "" where the host has no address of it beyond its
    links. ``firewalld`` is "running", ``None`` when it does not run: what it has in force is
    among the rules.
    ``ufw`` is whether ufw is switched on in its own configuration, ``None`` when it is not installed.
    ``ipsets``, ``arptables`` and ``ebtables`` are what ipset(8), arptables-save and ebtables-save print of the
    kernel's old tables, "" where there are none.
    """

    nft: Fact[NftRuleset]
    iptables: Fact[str]
    iptables_legacy: Fact[str]
    firewalld: Fact[str | None]
    ufw: Fact[bool | None]
    ipsets: Fact[str] = ""
    arptables: Fact[str] = ""
    ebtables: Fact[str] = ""
    ip6tables: Fact[str] = ""
    ip6tables_legacy: Fact[str] = ""


def parse_firewalls(sections: Sections, ufw: Fact[bool | None]) -> Firewalls:
    """Read the sections of all firewalls."""
    return Firewalls(
        nft=fact(lambda: _ruleset(sections)),
        iptables=fact(lambda: _saved(sections, "iptables")),
        iptables_legacy=fact(lambda: _saved(sections, "iptables-legacy")),
        firewalld=fact(
            lambda: (
                None if sections.absent("firewalld") else sections.text("firewalld").rstrip("\n")
            )
        ),
        ufw=ufw,
        ipsets=fact(lambda: _saved(sections, "ipsets")),
        arptables=fact(lambda: _saved(sections, "arptables-legacy")),
        ebtables=fact(lambda: _saved(sections, "ebtables-legacy")),
        ip6tables=fact(lambda: _saved(sections, "ip6tables")),
        ip6tables_legacy=fact(lambda: _saved(sections, "ip6tables-legacy")),
    )


def _ruleset(sections: Sections) -> NftRuleset:
    if sections.absent("nft"):
        return NftRuleset(tables=(), chains=(), sets=())
    document = read_json(sections.text("nft"))
    tables: list[tuple[str, str]] = []
    chains: dict[tuple[str, str, str], dict[str, Any]] = {}
    rules: dict[tuple[str, str, str], list[NftRule]] = {}
    sets = []
    devices, dormant = _of_plain_text(sections)
    for entry in document["nftables"]:
        ((kind, value),) = entry.items()
        if kind == "table":
            tables.append((value["family"], value["name"]))
            if "dormant" in value.get("flags", ()):
                dormant.add((value["family"], value["name"]))
        elif kind == "chain":
            chains[value["family"], value["table"], value["name"]] = value
        elif kind == "rule":
            expression = _CANONICAL(value.get("expr", []))
            rule = NftRule(value["handle"], value.get("comment", ""), expression)
            rules.setdefault((value["family"], value["table"], value["chain"]), []).append(rule)
        elif kind in ("set", "map"):
            definition = _settled({k: item for k, item in value.items() if k != "handle"})
            sets.append(
                NftSet(value["family"], value["table"], value["name"], _CANONICAL(definition))
            )
    return NftRuleset(
        tables=tuple(tables),
        chains=tuple(
            NftChain(
                *key,
                "" if key[:2] in dormant else chain.get("hook", ""),
                int(chain.get("prio", 0)),
                chain.get("policy", ""),
                tuple(rules.get(key, ())),
                chain.get("type", "filter"),
                _devices(chain.get("dev")) or devices.get(key, ()),
            )
            for key, chain in chains.items()
        ),
        sets=tuple(sets),
    )


def _settled(value: Any) -> Any:
    """Return a set without the seconds that its elements have left, which are others at each look."""
    if isinstance(value, list):
        return [_settled(item) for item in value]
    if isinstance(value, dict):
        return {k: True if k == "expires" else _settled(item) for k, item in value.items()}
    return value


_PLACE = re.compile(r"\s*(table|chain) (.+) \{\Z")
_DEVICE = re.compile(r"\s*type \S+ hook (?:ingress|egress) devices? (?:= )?(.+?) priority ")
_DORMANT = re.compile(r"\s*flags \S*\bdormant\b")


def _of_plain_text(
    sections: Sections,
) -> tuple[dict[tuple[str, str, str], tuple[str, ...]], set[tuple[str, str]]]:
    """Read what some versions leave out of their JSON, from lines of ``nft -s -t list ruleset``.

    Returns:
        The interfaces of chains, and the tables that are dormant: their chains see no packet (nft(8), TABLES).
    """
    dormant: set[tuple[str, str]] = set()
    devices: dict[tuple[str, str, str], tuple[str, ...]] = {}
    family = table = chain = ""
    try:
        lines = sections.text("nft-devices").splitlines()
    except NoAnswerError:
        return {}, dormant
    for line in lines:
        place, device = _PLACE.match(line), _DEVICE.match(line)
        if place and place[1] == "table":
            family, _, table = place[2].partition(" ")
        elif place:
            chain = place[2]
        elif device:
            names = device[1].strip("{} ").split(",")
            devices[family, table, chain] = tuple(name.strip(' "') for name in names)
        elif _DORMANT.match(line):
            dormant.add((family, table))
    return devices, dormant


def _devices(value: Any) -> tuple[str, ...]:
    """Return the interfaces of a chain: a name, or a list of names."""
    if value is None:
        return ()
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def _saved(sections: Sections, name: str) -> str:
    if sections.absent(name):
        return ""
    lines = (line for line in sections.text(name).splitlines() if line and not line.startswith("#"))
    return "".join(f"{_COUNTERS.sub('', line)}\n" for line in lines)


def ufw_switched_on(installed: Fact[bool], configuration: Fact[str]) -> bool | None:
    """Return whether ufw is on (``ENABLED`` in /etc/ufw/ufw.conf, ufw(8)), ``None`` when it is not there.

    Raises:
        NoAnswerError: its configuration could not be read.
    """
    if installed is False:
        return None
    if not isinstance(configuration, str):
        raise NoAnswerError(configuration.reason)
    settings = [line.strip().partition("=") for line in configuration.splitlines()]
    values = [
        value.strip().strip("\"'").lower() for name, _, value in settings if name == "ENABLED"
    ]
    return bool(values) and values[-1] == "yes"
