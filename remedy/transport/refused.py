"""A server's key that is not accepted, on its way to whoever says so."""

from __future__ import annotations

from remedy.trust import KeyDecision, ShownKey, SshServer


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
