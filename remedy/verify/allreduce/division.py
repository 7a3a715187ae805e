"""Dividing the all-reduce: which hosts sum in groups, side by side, and which across the groups. Pure.

Where the fleet is too large for one all-reduce, or is to be proved rack by rack, its groups sum first, all at
the same time. Then the hosts at the same place of every group sum with each other: the first of each rack, the
second of each, and so on, which is rail by rail where racks are wired alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from remedy.errors import SpecError
from remedy.spec import VerifySpec
from remedy.text import BracketError, counted, expand, fold, listed

# A name with its brackets, in which commas divide nothing.
_WORD = re.compile(r"(?:\[[^\[\]]*\]|[^\s,])+")
NEXT_STEP = "Name groups of the inventory without a host in common, such as rack*, or give a number of hosts."


@dataclass(frozen=True)
class HostGroup:
    """Hosts that sum with each other; ``name`` is for people."""

    name: str
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Division:
    """A fleet that is proved in parts.

    Args:
        by: what it is divided by, as the user wrote it.
        groups: they have no host in common; a group may be of one host.
        crossings: hosts of different groups, each at least two; no host is in two of them.
    """

    by: str
    groups: tuple[HostGroup, ...]
    crossings: tuple[HostGroup, ...]

    @cached_property
    def together(self) -> int:
        """How many pairs of hosts are in one of the all-reduces."""
        peers: dict[str, set[str]] = {}
        for part in (*self.groups, *self.crossings):
            for host in part.hosts:
                peers.setdefault(host, set()).update(part.hosts)
        return sum(len(hosts) - 1 for hosts in peers.values()) // 2

    @property
    def pairs(self) -> int:
        """How many pairs of hosts there are."""
        count = sum(len(group.hosts) for group in self.groups)
        return count * (count - 1) // 2

    @property
    def meeting(self) -> tuple[str, ...]:
        """The hosts at which ranks meet: the first of each all-reduce."""
        return tuple(dict.fromkeys(part.hosts[0] for part in (*self.groups, *self.crossings)))

    @property
    def unproved(self) -> str:
        """What is not shown even if every part passes, in a sentence."""
        count = sum(len(group.hosts) for group in self.groups)
        crossing = sum(len(part.hosts) for part in self.crossings)
        only = (
            f"; {count - crossing} of them summed in their own group alone"
            if crossing < count
            else ""
        )
        return (
            f"not proved: all {count:,} hosts in one all-reduce, and {self.pairs - self.together:,} of"
            f" {self.pairs:,} pairs of hosts, which were in none together{only}"
        )


def divide(
    spec: VerifySpec, hosts: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> Division | None:
    """Divide the hosts that take part as the settings say.

    Args:
        spec: the section ``verify``.
        hosts: that take part, in the order of the inventory.
        groups: the hosts of each group of the inventory.

    Returns:
        None where it is to be one all-reduce, or where the hosts are all of one group.

    Raises:
        SpecError: there is no such group, or a host is in none or in several of them.
    """
    if spec.divide is None:
        return None
    if isinstance(spec.divide, int):
        parts = [HostGroup(fold(part), tuple(part)) for part in _of_size(hosts, spec.divide)]
    else:
        parts = _named(spec.divide, hosts, groups)
    if len(parts) < 2 or all(len(part.hosts) < 2 for part in parts):
        return None
    crossings = _crossings(parts) if spec.across == "every" else [_first(parts)]
    return Division(str(spec.divide), tuple(parts), tuple(crossings))


def _of_size(hosts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Neighbours in the inventory, in groups of at most so many, as equal as can be."""
    count = -(-len(hosts) // size)
    for number in range(count):
        yield hosts[len(hosts) * number // count : len(hosts) * (number + 1) // count]


def _named(text: str, hosts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> list[HostGroup]:
    """The groups of the inventory that a text names, without hosts that take no part."""
    names = _names(text, groups)
    owners: dict[str, list[str]] = {host: [] for host in hosts}
    for name in names:
        for host in groups[name]:
            if host in owners:
                owners[host].append(name)
    several = {host: of for host, of in owners.items() if len(of) > 1}
    if several:
        of = next(iter(several.values()))
        alike = [host for host, others in several.items() if others == of]
        are = "is" if len(alike) == 1 else "are"
        rest = len(several) - len(alike)
        more = f"; {counted(rest, 'other host')} in several groups" if rest else ""
        raise SpecError(
            f"verify.divide is {text}: {fold(alike)} {are} in {counted(len(of), 'group')}, {listed(of)}{more}",
            next_step=NEXT_STEP,
        )
    lacking = [host for host, of in owners.items() if not of]
    if lacking:
        raise SpecError(
            f"verify.divide is {text}: {fold(lacking)} would be in no group",
            next_step=f"{NEXT_STEP} Or without: --limit '*!{fold(lacking)}'",
        )
    members = {name: tuple(host for host in hosts if name in owners[host]) for name in names}
    return [HostGroup(name, part) for name, part in members.items() if part]


def _names(text: str, groups: Mapping[str, Sequence[str]]) -> list[str]:
    """The names of groups that a text stands for: ``rack*``, ``rack[1-4]``, ``@left,@right``."""
    names: dict[str, None] = {}
    for word in _WORD.findall(text):
        try:
            patterns = expand(word.removeprefix("@"))
        except BracketError as error:
            raise SpecError(f"verify.divide is {text}: {error}", next_step=NEXT_STEP) from error
        for pattern in patterns:
            fitting = [name for name in groups if fnmatchcase(name, pattern)]
            if not fitting:
                known = listed(groups) or "none"
                raise SpecError(
                    f"verify.divide is {text}: the inventory has no group {pattern}",
                    next_step=f"{NEXT_STEP} Groups: {known}",
                )
            names |= dict.fromkeys(fitting)
    return list(names)


def _crossings(groups: Sequence[HostGroup]) -> list[HostGroup]:
    """The hosts at the same place of every group; those that would be alone join the last of these."""
    longest = max(len(group.hosts) for group in groups)
    places = [
        tuple(group.hosts[place] for group in groups if place < len(group.hosts))
        for place in range(longest)
    ]
    crossings = [hosts for hosts in places if len(hosts) > 1]
    alone = tuple(host for hosts in places if len(hosts) == 1 for host in hosts)
    if alone:
        crossings[-1] = (*crossings[-1], *alone)
    return [
        HostGroup(f"host {place} of each group", hosts) for place, hosts in enumerate(crossings, 1)
    ]


def _first(groups: Sequence[HostGroup]) -> HostGroup:
    return HostGroup("the first of each group", tuple(group.hosts[0] for group in groups))
