"""pyinfra's ssh client, which says at which stage it is, and never reads the terminal.

pyinfra finds the way (ssh_config, jump hosts, keys, known_hosts) and paramiko goes it. What is replaced here in
pyinfra's modules, by ``install``:

- their client, also that for jump hosts, by ``Client``, whose stages a watch can end;
- their decision of host keys, by OpenSSH's (``remedy.trust``), also for jump hosts: what ssh_config says of
  strictness counts for neither;
- paramiko's ``ProxyCommand``: its program gets no terminal to ask at, and its end is noticed;
- paramiko's looking ten times a second whether a connection lives that an answer is to come over; where it
  does not, that is said at once. And its comparing of authentication codes byte by byte, in Python. With
  thousands of hosts both were a fifth of the work;
- what a host does as it gets its state: pyinfra goes through the names of all hosts for each of them, for the
  blanks in front of lines that nobody prints, and works out anew which types its data may have.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache, partial
from itertools import chain
from types import ModuleType
from typing import Any, get_type_hints

import paramiko
import paramiko.transport
import paramiko.util
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.connectors import base, ssh
from pyinfra.connectors.ssh_util import load_key_with_certificate
from pyinfra.connectors.sshuserclient import client as pyinfra_client

from remedy.transport import openssh
from remedy.transport.hostkeys import NEVER, WANTED, Judge, KeyExchange, server_of
from remedy.transport.stages import Stage
from remedy.transport.watch import CURRENT, Watch

_LAST_WORDS = 2_000
# Seconds after which paramiko looks whether a connection lives, and after which it does so here.
_OFTEN, _SELDOM = 0.1, 2.0
# The clients that are connecting in the running greenlet: of a host, and of a jump host on the way to it.
_connecting: ContextVar[tuple[Client, ...]] = ContextVar("connecting", default=())


class _Staged(paramiko.SSHClient):
    """paramiko's client, whose ``connect`` enters the stages one after the other."""

    _way: Any = None
    # What pyinfra was asked to connect to, before ssh_config said where that is.
    _asked: dict[str, Any]
    _is_jump = False
    _strict: str | None = None
    # Whether the inventory gives a key, in place of those that ssh_config names.
    _has_key = False

    def connect(self, hostname: str, port: int = 22, **options: Any) -> None:  # type: ignore[override]
        watch = CURRENT.get()
        options.pop("timeout", None)
        server = server_of(hostname, int(port), **self._asked)
        # Nothing is in paramiko's own table, so that it leaves each key to the judge.
        self._host_keys = paramiko.HostKeys()
        self.set_missing_host_key_policy(Judge(server, self._strict, is_jump=self._is_jump))
        sock = options.pop("sock", None) or _dial(watch, hostname, int(port))
        self._way = sock
        watch.enter(Stage.KEY_EXCHANGE)
        options.setdefault("banner_timeout", NEVER)
        options.setdefault("auth_timeout", NEVER)
        algorithms = WANTED.get(None) if not self._is_jump else None
        factory = partial(KeyExchange, algorithms=algorithms or server.algorithms())
        super().connect(hostname, port, sock=sock, transport_factory=factory, **options)

    def _auth(
        self, user: str, password: str | None, key: Any, files: list[str], *more: Any
    ) -> None:
        """Log in; with all keys that ssh_config names, as ssh does, and not with the first of them alone."""
        CURRENT.get().enter(Stage.LOGIN)
        # paramiko would end at a file that is not there, which ssh passes over.
        files = [file for file in files if os.access(file, os.R_OK)]
        login = super()._auth  # type: ignore[misc]  # the stubs lack it
        if key is None or self._has_key or password is not None:
            login(user, password, key, files, *more)
            return
        agent_and_usual_files, others = more[:2], more[2:]
        refused: paramiko.AuthenticationException | None = None
        for candidate in chain([key], self._further_keys(key)):
            try:
                login(user, None, candidate, [], False, False, *others)
            except paramiko.AuthenticationException as error:
                refused = error
            else:
                return
        try:
            login(user, None, None, files, *agent_and_usual_files, *others)
        except paramiko.SSHException as error:
            raise refused or error from error

    def _further_keys(self, first: Any) -> Iterator[Any]:
        """Yield the keys that ssh_config names and that can be read, but the one that was tried."""
        for file in openssh.identities(self._asked["alias"], self._asked["config_file"]):
            try:
                key = load_key_with_certificate(key_filename=file, allow_prompt=False)
            except (PyinfraError, paramiko.SSHException, OSError):
                continue  # encrypted, say: the agent may have it
            if key != first:
                yield key


class Client(pyinfra_client.SSHClient, _Staged):
    """The client of a host or of a jump host: pyinfra's, over the one above."""

    def __init__(self) -> None:
        super().__init__()
        self._jumps: list[Client] = []

    def connect(self, hostname: str, **options: Any) -> None:  # type: ignore[override]
        """Connect, through jump hosts where ssh_config has them; pyinfra calls this for those, too."""
        watch = CURRENT.get()
        self._is_jump = bool(_connecting.get())
        self._strict = options.get("_pyinfra_ssh_strict_host_key_checking")
        self._has_key = options.get("pkey") is not None
        if self._is_jump:
            target = _connecting.get()[0]
            target._jumps.append(self)
            self._strict = target._strict
        self._asked = {
            "alias": hostname,
            "config_file": options.get("_pyinfra_ssh_config_file"),
            "known_hosts_file": options.get("_pyinfra_ssh_known_hosts_file"),
        }
        # pyinfra would read them into a table of paramiko's, with the square of their lines, which nobody asks.
        options["_pyinfra_ssh_known_hosts_file"] = os.devnull
        if any(client._asked["alias"] == hostname for client in _connecting.get()):
            # `Host *` with a ProxyJump holds for the jump host, too.
            raise paramiko.SSHException(
                f"jump host loop via {hostname}: ssh_config sends it through itself"
            )
        watch.via = hostname if self._is_jump else ""
        token = _connecting.set((*_connecting.get(), self))
        user = openssh.USER.set((hostname, str(options.get("username") or "")))
        try:
            super().connect(hostname, **options)  # type: ignore[no-untyped-call]
        except paramiko.AuthenticationException:
            raise  # the program did its part
        except (paramiko.SSHException, EOFError):
            if isinstance(self._way, Proxy):
                watch.proxy = self._way.last_words()
            raise
        finally:
            openssh.USER.reset(user)
            _connecting.reset(token)

    def gateway(self, *arguments: Any, **options: Any) -> Any:
        """Have this jump host connect to the next."""
        watch = CURRENT.get()
        watch.enter(Stage.CONNECT)
        options["timeout"] = NEVER
        channel = super().gateway(*arguments, **options)  # type: ignore[no-untyped-call]
        watch.via = ""
        return channel

    def close(self) -> None:
        """Close the connection, and those to the jump hosts below it."""
        super().close()
        with suppress(OSError):
            if self._way is not None:
                self._way.close()
        for jump in reversed(self._jumps):
            jump.close()


class Proxy(paramiko.ProxyCommand):
    """The program of a ``ProxyCommand``, in a session of its own: ssh in it has no terminal to ask at.

    It is run by the user's shell, as ssh_config(5) has it, so that ``2>/dev/null`` and ``$HOME`` mean what they
    mean to ssh.
    """

    def __init__(self, command_line: str) -> None:
        self.cmd = [os.environ.get("SHELL") or "/bin/sh", "-c", f"exec {command_line}"]
        self.timeout: float | None = None
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the connection
        self.process = subprocess.Popen(
            self.cmd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            bufsize=0,
            start_new_session=True,
            env={**os.environ, "SSH_ASKPASS_REQUIRE": "never"},
        )

    def send(self, content: bytes) -> int:  # type: ignore[override]
        """Pass bytes on; the program may take fewer than there are."""
        assert self.process.stdin is not None
        return self.process.stdin.write(content) or 0

    def recv(self, size: int) -> bytes:
        """Return what came, b"" at the end (paramiko's own waits for ``size`` bytes, past the end too)."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], self.timeout)
        if not ready:
            raise TimeoutError
        return os.read(self.process.stdout.fileno(), size)

    def close(self) -> None:
        """End the program and what it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGTERM)

    @property
    def closed(self) -> bool:
        """Whether the program has ended."""
        return self.process.poll() is not None

    def last_words(self) -> str:
        """Return the last line that the program wrote on its standard error; without one how it ended."""
        self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, self._words.tell() - _LAST_WORDS))
        lines = self._words.read().decode("utf-8", "backslashreplace").strip().splitlines()
        if lines:
            return lines[-1]
        code = self.process.poll()
        # It was ended from here, or has not ended.
        is_ours = code is None or code == -signal.SIGTERM
        return "" if is_ours else f"exit code {code}, and it printed nothing"


def _patient_threading() -> ModuleType:
    """Return the module ``threading`` with events that are looked at less often while nothing happens."""
    usual: Any = threading.Event

    class PatientEvent(usual):  # type: ignore[misc]
        def wait(self, timeout: float | None = None) -> bool:
            return bool(super().wait(_SELDOM if timeout == _OFTEN else timeout))

    patient = ModuleType(threading.__name__)
    vars(patient).update(vars(threading), Event=PatientEvent)
    return patient


_TYPES = lru_cache(maxsize=8)(get_type_hints)


def _begin(host: Host, state: State) -> None:
    """Give a host its state, and what connects to it."""
    host.state = state
    host.connector = host.connector_cls(state, host)
    host.print_prefix_padding = ""


def install() -> None:
    """Replace in pyinfra what is named above; may be called twice.

    Raises:
        AttributeError: this pyinfra has no such part.
    """
    for module, name, ours in (
        (ssh, "SSHClient", Client),
        (pyinfra_client, "SSHClient", Client),
        (pyinfra_client, "ProxyCommand", Proxy),
        (pyinfra_client, "get_ssh_config", openssh.ssh_config),
        (paramiko.transport, "threading", _patient_threading()),
        (paramiko.util, "constant_time_bytes_eq", hmac.compare_digest),
        (Host, "init", _begin),
        (base, "get_type_hints", _TYPES),
    ):
        getattr(module, name)
        setattr(module, name, ours)


def forget() -> None:
    """Have pyinfra read ssh_config anew: it keeps it for the life of the process.

    Raises:
        AttributeError: this pyinfra has no such memory.
    """
    openssh.forget()


def _dial(watch: Watch, hostname: str, port: int) -> socket.socket:
    """Return a connection to the first address of a name that takes one; each has its share of the time."""
    watch.enter(Stage.NAME)
    addresses = _addresses(hostname, port)
    watch.enter(Stage.CONNECT)
    failure: OSError | None = None
    for number, (family, address) in enumerate(addresses, 1):
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            if number < len(addresses):
                sock.settimeout(watch.limit / len(addresses))
            sock.connect(address)
        except OSError as error:
            failure = failure or error
            sock.close()
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure or OSError(f"{hostname} has no address")


def _addresses(hostname: str, port: int) -> list[tuple[int, Any]]:
    """Return the addresses of a host; one that is an address is not looked up, as others may be waited for."""
    try:
        version = ipaddress.ip_address(hostname).version
    except ValueError:
        answers = socket.getaddrinfo(hostname, port, type=socket.SOCK_STREAM)
        return [(family, address) for family, _, _, _, address in answers]
    return [(socket.AF_INET if version == 4 else socket.AF_INET6, (hostname, port))]
