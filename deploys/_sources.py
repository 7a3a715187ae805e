"""The address from which a host connects: peers' firewalls let in the cluster addresses alone. Not a remedy.

A socket that is not bound gets the source of the route (ip-route(8), src): the first address of its network on
that interface, which need not be the cluster address.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from remedy.deploys._peers import Place
from remedy.deploys._ways import ways
from remedy.firewall.walls import any_rules
from remedy.plan import Fleet, Workbench, command
from remedy.plan.fleet import once_a_fleet
from remedy.probe import Routing
from remedy.values import Unknown


def note_source(bench: Workbench[Any], place: Place, routing: Routing) -> None:
    """Name another address of the cluster's interface from which connections to peers come."""
    chosen_ways = ways(routing, place.on_link, None)
    routes = [way.route for way in chosen_ways if way.route is not None and way.certain]
    for route in routes:
        if route.interface != place.carrier.name or route.source not in place.sources:
            continue
        if route.source == place.address or not route.source:
            continue
        walled = _walled(bench.fleet) - {bench.host.host}
        note = bench.blocked if walled else bench.report
        change = ["ip", "route", "change", route.destination, "dev", route.interface]
        change += ["proto", route.protocol or "boot", "scope", "link", "src", place.address]
        note(
            f"this host connects from {route.source}, and not from {place.address}, its cluster address",
            (f"route: {route.text}", "peers' firewalls let in the cluster addresses alone"),
            f"Have it connect from there: {command(change)}; for good, make it the interface's first address",
        )
        return


@once_a_fleet
def _walled(fleet: Fleet) -> Set[str]:
    """Return the hosts with rules of a firewall."""
    return {
        name
        for name, state in fleet.states.items()
        if not isinstance(state.firewalls, Unknown) and any_rules(state, state.firewalls)
    }
