"""The cluster's interface itself: whether what peers send gets to the host by it. Not a remedy.

An interface that is a port of a bridge, or a member of a bond, hands what arrives to that one: the host takes
it from there, or nobody does where that one is down. What is in a VRF is for programs that are started in it.
An address without a route of the type local is nobody's: packets for it are sent on, or dropped.

Sources: ip-link(8), ip-vrf(8), ip-route(8); Linux net/bridge/br_input.c (br_handle_frame),
net/ipv4/fib_frontend.c (fib_add_ifaddr), Documentation/networking/vrf.rst.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from remedy.deploys._peers import Place
from remedy.deploys._ways import ways
from remedy.firewall import spans
from remedy.plan import Workbench, command
from remedy.probe import Routing

LOCAL = "local"
_VRF = "vrf"


def note_carrier(bench: Workbench[Any], place: Place, accepted: Collection[str]) -> bool:
    """Name an interface by which no peer is reached, whatever the routes say.

    Args:
        bench: with the host.
        place: the host's, in the cluster's network.
        accepted: members that are right, as findings show them.

    Returns:
        Whether there is nothing to say of routes any more.
    """
    carrier = place.carrier
    if carrier.state and not (carrier.up and carrier.running):
        _note_down(bench, place)
        return True
    if not carrier.master:
        return False
    shown = f"{carrier.name} master {carrier.master}"
    if shown not in accepted:
        _note_member(bench, place, shown)
    return True


def note_own_address(bench: Workbench[Any], place: Place, routing: Routing) -> None:
    """Name the cluster address where the host does not take packets for it."""
    own = {address.address for each in place.network.interfaces for address in each.addresses}
    if not any(route.kind == LOCAL and route.destination in own for route in routing.routes):
        return  # not read: without any of them nothing reaches the host, the probe neither
    for way in ways(routing, spans.of_networks([place.address]), None):
        culprit = way.route or way.rule
        if way.outcome == LOCAL or not way.certain:
            continue
        shown = "no route" if culprit is None else culprit.text
        words = ["ip", "route", "add", LOCAL, place.address, "dev", place.carrier.name]
        words += ["table", LOCAL, "proto", "kernel", "scope", "host", "src", place.address]
        bench.blocked(
            f"this host does not take packets for {place.address}, its cluster address",
            (f"the way to its own address: {shown}", "no route of the type local comes first"),
            f"Add it: {command(words)}; if a rule comes before the table local, see: ip rule",
        )
        return


def _note_down(bench: Workbench[Any], place: Place) -> None:
    name = place.carrier.name
    if place.carrier.up:
        title = f"{name}, which has the cluster address, has no carrier, so no peer is reached"
        fix = f"Check the cable and the port of the switch: ethtool {name}"
    else:
        title = f"{name}, which has the cluster address, is down, so no peer is reached"
        fix = f"Take it up: {command(['ip', 'link', 'set', 'dev', name, 'up'])}"
    bench.blocked(title, f"{place.address} is on {name}: state {place.carrier.state}", fix)


def _note_member(bench: Workbench[Any], place: Place, shown: str) -> None:
    """Name an interface that hands what arrives to another one."""
    name, above = place.carrier.name, place.carrier.master
    master = place.network.interface(above)
    leave = command(["ip", "link", "set", "dev", name, "nomaster"])
    accept = f'If that is right, add to peer_routes.accept in remedy.yaml: "{shown}"'
    evidence = [f"ip link: {shown}", f"{place.address} is on {name}"]
    if master is not None and master.kind == _VRF:
        bench.unknown(
            f"{name}, which has the cluster address, is in the VRF {above}: outside of it no peer is reached",
            evidence,
            f"Start jobs in it (ip vrf exec {above}), or take {name} out of it: {leave}. {accept}",
        )
        return
    kind = f"the {master.kind} {above}" if master is not None and master.kind else above
    if master is not None and master.state:
        evidence.append(f"{above}: {'up' if master.up else 'down'}")
    fix = f"Give {above} the address, or take {name} out of it: {leave}"
    if master is None or (master.up and master.kind != "openvswitch"):
        title = f"{name}, which has the cluster address, is a member of {kind}, which takes what peers send"
        bench.unknown(title, evidence, f"{fix}. {accept}")
        return
    title = (
        f"{name}, which has the cluster address, is a member of {kind}, so that no peer reaches it"
    )
    bench.blocked(title, evidence, fix)
