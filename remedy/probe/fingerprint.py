"""One digest for everything on a host that a verdict rests on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Set
from functools import cache, lru_cache
from typing import Any

from pydantic import BaseModel

from remedy.probe.files import File
from remedy.probe.kernel import Kernel
from remedy.probe.network import Interface
from remedy.probe.resolved import Answers, Resolved
from remedy.probe.space import Mount
from remedy.probe.state import HostState
from remedy.values import MOST_SHARED, Unknown, once_alike

_GROUPS = (
    "root", "identity", "names", "files", "mentions", "unsearched", "session", "kernel", "network", "sysctls",
    "firewalls", "units", "containers", "mounts", "gpus", "rdma", "limits", "environment", "software",
)  # fmt: skip
"""What counts; not the clock, processes, IPC and the use of disks and memory, which change by themselves."""

_FLEETING = frozenset((
    "booted_at", "memory_used", "utilization", "processes", "counters", "pid", "docker_containers",
    "podman_containers", "net.netfilter.nf_conntrack_count", "handle", "SSH_CLIENT", "SSH_CONNECTION",
    "SSH_TTY", "SSH_AUTH_SOCK", "XDG_SESSION_ID", "SHLVL", "PWD", "OLDPWD", "_", "SUDO_COMMAND",
))  # fmt: skip
"""What is inside these groups and yet changes from one probe to the next on a host that is left alone."""


_PLACES = frozenset(("/", "/etc", "/dev/shm", "/run", "/tmp", "/var", "/var/lib"))  # noqa: S108
"""The mounts that count; others come and go with containers."""

_DRIVERS = ("nvidia", "mlx", "ib_", "rdma", "gdrdrv", "amdgpu", "drv_")
"""The beginnings of the names of modules that count; others are loaded by whoever needs them first."""

_OF_CONTAINERS = ("veth", "cali", "lxc", "tap", "vnet")
"""The beginnings of the names of interfaces that come and go with containers."""


def fingerprint(state: HostState) -> str:
    """Return the SHA-256, in hexadecimal, of the facts that a verdict rests on.

    It is the same for two probes of a host that nothing was done to, and changes with a reboot: a proof
    belongs to one boot. That something is unknown counts, the reason does not.
    """
    texts = {name: _TEXTS.get(name, _text)(getattr(state, name)) for name in ("host", *_GROUPS)}
    text = ",".join(f'"{name}":{texts[name]}' for name in sorted(texts))
    return hashlib.sha256(f"{{{text}}}".encode()).hexdigest()


def differing(state: HostState, later: HostState) -> tuple[str, ...]:
    """Return in which groups of facts two states have another fingerprint; none where it is the same."""
    facts, others = _facts(state), _facts(later)
    return tuple(name for name in _GROUPS if facts[name] != others[name])


def _facts(state: HostState) -> Mapping[str, Any]:
    return {name: _canonical(getattr(state, name)) for name in _GROUPS}


def _text(value: Any) -> str:
    """Return ``value`` as JSON, without what is fleeting."""
    return json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"))


# Of hosts with one image most facts are the same objects.
_TEXTS = {
    name: once_alike(_text)
    for name in _GROUPS
    if name not in ("root", "identity", "names", "files", "network")
}


@lru_cache(maxsize=MOST_SHARED)
def _of_file(file: File) -> list[Any]:
    content = hashlib.sha256(file.content).hexdigest()
    return [file.real_path, file.exists, content, file.mode, file.uid, file.gid]


# Most of what is looked at: no other way of asking is as quick.
_PLAIN = frozenset({str, int, float, bool, type(None)})


@cache
def _lasting(kind: type[BaseModel]) -> tuple[str, ...]:
    return tuple(name for name in kind.model_fields if name not in _FLEETING)


def _canonical(value: Any) -> Any:
    """Return ``value`` as JSON can hold it, without what is fleeting."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Unknown):
        return "unknown"
    if isinstance(value, File):
        return _of_file(value)
    if isinstance(value, Kernel):
        modules = sorted(name for name in value.modules if name.startswith(_DRIVERS))
        return [value.command_line, value.memory, value.cpus, value.transparent_hugepages, modules]
    if isinstance(value, BaseModel):
        return {name: _canonical(getattr(value, name)) for name in _lasting(type(value))}
    if isinstance(value, (Answers, Resolved)):
        return _of_names(value)
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items() if key not in _FLEETING}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _canonical(value._asdict())
    if isinstance(value, Set):
        return sorted(str(item) for item in value)
    if isinstance(value, (tuple, list)):
        return [_canonical(item) for item in value if not _comes_and_goes(item)]
    return value


def _of_names(value: Answers | Resolved) -> Any:
    """Return what stands for the answers about names: a look at each name, for each host, would be many."""
    if isinstance(value, Answers):
        return value.digest
    return [value.alike.digest, _canonical(value.otherwise)]


def _comes_and_goes(item: object) -> bool:
    if isinstance(item, Mount):
        return item.point not in _PLACES
    return isinstance(item, Interface) and item.name.startswith(_OF_CONTAINERS)
