"""What parts of the relay tell it."""

from __future__ import annotations

from typing import Any, Protocol

from remedy.transport.gateways.wire import TreeEvent, TreeSettings


class TreeListener(Protocol):
    """The relay, as those see it who report to it.

    Attributes:
        settings: what remedy gave.
        dead: gateways that are of no use any more.
        inner: the addresses of gateways that stand behind others.
    """

    settings: TreeSettings
    dead: set[str]
    inner: frozenset[str]

    def tell(self, event: TreeEvent) -> None:
        """Tell remedy something."""

    def over(self, worker: Any) -> None:
        """Take note that nothing of a request is left."""

    def gateway_failed(self, gateway: str, reason: str, code: int) -> None:
        """Take note of a gateway that is of no use any more."""
