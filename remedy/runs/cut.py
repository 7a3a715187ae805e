"""Packets that a run has hosts send and that are lost on the way: TCP hides that, RDMA does not.

TCP agrees on the smaller MTU of its two ends. So one host whose MTU a change has made larger than the network
takes sums well with hosts as they were, and no more with the next one that is changed alike. That packets of a
size are lost says nothing by itself (networks of two sizes are somebody's choice): that the run changed it
does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from remedy.probe import HostState
from remedy.text import counted
from remedy.values import Unknown
from remedy.verify.onhost.mtu import LARGEST
from remedy.verify.verdict import NarrowLink, Verdict

CUT = "mtu-mismatch"
"""The cause that it is about."""

Mtus = Mapping[str, Mapping[str, int]]
"""The MTU of each interface, by host."""


def mtus_of(states: Mapping[str, HostState]) -> Mtus:
    """Return the MTU of each interface, of hosts of which it could be read."""
    return {
        name: {interface.name: interface.mtu for interface in state.network.interfaces}
        for name, state in states.items()
        if not isinstance(state.network, Unknown)
    }


def cut_since(
    before: Mtus, now: Mtus, verdict: Verdict, hosts: Collection[str]
) -> tuple[NarrowLink, ...]:
    """Return the links that lose whole packets because of an MTU that is not what it was.

    Args:
        before: the hosts as they were before their changes.
        now: as they were when the proof was made.
        verdict: of the proof.
        hosts: the hosts that the run has changed.
    """
    return tuple(
        link
        for link in verdict.narrow_links
        if (link.source in hosts and link.size in _grown(before, now, link.source))
        or (
            link.target in hosts
            and any(link.size > mtu for mtu in _shrunk(before, now, link.target))
        )
    )


def cut_words(links: Collection[NarrowLink]) -> str:
    """Return in a sentence which packets are lost."""
    first = next(iter(links))
    more = f", and on {counted(len(links) - 1, 'more link')}" if len(links) > 1 else ""
    return (
        f"packets of {first.size} bytes from {first.source} do not arrive at {first.target} whole{more}, "
        "since the run changed the MTU: TCP hides that from this proof, not from hosts that are changed next"
    )


def _grown(before: Mtus, now: Mtus, host: str) -> set[int]:
    """Return the MTUs of a host's interfaces that are larger than before, as a packet has them."""
    return {min(new, LARGEST) for old, new in _pairs(before, now, host) if new > old}


def _shrunk(before: Mtus, now: Mtus, host: str) -> set[int]:
    return {new for old, new in _pairs(before, now, host) if new < old}


def _pairs(before: Mtus, now: Mtus, host: str) -> Iterator[tuple[int, int]]:
    """Yield the MTU of each interface, before and now."""
    former = before.get(host, {})
    for interface, mtu in now.get(host, {}).items():
        if interface in former:
            yield former[interface], mtu
