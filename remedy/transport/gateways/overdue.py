"""When a host behind a gateway is given up. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

from remedy.transport.gateways.errand import Errand, HostErrand


def overdue(
    errand: Errand,
    host: HostErrand,
    now: float,
    heard: float,
    load: Mapping[str, int],
    running: float,
) -> float | None:
    """Return for how many seconds nothing was heard of a host that is overdue; None of any other.

    Args:
        errand: its script.
        host: that host.
        now: by the clock of the tree.
        heard: when something was heard of its gateway last.
        load: hosts that are at work, by gateway.
        running: seconds that the script may take once it has begun.
    """
    if host.began is not None:
        age, limit = now - host.began, running
    else:
        age, limit = now - max(heard, host.routed, errand.began), errand.round_seconds
        most = max(load.get(host.gateway, 1), errand.peaks[host.gateway])
        # One that does say something: for as many hosts as run on it one after the other.
        total = (math.ceil(most / errand.fanout) + 1) * errand.round_seconds
        if now - errand.began > total:
            age, limit = now - errand.began, total
    return age if age > limit else None
