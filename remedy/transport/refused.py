"""A server's key that is not accepted: on its way to whoever says so, and in words."""

from __future__ import annotations

import shlex
from pathlib import Path

from remedy.errors import ChangedKeyError, HostKeyError, RevokedKeyError
from remedy.inventory import Node
from remedy.text import quoted
from remedy.transport.failures import at_host
from remedy.trust import KeyDecision, KeyState, ShownKey, SshServer, Withdrawal
from remedy.trust.known_hosts import Marker

# ssh-keygen(1), CERTIFICATES; sshd_config(5), HostCertificate.
SIGN = (
    "ssh-keygen -s AUTHORITY -I {host} -h -n {name} /etc/ssh/ssh_host_ed25519_key.pub, with the new file as "
    "HostCertificate in its sshd_config"
)


class KeyRefusedError(Exception):
    """A server's key is not accepted.

    Args:
        server: which.
        decision: why.
        key: the key.
        via: the jump host that it is the key of; "" for the host's own.
    """

    def __init__(self, server: SshServer, decision: KeyDecision, key: ShownKey, via: str) -> None:
        super().__init__(decision.state.value)
        self.server = server
        self.decision = decision
        self.key = key
        self.via = via


def explain_key(inventory: Path, node: Node, refused: KeyRefusedError) -> HostKeyError:
    """Return the error for a host key that is not accepted, the host's own or a jump host's.

    Args:
        inventory: its path, for the commands to type.
        node: the host.
        refused: which key, and why.
    """
    decision, via = refused.decision, refused.via
    whose = "the jump host" if via else "the host"
    key, at = f"{whose}'s ssh key" if via else "the ssh host key", at_host(node, via)
    entry = decision.entry
    why = decision.detail if entry is None else entry.place
    why = f" ({why})" if why else ""
    if decision.state is KeyState.REVOKED:
        return _revoked(inventory, node, refused, f"{at}: {key}", why)
    if decision.state is KeyState.CHANGED:
        steps = (
            f"If the host was replaced, accept its new key: {_trust(inventory, '--replace', node)}"
        )
        if via:
            place = shlex.quote(refused.server.place)
            file = "" if entry is None else f" -f {quoted(entry.path)}"
            steps = (
                f"If the jump host was replaced, remove its old key: ssh-keygen -R {place}{file}"
            )
        return ChangedKeyError(
            f"{at}: {key} has CHANGED: another machine, or somebody in between{why}",
            next_step=steps,
        )
    step = f"Compare and record it: {_trust(inventory, '--limit', node)}"
    if any(known.marker is Marker.AUTHORITY for known in refused.server.entries):
        step = (
            f"Have {whose}'s key signed by that authority: {_sign(refused)}. Without a certificate, compare "
            f"and record the key: {_trust(inventory, '--limit', node)}"
        )
    return HostKeyError(
        f"{at}: {key} is not known, and remedy connects to known hosts only{why}",
        next_step=step,
    )


def _revoked(
    inventory: Path, node: Node, refused: KeyRefusedError, key: str, why: str
) -> RevokedKeyError:
    """Return the error for a key that was withdrawn: its own line is never what is to be removed."""
    whose = "the jump host" if refused.via else "the host"
    withdrawal = refused.decision.withdrawal
    if withdrawal is Withdrawal.UNREAD:
        return RevokedKeyError(
            f"{key} counts as revoked{why}",
            next_step="Make that list readable for you, or correct RevokedHostKeys in ssh_config.",
        )
    if withdrawal is Withdrawal.CERTIFICATE:
        return RevokedKeyError(
            f"{key} has a certificate that is REVOKED{why}",
            next_step=f"Have {whose}'s key signed again: {_sign(refused)}.",
        )
    if withdrawal is Withdrawal.AUTHORITY:
        return RevokedKeyError(
            f"{key} has a certificate by an authority that is REVOKED{why}: nothing that it signed counts",
            next_step=f"Have {whose}'s key signed by an authority that holds: {_sign(refused)}; and name that "
            "authority in known_hosts (@cert-authority).",
        )
    then = "" if refused.via else f". Then record it: {_trust(inventory, '--replace', node)}"
    return RevokedKeyError(
        f"{key} is REVOKED{why}: the key there was withdrawn",
        next_step=f"Give {whose} a new key, on its console: rm /etc/ssh/ssh_host_*_key*; ssh-keygen -A; "
        f"systemctl restart ssh{then}",
    )


def _sign(refused: KeyRefusedError) -> str:
    """Return how a server's key is signed for the name that ssh knows it by."""
    name = refused.server.alias or refused.server.name
    return SIGN.format(host=shlex.quote(refused.via or name), name=shlex.quote(name))


def _trust(inventory: Path, option: str, node: Node) -> str:
    return f"remedy trust {quoted(inventory)} {option} {node.name}"
