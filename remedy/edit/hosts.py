"""Editing /etc/hosts: a managed block, and foreign lines that contradict it.

Works on bytes, because a hosts file may hold any. Lines that are neither the block nor in contradiction to
it come through unchanged, byte for byte. Format: hosts(5).
"""

from __future__ import annotations

import io
import ipaddress
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache

from remedy.edit.block import END, block_bytes

BEGIN = b"# BEGIN remedy: hosts of the cluster (this block is replaced as a whole)"
DISABLED = b"#remedy disabled# "

_TOKEN = re.compile(rb"[^\s]+")


@dataclass(frozen=True)
class HostsLine:
    """An entry: one address and its names, in lower case, as a resolver reads it."""

    address: str
    names: tuple[str, ...]

    @property
    def loopback(self) -> bool:
        """Whether the address is one that only the host itself can reach."""
        parsed = _parse_address(self.address)
        return parsed is not None and (parsed.is_loopback or parsed.is_link_local)


@dataclass(frozen=True)
class Disabled:
    """A foreign line that contradicted the inventory: its number from 1, its former text and its new one."""

    number: int
    before: bytes
    after: bytes
    reason: str


@dataclass(frozen=True)
class HostsEdit:
    """The edited file, and the foreign lines that were changed in it."""

    content: bytes
    disabled: tuple[Disabled, ...]


# The hosts of a fleet have nearly the same lines: each is read once, not once a host.
@lru_cache(maxsize=1 << 16)
def parse_line(line: bytes) -> HostsLine | None:
    """Return the entry on a line; None for blanks, comments and what no resolver reads."""
    tokens = _TOKEN.findall(line.split(b"#", 1)[0])
    if len(tokens) < 2:
        return None
    words = [token.decode("ascii", "replace").lower() for token in tokens]
    return None if _parse_address(words[0]) is None else HostsLine(words[0], tuple(words[1:]))


def split_lines(content: bytes) -> list[bytes]:
    """Return the lines as a resolver reads them: only a newline ends one, a lone carriage return does not."""
    return io.BytesIO(content).readlines()


# Several remedies look at the file of a host, and that of most hosts is the same object.
@lru_cache(maxsize=16)
def _parted(content: bytes) -> tuple[bytes, bytes, bytes]:
    """Return what is before the managed block, the block with its marks, and what is after it."""
    start, stop = block_bytes(content, BEGIN) or (len(content), len(content))
    return content[:start], content[start:stop], content[stop:]


# The block is the same text on all hosts of a fleet that is right.
@lru_cache(maxsize=16)
def _entries(text: bytes) -> tuple[HostsLine, ...]:
    entries = (parse_line(line) for line in split_lines(text))
    return tuple(entry for entry in entries if entry is not None)


def block_entries(content: bytes) -> tuple[HostsLine, ...]:
    """Return the entries of the managed block, () when there is none."""
    return _entries(_parted(content)[1])  # its marks are comments


def block_names(content: bytes) -> Mapping[str, HostsLine]:
    """Return the line of the managed block that names each host, in lower case; of several the last."""
    return _by_name(_parted(content)[1])


@lru_cache(maxsize=16)
def _by_name(text: bytes) -> Mapping[str, HostsLine]:
    return {name: line for line in _entries(text) for name in line.names}


def lines_naming(name: str, content: bytes) -> tuple[HostsLine, ...]:
    """Return the entries that have a name (lower case): those of the managed block, then the others."""
    before, block, after = _parted(content)
    outside = (*_entries(before), *_entries(after))
    return (*_all_by_name(block).get(name, ()), *(line for line in outside if name in line.names))


@lru_cache(maxsize=16)
def _all_by_name(text: bytes) -> Mapping[str, tuple[HostsLine, ...]]:
    lines: dict[str, list[HostsLine]] = {}
    for line in _entries(text):
        for name in dict.fromkeys(line.names):
            lines.setdefault(name, []).append(line)
    return {name: tuple(known) for name, known in lines.items()}


def managed_block(lines: bytes) -> bytes:
    """Return lines with the marks around them that make them the managed block."""
    return b"".join((BEGIN, b"\n", lines, END, b"\n"))


def block_text(content: bytes) -> bytes:
    """Return the managed block with its marks, b"" when there is none."""
    return _parted(content)[1]


def foreign_entries(content: bytes) -> tuple[HostsLine, ...]:
    """Return the entries outside the managed block."""
    before, _, after = _parted(content)
    return _entries(before) + _entries(after)


def edit_hosts(
    content: bytes,
    block: bytes,
    addresses: Mapping[str, str],
    ipv6_first: Set[str] = frozenset(),
) -> HostsEdit:
    """Put the managed block into a hosts file and disable what contradicts it.

    Args:
        content: the file as it is.
        block: the entries of the block, whole lines; b"" removes the block.
        addresses: host name (lower case) to the IPv4 address that it is to resolve to.
        ipv6_first: names (lower case) that lead to an IPv6 address before any other: their IPv6 lines go, too.
    """
    before, old_block, after = _parted(content)
    new_block = managed_block(block) if block else b""
    disabled: list[Disabled] = []

    def edited(text: bytes, above: int) -> bytes:
        """Return the lines of a part of the file without contradictions; ``above`` are those before it."""
        out: list[bytes] = []
        for number, line in enumerate(split_lines(text), above + 1):
            if line.strip() in (BEGIN, END):
                continue  # half of a torn block; its other lines count as foreign
            change = _contradiction(number, line, addresses, ipv6_first)
            out.append(line if change is None else change.after)
            disabled.extend([] if change is None else [change])
        return b"".join(out)

    head = edited(before, 0)
    tail = edited(after, before.count(b"\n") + old_block.count(b"\n"))
    if not old_block and new_block and head and not head.endswith(b"\n"):
        head += b"\n"
    return HostsEdit(b"".join((head, new_block, tail)), tuple(disabled))


def _contradiction(
    number: int, line: bytes, addresses: Mapping[str, str], ipv6_first: Set[str]
) -> Disabled | None:
    entry = parse_line(line)
    if entry is None:
        return None
    wrong = [
        name
        for name in entry.names
        if _contradicts(entry, addresses.get(name), decides=name in ipv6_first)
    ]
    if not wrong:
        return None
    # A long form beside the name (gpu01.example.org gpu01) says the same, so it is disabled with it.
    dropped = {
        name for name in entry.names for bad in wrong if name == bad or name.startswith(f"{bad}.")
    }
    remaining = list(_without(line, dropped))
    ending = line[len(line.rstrip(b"\r\n")) :]
    after = DISABLED + line.rstrip(b"\r\n") + (ending or b"\n")
    if len(remaining) > 1:
        after += b"\t".join([remaining[0], b" ".join(remaining[1:])]) + ending
    right = ", ".join(f"{name} is {addresses[name]}" for name in wrong)
    return Disabled(number, line, after, f"maps to {entry.address}, but {right}")


def _contradicts(entry: HostsLine, expected: str | None, *, decides: bool) -> bool:
    if expected is None or entry.address == expected:
        return False
    parsed = _parse_address(entry.address)
    # A global IPv6 address is a second address of the same host, not a different host: it does no harm unless
    # it comes first there (RFC 6724), because gloo then listens on it, and refuses peers of the other family.
    return entry.loopback or isinstance(parsed, ipaddress.IPv4Address) or decides


def _without(line: bytes, dropped: set[str]) -> Iterator[bytes]:
    """Yield the address and the names of a line that stay."""
    for index, token in enumerate(_TOKEN.findall(line.split(b"#", 1)[0])):
        if index == 0 or token.decode("ascii", "replace").lower() not in dropped:
            yield token


def _parse_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.split("%", 1)[0])
    except ValueError:
        return None
