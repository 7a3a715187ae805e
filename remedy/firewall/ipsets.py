"""Sets of ipset(8), as ``ipset save`` prints them: what ``-m set --match-set`` of iptables asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import ip_address
from types import MappingProxyType

from remedy.firewall import spans
from remedy.firewall.packets import Condition, Either, Test
from remedy.firewall.spans import Spans

_KINDS = {"ip": "address", "net": "address", "port": "port"}
MOST_ENTRIES = 200_000
DEEPEST = 3
"""Sets of sets in sets of sets, which the kernel does not take."""


@dataclass(frozen=True)
class IpSet:
    """One set.

    Args:
        dimensions: what an entry holds, in order: "address", "port" or "" for anything else; () for a set of
            sets.
        entries: each as it is written.
        family: "inet" or "inet6".
        readable: whether nothing in it is of a kind that is not read.
        expires: whether something in it leaves it by itself after a time.
    """

    dimensions: tuple[str, ...]
    entries: tuple[str, ...] = ()
    family: str = "inet"
    readable: bool = True
    expires: bool = False


@lru_cache(maxsize=64)
def parse_ipsets(text: str) -> Mapping[str, IpSet]:
    """Read the lines of ``ipset save``."""
    heads: dict[str, tuple[tuple[str, ...], str]] = {}
    entries: dict[str, list[str]] = {}
    odd: set[str] = set()
    fleeting: set[str] = set()
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["create"] and len(words) >= 3:
            method, _, kinds = words[2].partition(":")
            family = words[words.index("family") + 1] if "family" in words[:-1] else "inet"
            names = () if method == "list" else tuple(_KINDS.get(k, "") for k in kinds.split(","))
            heads[words[1]] = (names, family)
        elif words[:1] == ["add"] and len(words) >= 3:
            entries.setdefault(words[1], []).append(words[2])
            if "nomatch" in words[3:]:
                odd.add(words[1])
            if "timeout" in words[3:-1] and words[words.index("timeout", 3) + 1] != "0":
                fleeting.add(words[1])
    return MappingProxyType(
        {
            name: IpSet(
                dimensions,
                tuple(entries.get(name, ())),
                family,
                readable=name not in odd
                and "" not in dimensions
                and len(entries.get(name, ())) <= MOST_ENTRIES,
                expires=name in fleeting,
            )
            for name, (dimensions, family) in heads.items()
        }
    )


def condition_of(
    sets: Mapping[str, IpSet] | None,
    name: str,
    directions: str,
    *,
    negated: bool,
    family: str = "inet",
    depth: int = 0,
) -> Test:
    """Return the condition that a packet is in a set.

    Args:
        sets: all sets; None where they are not known.
        name: the set.
        directions: "src", "dst" or several of them with commas.
        negated: whether the packet must not be in it.
        family: of the packets, "inet" or "inet6".
        depth: how many sets of sets were passed.
    """
    known = None if sets is None else sets.get(name)
    test: Test | None = None
    if sets is not None and known is not None and known.readable and depth <= DEEPEST:
        if known.dimensions and "address" in known.dimensions and known.family != family:
            test = Condition("l4proto", frozenset())  # no address of the packets' family is in it
        elif known.dimensions:
            test = _of_entries(known, directions.split(","))
        else:
            test = _of_members(sets, known, directions, family, depth)
    if test is None:
        return Condition(f"the ipset {name}", None, negated)
    return replace(test, negated=negated)


def _of_entries(known: IpSet, sides: list[str]) -> Test | None:
    """Return the condition that a packet is among the entries of a set; None where it asks for too little."""
    if len(sides) < len(known.dimensions):
        return None
    fields = [_field(kind, side) for kind, side in zip(known.dimensions, sides, strict=False)]
    if len(fields) == 1:
        numbers = spans.merge(n for entry in known.entries for n in _numbers(fields[0], entry))
        return Condition(fields[0], numbers)
    return Either(tuple(a for entry in known.entries for a in _entry(fields, entry)))


def _of_members(
    sets: Mapping[str, IpSet], known: IpSet, directions: str, family: str, depth: int
) -> Test | None:
    """Return the condition that a packet is in one of the sets of a set; None where one is not known."""
    members = [
        condition_of(sets, member, directions, negated=False, family=family, depth=depth + 1)
        for member in known.entries
    ]
    if any(isinstance(member, Condition) and member.values is None for member in members):
        return None
    return Either(tuple(a for member in members for a in _alternatives(member)))


def _alternatives(test: Test) -> tuple[tuple[Condition, ...], ...]:
    return test.alternatives if isinstance(test, Either) else ((test,),)


def _field(kind: str, side: str) -> str:
    letter = "s" if side == "src" else "d"
    return f"{letter}addr" if kind == "address" else f"{letter}port"


def _entry(fields: list[str], entry: str) -> Iterator[tuple[Condition, ...]]:
    """Yield the conditions of an entry of several dimensions; none for a port of another protocol than TCP."""
    parts = entry.split(",")
    if len(parts) == len(fields):
        conditions = tuple(
            Condition(name, spans.merge(_numbers(name, part)))
            for name, part in zip(fields, parts, strict=True)
        )
        if all(condition.values for condition in conditions):
            yield conditions


def _numbers(name: str, text: str) -> Spans:
    """Return the numbers of one dimension of an entry; () for what is no address and not of TCP."""
    try:
        if name.endswith("addr"):
            low, dash, high = text.partition("-")
            if dash:
                return ((int(ip_address(low)), int(ip_address(high))),)
            return spans.of_networks([text])
        protocol, colon, ports = text.rpartition(":")
        if colon and protocol not in ("tcp", "6"):
            return ()
        low, dash, high = ports.partition("-")
        return ((int(low), int(high or low)),)
    except ValueError:
        return ()
