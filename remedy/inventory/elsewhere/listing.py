"""Collecting hosts: each name once, nothing that is none, and what was left out with the reason."""

from __future__ import annotations

import ipaddress
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

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
_HERE = re.compile(r"localhost([46]?|\.localdomain[46]?)|ip6-(localhost|loopback)")


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
        if _HERE.fullmatch(name.lower()) or (address is not None and address.is_loopback):
            self.drop(shown, "the machine that it is read on, whichever that is")
            return None
        if address is not None:
            self.note(
                f"{shown} ({_named_after(address)})",
                "an address is no name for a machine; rename it as it is to be",
            )
            data.setdefault("ssh_hostname", str(address))
            name = _named_after(address)
        elif is_number(name) or not is_legal_name(name):
            self.drop(shown if where == shown else f"{where}: {shown}", "no host name (RFC 1123)")
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

    def note(self, item: str, reason: str) -> None:
        """Note what is taken in a different way, or not whole."""
        self._notes.setdefault(reason, []).append(item)

    def listing(self) -> Listing:
        """Return what was taken and what was not."""
        groups: dict[str, list[str]] = {}
        for group, members in self._groups.items():
            name = _identifier(group)
            if not name:
                self.drop(text_shown(group), "no name for a group of an inventory")
            elif members:
                groups.setdefault(name, []).extend(members)
                if name != group:
                    self.note(
                        f"{text_shown(group)} ({name})",
                        "the name of the group in the inventory, which is Python",
                    )
        return Listing(
            tuple(HostEntry(name, data) for name, data in self._hosts.items()),
            {name: tuple(dict.fromkeys(members)) for name, members in groups.items()},
            tuple(f"{_items(items)}: {reason}" for reason, items in self._notes.items()),
        )

    def _judged(self, name: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data that can be used."""
        values = {}
        for key, value in data.items():
            if value is None or value == "":
                continue
            text = str(value)
            if not _is_fine(key, text):
                self.note(
                    f"{name} ({text_shown(text)})", f"not a value for {key}, so it is not used"
                )
            elif key != "ssh_hostname" or text.lower() != name.lower():
                values[key] = int(text) if key == "ssh_port" else value if value is True else text
        return values


def _is_fine(key: str, text: str) -> bool:
    """Say whether data of a host can have a value."""
    if key == "ssh_hostname":
        return address_of(text) is not None or is_legal_name(text)
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


def address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that a text is; None where it is none."""
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


def _named_after(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    return "node-" + re.sub(r"[^0-9a-f]+", "-", address.exploded)


def _identifier(group: str) -> str:
    """Return a group's name as a variable of Python, "" where there is none; ``rack-1`` becomes ``rack_1``."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", group).lstrip("_")
    is_taken = is_number(name[:1]) or name in ("all", "hosts") or keyword.iskeyword(name)
    return f"group_{name}" if is_taken else name
