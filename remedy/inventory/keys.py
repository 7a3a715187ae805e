"""What an inventory says of its hosts: keys that nobody reads, and two values where one can count."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from remedy.errors import InventoryError
from remedy.inventory.hosts import Node
from remedy.secret import looks_secret
from remedy.text import clipped, folded, visible

OWN = ("cluster_address", "python")
"""The data that remedy reads; all else is pyinfra's, or of the user's own deploys."""

# Ansible's variables that stand for one of these and are not called alike.
_OF_ANSIBLE = {
    "host": "ssh_hostname",
    "ssh_private_key_file": "ssh_key",
    "private_key_file": "ssh_key",
    "become": "_sudo",
    "become_password": "_sudo_password",
    "become_pass": "_sudo_password",
    "python_interpreter": "python",
}
# What is less like any known key may be data of the user's own deploys.
_ALIKE = 0.8
_ALIKE_WITH_PREFIX = 0.5


def misspelt_keys(
    path: Path, nodes: Iterable[Node], pyinfra_keys: Collection[str]
) -> Iterator[InventoryError]:
    """Yield an error for each key that is a known one misspelt: it would be passed over, its value not used.

    Args:
        path: of the inventory, for messages.
        nodes: its hosts.
        pyinfra_keys: what pyinfra reads from a host's data.
    """
    known = (*OWN, *pyinfra_keys)
    misspelt: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        for key in node.data:
            nearest = _nearest(str(key), node.data, known) if key not in known else None
            if nearest is not None:
                misspelt.setdefault((str(key), nearest), []).append(node.name)
    for (key, nearest), names in misspelt.items():
        hint = f"; did you mean {nearest!r}?" if nearest else ""
        yield InventoryError(
            f"{path}: {folded(names)}: there is no key {clipped(key, 60)!r} of a host{hint}",
            next_step=f"Keys: {', '.join((*sorted(k for k in known if k.startswith('ssh_')), *OWN))}, "
            "_sudo, _sudo_password. Data of your own deploys needs a key that is unlike these.",
        )


def _nearest(key: str, data: Mapping[str, Any], known: Collection[str]) -> str | None:
    """Return the known key that is meant, "" where none is near; None where it may be the user's own."""
    plain = key.lower().replace("-", "_")
    bare = plain.removeprefix("ansible_")
    if f"ssh_{bare}" in known and (f"ssh_{bare}" not in data or bare != plain):
        return f"ssh_{bare}"
    if bare != plain:
        return _OF_ANSIBLE.get(bare, "")
    is_theirs = not plain.startswith(("ssh_", "_"))
    cutoff = _ALIKE if is_theirs else _ALIKE_WITH_PREFIX
    hits = difflib.get_close_matches(plain, list(known), n=1, cutoff=cutoff)
    return hits[0] if hits else None if is_theirs else ""


def doubles(path: Path, text: str) -> Iterator[InventoryError]:
    """Yield an error for each key that one dictionary of the file has twice: Python takes the last silently."""
    for table in ast.walk(ast.parse(text)):
        if not isinstance(table, ast.Dict):
            continue
        values: dict[object, ast.expr] = {}
        for key, value in zip(table.keys, table.values, strict=True):
            if not isinstance(key, ast.Constant):
                continue
            first = values.setdefault(key.value, value)
            if ast.dump(first) != ast.dump(value):
                yield InventoryError(
                    f"{path}, line {value.lineno}: {key.value!r} has two values, "
                    f"{_source(key.value, first)} and {_source(key.value, value)}",
                    next_step="Keep one of them.",
                )


def _source(key: object, value: ast.expr) -> str:
    return "(secret)" if looks_secret(str(key)) else clipped(visible(ast.unparse(value)), 60)


def two_values(path: Path, attributes: Mapping[str, Any]) -> Iterator[InventoryError]:
    """Yield an error where a host has two values of a key, in two lists or of two groups; ``all`` gives way."""
    entries = list(_entries(attributes))
    of_hosts: dict[tuple[str, str], tuple[str, Any]] = {}
    for group, name, data, _ in entries:
        for key, value in data.items():
            yield from _unlike(
                path, name, key, of_hosts.setdefault((name, key), (group, value)), (group, value)
            )
    of_groups: dict[tuple[str, str], tuple[str, Any]] = {}
    for group, name, _, data in entries:
        for key, value in data.items() if group != "all" else ():
            if (name, key) not in of_hosts:
                yield from _unlike(
                    path,
                    name,
                    key,
                    of_groups.setdefault((name, key), (group, value)),
                    (group, value),
                )


def _entries(
    attributes: Mapping[str, Any],
) -> Iterator[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield each host of each list, with its data and that of the list."""
    for group, value in attributes.items():
        hosts, data = value if isinstance(value, tuple) and len(value) == 2 else (value, {})
        if group.startswith("_") or not isinstance(hosts, list) or not isinstance(data, dict):
            continue
        for host in hosts:
            if isinstance(host, str):
                yield group, host, {}, data
            elif isinstance(host, tuple) and len(host) == 2 and isinstance(host[1], dict):
                yield group, host[0], host[1], data


def _unlike(
    path: Path, name: str, key: str, first: tuple[str, Any], second: tuple[str, Any]
) -> Iterator[InventoryError]:
    if first[1] == second[1]:
        return
    is_secret = looks_secret(str(key))
    places = " and ".join(
        f"{'(secret)' if is_secret else clipped(visible(repr(value)), 60)} in {group!r}"
        for group, value in (first, second)
    )
    yield InventoryError(
        f"{path}: {name} has two values of {key!r}: {places}",
        next_step="Keep one of them; a host's own data counts before that of its groups.",
    )
