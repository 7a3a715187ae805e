"""Hosts whose scripts ended with a gateway, where gateways stand behind gateways: which of these it was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import gevent

from remedy.errors import RemedyError
from remedy.text import fold
from remedy.transport.gateways.errand import Errand, HostErrand
from remedy.transport.gateways.failures import GatewayFault
from remedy.transport.gateways.inner import InnerGateways
from remedy.transport.gateways.losses import Losses
from remedy.transport.gateways.routes import Routes

GATHERING = 0.2
"""Seconds in which the hosts of one gateway have all ended."""

Settle = Callable[[Errand, HostErrand, RemedyError | None], None]


@dataclass(frozen=True)
class LostHost:
    """A host that has ended with a gateway.

    Args:
        errand: its script.
        host: that host.
        lost: its outermost gateway, where that ended; "" where it is still there.
    """

    errand: Errand
    host: HostErrand
    lost: str


class Doubts:
    """Asks the gateways that may have failed, once for all hosts that ended with them, and settles these.

    Args:
        routes: to all hosts.
        inner: asks gateways.
        losses: what is known of them.
        settle: takes a host with its error.
    """

    def __init__(
        self, routes: Routes, inner: InnerGateways, losses: Losses, settle: Settle
    ) -> None:
        self._routes = routes
        self._inner = inner
        self._losses = losses
        self._settle = settle
        self._doubts: list[LostHost] = []

    def add(self, doubt: LostHost) -> None:
        """Take a host; it is settled later."""
        doubt.host.is_in_doubt = True
        self._doubts.append(doubt)
        if len(self._doubts) == 1:
            gevent.spawn_later(GATHERING, self._resolve)

    def _resolve(self) -> None:
        doubts, self._doubts = self._doubts, []
        lost = {doubt.lost for doubt in doubts if doubt.lost}
        faults = self._losses.faults
        # What is asked of those behind them goes through these: they may be well.
        own = {name: faults.pop(name) for name in lost if name in faults}
        names: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        for doubt in doubts:
            names[doubt.errand.login].update(*self._routes.way(doubt.host.node.name)[1:])
            names[doubt.errand.login].update(self._routes.gateways_behind(doubt.lost))
        try:
            for login, gateways in names.items():
                self._inner.check(*login, gateways)
        finally:
            for name, fault in own.items():
                self._losses.note(name, self._explained(name, fault))
        for doubt in doubts:
            if not doubt.host.is_over:
                node = doubt.host.node
                error = self._losses.of_host(node, doubt.lost)
                self._settle(doubt.errand, doubt.host, error)

    def _explained(self, gateway: str, fault: GatewayFault) -> GatewayFault:
        """Return why a gateway ended, where one behind it is the reason."""
        faults = self._losses.faults
        failed = [n for n in sorted(self._routes.gateways_behind(gateway)) if n in faults]
        if not failed:
            return fault
        first = faults[failed[0]]
        reason = f"it ended with {fold(failed)} behind it: {first.reason}"
        return GatewayFault(reason, first.needs_install, failed[0])
