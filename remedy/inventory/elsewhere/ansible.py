"""Ansible's inventory: what ``ansible-inventory --list`` prints, and nothing of our own.

Which files, folders, plugins, group_vars and vaults there are, and what counts where two say different things,
only Ansible knows. Standard input is what that program printed elsewhere, or an inventory in a single file.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from remedy.errors import UsageError
from remedy.inventory.elsewhere.ansible_json import (
    Document,
    check_variables,
    document_of,
    groups_of,
    hosts_of,
    is_inventory,
    is_printed,
    members,
    refusal,
    variables_of,
)
from remedy.inventory.elsewhere.listing import Collector, text_shown
from remedy.inventory.elsewhere.program import printed
from remedy.inventory.elsewhere.source import read_text, shown_source
from remedy.text import clipped, visible

SECONDS = 120
"""How long ansible-inventory may take; inventories of clouds ask their servers."""

# Variables of the ssh connection, and the data of pyinfra with the same meaning. Of two that are set Ansible
# takes the older name: plugins/connection/ssh.py has it last, and config/manager.py takes the last of a list.
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
# Names of groups are said to be changed where they are.
_NO_NEWS = "Invalid characters were found in group names"
_BECOME = ("ansible_become", "ansible_become_method", "ansible_become_user", "ansible_connection")
_VARIABLES = (
    *_BECOME,
    *(name for names in _DATA.values() for name in names),
    *(name for names in _NOT_COPIED for name in names.split()),
)
# What is less alike is a variable of its own: of Ansible's facts ansible_hostname and ansible_user_id.
_ALIKE = 0.9
_LONGEST = 60
# Of more unlike variables than any inventory has, no nearest ones are looked for.
_MOST_VARIABLES = 500
_SSH = ("ssh", "smart", "paramiko", "paramiko_ssh", "ansible.builtin.ssh", "community.general.ssh")
_MISSING = (
    "Install it: pipx install ansible-core. Or, where Ansible is: "
    "ansible-inventory -i FILE --list >hosts.json, and here --from ansible hosts.json."
)


class _MissingError(UsageError):
    """There is no Ansible on this machine."""


def read_ansible(collector: Collector, text: str, path: Path | None) -> None:
    """Read what ansible-inventory prints of a path, or has printed."""
    source = shown_source(path)
    text = text if path is None else _printed_text(path)
    document = document_of(text)
    if document is None:
        document = _asked(collector, source, text, path)
    check_variables(source, document)
    names = {}
    misspelt: dict[str, str] = {}
    for host in hosts_of(document):
        variables = variables_of(document, host)
        names[host] = _add(collector, host, variables)
        for variable in variables:
            if nearest := _nearest(variable, misspelt):
                collector.note(
                    f"{text_shown(host)} ({text_shown(variable)})",
                    f"a variable that Ansible passes over; did you mean {nearest!r}?",
                )
    for host in document["_meta"]["hostvars"]:
        if host not in names:
            collector.drop(text_shown(host), "in no group, which Ansible passes over")
    for group in groups_of(document):
        in_group = [names.get(host) for host in members(document, group)]
        collector.add_to_group(group, [host for host in in_group if host])


def _printed_text(path: Path) -> str:
    """Return the text of a file that holds what a program printed; "" for an inventory, which Ansible reads."""
    if not path.exists() and "," not in str(path):
        raise UsageError(
            f"{path}: no such file or folder",
            next_step="Give an inventory of Ansible, or names with a comma behind each: gpu01,gpu02,",
        )
    if not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            beginning = file.read(4096).decode("utf-8-sig", errors="replace")
    except OSError:
        return ""  # ansible-inventory says why
    return read_text(path) if _is_json(path) or is_printed(beginning) else ""


def _is_json(path: Path) -> bool:
    return path.suffix == ".json" and path.is_file()


def _asked(collector: Collector, source: str, text: str, path: Path | None) -> Document:
    """Return what ansible-inventory prints of a path, or of a text (path None).

    Raises:
        UsageError: it cannot read it; with what is wrong with a text that seemed to be what it prints.
    """
    is_mistaken = is_printed(text) or (path is not None and _is_json(path))
    try:
        if path is not None:
            document = document_of(_list(collector, str(path)))
        else:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "inventory"
                file.write_text(text, encoding="utf-8")
                document = document_of(_list(collector, str(file)))
    except UsageError as error:
        # Of an inventory in JSON Ansible knows better what is wrong with it.
        if is_mistaken and (isinstance(error, _MissingError) or not is_inventory(text)):
            raise refusal(source, text) from error
        raise
    if is_mistaken and (document is None or not hosts_of(document)):
        raise refusal(source, text)
    if document is None:
        raise UsageError(
            "ansible-inventory printed no list of hosts",
            next_step="Run it with --list to see what it prints.",
        )
    return document


def _nearest(variable: str, known: dict[str, str]) -> str:
    """Return the variable of a connection that a misspelt one stands for; "" for what is none.

    Args:
        known: answers, by variable.
    """
    if variable in _VARIABLES or not variable.startswith("an") or len(variable) > _LONGEST:
        return ""
    if variable not in known and len(known) < _MOST_VARIABLES:
        near = get_close_matches(variable, _VARIABLES, n=1, cutoff=_ALIKE)
        known[variable] = near[0] if near else ""
    return known.get(variable, "")


def _list(collector: Collector, source: str) -> str:
    """Return what ansible-inventory prints; the setting makes an error of what it cannot read."""
    settings = {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1", "ANSIBLE_NOCOLOR": "1"}
    try:
        result = printed(
            ["ansible-inventory", "--list", f"--inventory={source}"], SECONDS, settings
        )
    except FileNotFoundError as error:
        raise _MissingError(
            "ansible-inventory is not installed here", next_step=_MISSING
        ) from error
    if result.code != 0:
        lines = result.err.split("\n")
        reason = next((line for line in lines if "ERROR" in line or "Failed" in line), lines[0])
        raise UsageError(
            f"{visible(source)}: ansible-inventory cannot read it: {clipped(visible(reason), 300)}",
            next_step="Correct it; where it needs a vault's password: export ANSIBLE_VAULT_PASSWORD_FILE=FILE",
        )
    for part in re.split(r"^(?=\[)", result.err, flags=re.MULTILINE):
        warning = " ".join(part.removeprefix("[WARNING]: ").split())
        if part.startswith("[WARNING]: ") and not warning.startswith(_NO_NEWS):
            collector.note("ansible-inventory", clipped(visible(warning), 300))
    return result.out


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
            if value is None:
                continue
            reason = _unusable(value)
            if reason:
                collector.note(f"{shown} ({name})", reason)
            elif data.setdefault(key, value) != value:
                collector.note(f"{shown} ({name})", f"not used, as {names[0]} counts before it")
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


def _unusable(value: Any) -> str:
    """Return why the value of a variable cannot be used; "" where it can be."""
    if isinstance(value, dict) and "__ansible_vault" in value:
        return "encrypted by a vault, which is not opened"
    if isinstance(value, (dict, list)):
        return "no plain value, so it is not used"
    return "a template, which ansible-inventory does not fill in" if "{{" in str(value) else ""
