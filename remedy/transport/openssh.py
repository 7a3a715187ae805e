"""ssh_config as OpenSSH reads it: ``ssh -G`` where a file has Match or Include, which it alone knows whole.

pyinfra's reader knows neither every criterion of Match, nor a list of files in an Include, nor one that is read
twice. It is used for plain files, which cost no process for each host, and where there is no ssh.
"""

from __future__ import annotations

import getpass
import os
import re
import shlex
import subprocess
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import paramiko
from pyinfra.connectors.sshuserclient import client as pyinfra_client

from remedy.files import at_home

# Match exec runs a program of the user's; ssh itself waits for ever.
_SECONDS = 10
# After `ProxyCommand none` a later ProxyJump is not used either, and pyinfra's reader keeps no trace of it.
_ASKS_OPENSSH = re.compile(
    r"^[ \t]*(match\b|include\b|proxycommand[ \t=]+none\b)", re.IGNORECASE | re.MULTILINE
)
_WAYS = ("proxycommand", "proxyjump")
_LISTS = ("identityfile", "certificatefile")
# Expanded here: ssh -G prints these as they are in the file (ssh_config(5), TOKENS).
_WITH_TOKENS = ("identityfile", "certificatefile", "proxycommand", "identityagent")
_NOBODY = "host.invalid"

USER: ContextVar[tuple[str, str]] = ContextVar("USER", default=("", ""))
"""The host that is connected to, and as whom, for `Match user`; its jump hosts have users of their own."""


class OpenSshConfig:
    """A file that ``ssh -G`` is asked about, with the one method that pyinfra calls."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._known: dict[tuple[str, str], dict[str, Any]] = {}

    def lookup(self, alias: str) -> dict[str, Any]:
        """Return what the file says of a host, without what would hold anyway.

        Raises:
            paramiko.SSHException: ssh cannot read the file, or does not end.
        """
        host, user = USER.get()
        key = (alias, user if alias == host else "")
        if key not in self._known:
            self._known[key] = self._ask(*key)
        return dict(self._known[key])

    def _ask(self, alias: str, user: str) -> dict[str, Any]:
        values = _effective(self._path, alias, user)
        defaults = _effective(os.devnull, _NOBODY, "")
        values = {
            key: value
            for key, value in values.items()
            if (value != defaults.get(key) and value != "none") or key == "hostname"
        }
        tokens = {
            "%": "%",
            "d": str(Path.home()),
            "h": values["hostname"],
            "n": alias,
            "p": values.get("port", "22"),
            "r": values.get("user") or user or getpass.getuser(),
            "u": getpass.getuser(),
        }
        for key in set(values) & set(_WITH_TOKENS):
            value = values[key]
            values[key] = (
                [_filled(item, tokens) for item in value]
                if isinstance(value, list)
                else _filled(value, tokens)
            )
        return values


class PlainConfig:
    """A file as pyinfra reads it, without the values that say that there is none.

    Args:
        config: pyinfra's.
    """

    def __init__(self, config: Any) -> None:
        self._config = config

    def lookup(self, alias: str) -> dict[str, Any]:
        """Return what the file says of a host, in the order in which it stands there."""
        values = dict(self._config.lookup(alias))
        # Of a jump host and a program the first counts, also where it is none.
        for key in [key for key in values if key in _WAYS][1:]:
            del values[key]
        for key in {*_WAYS, *_LISTS} & values.keys():
            value = values[key]
            items = value if isinstance(value, list) else [value]
            named = [item for item in items if item.lower() != "none"]
            if not named:
                del values[key]
            elif isinstance(value, list):
                values[key] = named
        return values


def ssh_config(path: str | None = None) -> Any:
    """Return the ssh_config of a user, or of the inventory; None where there is no such file."""
    file = at_home(path or "~/.ssh/config")
    is_theirs = path is None or file != Path("/etc/ssh/ssh_config")
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    if is_theirs and _ASKS_OPENSSH.search(text) and _has_ssh():
        return _config(str(file))
    config = _PYINFRAS(path)
    return None if config is None else PlainConfig(config)


def identities(alias: str, path: str | None = None) -> list[str]:
    """Return the files of keys that an ssh_config names for a host, in its order."""
    config = ssh_config(path)
    named = config.lookup(alias).get("identityfile", ()) if config else ()
    return [named] if isinstance(named, str) else list(named)


@cache
def _config(path: str) -> OpenSshConfig:
    return OpenSshConfig(path)


def forget() -> None:
    """Have files read anew: pyinfra keeps them for the life of the process."""
    _PYINFRAS.cache.clear()
    _config.cache_clear()
    _has_ssh.cache_clear()


@cache
def _has_ssh() -> bool:
    from shutil import which

    return which("ssh") is not None


def _effective(path: str, alias: str, user: str) -> dict[str, Any]:
    """Return what ``ssh -G`` prints, keys in lower case."""
    command = ["ssh", "-G", "-F", path, *(["-l", user] if user else []), "--", alias]
    try:
        result = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise paramiko.SSHException(f"{shlex.join(command)} took more than {_SECONDS} s") from error
    if result.returncode != 0:
        reason = result.stderr.decode("utf-8", "backslashreplace").strip()
        raise paramiko.SSHException(f"ssh cannot read its configuration: {reason[-300:]}")
    values: dict[str, Any] = {}
    for line in result.stdout.decode("utf-8", "backslashreplace").splitlines():
        key, _, value = line.partition(" ")
        if key in _LISTS:
            values.setdefault(key, []).append(value)
        else:
            values.setdefault(key, value)
    return values


def _filled(text: str, tokens: dict[str, str]) -> str:
    return re.sub(r"%(.)", lambda match: tokens.get(match[1], match[0]), text)


_PYINFRAS = pyinfra_client.get_ssh_config
