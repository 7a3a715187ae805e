"""HostState: what one probe found on one host.

Every group of facts is a ``Fact``: the value, or ``Unknown`` with the reason. A group is unknown when its section of
the probe could not run, ran out of its time or printed what cannot be parsed; the other groups are
not affected.
"""

from __future__ import annotations

from collections.abc import Mapping

from remedy.values import Fact, Record, Unknown


class File(Record):
    """A file that a remedy may want to change, or that decides what the host does.

    ``path`` is the name it is known by; ``real_path`` is where it really is after following links
    (equal where there is no link). ``content`` is the exact bytes. A file that does not exist has
    ``exists=False`` and empty content.
    """

    path: str
    real_path: str
    exists: bool
    content: bytes = b""
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    immutable: bool = False
    read_only: bool = False


class Identity(Record):
    """Who the host says it is.

    ``static_name`` is /etc/hostname's, "" where there is none; ``transient_name`` the kernel's (uname -n).
    Sources: hostname(5), hostnamectl(1), machine-id(5).
    """

    static_name: str
    transient_name: str
    fqdn: str
    machine_id: str
    boot_id: str
    booted_at: int
    os_id: str
    os_version: str
    kernel: str
    virtualization: str
    cloud_init: Fact[bool]


class Names(Record):
    """How the host resolves names, asked of the host's own resolver (getent ahostsv4).

    ``peers`` maps each name that was asked for to its IPv4 addresses in answer order, or to () when
    the name does not resolve; a name that could not be asked in time is missing. ``own`` are the addresses
    of the host's own (transient) name.
    """

    own: tuple[str, ...]
    peers: Mapping[str, tuple[str, ...]]


class HostState(Record):
    """What one probe found on one host."""

    host: str
    root: bool
    identity: Fact[Identity]
    names: Fact[Names]
    files: Mapping[str, Fact[File]]

    def file(self, path: str) -> Fact[File]:
        """Return the file at ``path``; ``Unknown`` when the probe did not look at it."""
        return self.files.get(path, Unknown(reason=f"the probe did not look at {path}"))
