"""An MTU by which packets carry next to nothing, now or after the next boot. Not a remedy.

Each host of IPv4 has to take packets of 576 bytes; below 1280 the kernel takes IPv6 away from an interface.
Sources: RFC 791 (3.1, 3.2), RFC 8200 (5); Linux net/ipv6/addrconf.c (addrconf_notify).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from remedy.deploys import _boot_lines as boot
from remedy.plan import Workbench, command
from remedy.probe import Interface, Network
from remedy.values import Unknown

LEAST, LEAST_OF_IPV6 = 576, 1280
_USUAL, _USUAL_OF_LOOPBACK = 1500, 65536


def note_small_mtu(bench: Workbench[Any], interface: Interface, label: str) -> None:
    """Name an MTU that is too small for what jobs send: one that no host has to take, or that IPv6 needs.

    Args:
        bench: of the host.
        interface: the loopback interface, or that of the cluster.
        label: the cause that it is.
    """
    mtu, name = interface.mtu, interface.name
    if not 0 < mtu < LEAST_OF_IPV6:
        return
    is_tiny = mtu < LEAST
    title = f"{name} has an MTU of {mtu}: " + (
        "packets carry next to nothing, and connections by it stall"
        if is_tiny
        else f"packets carry little, and it has no IPv6 (which needs {LEAST_OF_IPV6})"
    )
    lines = _sources(bench, name, mtu)
    set_it = command(["ip", "link", "set", "dev", name, "mtu", str(_usual(bench, interface))])
    note = bench.blocked if is_tiny else bench.report
    note(
        title,
        (f"{name}: mtu {mtu}", *(lines or ("no file that was read sets it at boot",))),
        f"Set it: {set_it}{'; and correct the line that sets it at boot' if lines else ''}",
        label=label,
    )


def _sources(bench: Workbench[Any], name: str, mtu: int) -> tuple[str, ...]:
    """Return the lines that give an interface this MTU at boot."""
    mentions = bench.host.mentions
    if isinstance(mentions, Unknown):
        return ()
    configured = [
        line.shown for value, line in boot.mtu_lines(bench.host, mentions, name) if value == mtu
    ]
    written = boot.sources(mentions, f"/sys/class/net/{name}/mtu", str(mtu))
    return tuple(dict.fromkeys((*configured, *written)))


def _usual(bench: Workbench[Any], interface: Interface) -> int:
    """Return the MTU that an interface should have: most often that of its peers."""
    if interface.kind == "loopback":
        return _USUAL_OF_LOOPBACK
    counts: Counter[int] = Counter()
    for name, state in bench.fleet.states.items():
        address = bench.fleet.addresses[name].address
        if address is not None and isinstance(state.network, Network):
            carrier = state.network.carrier_of(address)
            if carrier is not None and carrier.mtu >= LEAST_OF_IPV6:
                counts[carrier.mtu] += 1
    return counts.most_common(1)[0][0] if counts else _USUAL
