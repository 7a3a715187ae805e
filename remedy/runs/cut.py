"""Packets that a run has hosts send and that are lost on the way: TCP hides that, RDMA does not.

TCP agrees on the smaller MTU of its two ends. So one host whose MTU a change has made larger than the network
takes sums well with hosts as they were, and no more with the next one that is changed alike. That packets of a
size are lost says nothing by itself (networks of two sizes are somebody's choice): that the run changed it
does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from remedy.probe import HostState, Interface
from remedy.text import counted
from remedy.values import Unknown
from remedy.verify.onhost.mtu import LARGEST
from remedy.verify.verdict import NarrowLink, Verdict

CUT = "mtu-mismatch"
"""The cause that it is about."""

States = Mapping[str, HostState]


def cut_since(
    before: States, now: States, verdict: Verdict, hosts: Collection[str]
) -> tuple[NarrowLink, ...]:
    """Return the links that lose whole packets because of an MTU that is not what it was.

    Args:
        before: the hosts as they were before the run.
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


def _grown(before: States, now: States, host: str) -> set[int]:
    """Return the MTUs of a host's interfaces that are larger than before, as a packet has them."""
    return {min(new, LARGEST) for old, new in _mtus(before, now, host) if new > old}


def _shrunk(before: States, now: States, host: str) -> set[int]:
    return {new for old, new in _mtus(before, now, host) if new < old}


def _mtus(before: States, now: States, host: str) -> Iterator[tuple[int, int]]:
    """Yield the MTU of each interface, before and now."""
    former = {i.name: i.mtu for i in _interfaces(before, host)}
    for interface in _interfaces(now, host):
        if interface.name in former:
            yield former[interface.name], interface.mtu


def _interfaces(states: States, host: str) -> tuple[Interface, ...]:
    state = states.get(host)
    return () if state is None or isinstance(state.network, Unknown) else state.network.interfaces
