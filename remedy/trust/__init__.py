"""Host keys: what is known of them, what a server has proved, and OpenSSH's decision between the two.

remedy connects to known hosts only. A key is recorded by ``remedy trust`` and by nothing else, unless the
inventory says so; a key that changed is replaced only where the user named the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from remedy.errors import RemedyError
from remedy.trust.certificate import ShownKey
from remedy.trust.judge import KeyDecision, KeyState, SshServer, Withdrawal
from remedy.trust.record import add_key, replace_keys

__all__ = ["HostKeys", "KeyDecision", "KeyState", "ShownKey", "SshServer", "Withdrawal", "record"]


@dataclass(frozen=True)
class HostKeys:
    """The keys that a host has proved to have, and how they compare with what is known.

    Args:
        host: its name in the inventory; of a jump host the name by which it is reached.
        state: the decision about them.
        server: what is known of it; None where it did not answer.
        keys: one of each type that it has, where they are to be recorded; else the one that was compared.
        detail: what else there is to say; "" for nothing.
        error: why it did not answer, or why a jump host before it is not accepted.
        behind: the jump host that has to be known before it can be asked.
        lines: of a host behind gateways, what goes into the known_hosts of each gateway that lacks it: the
            name of the host there, and the key.
    """

    host: str
    state: KeyState
    server: SshServer | None = None
    keys: tuple[ShownKey, ...] = ()
    detail: str = ""
    error: RemedyError | None = None
    behind: HostKeys | None = None
    lines: Mapping[str, Sequence[tuple[str, ShownKey]]] = field(default_factory=dict)

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """Each key's type and SHA-256 fingerprint, as ``ssh-keygen -l`` shows it."""
        return tuple(key.fingerprint for key in self.keys)


def record(host: HostKeys) -> None:
    """Write a host's keys where it is looked up, in place of any that are known and are not its own any more.

    Raises:
        RemedyError: they cannot be written, or an old key would stay known.
    """
    assert host.server is not None
    write = replace_keys if host.state is KeyState.CHANGED else add_key
    write(host.server, host.keys)
