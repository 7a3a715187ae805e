"""Selecting hosts: the notation in which remedy prints them, which is that of ClusterShell's NodeSet.

=====================  ==========================================================
``gpu01``              a host; where none is called that, all hosts of a group
``gpu[01-10/3,20]``    ranges, with padding and steps; several brackets in a name
``gpu*``, ``*``        the hosts and groups whose names fit (``*``, ``?``)
``@rack1``             a group; ``@rack[1-2]`` and ``@rack*`` are several, ``@*`` all
``^FILE``, ``^-``      what a file lists, or standard input; ``#`` begins a comment there
``a,b`` (or a space)   both
``a!b``                the first without the second
``a&b``                what is in both
``a^b``                what is in one of them
=====================  ==========================================================

Operators are carried out from left to right, as ClusterShell does. A name that is neither a host nor a group of
the inventory is an error, in a range as well, and so is a selection of nothing: both are typing errors, or an
empty variable in a script. ClusterShell reads the brackets; its own sources of groups are not asked, since
groups come from the inventory.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from remedy.errors import InventoryError, RemedyError, raise_together
from remedy.files import STANDARD, at_home, read_standard
from remedy.text import BracketError, expand, fold

# How many names that are not there are shown, and that come nearest to them; how much of the list of all hosts.
_MOST_NEAR = 100
_MOST_TEXT = 300
_MOST_BYTES = 16 << 20
# An operand with its brackets; what divides operands.
_OPERAND = re.compile(r"(?:\[[^\[\]]*\]|[^\s,!&^\[\]])+")
_BALANCED = re.compile(r"(?:[^\[\]]|\[[^\[\]]*\])*")
_FILE = re.compile(r"\^([^\s,!&^]+)")
_WORD = re.compile(r"(?:^@)?[\w.-]+")
_OPERATOR = re.compile(r"\s*([,!&^])\s*|\s+")


class Hosts(Protocol):
    """What hosts are selected from: an inventory."""

    @property
    def path(self) -> Path:
        """The file."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """The host names."""
        ...

    @property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """The hosts of each group."""
        ...

    def __contains__(self, name: object) -> bool:
        """Say whether a host is called ``name``."""
        ...


def selected(inventory: Hosts, text: str, option: str) -> set[str]:
    """Return the names of the hosts that a text selects.

    Args:
        inventory: the hosts and groups.
        text: as above.
        option: which of the command line it is of, for messages.

    Raises:
        InventoryError: it cannot be read, names what is not in the inventory, or selects nothing.
    """
    hosts: set[str] = set()
    errors: list[RemedyError] = []
    for operator, operand in _terms(text, option):
        try:
            names = _hosts(inventory, operand, text, option)
        except InventoryError as error:
            errors += error.parts or (error,)
            continue
        if operator == "!":
            hosts -= names
        elif operator == "&":
            hosts &= names
        elif operator == "^":
            hosts ^= names
        else:
            hosts |= names
    raise_together(errors)
    if not hosts:
        argument = f"{option} {text}" if text.strip() else f"{option} with an empty text"
        # Without --replace no host's changed key is accepted, not that of all.
        hint = "Name a host" if option == "--replace" else f"Leave {option} out for all hosts"
        raise InventoryError(
            f"{argument} selects no host of {inventory.path}",
            next_step=f"{hint}. {_known(inventory)}",
        )
    return hosts


def _terms(text: str, option: str) -> Iterator[tuple[str, str]]:
    """Yield each operator with the operand after it; that of a file begins with a caret."""
    if not _BALANCED.fullmatch(text):
        raise _unreadable(text, option, "a bracket is not closed, or not opened")
    operator, expected = ",", False
    at, end = len(text) - len(text.lstrip()), len(text.rstrip())
    while at < end:
        operand = _FILE.match(text, at) or _OPERAND.match(text, at)
        if operand is not None:
            yield operator, operand[0]
            at, expected = operand.end(), False
        elif text[at] != "," or operator != ",":
            raise _unreadable(text, option, f"a name is missing before {text[at:]!r}")
        divider = _OPERATOR.match(text, at)
        if divider is None:
            if at < end:
                raise _unreadable(text, option, f"{text[at:]!r} is no operator")
            return
        operator = divider[1] or ","
        at, expected = divider.end(), operator != ","
    if expected:
        raise _unreadable(text, option, f"a name is missing after {operator!r}")


def _hosts(inventory: Hosts, operand: str, text: str, option: str) -> set[str]:
    """Return the hosts of one operand."""
    if operand.startswith("^"):
        return _of_file(inventory, operand[1:], option)
    is_group = operand.startswith("@")
    try:
        names = expand(operand.removeprefix("@"))
    except BracketError as error:
        raise _unreadable(text, option, str(error)) from error
    hosts: set[str] = set()
    unknown: list[str] = []
    for name in names:
        matches = _of_group(inventory, name) if is_group else _of_name(inventory, name)
        if matches is None:
            unknown.append(f"@{name}" if is_group else name)
        else:
            hosts |= matches
    if unknown:
        raise _not_there(inventory, unknown, text, option)
    return hosts


def _of_name(inventory: Hosts, name: str) -> set[str] | None:
    """Return the hosts that a name or a pattern stands for; None where there are none."""
    if "*" not in name and "?" not in name:
        # What remedy prints are hosts: a group that has the name of one is not meant.
        return {name} if name in inventory else set(inventory.groups.get(name, ())) or None
    fitting = {known for known in inventory.names if fnmatchcase(known, name)}
    return fitting | (_of_group(inventory, name) or set()) or None


def _of_group(inventory: Hosts, name: str) -> set[str] | None:
    """Return the hosts of a group, or of all groups that fit a pattern; None where there is none."""
    if name == "*":
        return set(inventory.names)
    fitting = [group for group in inventory.groups if fnmatchcase(group, name)]
    return {host for group in fitting for host in inventory.groups[group]} or None


def _of_file(inventory: Hosts, path: str, option: str) -> set[str]:
    """Return the hosts that the lines of a file select."""
    try:
        file = at_home(path)
        content = read_standard(_MOST_BYTES) if file == STANDARD else file.read_bytes()
        lines = content.decode("utf-8-sig").splitlines()
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InventoryError(
            f"{option} ^{path}: the file cannot be read: {reason}",
            next_step="Give the path of a file that lists hosts.",
        ) from error
    hosts: set[str] = set()
    errors: list[RemedyError] = []
    for number, line in enumerate(lines, 1):
        words = line.split("#", 1)[0].strip()
        if words.startswith("^"):
            raise InventoryError(
                f"{option} ^{path}, line {number}: a file cannot name a file",
                next_step="Give both: ^FILE,^FILE.",
            )
        if words:
            try:
                hosts |= selected(inventory, words, f"{option} ^{path}, line {number}:")
            except InventoryError as error:
                errors += error.parts or (error,)
    raise_together(errors)
    return hosts


def _unreadable(text: str, option: str, reason: str) -> InventoryError:
    return InventoryError(
        f"{option} {text}: {reason}",
        next_step="Give hosts as remedy prints them, such as gpu[01-08]!gpu03; docs/connections.md has the "
        "notation.",
    )


def _not_there(inventory: Hosts, unknown: list[str], text: str, option: str) -> InventoryError:
    """Return the error for names that the inventory does not have, with those that come nearest."""
    first = unknown[:_MOST_NEAR]
    plain = all("*" not in name and "?" not in name for name in first)
    shown = fold(first) if plain else ",".join(first)
    shown += f" and {len(unknown) - len(first)} more" if unknown[_MOST_NEAR:] else ""
    of = "" if shown == text else f" ({option} {text})"
    near = "'*'" if first[0].removeprefix("@") == "all" else _nearest(inventory, first)
    return InventoryError(
        f"{option} {shown}: no host or group of {inventory.path} is called that{of}",
        next_step=f"Did you mean {near}? {_known(inventory)}" if near else _known(inventory),
    )


def _nearest(inventory: Hosts, unknown: Iterable[str]) -> str:
    """Return the names that come nearest, folded; those that differ only by padding or case come first."""
    groups = [f"@{group}" for group in inventory.groups]
    known = {_plain(name): name for name in (*groups, *inventory.groups, *inventory.names)}
    # A name without its domain, where the inventory has it with one, or the other way round.
    by_label = {_plain(name).partition(".")[0]: name for name in reversed(inventory.names)}
    hits = []
    for name in unknown:
        exact = known.get(_plain(name))
        exact = exact or by_label.get(_plain(name).partition(".")[0])
        # A port, a user, quotes or another tool's operator around a name that is there.
        within = [known[word] for word in _WORD.findall(_plain(name)) if word in known]
        close = difflib.get_close_matches(_plain(name), known, n=1)
        if exact is not None or within or close:
            hits.extend([exact] if exact else within or [known[close[0]]])
        if len(hits) == _MOST_NEAR:
            break
    return fold(hits) if hits else ""


def _plain(name: str) -> str:
    """Return a name in lower case and without the padding of its numbers."""
    return re.sub(r"\d+", lambda number: number[0].lstrip("0") or "0", name.lower())


def _known(inventory: Hosts) -> str:
    groups = ", ".join(f"@{group}" for group in list(inventory.groups)[:8])
    hosts = fold(inventory.names)
    hosts = hosts if len(hosts) <= _MOST_TEXT else f"{hosts[:_MOST_TEXT]} ..."
    return f"Hosts: {hosts}." + (f" Groups: {groups}." if groups else "")
