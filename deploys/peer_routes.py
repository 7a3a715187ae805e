"""Routes to peers: what a host sends to the others leaves by the cluster's interface, with its cluster address.

Cures: "No route to host", "Permission denied" and "Invalid argument" from connect(), and connections that time
out, where no firewall is in the way: a route of the type unreachable, prohibit or blackhole, a rule of policy
routing that does the same or leads to a table without the peers, a more specific route by another interface (a
bridge of containers, a tunnel, the management network), the route of the cluster's own network that somebody
has removed, a route that gives packets a source which the peers do not know.

Finds: a cluster address with a longer prefix than peers have (/32, say), so that no route leads to them.

How it is judged: for all peers, as the kernel looks a route up, once for sockets that are bound to the cluster
address and once for those that are not. Rules for marks, devices and other protocols are not for training. A
rule for some ports or users is UNKNOWN where it loses a peer. Each host is judged for what it sends, so both
ways of a pair are.

What it changes: a route or rule that loses peers, was made by hand (protocol boot or static, or none) and is
for nobody but peers or their network is removed; the route of the cluster's own network comes back. Each is
guarded: the host takes it back unless a new connection confirms it. Routes of routing daemons, of DHCP and of
network managers are named and stay, and so is what loses peers where hosts talk over IPv6. A route that is
right for a reason is accepted by its text. What files put back at the next boot is reported with file and line
by `next_boot`.

Sources: ip-route(8), ip-rule(8); Linux net/ipv4/fib_rules.c, fib_semantics.c (fib_props: the error of each
type).
"""

from __future__ import annotations

import shlex

from pydantic import Field

from remedy.deploys._carrier import note_carrier, note_own_address
from remedy.deploys._losses import Loss, losses
from remedy.deploys._marks import marks_of
from remedy.deploys._peers import Place, names_of, place_of
from remedy.deploys._prefixes import note_prefix
from remedy.deploys._sources import note_source
from remedy.deploys._ways import (
    LOST,
    covered,
    length,
    route_of,
    rule_of,
    with_one,
    without,
)
from remedy.deploys._ways_ipv6 import note_routes_of_ipv6
from remedy.firewall import spans
from remedy.plan import Change, CommandAction, Finding, Risk, Workbench, command, remedy
from remedy.plan.workbench import Command
from remedy.probe import FibRoute, HostState, PolicyRule, Routing
from remedy.spec import SpecSection

BY_HAND = ("", "boot", "static", "unspec")
THERE, ABSENT = "there", "absent"


class PeerRoutesSpec(SpecSection):
    """``repair``: whether what loses peers is removed; ``accept``: routes and rules, as findings show them,
    that are right as they are.
    """

    repair: bool = True
    accept: tuple[str, ...] = Field((), examples=[["unreachable 10.214.4.12 proto boot"]])


Bench = Workbench[PeerRoutesSpec]


@remedy("Routes to peers", PeerRoutesSpec, cures=("route-to-peer",), order=36)
def peer_routes(bench: Bench) -> None:
    """Decide which routes and rules of a host lose its peers, and which of them can go."""
    note_routes_of_ipv6(bench, bench.settings.accept)
    place = place_of(bench.fleet, bench.host)
    if place is None:
        return
    accepted = frozenset(bench.settings.accept)
    if note_carrier(bench, place, accepted):
        return
    routing = bench.need(bench.host.routing, "the routes and routing rules")
    note_own_address(bench, place, routing)
    note_prefix(bench, place, routing)
    note_source(bench, place, routing)
    missing = _missing_route(routing, place)
    after = routing if missing is None else with_one(routing, missing)
    stuck: list[Loss] = []
    removed: list[tuple[Loss, FibRoute | PolicyRule]] = []
    marks = marks_of(bench.host, place, routing)
    while loss := next(losses(after, place, accepted, stuck, marks), None):
        culprit = loss.culprit
        if culprit is None or loss.doubt or not _is_removable(culprit, place):
            stuck.append(loss)
        else:
            removed.append((loss, culprit))
            after = without(after, culprit)
    if missing is not None:
        _add(bench, place, missing)
    for loss, culprit in removed:
        if bench.settings.repair:
            _remove(bench, routing, loss, culprit)
        else:
            _note(bench, place, loss)
    for loss in stuck:
        _note(bench, place, loss)


def _is_removable(culprit: FibRoute | PolicyRule, place: Place) -> bool:
    """Return whether a route or rule is only about peers, was made by hand, and can be put back."""
    if not culprit.plain:
        return False
    if isinstance(culprit, FibRoute):
        about = spans.meet(covered(culprit), spans.merge((*place.subnet, *place.beyond)))
        narrow = length(culprit) == 32 or (
            length(culprit) > place.prefix and about == covered(culprit)
        )
        return culprit.protocol in BY_HAND and narrow
    if culprit.action not in LOST or culprit.inverted:
        return False
    if culprit.destination == "all":
        return culprit.source.removesuffix("/32") == place.address
    theirs = spans.merge((*place.subnet, *place.beyond))
    return not spans.minus(spans.of_networks([culprit.destination]), theirs)


def _missing_route(routing: Routing, place: Place) -> FibRoute | None:
    """Return the kernel's own route of the cluster's network, where it is not there; None where it is."""
    if place.prefix > 30 or not place.on_link:
        return None
    if any(r.destination == place.cidr and r.interface in place.rails for r in routing.routes):
        return None
    device = ["dev", place.carrier.name]
    made = ["proto", "kernel", "scope", "link", "src", place.address]
    return FibRoute(
        kind="unicast",
        destination=place.cidr,
        gateway="",
        interface=place.carrier.name,
        table="main",
        protocol="kernel",
        metric=0,
        source=place.address,
        plain=True,
        text=" ".join([place.cidr, *device, *made]),
    )


# --- saying and planning -----------------------------------------------------------------------------------


def _note(bench: Bench, place: Place, loss: Loss) -> None:
    """Name what is wrong and stays."""
    title = loss.title.replace("{peers}", names_of(bench.fleet, loss.peers))
    evidence = (*loss.evidence, f"cluster address: {place.address} on {place.carrier.name}")
    if loss.culprit is None:
        bench.blocked(title, evidence, "Add it: ip route add NETWORK via GATEWAY")
        return
    accept = f'to accept it, add to peer_routes.accept in remedy.yaml: "{loss.culprit.text}"'
    if loss.doubt:
        bench.unknown(title, evidence, f"If that is right, {accept}")
        return
    note = bench.blocked if bench.settings.repair else bench.report
    note(title, evidence, f"If nothing needs it: {_removal(loss.rule or loss.culprit)}; {accept}")


def _remove(bench: Bench, routing: Routing, loss: Loss, culprit: FibRoute | PolicyRule) -> None:
    title = loss.title.replace("{peers}", names_of(bench.fleet, loss.peers))
    if isinstance(culprit, FibRoute):
        values = _route_command(culprit, is_there=True)
    else:
        values = _rule_command(culprit, routing)
    _run(bench, bench.drift(title, loss.text), f"remove the {loss.text}", values)


def _add(bench: Bench, place: Place, route: FibRoute) -> None:
    title = "the route of the cluster's network is gone"
    evidence = f"no route {route.destination} on {route.interface}, which has {place.address}"
    if bench.settings.repair:
        finding = bench.drift(title, evidence)
        _run(bench, finding, f"add the route: {route.text}", _route_command(route, is_there=False))
    else:
        bench.report(title, evidence, f"Add it: {_words('add', route)}")


def _run(bench: Bench, finding: Finding, title: str, values: Command) -> None:
    bench.run(title, because=finding, risk=Risk.MEDIUM, guarded=True, **values)


def _words(verb: str, culprit: FibRoute | PolicyRule) -> str:
    kind = "route" if isinstance(culprit, FibRoute) else "rule"
    return command(["ip", "-4", kind, verb, *culprit.text.split()])


def _removal(culprit: FibRoute | PolicyRule) -> str:
    return _words("del", culprit)


def _route_command(route: FibRoute, *, is_there: bool) -> Command:
    """Return the command that takes a route away, or adds it."""
    match = ["table", route.table, "type", route.kind, "exact", _exact(route)]
    match += ["dev", route.interface] if route.interface else []
    match += ["via", route.gateway] if route.gateway else []
    match += ["metric", str(route.metric)] if route.metric else []
    states, verbs = (THERE, ABSENT), ("del", "add")
    if not is_there:
        states, verbs = (ABSENT, THERE), ("add", "del")
    show = command(["ip", "-4", "route", "show", *match])
    return {
        "observe": f'if [ -n "$({show} 2>/dev/null)" ]; then echo {THERE}; else echo {ABSENT}; fi',
        "before": states[0],
        "after": states[1],
        "do": _words(verbs[0], route),
        "undo": _words(verbs[1], route),
    }


def _exact(route: FibRoute) -> str:
    return route.destination if "/" in route.destination else f"{route.destination}/32"


def _rule_command(rule: PolicyRule, routing: Routing) -> Command:
    """Return the command that takes a rule away: how many have its priority is what is observed."""
    number = sum(other.priority == rule.priority for other in routing.rules)
    return {
        "observe": f"ip -4 rule show | grep -c '^{rule.priority}:'",
        "before": str(number),
        "after": str(number - 1),
        "do": _removal(rule),
        "undo": _words("add", rule),
    }


def _culprit(action: CommandAction) -> tuple[str, FibRoute | PolicyRule]:
    """Return what a command does ("add" or "del"), and with which route or rule."""
    _, _, kind, verb, *words = shlex.split(action.do)
    return verb, route_of(words) if kind == "route" else rule_of(words)


@peer_routes.promises
def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after ``change``: a route or a rule more or less."""
    assert isinstance(change.action, CommandAction)
    assert isinstance(state.routing, Routing)
    verb, culprit = _culprit(change.action)
    routing = (with_one if verb == "add" else without)(state.routing, culprit)
    return state.model_copy(update={"routing": routing})


@peer_routes.observes
def observation(state: HostState, change: Change) -> str:
    """Return whether the route is there, or how many rules have the rule's priority."""
    assert isinstance(change.action, CommandAction)
    assert isinstance(state.routing, Routing)
    _, culprit = _culprit(change.action)
    if isinstance(culprit, PolicyRule):
        return str(sum(rule.priority == culprit.priority for rule in state.routing.rules))
    return THERE if culprit in state.routing.routes else ABSENT
