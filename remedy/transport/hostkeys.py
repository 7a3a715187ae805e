"""The host key of a connection: what is known of the server, which types are asked for, who decides.

Where files of known hosts are is read from the ssh_config that gives the way to the host, by the same parser.
"""

from __future__ import annotations

import getpass
import os
import shlex
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import paramiko
from pyinfra.connectors.sshuserclient import client as pyinfra_client

from remedy.files import at_home
from remedy.transport.refused import KeyRefusedError
from remedy.transport.watch import CURRENT
from remedy.trust.certificate import ShownKey
from remedy.trust.judge import KeyDecision, KeyState, SshServer
from remedy.trust.record import add_key

# paramiko's own deadlines would end a stage before the watch does, in words that mislead.
NEVER = 86_400.0
# ssh_config(5): the defaults of UserKnownHostsFile and GlobalKnownHostsFile.
USER_FILES = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
SYSTEM_FILES = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
SYSTEM_CONFIG = "/etc/ssh/ssh_config"

# The types of keys to ask a host for, where somebody wants to know its keys and not to log in.
WANTED: ContextVar[tuple[str, ...] | None] = ContextVar("wanted", default=None)


class KeyProved(BaseException):
    """A host has shown its key, and nobody wants more. No ``Exception``, so that nothing below tries again.

    Args:
        server: which.
        decision: the decision about the key.
        key: the key.
        offered: the types of keys that the host says it has.
    """

    def __init__(
        self, server: SshServer, decision: KeyDecision, key: ShownKey, offered: tuple[str, ...]
    ) -> None:
        super().__init__(decision.state.value)
        self.server = server
        self.decision = decision
        self.key = key
        self.offered = offered


class KeyExchange(paramiko.Transport):
    """paramiko's transport without its own deadline, which keeps the key that was proved, as it was sent.

    A connection at rest costs nothing: paramiko's own wakes up ten times a second to see whether somebody has
    closed it, which closing its socket says as well.
    """

    _active_check_timeout = None

    def __init__(self, sock: Any, *, algorithms: tuple[str, ...], **options: Any) -> None:
        super().__init__(sock, **options)
        self.handshake_timeout = NEVER
        self.get_security_options().key_types = algorithms
        self.proved: ShownKey | None = None
        self.offered: tuple[str, ...] = ()

    def set_keepalive(self, interval: float) -> None:
        """Send a sign of life at each interval without any other word (``ServerAliveInterval``)."""
        super().set_keepalive(interval)
        # paramiko looks at the time when its waiting for a word is over.
        self.sock.settimeout(interval / 2 if interval else None)

    def _verify_key(self, host_key: bytes, sig: bytes) -> None:
        super()._verify_key(host_key, sig)  # type: ignore[misc]  # the stubs lack it
        self.proved = ShownKey(bytes(host_key))

    def _really_parse_kex_init(self, m: Any, ignore_first_byte: bool = False) -> dict[str, Any]:
        parsed: dict[str, Any] = super()._really_parse_kex_init(m, ignore_first_byte)  # type: ignore[misc]
        if not ignore_first_byte:  # the host's, not our own
            self.offered = tuple(parsed["server_key_algo_list"])
        return parsed


class Judge(paramiko.MissingHostKeyPolicy):
    """Decides about a key by what is known of the server.

    Args:
        server: what is known.
        strict: ``ssh_strict_host_key_checking`` of the inventory: with "accept-new" a key that is not known is
            recorded, with "no" it is accepted once. No setting accepts one that is revoked or has changed.
        is_jump: whether it is a jump host's.
    """

    def __init__(self, server: SshServer, strict: str | None, *, is_jump: bool) -> None:
        self._server = server
        self._strict = strict
        self._is_jump = is_jump

    def missing_host_key(self, client: Any, hostname: str, key: Any) -> None:  # noqa: ARG002
        """Accept the key that the server has proved to have, or raise."""
        transport = client.get_transport()
        shown = transport.proved
        try:
            decision = self._server.judge(shown)
        except ValueError as error:
            raise paramiko.SSHException(f"the host certificate is refused: {error}") from error
        if WANTED.get(None) is not None and not self._is_jump:
            raise KeyProved(self._server, decision, shown, transport.offered)
        if decision.state is KeyState.KNOWN:
            return
        if decision.state is KeyState.NEW and self._strict in ("accept-new", "no", "off"):
            if self._strict == "accept-new":
                add_key(self._server, [shown.plain])
            return
        watch = CURRENT.get()
        watch.refused = KeyRefusedError(
            self._server, decision, shown, watch.via if self._is_jump else ""
        )
        raise watch.refused


def server_of(
    hostname: str, port: int, *, alias: str, config_file: str | None, known_hosts_file: str | None
) -> SshServer:
    """Return what is known of a server.

    Args:
        hostname: what ssh connects to.
        port: the port there.
        alias: what ssh_config knows it by.
        config_file: the ssh_config of the inventory; None for the user's and the machine's.
        known_hosts_file: the file of the inventory; None for those of ssh_config.
    """
    config = _config(alias, config_file)
    tokens = {
        "%": "%",
        "d": str(Path.home()),
        "h": hostname,
        "k": config.get("hostkeyalias") or alias,
        "n": alias,
        "p": str(port),
        "u": getpass.getuser(),
        "r": str(config.get("user") or getpass.getuser()),
    }

    def paths(key: str, default: tuple[str, ...]) -> tuple[Path, ...]:
        value = config.get(key)
        words = shlex.split(value) if value else list(default)
        return tuple(_path(word, tokens) for word in words if word.lower() != "none")

    user = paths("userknownhostsfile", USER_FILES)
    if known_hosts_file:
        user = (at_home(known_hosts_file),)
    revoked = paths("revokedhostkeys", ())
    return SshServer(
        hostname.lower(),
        port,
        config.get("hostkeyalias") or "",
        user,
        paths("globalknownhostsfile", SYSTEM_FILES),
        revoked[0] if revoked else None,
    )


def _config(alias: str, config_file: str | None) -> dict[str, Any]:
    """Return what ssh_config says of an alias; the first value counts, ssh_config(5)."""
    config: dict[str, Any] = {}
    for path in (config_file,) if config_file else (None, SYSTEM_CONFIG):
        try:
            parsed = pyinfra_client.get_ssh_config(path)
            config = {**(parsed.lookup(alias) if parsed else {}), **config}
        except Exception:
            if path != SYSTEM_CONFIG:
                raise
            # Not everything that distributions write there can be read (`Match final`); the way to a host
            # does not depend on it.
    return config


def _path(word: str, tokens: dict[str, str]) -> Path:
    """Return a path of ssh_config with its tokens in place of each letter after a percent sign."""
    head, *rest = word.split("%")
    text = head
    skip = False
    for part in rest:
        if skip:
            text, skip = text + part, False
        elif not part:
            text, skip = f"{text}%", True
        else:
            text += tokens.get(part[0], f"%{part[0]}") + part[1:]
    return at_home(os.path.expandvars(text) if "${" in text else text)
