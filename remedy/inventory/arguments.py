"""pyinfra's arguments in the data of hosts: one that remedy would not use is refused, and none passed over."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from remedy.errors import InventoryError
from remedy.files import at_home
from remedy.inventory.hosts import Node
from remedy.secret import looks_secret
from remedy.text import clipped, folded, visible

# What remedy uses, of all that begins with an underscore.
USED = ("_sudo", "_sudo_password")
# What asks for nothing, beside what is empty: it is what happens anyway.
_ANYWAY: Mapping[str, tuple[object, ...]] = {
    "_sudo_user": ("root",),
    "_success_exit_codes": ([0], (0,)),
}
_ROOT = (
    "Connect as root (ssh_user), or let the user have sudo: _sudo, and _sudo_password where it asks "
    "for a password."
)
_OPERATIONS = "Leave it out here, and give it to the operations of your own deploys."
# By the start of a key: why it is not used, and what to do.
_REASONS: Mapping[str, tuple[str, str]] = {
    "_su_": ("remedy becomes root by sudo, not by su", _ROOT),
    "_use_su_": ("remedy becomes root by sudo, not by su", _ROOT),
    "_preserve_su_": ("remedy becomes root by sudo, not by su", _ROOT),
    "_doas": ("remedy becomes root by sudo, not by doas", _ROOT),
    "_dzdo": ("remedy becomes root by sudo, not by dzdo", _ROOT),
    "_sudo_user": (
        "remedy needs root, and runs sudo to no other user",
        "Leave it out; ranks of a verification run as the user of ssh.",
    ),
    "_use_sudo_login": (
        "remedy runs its scripts by plain sudo",
        "Leave it out: they need no login shell.",
    ),
    "_preserve_sudo_env": (
        "remedy runs its scripts by plain sudo",
        "Leave it out: they need nothing of the user's environment.",
    ),
    "_shell_executable": ("remedy's scripts run by sh", "Leave it out: any sh will do."),
    "_timeout": (
        "remedy has a deadline for each stage of reaching a host",
        "Leave it out; the deadlines are in the section ssh of remedy.yaml: remedy explain ssh",
    ),
    "_get_pty": (
        "remedy's scripts get no terminal",
        "Leave it out; where sudo requires one, exempt the user: Defaults:USER !requiretty",
    ),
}
_OTHERWISE = "it is for pyinfra's operations, and remedy runs none", _OPERATIONS


def unused_arguments(
    path: Path, nodes: Iterable[Node], pyinfra_keys: Collection[str]
) -> Iterator[InventoryError]:
    """Yield an error for each argument of pyinfra that asks for something that remedy would not do.

    Args:
        path: of the inventory, for messages.
        nodes: its hosts.
        pyinfra_keys: what pyinfra reads from a host's data.
    """
    unused: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        for key, value in node.data.items():
            if key in pyinfra_keys and _asks_in_vain(node, key, value):
                unused.setdefault((key, _shown(key, value)), []).append(node.name)
    for (key, shown), names in unused.items():
        reason, step = _reason(key)
        yield InventoryError(
            f"{path}: {folded(names)}: {key} ({shown}) is not used: {reason}", next_step=step
        )


def _asks_in_vain(node: Node, key: str, value: Any) -> bool:
    """Say whether a value asks for something that would not happen."""
    if key == "_sudo":
        return value is False and node.data.get("ssh_user") != "root"
    if key == "ssh_config_file":
        return bool(value) and not _can_be_read(str(value))
    if key == "ssh_paramiko_connect_kwargs":
        return isinstance(value, Mapping) and "timeout" in value
    if not key.startswith("_") or key in USED:
        return False
    return bool(value) and value not in _ANYWAY.get(key, ())


def _can_be_read(path: str) -> bool:
    """Say whether a path leads to a file that can be read; connections are made without it elsewhere."""
    file = at_home(path)
    return os.access(file, os.R_OK) and not file.is_dir()


def _reason(key: str) -> tuple[str, str]:
    """Return why a key is not used, and what to do."""
    if key == "_sudo":
        return "what needs root runs by sudo, unless ssh_user is root", (
            "Connect as root (ssh_user), or leave it out: without a right to sudo a host is read as far as it "
            "goes."
        )
    if key == "ssh_config_file":
        return "it is no file that can be read", (
            f"Give the path of an ssh_config, seen from {Path.cwd()}, or leave it out: ~/.ssh/config counts "
            "then."
        )
    if key == "ssh_paramiko_connect_kwargs":
        return _REASONS["_timeout"]
    for start, words in _REASONS.items():
        if key.startswith(start):
            return words
    return _OTHERWISE


def _shown(key: str, value: object) -> str:
    return "a secret" if looks_secret(key) else clipped(visible(repr(value)), 60)
