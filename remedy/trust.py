"""Host keys: reading them, comparing them with what is known, recording them.

remedy connects to known hosts only. A key is recorded by ``remedy trust`` and by nothing else; a key that
changed is replaced only where the user named the host. OpenSSH's own tools do the reading and writing.
"""

from __future__ import annotations

import base64
import enum
import hashlib
import ipaddress
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from remedy.errors import RemedyError
from remedy.inventory import Node

SCAN_SECONDS = 5
# Addresses that one ssh-keyscan asks, all at once. A name is asked for by one of its own: it looks names up one
# after the other, and waits for each.
BATCH = 200
PARALLEL = 64
# A tool that takes longer waits for something that does not come, such as a name server or a `Match exec`.
TOOL_SECONDS = 30


class KeyState(str, enum.Enum):
    """How a host's key compares with the known one."""

    KNOWN = "known"
    NEW = "new"
    CHANGED = "changed"
    SILENT = "no answer"


@dataclass(frozen=True)
class HostKeys:
    """The keys that a host shows, and how they compare with the known ones.

    Args:
        host: its name in the inventory.
        place: what known_hosts calls it: the address, or ``[address]:port``.
        known_hosts: the file in which its key is or will be recorded.
        keys: ``type key`` of each key it shows.
        state: how they compare with the file.
    """

    host: str
    place: str
    known_hosts: Path
    keys: tuple[str, ...]
    state: KeyState

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """Each key's type and SHA-256 fingerprint, as ``ssh-keygen -l`` shows it."""
        return tuple(_fingerprint(key) for key in self.keys)


def scan(nodes: Sequence[Node]) -> tuple[HostKeys, ...]:
    """Ask each host for its keys and compare them with what is known.

    Raises:
        RemedyError: OpenSSH's tools are not installed on this machine.
    """
    shown = _keyscan(nodes)
    result = []
    for node in nodes:
        place = _place(node)
        path = known_hosts_file(node)
        keys = tuple(sorted(shown.get(place, ())))
        known = _known(place, path)
        if not keys:
            state = KeyState.SILENT
        elif not known:
            state = KeyState.NEW
        elif known & set(keys):
            state = KeyState.KNOWN
        else:
            state = KeyState.CHANGED
        result.append(HostKeys(node.name, place, path, keys, state))
    return tuple(result)


def record(hosts: Iterable[HostKeys]) -> None:
    """Write the hosts' keys into their known_hosts files, in place of any that are there."""
    for host in hosts:
        host.known_hosts.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if host.known_hosts.exists():
            _run(["ssh-keygen", "-R", host.place, "-f", str(host.known_hosts)])
        with host.known_hosts.open("a", encoding="ascii") as file:
            file.writelines(f"{host.place} {key}\n" for key in host.keys)


def known_hosts_file(node: Node) -> Path:
    """Return the file in which pyinfra looks a host's key up."""
    path = node.data.get("ssh_known_hosts_file")
    if path:
        return Path(str(path)).expanduser()
    # `ssh -G` prints the configuration that ssh_config gives for this host, without connecting.
    for line in _run(["ssh", "-G", node.ssh_address]).splitlines():
        key, _, value = line.partition(" ")
        if key == "userknownhostsfile" and value:
            return Path(value.split()[0]).expanduser()
    return Path("~/.ssh/known_hosts").expanduser()


def _keyscan(nodes: Sequence[Node]) -> dict[str, set[str]]:
    """Return the keys that each place shows; a place that takes too long shows none, and delays no other."""
    shown: dict[str, set[str]] = {}
    with ThreadPoolExecutor(PARALLEL) as pool:
        for text in pool.map(_scan_batch, _batches(nodes)):
            for line in text.splitlines():
                place, _, key = line.partition(" ")
                if key and not line.startswith("#"):
                    shown.setdefault(place, set()).add(key)
    return shown


def _batches(nodes: Sequence[Node]) -> Iterator[tuple[int, list[str]]]:
    """Yield a port with what one ssh-keyscan asks there."""
    addresses: dict[int, list[str]] = {}
    for node in nodes:
        try:
            ipaddress.ip_address(node.ssh_address)
        except ValueError:
            yield node.ssh_port, [node.ssh_address]
        else:
            addresses.setdefault(node.ssh_port, []).append(node.ssh_address)
    for port, several in addresses.items():
        for start in range(0, len(several), BATCH):
            yield port, several[start : start + BATCH]


def _scan_batch(batch: tuple[int, list[str]]) -> str:
    port, addresses = batch
    try:
        return _tool(["ssh-keyscan", "-T", str(SCAN_SECONDS), "-p", str(port), *addresses])
    except subprocess.TimeoutExpired as late:
        output = late.output or b""
        return output if isinstance(output, str) else output.decode(errors="replace")


def _known(place: str, path: Path) -> set[str]:
    if not path.exists():
        return set()
    entries = _run(["ssh-keygen", "-F", place, "-f", str(path)])
    lines = (line.split(" ", 1) for line in entries.splitlines() if not line.startswith("#"))
    return {" ".join(rest[0].split()[:2]) for _, *rest in lines if rest}


def _place(node: Node) -> str:
    return node.ssh_address if node.ssh_port == 22 else f"[{node.ssh_address}]:{node.ssh_port}"


def _fingerprint(key: str) -> str:
    kind, _, data = key.partition(" ")
    digest = hashlib.sha256(base64.b64decode(data)).digest()
    return f"{kind} SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def _run(command: Sequence[str]) -> str:
    try:
        return _tool(command)
    except subprocess.TimeoutExpired as late:
        raise RemedyError(
            f"`{shlex.join(command)}` did not end within {TOOL_SECONDS} s on this machine",
            next_step="Run it by hand: it waits for a name server, or for a `Match exec` of ssh_config.",
        ) from late


def _tool(command: Sequence[str]) -> str:
    """Return what one of OpenSSH's tools prints; it has no terminal to ask at."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=TOOL_SECONDS,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise RemedyError(
            f"{command[0]} is not installed on this machine",
            next_step="Install the OpenSSH client: apt-get install openssh-client",
        ) from error
    return done.stdout
