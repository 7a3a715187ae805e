"""First files: an inventory made from the host list of a different tool, and a commented spec."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from remedy.errors import UsageError
from remedy.spec import SpecSection
from remedy.templating import render

# Variables of ansible, and the host data of pyinfra with the same meaning.
ANSIBLE_DATA = {
    "ansible_host": "ssh_hostname",
    "ansible_user": "ssh_user",
    "ansible_port": "ssh_port",
    "ansible_ssh_private_key_file": "ssh_key",
}


@dataclass(frozen=True)
class StarterHost:
    """A host for a new inventory: its name and its data."""

    name: str
    data: Mapping[str, Any] = field(default_factory=dict)


# Addresses for documentation, RFC 5737: nobody is reached by a file that was not edited.
EXAMPLE = (
    StarterHost("gpu01", {"ssh_hostname": "192.0.2.1", "ssh_user": "root"}),
    StarterHost("gpu02", {"ssh_hostname": "192.0.2.2", "ssh_user": "root"}),
)


def read_hosts(kind: str, path: Path) -> tuple[StarterHost, ...]:
    """Read hosts from a file that another tool uses.

    Args:
        kind: "hostfile" (MPI, DeepSpeed: a host a line), "ansible" (INI) or "slurm" (node lists such as
            ``gpu[01-16]``, as in slurm.conf or a line of their own).
        path: the file.

    Raises:
        UsageError: it cannot be read, or there is no host in it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path}: {error}", next_step="Give a text file that can be read."
        ) from error
    hosts = tuple({host.name: host for host in READERS[kind](text)}.values())
    if not hosts:
        raise UsageError(
            f"{path}: no host in it, read as {kind}",
            next_step=f"Kinds: {', '.join(READERS)}.",
        )
    return hosts


def render_inventory(hosts: tuple[StarterHost, ...]) -> str:
    """Return the text of an inventory.py with these hosts."""
    return render("inventory.py.j2", hosts=hosts)


def render_spec(models: Mapping[str, type[SpecSection]]) -> str:
    """Return the text of a remedy.yaml in which every section is there, commented out, with its defaults."""
    sections = [
        {
            "name": name,
            "title": (model.__doc__ or name).strip().splitlines()[0],
            "settings": [
                {"name": key, "default": json.dumps(value)}
                for key, value in model().model_dump(mode="json").items()
            ],
        }
        for name, model in models.items()
    ]
    return render("remedy.yaml.j2", sections=sections)


def _from_hostfile(text: str) -> Iterator[StarterHost]:
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if words:
            yield _named(words[0].split(":")[0])


def _from_ansible(text: str) -> Iterator[StarterHost]:
    section = ""
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if stripped.startswith("["):
            section = stripped.strip("[]")
        elif not section.endswith((":vars", ":children")):
            name, *words = shlex.split(stripped, comments=True)
            variables = dict(word.split("=", 1) for word in words if "=" in word)
            data: dict[str, Any] = {
                ours: variables[variable]
                for variable, ours in ANSIBLE_DATA.items()
                if variable in variables
            }
            if "ssh_port" in data:
                data["ssh_port"] = int(data["ssh_port"])
            for single in _expanded(name.replace(":", "-") if "[" in name else name):
                host = _named(single)
                yield StarterHost(host.name, {**host.data, **data})


def _from_slurm(text: str) -> Iterator[StarterHost]:
    for line in text.splitlines():
        line = line.split("#", 1)[0].strip()
        names = re.search(r"NodeName=(\S+)", line)
        if names is None and ("=" in line or not line):
            continue
        for name in _expanded(names[1] if names else line):
            if name != "DEFAULT":
                address = re.search(r"NodeAddr=([^\s\[]+)(?=\s|$)", line)
                yield StarterHost(name, {"ssh_hostname": address[1]} if address else {})


def _expanded(names: str) -> list[str]:
    try:
        return list(NodeSet(names, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise UsageError(
            f"{names!r} is not a list of hosts: {error}",
            next_step="Correct it, such as gpu[01-16].",
        ) from error


def _named(text: str) -> StarterHost:
    """Return a host for a word that may be an address, which is no name to give a machine."""
    if re.fullmatch(r"\d+\.\d+\.\d+\.\d+", text):
        return StarterHost(f"node-{text.replace('.', '-')}", {"ssh_hostname": text})
    return StarterHost(text)


READERS: Mapping[str, Callable[[str], Iterator[StarterHost]]] = {
    "hostfile": _from_hostfile,
    "ansible": _from_ansible,
    "slurm": _from_slurm,
}
