"""What ``ansible-inventory --list`` prints: its groups and hosts, and why another text is none of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from remedy.bounds import TooMuchError, read_json
from remedy.errors import UsageError
from remedy.inventory.elsewhere.listing import LARGEST, text_shown
from remedy.text import listed

AGAIN = "ansible-inventory -i FILE --list >hosts.json"
# What begins a text that is printed, and no inventory in INI or YAML.
_BEGINNINGS = ("{", "[WARNING]", "[DEPRECATION WARNING]", "[ERROR]")

Document = Mapping[str, Any]


def is_printed(text: str) -> bool:
    """Say whether a text was printed by a program, as JSON or with its warnings in front."""
    return text.lstrip().startswith(_BEGINNINGS)


def document_of(text: str) -> Document | None:
    """Return the document of ``ansible-inventory --list``; None for what is none."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        document = read_json(text, LARGEST)
        hosts = document["_meta"]["hostvars"]
    except (ValueError, TooMuchError, KeyError, TypeError):
        return None
    return document if isinstance(hosts, dict) else None


def refusal(source: str, text: str) -> UsageError:
    """Return what is wrong with a text that is not the document that it seems to be.

    Args:
        source: what a message calls it.
    """
    reason, step = _reason(text)
    return UsageError(
        f"{source}: not what ansible-inventory --list prints: {reason}", next_step=step
    )


def _reason(text: str) -> tuple[str, str]:
    again = f"Print it again, standard output alone: {AGAIN}"
    if not text.strip():
        return "it is empty", again
    try:
        document = read_json(text, LARGEST)
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1].strip()
        place = f"line {error.lineno}, column {error.colno}: {text_shown(line)}"
        return f"no JSON from {place}", again
    except (ValueError, TooMuchError) as error:
        return f"no JSON: {text_shown(str(error))}", again
    if not isinstance(document, dict):
        return "its JSON is no object with groups", f"Print it with --list: {AGAIN}"
    keys = listed((text_shown(key) for key in document), 3) or "none"
    values = [value for key, value in document.items() if key != "_meta"]
    if "_meta" in document:
        return "its _meta has no object hostvars", f"Print it again: {AGAIN}"
    if _is_inventory(document):
        return (
            f"it has no _meta, and is an inventory itself (keys: {keys}), which Ansible has to read",
            f"Where Ansible is: {AGAIN}, and here --from ansible hosts.json",
        )
    if any(isinstance(value, dict) and {"hosts", "children"} & value.keys() for value in values):
        return (
            f"it has no _meta.hostvars, as what an inventory script prints (keys: {keys})",
            f"Have Ansible ask the script for its hosts: {AGAIN.replace('FILE', 'SCRIPT')}",
        )
    return (
        f"it has no _meta.hostvars and no groups (keys: {keys}), as what --host prints of one host",
        f"Print it with --list: {AGAIN}",
    )


def is_inventory(text: str) -> bool:
    """Say whether a JSON text is an inventory in Ansible's form of YAML."""
    try:
        return _is_inventory(read_json(text, LARGEST))
    except (ValueError, TooMuchError):
        return False


def _is_inventory(document: Any) -> bool:
    values = document.values() if isinstance(document, dict) else ()
    return any(isinstance(value, dict) and isinstance(value.get("hosts"), dict) for value in values)


def hosts_of(document: Document) -> list[str]:
    """Return the hosts of all groups, first those of ``all``; what a script prints may have no such group."""
    hosts = dict.fromkeys(members(document, "all"))
    for group in document:
        hosts |= dict.fromkeys(_direct(document, group)[0])
    return list(hosts)


def members(document: Document, top: str) -> list[str]:
    """Return the hosts of a group and of the groups below it, each once."""
    hosts: dict[str, None] = {}
    groups, seen = [top], {top}
    while groups:
        direct, children = _direct(document, groups.pop(0))
        hosts |= dict.fromkeys(direct)
        below = [group for group in children if group not in seen]
        seen.update(below)
        groups += below
    return list(hosts)


def _direct(document: Document, group: str) -> tuple[list[str], list[str]]:
    """Return the hosts and the groups that stand in a group; a script's may be a list of its hosts."""
    value = document.get(group) if group != "_meta" else None
    if isinstance(value, list):
        value = {"hosts": value}
    if not isinstance(value, dict):
        return [], []
    return _texts(value.get("hosts")), _texts(value.get("children"))


def groups_of(document: Document) -> list[str]:
    """Return all groups, those that are named below another alone too, without Ansible's own."""
    names = dict.fromkeys(document)
    for group in document:
        names |= dict.fromkeys(_direct(document, group)[1])
    return [name for name in names if name not in ("_meta", "all", "ungrouped")]


def check_variables(source: str, document: Document) -> None:
    """Refuse a document in which groups have variables of connections: its hosts are without them.

    Raises:
        UsageError: there is such a group.
    """
    for group, value in document.items():
        variables = value.get("vars") if isinstance(value, dict) and group != "_meta" else None
        theirs = [v for v in variables or () if str(v).startswith("ansible_")]
        if theirs:
            raise UsageError(
                f"{source}: {listed(map(text_shown, theirs), 3)} of the group {text_shown(group)} "
                "is not among the variables of its hosts, as --export or a script prints it",
                next_step=f"Print it by Ansible without --export: {AGAIN}",
            )


def variables_of(document: Document, host: str) -> Mapping[str, Any]:
    """Return the variables of a host; text that Ansible marks as not its own is text."""
    variables = document["_meta"]["hostvars"].get(host)
    if not isinstance(variables, dict):
        return {}
    return {
        name: value["__ansible_unsafe"]
        if isinstance(value, dict) and set(value) == {"__ansible_unsafe"}
        else value
        for name, value in variables.items()
    }


def _texts(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
