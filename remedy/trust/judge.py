"""Whether a server's key is the right one: OpenSSH's decision (check_host_key in sshconnect.c)."""

from __future__ import annotations

import enum
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from remedy.trust.certificate import SUFFIX, ShownKey
from remedy.trust.known_hosts import Entry, KnownHosts, Marker, parse_line, read_known_hosts

SSH_PORT = 22
# PROTOCOL.krl.
_KRL_MAGIC = b"SSHKRL\n\0"
# A list of revoked keys on a file system that hangs keeps nobody waiting.
TOOL_SECONDS = 30
# OpenSSH's order; of its types paramiko lacks those of hardware tokens.
ALGORITHMS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)


class KeyState(str, enum.Enum):
    """How a host's key compares with what is known."""

    KNOWN = "known"
    NEW = "new"
    CHANGED = "changed"
    REVOKED = "revoked"
    SILENT = "no answer"


class Withdrawal(enum.Enum):
    """What of a revoked key is withdrawn."""

    KEY = "key"
    CERTIFICATE = "certificate"
    AUTHORITY = "certificate's authority"
    UNREAD = "not known"
    """Perhaps nothing: the list of revoked keys cannot be read, and then ssh accepts none."""


@dataclass(frozen=True)
class KeyDecision:
    """A decision about a key.

    Args:
        state: the decision.
        entry: the line that it rests on, where there is one.
        detail: what else speaks for or against the key; "" for nothing.
        withdrawal: of a revoked key, what of it is withdrawn; None for others.
    """

    state: KeyState
    entry: Entry | None = None
    detail: str = ""
    withdrawal: Withdrawal | None = None


@dataclass(frozen=True)
class SshServer:
    """A server as known_hosts files know it.

    Args:
        name: the name or address that ssh connects to, in lower case.
        port: the port there.
        alias: HostKeyAlias of ssh_config; "" for none.
        user_files: files of known hosts, the one to write to first.
        system_files: those of this machine, which are read only.
        revoked_keys: RevokedHostKeys of ssh_config: a list or a KRL.
    """

    name: str
    port: int = SSH_PORT
    alias: str = ""
    user_files: tuple[Path, ...] = ()
    system_files: tuple[Path, ...] = ()
    revoked_keys: Path | None = None

    @property
    def place(self) -> str:
        """What known_hosts calls it."""
        if self.alias:
            return self.alias
        return self.name if self.port == SSH_PORT else f"[{self.name}]:{self.port}"

    @cached_property
    def _known(self) -> KnownHosts:
        return read_known_hosts((*self.user_files, *self.system_files))

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """What is known of it."""
        return self._known.of(self.place)

    @cached_property
    def entries_of_name(self) -> tuple[Entry, ...]:
        """What is known of its bare name; OpenSSH asks for that where it knows nothing of the port."""
        if self.alias or self.port == SSH_PORT:
            return ()
        return self._known.of(self.name)

    def algorithms(self) -> tuple[str, ...]:
        """Return the types of keys to ask for, best first, those that are known before others.

        As order_hostkeyalgs in OpenSSH's sshconnect2.c: a server that has a known key shows that.
        """
        every: tuple[str, ...] = ALGORITHMS
        if self.revoked_keys or any(e.marker is not Marker.HOST for e in self._all()):
            # Only there does it matter whether the key comes with a certificate.
            every = (*(f"{name}{SUFFIX}" for name in ALGORITHMS), *ALGORITHMS)
        revoked = {entry.blob for entry in self.entries if entry.marker is Marker.REVOKED}
        known = {e.kind: e.blob for e in reversed(self.entries) if e.marker is Marker.HOST}
        kinds = {kind for kind, blob in known.items() if blob not in revoked}
        authority = any(entry.marker is Marker.AUTHORITY for entry in self.entries)
        if ALGORITHMS[0] in kinds:
            return every

        def is_last(name: str) -> bool:
            plain = name.removesuffix(SUFFIX)
            kind = "ssh-rsa" if plain.startswith("rsa-") else plain
            return kind not in kinds and not (authority and plain != name)

        return tuple(sorted(every, key=is_last))

    def judge(self, key: ShownKey) -> KeyDecision:
        """Return the decision about a key that the server has proved to have.

        Raises:
            ValueError: it comes with a certificate that is none.
        """
        if self.revoked_keys is not None:
            listed = _listed(self.revoked_keys, key)
            if listed is not None:
                reason = f"it is in the list {self.revoked_keys}"
                if listed is Withdrawal.UNREAD:
                    reason = f"the list of revoked keys {self.revoked_keys} cannot be read"
                return KeyDecision(KeyState.REVOKED, detail=reason, withdrawal=listed)
        return self._judge(key, self.entries, self.entries_of_name)

    def _judge(self, key: ShownKey, entries: Iterable[Entry], bare: Iterable[Entry]) -> KeyDecision:
        decision = self._among(key, entries)
        if decision.state is KeyState.NEW and bare and not (key.is_certificate and decision.detail):
            other = self._judge(key, bare, ())
            if other.state in (KeyState.KNOWN, KeyState.REVOKED):
                return other
        if key.is_certificate and decision.state not in (KeyState.KNOWN, KeyState.REVOKED):
            plain = self._judge(key.plain, entries, bare)
            detail = decision.detail or plain.detail
            return KeyDecision(plain.state, plain.entry, detail, plain.withdrawal)
        return decision

    def _among(self, key: ShownKey, entries: Iterable[Entry]) -> KeyDecision:
        """Decide by some entries alone; a certificate that none of them vouches for is new."""
        keys = (key.plain.blob, key.authority) if key.is_certificate else (key.blob,)
        for entry in entries:
            if entry.marker is Marker.REVOKED and entry.blob in (key.blob, *keys):
                revoked = entry.blob
                withdrawal = _withdrawal(key, lambda part: part.blob == revoked)  # noqa: B023 - called here
                return KeyDecision(KeyState.REVOKED, entry, withdrawal=withdrawal)
        if not key.is_certificate:
            hosts = [entry for entry in entries if entry.marker is Marker.HOST]
            same = [entry for entry in hosts if entry.blob == key.blob]
            if same:
                return KeyDecision(KeyState.KNOWN, same[0])
            if hosts:
                return KeyDecision(KeyState.CHANGED, hosts[0])
            return KeyDecision(KeyState.NEW, detail=_uncertified(entries))
        for entry in entries:
            if entry.marker is Marker.AUTHORITY and entry.blob == key.authority:
                objection = key.objection(self.alias or self.name, time.time())
                if not objection:
                    return KeyDecision(KeyState.KNOWN, entry, f"by the authority of {entry.place}")
                detail = f"its certificate, by the authority of {entry.place}, does not count: {objection}"
                return KeyDecision(KeyState.NEW, detail=detail)
        return KeyDecision(KeyState.NEW)

    def _all(self) -> tuple[Entry, ...]:
        return (*self.entries, *self.entries_of_name)


def _uncertified(entries: Iterable[Entry]) -> str:
    """Return what an operator who relies on an authority has to know."""
    for entry in entries:
        if entry.marker is Marker.AUTHORITY:
            return f"it shows no certificate by the authority of {entry.place}"
    return ""


def _listed(path: Path, key: ShownKey) -> Withdrawal | None:
    """Return what of a key a list forbids; None where it allows the key."""
    try:
        with path.open("rb") as file:
            is_krl = file.read(len(_KRL_MAGIC)) == _KRL_MAGIC
        in_list = _in_krl if is_krl else _in_list
        return _withdrawal(key, partial(in_list, path)) if in_list(path, key) else None
    except (OSError, subprocess.TimeoutExpired):
        return Withdrawal.UNREAD


def _withdrawal(key: ShownKey, is_revoked: Callable[[ShownKey], bool]) -> Withdrawal:
    """Return what of a revoked key is withdrawn: of several parts the one that lasts longest."""
    if not key.is_certificate or is_revoked(key.plain):
        return Withdrawal.KEY
    authority = ShownKey(key.authority)
    return Withdrawal.AUTHORITY if is_revoked(authority) else Withdrawal.CERTIFICATE


def _in_list(path: Path, key: ShownKey) -> bool:
    """Say whether a key, or its authority, is in a file of public keys, one a line."""
    blobs = {key.plain.blob, key.authority} if key.is_certificate else {key.blob}
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        entry = parse_line(f"* {line.decode('ascii', 'surrogateescape')}", path, number)
        if entry is not None and entry.blob in blobs:
            return True
    return False


def _in_krl(path: Path, key: ShownKey) -> bool:
    """Say whether ssh-keygen finds a key in OpenSSH's own format."""
    with tempfile.TemporaryDirectory(prefix="remedy-") as folder:
        shown = Path(folder) / "key.pub"
        shown.write_text(f"{key.line}\n", encoding="ascii")
        done = subprocess.run(
            ["ssh-keygen", "-Q", "-f", os.fspath(path), os.fspath(shown)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=TOOL_SECONDS,
            start_new_session=True,
        )
    if done.returncode and b"REVOKED" not in done.stdout:
        raise OSError("ssh-keygen cannot read it")
    return done.returncode != 0
