"""The data of hosts that remedy and pyinfra's ssh connector read, checked that each value is of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from remedy.errors import InventoryError
from remedy.inventory.hosts import Node
from remedy.secret import looks_secret
from remedy.text import clipped, folded, visible

_Kind = tuple[Callable[[Any], bool], str]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_interpreter(value: object) -> bool:
    """Say whether a value is a path that the probe takes: absolute, and one word of a list with colons."""
    text = str(value)
    is_path = isinstance(value, str | PurePath) and text.startswith("/")
    return is_path and ":" not in text and text.isprintable()


_TEXT: _Kind = lambda value: isinstance(value, str), "text"
_BOOLEAN: _Kind = lambda value: isinstance(value, bool), "True or False"
_SECONDS: _Kind = _is_number, "a number of seconds"
_KINDS: Mapping[str, _Kind] = {
    **dict.fromkeys(("ssh_hostname", "ssh_user", "ssh_password", "ssh_key"), _TEXT),
    **dict.fromkeys(("ssh_key_password", "ssh_config_file", "ssh_known_hosts_file"), _TEXT),
    **dict.fromkeys(("ssh_strict_host_key_checking", "ssh_file_transfer_protocol"), _TEXT),
    **dict.fromkeys(("ssh_allow_agent", "ssh_look_for_keys", "ssh_forward_agent"), _BOOLEAN),
    **dict.fromkeys(("ssh_connect_retry_min_delay", "ssh_connect_retry_max_delay"), _SECONDS),
    "ssh_connect_retries": (lambda value: type(value) is int, "a whole number"),
    "ssh_paramiko_connect_kwargs": (lambda value: isinstance(value, dict), "a dictionary"),
    "ssh_port": (
        lambda value: type(value) is int and 0 < value < 65536,
        "a whole number from 1 to 65535",
    ),
    "_sudo": _BOOLEAN,
    "_sudo_password": _TEXT,
    "python": (_is_interpreter, "the absolute path of an interpreter on the host"),
}
# Where None is as good as no value; pyinfra takes none for what its connector reads.
_OPTIONAL = ("_sudo", "_sudo_password", "python")


def wrong_values(path: Path, nodes: Iterable[Node]) -> Iterator[InventoryError]:
    """Yield an error for each value of a kind that its key cannot have.

    Args:
        path: of the inventory, for messages.
        nodes: its hosts.
    """
    wrong: dict[str, list[str]] = {}
    for node in nodes:
        for key in node.data.keys() & _KINDS.keys():
            value = node.data[key]
            if not (_KINDS[key][0](value) or (value is None and key in _OPTIONAL)):
                wrong.setdefault(_complaint(key, value), []).append(node.name)
    for words, names in sorted(wrong.items()):
        yield InventoryError(
            f"{path}: {folded(names)}: {words}", next_step="Correct it, or leave the key out."
        )


def _complaint(key: str, value: object) -> str:
    kind = _KINDS[key][1]
    if looks_secret(key):
        return f"{key} needs {kind}; its value is not shown here"
    return f"{key} is {clipped(visible(repr(value)), 60)}, needs {kind}"
