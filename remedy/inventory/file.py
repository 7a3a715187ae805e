"""The inventory file, checked that it makes sense as a cluster: legal and unique names, one address a host."""

from __future__ import annotations

import ipaddress
import re
import traceback
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from remedy.errors import InventoryError, raise_together
from remedy.files import full_path
from remedy.inventory.arguments import unused_arguments
from remedy.inventory.data import wrong_values
from remedy.inventory.hosts import Inventory, Node
from remedy.inventory.keys import doubles, misspelt_keys, two_values
from remedy.inventory.names import is_legal_name
from remedy.text import quoted, visible

_FROM = "remedy init --from"
# Of a plan file the digest comes first.
_HEAD = 100


def check_file(path: Path) -> dict[str, Any]:
    """Run an inventory file by itself and check its lists of hosts.

    Returns:
        What the file defines, by name.

    Raises:
        InventoryError: the file is missing, fails to run, or lists what is not a host; the message names the
            file, and the line where one has the fault.
    """
    if not path.is_file():
        near = _nearest(path)
        raise InventoryError(
            f"{path}: there is no such inventory file",
            next_step=f"Did you mean {near}?"
            if near
            else f"Give the path of a pyinfra inventory, seen from {full_path(Path())}; "
            "`remedy init` writes one to start from.",
        )
    attributes = _run_inventory_file(path)
    raise_together(_bad_lists(path, attributes))
    raise_together(two_values(path, attributes))
    return attributes


def from_source(path: Path, source: Any, pyinfra_keys: Collection[str] = ()) -> Inventory:
    """Return the inventory that pyinfra's own inventory object describes, checked.

    Args:
        pyinfra_keys: what pyinfra reads from a host's data; none where the keys are not to be checked.

    Raises:
        InventoryError: the hosts cannot be a cluster.
    """
    nodes = tuple(map(_node, source))
    errors = [*wrong_values(path, nodes), *_errors(path, nodes)]
    if pyinfra_keys:
        errors += misspelt_keys(path, nodes, pyinfra_keys)
        errors += unused_arguments(path, nodes, pyinfra_keys)
    raise_together(errors)
    return Inventory(path=path, nodes=nodes, source=source)


def _node(host: Any) -> Node:
    """Return a host of pyinfra's as a value."""
    data = host.data.dict()
    address, port = data.get("ssh_hostname") or host.name, data.get("ssh_port", 22)
    return Node(
        name=host.name,
        ssh_address=str(address),
        ssh_port=port if isinstance(port, int) else 0,
        groups=tuple(host.groups),
        data=data,
    )


def _nearest(path: Path) -> str:
    """Return the file of the same folder whose name is nearest to that of a path; "" for none."""
    try:
        names = [file.name for file in path.parent.glob("*.py")]
    except OSError:
        return ""
    near = get_close_matches(path.name, names, n=1)
    return str(path.with_name(near[0])) if near else ""


def _run_inventory_file(path: Path) -> dict[str, Any]:
    """Run the file by itself, so that an error in it is reported with its line."""
    try:
        text = path.read_text(encoding="utf-8")
        _refuse_json(path, text)
        attributes: dict[str, Any] = {"__file__": str(path), "__name__": "inventory"}
        code = compile(text, str(path), "exec")
        raise_together(doubles(path, text))
        exec(code, attributes)  # noqa: S102 - an inventory is a program
    except SyntaxError as error:
        elsewhere = f" One of a different program: {_FROM} ansible {quoted(path)}"
        raise InventoryError(
            f"{path}, line {error.lineno}: {error.msg}: {(error.text or '').strip()}",
            next_step="Correct that line; the file is Python." + elsewhere * (path.suffix != ".py"),
        ) from error
    except InventoryError:
        raise
    except (Exception, SystemExit) as error:
        lines = [
            f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)
        ]
        where = f", line {lines[-1]}" if lines else ""
        raise InventoryError(
            f"{path}{where}: {type(error).__name__}: {error}",
            next_step=f"Correct the inventory; `python3 {quoted(path)}` shows the whole traceback.",
        ) from error
    return attributes


def _refuse_json(path: Path, text: str) -> None:
    """Refuse what other commands and programs write: run as Python it fails for odd reasons, or for none."""
    if not text.lstrip().startswith("{"):
        return
    is_plan = '"digest"' in text[:_HEAD]
    raise InventoryError(
        f"{path}: it is {'a plan' if is_plan else 'JSON'}, and an inventory is Python",
        next_step=f"Give it behind the inventory: --plan {quoted(path)}"
        if is_plan
        else f"Hosts of a different program are taken by: {_FROM} ansible {quoted(path)}",
    )


def _bad_lists(path: Path, attributes: Mapping[str, Any]) -> Iterator[InventoryError]:
    """Yield an error where pyinfra would pass something over: a host twice in a list, an entry that is none."""
    for group, value in attributes.items():
        if group.startswith("_"):
            continue
        hosts = value[0] if isinstance(value, tuple) and value else value
        if not isinstance(hosts, list):
            continue
        names = [h[0] if isinstance(h, tuple) and h else h for h in hosts]
        if not any(isinstance(name, str) for name in names):
            continue  # no hosts at all, such as a list of numbers
        for number, host in enumerate(hosts, 1):
            if not _is_host(host):
                yield InventoryError(
                    f"{path}: entry {number} of the list {group!r} is not a host",
                    next_step='A host is a name, or a name with its data: ("gpu01", {"ssh_user": "root"}).',
                )
        for name, count in Counter(n for n in names if isinstance(n, str)).items():
            if count > 1:
                yield InventoryError(
                    f"{path}: the list {group!r} names the host {name!r} {count} times",
                    next_step="Every machine needs a name of its own; rename or remove one of them.",
                )


def _is_host(entry: object) -> bool:
    if isinstance(entry, tuple):
        return len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], dict)
    return isinstance(entry, str)


def _errors(path: Path, nodes: Iterable[Node]) -> Iterator[InventoryError]:
    """Yield what keeps hosts from being a cluster."""
    by_name: dict[str, str] = {}
    by_address: dict[tuple[str, int], str] = {}
    by_cluster_address: dict[str, str] = {}
    for node in nodes:
        yield from _bad_name(path, node.name)
        namesake = by_name.setdefault(node.name.lower(), node.name)
        if namesake != node.name:
            yield InventoryError(
                f"{path}: {namesake!r} and {node.name!r} are the same host name to every resolver",
                next_step="Host names do not differ by upper and lower case; rename one.",
            )
        yield from _shared(path, by_address, (node.ssh_address, node.ssh_port), node, "ssh address")
        if node.cluster_address is not None:
            yield from _bad_address(path, node)
            yield from _shared(
                path, by_cluster_address, node.cluster_address, node, "cluster_address"
            )
    if not by_name:
        yield InventoryError(
            f"{path}: the inventory names no host",
            next_step='Add one, for example: hosts = [("gpu01", {"ssh_hostname": "10.0.0.1"})].',
        )


def _bad_name(path: Path, name: str) -> Iterator[InventoryError]:
    if name.startswith("@"):
        yield InventoryError(
            f"{path}: {name!r} uses a pyinfra connector; remedy reaches hosts by ssh",
            next_step='Name the host itself: ("gpu01", {"ssh_hostname": "10.0.0.1"}).',
        )
    elif _is_address(name):
        yield InventoryError(
            f"{path}: {name!r} is an address, and the name in the inventory is the name the machine gets",
            next_step=f'Give it one: ("gpu01", {{"ssh_hostname": "{name}"}}).',
        )
    elif not is_legal_name(name):
        yield InventoryError(f"{path}: {name!r} is not a legal host name", next_step=_legal(name))


def _legal(name: str) -> str:
    """Return what to write instead of a name that is none: other programs have more than names in theirs."""
    if re.search(r"\[[0-9,-]+\]", name):
        return 'Ranges are written in Python: hosts = [f"gpu{n:02}" for n in range(1, 17)].'
    user, at, host = name.rpartition("@")
    if at and user and is_legal_name(host):
        return f'Give the user apart: ("{host}", {{"ssh_user": "{visible(user)}"}}).'
    host, colon, port = name.partition(":")
    if colon and port.isdecimal() and is_legal_name(host):
        return f'Give the port apart: ("{host}", {{"ssh_port": {port}}}).'
    return (
        "Use letters, digits and hyphens, at most 63 a label and 64 in all (RFC 1123, hostname(7))."
    )


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _bad_address(path: Path, node: Node) -> Iterator[InventoryError]:
    text = node.cluster_address or ""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        yield InventoryError(
            f"{path}: cluster_address {text!r} of {node.name} is not an IP address",
            next_step="Give an IPv4 address of an interface of that host.",
        )
        return
    if address.version != 4 or address.is_loopback or address.is_unspecified:
        yield InventoryError(
            f"{path}: cluster_address {text} of {node.name} cannot be reached by other hosts over IPv4",
            next_step="Give the IPv4 address of the interface that carries the cluster network.",
        )


def _shared(
    path: Path, holders: dict[Any, str], key: Any, node: Node, what: str
) -> Iterator[InventoryError]:
    holder = holders.setdefault(key, node.name)
    if holder != node.name:
        shown = f"{key[0]}:{key[1]}" if isinstance(key, tuple) else key
        yield InventoryError(
            f"{path}: {holder} and {node.name} have the same {what}, {shown}",
            next_step="Two hosts cannot share an address; correct one of them.",
        )
