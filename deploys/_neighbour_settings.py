"""The kernel's settings of neighbours: whether a host can ask for a peer's hardware address, and in time.

Not a remedy: ``neighbours`` reports what is said here. A host that never asks still knows who has asked for
its address a short while ago: connections work or fail by who came first, and a proof may pass.

Sources: arp(7), ip-sysctl.rst; Linux net/core/neighbour.c (neigh_event_send, neigh_alloc, neigh_max_probes),
net/ipv4/arp.c (arp_solicit: app_solicit questions go to a daemon before the first one goes to the network).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from remedy.deploys._peers import Place
from remedy.firewall import spans
from remedy.firewall.spans import Spans
from remedy.plan import Finding, FindingKind, Workbench
from remedy.probe import Sysctls
from remedy.text import counted, is_number
from remedy.values import Unknown

# Beyond these a connection is slower than launchers wait for, or lost with a single frame.
LATEST_MS, LEAST_MS = 5_000, 20
SHORTEST_REACHABLE_MS = 500
USUAL = {
    "mcast_solicit": 3,
    "ucast_solicit": 3,
    "app_solicit": 0,
    "retrans_time_ms": 1000,
    "base_reachable_time_ms": 30_000,
}
LARGEST_TABLE = "net.ipv4.neigh.default.gc_thresh3"
USUAL_TABLE = 1024
FIXED = ("PERMANENT", "NOARP")
"""States of entries that the kernel never renews."""
SPARE = 16
"""Places in the table for routers, the management network and containers."""


def note_settings(bench: Workbench[Any], place: Place, sysctls: Sysctls) -> None:
    """Name settings under which peers' hardware addresses are not learnt, now or after the next boot."""
    if not _asked_for(bench, place):
        return
    now, later = _values(sysctls.live, place), _persisted(sysctls, place)
    _note_table(bench, place, sysctls)
    for names, title, kind in _wrong(now):
        evidence = [f"{_key(place.carrier.name, n)} = {now[n]}" for n in names if n in now]
        _note(bench, kind)(
            f"{place.carrier.name} {title}",
            evidence,
            f"Set the usual values: {_usual(place, names)}",
        )
    known = {title for _, title, _ in _wrong(now)}
    for names, title, kind in _wrong(
        {**now, **{name: value for name, (value, _) in later.items()}}
    ):
        lines = [later[name][1] for name in names if name in later]
        if title not in known and lines:
            _note(bench, kind)(
                f"after the next boot, {place.carrier.name} {title}", lines, "Remove these lines."
            )


def _asked_for(bench: Workbench[Any], place: Place) -> Spans:
    """Return the peers whose hardware addresses have to be asked for: those that no entry holds for good."""
    if not place.carrier.arp:
        return ()
    routing = bench.host.routing
    known = () if isinstance(routing, Unknown) else routing.neighbours
    fixed = [
        entry.address
        for entry in known
        if entry.interface in place.rails and entry.state in FIXED and entry.mac
    ]
    return spans.minus(place.on_link, spans.of_networks(fixed))


def _note(bench: Workbench[Any], kind: FindingKind) -> Callable[[str, Iterable[str], str], Finding]:
    if kind is FindingKind.REPORT:
        return bench.report
    return bench.blocked if kind is FindingKind.BLOCKED else bench.unknown


def _wrong(values: Mapping[str, int]) -> Iterator[tuple[tuple[str, ...], str, FindingKind]]:
    """Yield the settings that are wrong together, what they do, and the kind of finding that this is."""
    of = {**USUAL, **values}
    asks, before, wait = of["mcast_solicit"], of["app_solicit"], of["retrans_time_ms"]
    if asks <= 0 < before:
        title = "leaves it to a daemon to ask for the hardware addresses of peers (arpd)"
        yield ("mcast_solicit", "app_solicit"), title, FindingKind.UNKNOWN
    elif asks <= 0:
        title = "never asks for the hardware addresses of peers: only who has just asked for its own is reached"
        yield ("mcast_solicit",), title, FindingKind.BLOCKED
    elif before * wait > LATEST_MS:
        seconds = before * wait / 1000
        title = f"asks for the hardware address of a peer only after {seconds:.0f} s"
        yield ("app_solicit", "retrans_time_ms"), title, FindingKind.BLOCKED
    elif wait > LATEST_MS:
        yield (
            ("retrans_time_ms",),
            f"asks again only after {wait / 1000:.0f} s where a question is lost",
            FindingKind.REPORT,
        )
    elif asks * wait < LEAST_MS:
        title = f"gives peers {asks * wait} ms to answer who asks for their hardware addresses"
        yield ("mcast_solicit", "retrans_time_ms"), title, FindingKind.BLOCKED
    if of["ucast_solicit"] <= 0:
        yield (
            ("ucast_solicit",),
            "forgets peers when their entries age, without asking them",
            FindingKind.REPORT,
        )
    if of["base_reachable_time_ms"] < SHORTEST_REACHABLE_MS:
        title = "asks for the hardware addresses of peers all the time"
        yield ("base_reachable_time_ms",), title, FindingKind.REPORT


def _note_table(bench: Workbench[Any], place: Place, sysctls: Sysctls) -> None:
    """Name a table that has no room for the peers."""
    peers = sum(high - low + 1 for low, high in place.on_link)
    line, live = sysctls.winner(LARGEST_TABLE), sysctls.live.get(LARGEST_TABLE, "")
    if is_number(live) and int(live) < peers + SPARE:
        when, evidence = "", f"{LARGEST_TABLE} = {live}"
    elif line is not None and is_number(line.value) and int(line.value) < peers + SPARE:
        when, evidence = (
            "after the next boot, ",
            f"{line.path}:{line.line}: {line.key} = {line.value}",
        )
    else:
        return
    size = max(USUAL_TABLE, 4 * peers)
    note = bench.blocked if when or int(live) < peers else bench.report
    note(
        f"{when}the neighbour table has no room for {counted(peers, 'peer')} and who else is there",
        evidence,
        f"Make it larger: sysctl -w {LARGEST_TABLE}={size}, and in a file of /etc/sysctl.d",
    )


def _key(interface: str, name: str) -> str:
    return f"net.ipv4.neigh.{interface.replace('.', '/')}.{name}"


def _values(live: Mapping[str, str], place: Place) -> dict[str, int]:
    values = {name: live.get(_key(place.carrier.name, name), "") for name in USUAL}
    return {name: int(value) for name, value in values.items() if is_number(value)}


def _persisted(sysctls: Sysctls, place: Place) -> dict[str, tuple[int, str]]:
    """Return what files set for the interface, else for those that are made later, each with its line."""
    known = {}
    for name in USUAL:
        lines = (sysctls.winner(_key(where, name)) for where in (place.carrier.name, "default"))
        line = next((line for line in lines if line is not None), None)
        if line is not None and is_number(line.value):
            known[name] = int(line.value), f"{line.path}:{line.line}: {line.key} = {line.value}"
    return known


def _usual(place: Place, names: tuple[str, ...]) -> str:
    settings = (f"{_key(place.carrier.name, name)}={USUAL[name]}" for name in names)
    return f"sysctl -w {' '.join(settings)}"
