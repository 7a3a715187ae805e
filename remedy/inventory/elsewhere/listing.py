"""Collecting hosts: each name once, nothing that is none, and what was left out with the reason."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from remedy.inventory.elsewhere.addresses import (
    address_of,
    is_here,
    is_like_one,
    is_of_no_machine,
    lacks_interface,
    named_after,
)
from remedy.inventory.names import is_legal_name
from remedy.text import BracketError, clipped, expand, fold, is_number, listed, size, visible

LARGEST = 32 << 20
"""Bytes of a text; 10,000 lines of ``scontrol show nodes -o`` are 8 MiB."""

MOST_HOSTS = 100_000
"""More than any cluster has: a list of more is a typing error, and would take minutes."""

# How much of a text that is no host is shown.
_SHOWN = 60
_FOLDED = 300
_LONGEST = 4096
# useradd(8), and the domain that winbind and sssd put before or behind a name; it begins not as an option.
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\-]{0,127}\$?")
# One term of a list of hosts; ClusterShell would read more as operators and groups.
_TERM = re.compile(r"[A-Za-z0-9._-]*(?:\[[0-9,/ -]+\][A-Za-z0-9._-]*)+|[A-Za-z0-9._-]+")
# What commas divide that are in no brackets.
_BETWEEN = re.compile(r"(?:[^,\[\]]+|\[[^\[\]]*\]?|\])+")
_BRACKET = re.compile(r"\[[^\[\]]*\]")
_RANGE = re.compile(r"(?<!\d)(\d{1,18})-(\d{1,18})(?!\d)")


@dataclass(frozen=True)
class HostEntry:
    """A host for a new inventory: its name and its data, in pyinfra's keys."""

    name: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Listing:
    """The hosts that a program has.

    Args:
        groups: the names of the hosts of each group.
        notes: what was left out or taken in a different way, with the reason; text from elsewhere is visible.
    """

    hosts: tuple[HostEntry, ...]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Collector:
    """Takes hosts as a program names them, and judges each."""

    def __init__(self) -> None:
        self._hosts: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}
        self._groups: dict[str, list[str]] = {}
        self._notes: dict[str, list[str]] = {}

    def add(self, where: str, name: str, **data: Any) -> str | None:
        """Take a host; return the name that it has in the inventory, or None where it is left out.

        Args:
            where: the line or so, for what is said about it.
            data: ``ssh_hostname``, ``ssh_user`` and so on; values of None are none.
        """
        shown = text_shown(name)
        address = address_of(name)
        item = shown if where == shown else f"{where}: {shown}"
        if is_here(name):
            self.drop(shown, "the machine that it is read on, whichever that is")
            return None
        if address is not None and is_of_no_machine(address):
            self.drop(item, "the address of no machine")
            return None
        if address is not None:
            self.note(
                f"{shown} ({named_after(address)})",
                "an address is no name for a machine; rename it as it is to be",
            )
            data.setdefault("ssh_hostname", str(address))
            name = named_after(address)
        elif is_like_one(name):
            self.drop(item, "looks like an address, and is none")
            return None
        elif is_number(name) or not is_legal_name(name):
            self.drop(item, "no host name (RFC 1123)")
            return None
        known = self._names.setdefault(name.lower(), name)
        values = self._hosts.setdefault(known, {})
        for key, value in self._judged(known, data).items():
            if values.setdefault(key, value) != value:
                kept, lost = text_shown(str(values[key])), text_shown(str(value))
                self.note(f"{known} ({kept}, not {lost})", f"two values of {key}, the first counts")
        return known

    def add_to_group(self, group: str, names: Iterable[str]) -> None:
        """Put hosts into a group; those that were left out are not of it."""
        members = self._groups.setdefault(group, [])
        members += [self._names[n.lower()] for n in names if n.lower() in self._names]

    def drop(self, item: str, reason: str) -> None:
        """Note what is left out; the same reason is given once for all."""
        self.note(item, f"left out, {reason}")

    def drop_list(self, where: str, names: str, error: BracketError) -> None:
        """Note a list of hosts that is left out whole, for what cannot be read of it."""
        reason = str(error)
        shown = text_shown(names)
        self.drop(
            f"{where}: {reason if shown in reason else f'{shown}: {reason}'}", "cannot be read"
        )

    def note(self, item: str, reason: str) -> None:
        """Note what is taken in a different way, or not whole."""
        self._notes.setdefault(reason, []).append(item)

    def listing(self) -> Listing:
        """Return what was taken and what was not."""
        groups = self._grouped()
        return Listing(
            tuple(HostEntry(name, data) for name, data in self._hosts.items()),
            {name: tuple(dict.fromkeys(members)) for name, members in groups.items()},
            tuple(f"{_items(items)}: {reason}" for reason, items in self._notes.items()),
        )

    def _grouped(self) -> dict[str, list[str]]:
        """Return the groups by their names in the inventory."""
        groups: dict[str, list[str]] = {}
        named: dict[str, list[str]] = {}
        for group, members in self._groups.items():
            name = _identifier(group)
            if not members:
                self.drop(text_shown(group), "a group without hosts")
            elif not name:
                self.drop(text_shown(group), "no name for a group of an inventory")
            else:
                groups.setdefault(name, []).extend(members)
                named.setdefault(name, []).append(text_shown(group))
                if name != group:
                    self.note(
                        f"{text_shown(group)} ({name})",
                        "the name of the group in the inventory, which is Python",
                    )
        for name, theirs in named.items():
            if len(theirs) > 1:
                self.note(
                    f"{' and '.join(theirs)} ({name})", "groups that are one in the inventory"
                )
        return groups

    def _judged(self, name: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data that can be used."""
        values: dict[str, Any] = {}
        for key, value in data.items():
            if value is None or value == "":
                continue
            text = str(value)
            if not _is_fine(key, text):
                self.note(
                    f"{name} ({text_shown(text)})", f"not a value for {key}, so it is not used"
                )
            elif key == "ssh_hostname":
                address = address_of(text)  # without brackets
                if text.lower() != name.lower():
                    values[key] = str(address) if address is not None else text
            else:
                values[key] = int(text) if key == "ssh_port" else value if value is True else text
        self._warn_of_address(name, values)
        return values

    def _warn_of_address(self, name: str, values: Mapping[str, Any]) -> None:
        """Note what is peculiar about the address of a host."""
        text = values.get("ssh_hostname", name)
        address = address_of(text)
        if address is not None and lacks_interface(address):
            self.note(
                f"{name} ({address})",
                "a link-local address, to which ssh needs the interface: fe80::1%eth0",
            )
        # Machines behind ports of this one, such as Vagrant's, are different ones.
        elif is_here(text) and values.get("ssh_port", 22) == 22:
            self.note(
                f"{name} ({text_shown(text)})", "the address of whichever machine connects to it"
            )


def _is_fine(key: str, text: str) -> bool:
    """Say whether data of a host can have a value."""
    if key == "ssh_hostname":
        address = address_of(text)
        if address is not None:
            return not is_of_no_machine(address)
        return is_legal_name(text) and not is_like_one(text) and not is_number(text)
    if key == "ssh_user":
        return _USER.fullmatch(text) is not None
    if key == "ssh_port":
        return is_number(text) and 0 < int(text) < 65536
    return text.isprintable() and len(text) <= _LONGEST


def hosts_of(text: str) -> list[str]:
    """Return the names of a list such as ``gpu[01-16],login1``, by the rules of Slurm's hostlists.

    Raises:
        BracketError: it is no such list.
    """
    names: list[str] = []
    parts = list(terms(text))
    if sum(map(size, parts)) > MOST_HOSTS:
        raise BracketError(f"{text_shown(text)} stands for more than {MOST_HOSTS} names")
    for term in parts:
        if not _TERM.fullmatch(term):
            raise BracketError(f"{text_shown(term)} is no list of hosts")
        # The first number of a range has the width: 01-3 is 01, 02, 03 (slurm: src/common/hostlist.c).
        try:
            names += expand(_BRACKET.sub(lambda b: _RANGE.sub(_padded, b[0]), term))
        except BracketError as error:
            raise BracketError(f"{text_shown(term)} is no list of hosts") from error
    return names


def terms(text: str) -> Iterator[str]:
    """Yield what commas divide outside of brackets; Slurm passes over what is empty."""
    return filter(None, (match[0].strip() for match in _BETWEEN.finditer(text)))


def _padded(match: re.Match[str]) -> str:
    return f"{match[1]}-{match[2].lstrip('0').zfill(len(match[1]))}"


def _items(items: list[str]) -> str:
    names = list(dict.fromkeys(items))
    text = fold(names) if all(map(is_legal_name, names)) else ""
    return text if text and len(text) <= _FOLDED else listed(names)


def text_shown(text: str) -> str:
    """Return text from elsewhere as a message has it: short, and every character visible."""
    return clipped(visible(text[: _SHOWN * 4]), _SHOWN)


def _identifier(group: str) -> str:
    """Return a group's name as a variable of Python, "" where there is none; ``rack-1`` becomes ``rack_1``."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", group).lstrip("_")
    is_taken = is_number(name[:1]) or name in ("all", "hosts") or keyword.iskeyword(name)
    return f"group_{name}" if is_taken else name
