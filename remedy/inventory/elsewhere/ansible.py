"""Ansible's inventory: what ``ansible-inventory --list`` prints, and nothing of our own.

Which files, folders, plugins, group_vars and vaults there are, and what counts where two say different things,
only Ansible knows. Standard input is what that program printed elsewhere, or an inventory in a single file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remedy.bounds import TooMuchError, read_json
from remedy.errors import UsageError
from remedy.inventory.elsewhere.listing import LARGEST, Collector, text_shown
from remedy.inventory.elsewhere.program import printed
from remedy.text import clipped, visible

SECONDS = 120
"""How long ansible-inventory may take; inventories of clouds ask their servers."""

# Variables of the ssh connection and of become, newest first, and the data of pyinfra with the same meaning.
_DATA = {
    "ssh_hostname": ("ansible_ssh_host", "ansible_host"),
    "ssh_user": ("ansible_ssh_user", "ansible_user"),
    "ssh_port": ("ansible_ssh_port", "ansible_port"),
    "ssh_key": ("ansible_ssh_private_key_file", "ansible_private_key_file"),
}
# What is not copied, with what takes its place.
_NOT_COPIED = {
    "ansible_become_password ansible_become_pass ansible_sudo_pass": "--ask-sudo-password asks for it",
    "ansible_password ansible_ssh_pass ansible_ssh_password": "use a key, or ssh_password in the inventory",
    "ansible_ssh_private_key_passphrase": "use ssh-agent, or ssh_key_password in the inventory",
    "ansible_ssh_common_args ansible_ssh_extra_args ansible_ssh_args": "write it into ~/.ssh/config",
}
_SSH = ("ssh", "smart", "paramiko", "paramiko_ssh", "ansible.builtin.ssh", "community.general.ssh")
_MISSING = (
    "Install it: pipx install ansible-core. Or, where Ansible is: "
    "ansible-inventory -i FILE --list >hosts.json, and here --from ansible hosts.json."
)


def read_ansible(collector: Collector, text: str, path: Path | None) -> None:
    """Read what ansible-inventory prints of a path, or has printed."""
    if path is not None and path.suffix == ".json" and path.is_file():
        text = path.read_text(encoding="utf-8", errors="replace")
    document = _document(text)
    if document is None and path is None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "inventory"
            file.write_text(text, encoding="utf-8")
            document = _document(_list(str(file)))
    elif document is None:
        document = _document(_list(str(path)))
    if document is None:
        raise UsageError(
            "ansible-inventory printed no list of hosts",
            next_step="Run it with --list to see what it prints.",
        )
    variables = document["_meta"]["hostvars"]
    names = {}
    for host in _members(document, "all"):
        names[host] = _add(collector, host, variables.get(host) or {})
    for group in document:
        if group not in ("_meta", "all", "ungrouped"):
            hosts = [names.get(host) for host in _members(document, group)]
            collector.add_to_group(group, [host for host in hosts if host])


def _list(source: str) -> str:
    """Return what ansible-inventory prints; the setting makes an error of what it cannot read."""
    settings = {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1", "ANSIBLE_NOCOLOR": "1"}
    try:
        result = printed(
            ["ansible-inventory", "--list", f"--inventory={source}"], SECONDS, settings
        )
    except FileNotFoundError as error:
        raise UsageError("ansible-inventory is not installed here", next_step=_MISSING) from error
    if result.code != 0:
        lines = result.err.split("\n")
        reason = next((line for line in lines if "ERROR" in line or "Failed" in line), lines[0])
        raise UsageError(
            f"{visible(source)}: ansible-inventory cannot read it: {clipped(visible(reason), 300)}",
            next_step="Correct it; where it needs a vault's password: export ANSIBLE_VAULT_PASSWORD_FILE=FILE",
        )
    return result.out


def _document(text: str) -> Mapping[str, Any] | None:
    """Return the document of ``ansible-inventory --list``; None for what is none."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        document = read_json(text, LARGEST)
        hosts = document["_meta"]["hostvars"]
    except (ValueError, TooMuchError, KeyError, TypeError):
        return None
    return document if isinstance(hosts, dict) else None


def _members(document: Mapping[str, Any], top: str) -> list[str]:
    """Return the hosts of a group and of the groups below it, each once."""
    hosts: dict[str, None] = {}
    groups, seen = [top], {top}
    while groups:
        value = document.get(groups.pop(0))
        value = value if isinstance(value, dict) else {}
        hosts |= dict.fromkeys(str(host) for host in value.get("hosts") or ())
        below = [str(group) for group in value.get("children") or () if str(group) not in seen]
        seen.update(below)
        groups += below
    return list(hosts)


def _add(collector: Collector, host: str, variables: Mapping[str, Any]) -> str | None:
    connection = variables.get("ansible_connection", "ssh")
    shown = text_shown(host)
    if connection not in _SSH:
        collector.drop(
            shown, f"ansible_connection={text_shown(str(connection))}, not reached by ssh"
        )
        return None
    data: dict[str, Any] = {}
    for key, names in _DATA.items():
        for name in names:
            value = variables.get(name)
            if value is not None and "{{" in str(value):
                collector.note(
                    f"{shown} ({name})", "a template, which ansible-inventory does not fill in"
                )
            elif value is not None:
                data[key] = value
    if str(variables.get("ansible_become", "")).lower() in ("true", "yes", "on", "1"):
        method = str(variables.get("ansible_become_method", "sudo"))
        if method.rpartition(".")[2] == "sudo":
            data["_sudo"] = True
        else:
            collector.note(
                shown, f"ansible_become_method={text_shown(method)}, and remedy has only sudo"
            )
        user = str(variables.get("ansible_become_user") or "root")
        if user != "root":
            collector.note(
                shown, f"ansible_become_user={text_shown(user)}, and remedy becomes root"
            )
    for variable, step in ((v, step) for vs, step in _NOT_COPIED.items() for v in vs.split()):
        if variables.get(variable):
            collector.note(shown, f"{variable} is not copied; {step}")
    return collector.add(shown, host, **data)
