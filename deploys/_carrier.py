"""The cluster's interface itself: whether what peers send gets to the host by it. Not a remedy.

An interface that is a port of a bridge, or a member of a bond, hands what arrives to that one: the host takes
it from there, or nobody does where that one is down. What is in a VRF is for programs that are started in it.
An address without a route of the type local is nobody's: packets for it are sent on, or dropped.

Sources: ip-link(8), ip-vrf(8), ip-route(8); Linux net/bridge/br_input.c (br_handle_frame),
net/ipv4/fib_frontend.c (fib_add_ifaddr), Documentation/networking/vrf.rst.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from remedy.deploys._peers import Place, names_of
from remedy.deploys._ways import covered, in_order, length
from remedy.firewall import spans
from remedy.firewall.spans import Spans
from remedy.plan import Workbench, command
from remedy.probe import FibRoute, PolicyRule, Routing

LOCAL = "local"
_VRF = "vrf"
_OF_TCP = (("ipproto", "tcp"), ("ipproto", "6"))


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
    """Name what keeps the host from taking packets of peers for its cluster address."""
    own = {address.address for each in place.network.interfaces for address in each.addresses}
    if not any(route.kind == LOCAL and route.destination in own for route in routing.routes):
        return  # not read: without any of them nothing reaches the host, the probe neither
    for peers, culprit in _not_taken(routing, place):
        words = ["ip", "route", "add", LOCAL, place.address, "dev", place.carrier.name]
        words += ["table", LOCAL, "proto", "kernel", "scope", "host", "src", place.address]
        fix = f"Add it: {command(words)}"
        shown = f"no route of the type {LOCAL} for {place.address}"
        if culprit is not None:
            kind = "route" if isinstance(culprit, FibRoute) else "routing rule"
            shown = f"{kind}, before the table {LOCAL}: {culprit.text}"
            fix = f"Remove it, or have the table {LOCAL} come first: ip rule add lookup {LOCAL} pref 0"
        bench.blocked(
            f"this host does not take packets for {place.address}, its cluster address, from "
            f"{names_of(bench.fleet, peers)}",
            shown,
            fix,
        )


def _not_taken(
    routing: Routing, place: Place
) -> Iterator[tuple[Spans, FibRoute | PolicyRule | None]]:
    """Yield the peers whose packets for the cluster address are lost as they come in, and by what."""
    rest, own = place.peers, spans.of_networks([place.address])
    is_late = False  # what comes after the table local loses only what that does not have
    for rule in routing.rules:
        part = _arriving_by(rule, place, rest, own)
        if not part or rule.action == "goto":
            continue
        is_late = is_late or rule.table == LOCAL
        culprit = _found(routing, rule, own) if rule.action == "lookup" else rule
        if culprit is None:
            continue
        rest = spans.minus(rest, part)
        if not (isinstance(culprit, FibRoute) and culprit.kind == LOCAL):
            yield part, None if is_late else culprit
    if rest:
        yield rest, None


def _found(routing: Routing, rule: PolicyRule, own: Spans) -> FibRoute | None:
    """Return the route of a rule's table that an address takes; None where the next rule is asked."""
    routes = (r for r in in_order(routing.routes, rule.table) if spans.meet(covered(r), own))
    route = next(routes, None)
    if route is None or route.kind == "throw" or length(route) <= rule.suppress:
        return None
    return route


def _arriving_by(rule: PolicyRule, place: Place, peers: Spans, own: Spans) -> Spans:
    """Return the peers whose packets a rule is for as they come in; () where that is not certain."""
    part = peers
    for condition in rule.conditions:
        key, _, value = condition.partition(" ")
        if key == "iif":
            part = part if value == place.carrier.name else ()
        elif (key, value) not in _OF_TCP:
            return ()
    if rule.destination != "all" and not spans.meet(own, spans.of_networks([rule.destination])):
        part = ()
    if rule.source != "all":
        part = spans.meet(part, spans.of_networks([rule.source]))
    return spans.minus(peers, part) if rule.inverted else part


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
