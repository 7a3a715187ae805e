"""Neighbours: the hardware addresses of peers are the peers' own, and this host answers who asks for its own.

Cures: connections to one peer that time out though the peer answers everybody else: an entry of the neighbour
table that was set by hand (PERMANENT, NOARP) has a hardware address that is not the peer's, after a network
card or a host was replaced, say; a cluster interface that does not answer who asks for its address (`ip link`
shows NOARP).

Finds: two hosts whose cluster interfaces have one hardware address, as cloned virtual machines do; peers that
have not answered a question for their hardware address (FAILED); kernel settings by which this host never asks
for it, asks too late or has no room for the answers, now or after the next boot; settings by which it answers
in the place of peers (proxy_arp). Where every peer has an entry that stays, nobody has to ask.

How it is judged: entries against the interface that the peer itself has its cluster address on. An entry of a
peer that could not be read is UNKNOWN. An entry with the right address stays. What it changes is guarded: a
wrong entry is removed, so that the kernel asks; answering is switched on. Where a switch needs entries
of its own, `accept` names them. Entries for addresses of IPv6 over which hosts talk are judged, too, and stay.
It never changes a hardware address.

Sources: ip-neighbour(8), ip-link(8); RFC 826.
"""

from __future__ import annotations

import shlex
from collections import defaultdict

from pydantic import Field

from remedy.deploys._neighbour_settings import FIXED, note_settings
from remedy.deploys._peers import Place, is_among, place_of
from remedy.deploys._ways_ipv6 import note_neighbours_of_ipv6, shown
from remedy.plan import (
    Change,
    CommandAction,
    Fleet,
    FleetBench,
    Risk,
    Workbench,
    command,
    remedy,
)
from remedy.plan.fleet import once_a_fleet
from remedy.probe import HostState, Neighbour, Network, Routing, Sysctls
from remedy.spec import SpecSection
from remedy.text import fold

# Ends of tunnels have no neighbours; of these kinds NOARP is the usual state.
WITHOUT_ARP = (
    "loopback",
    "tun",
    "wireguard",
    "ppp",
    "dummy",
    "gre",
    "ipip",
    "sit",
    "vti",
    "xfrm",
    "vrf",
)
SILENT = "8"
ON, OFF = "on", "off"
ON_VALUE = "1"
THERE, ABSENT = "there", "absent"


class NeighboursSpec(SpecSection):
    """``repair``: whether wrong entries are removed and answering is switched on; ``accept``: entries, as
    findings show them, that are right as they are.
    """

    repair: bool = True
    accept: tuple[str, ...] = Field(
        (), examples=[["10.214.4.12 lladdr 02:00:00:00:00:99 PERMANENT"]]
    )


Bench = Workbench[NeighboursSpec]


@remedy("Neighbours", NeighboursSpec, cures=("neighbour-entry",), order=37)
def neighbours(bench: Bench) -> None:
    """Decide which entries of a host are not the peers', and whether it answers."""
    note_neighbours_of_ipv6(bench, bench.settings.accept)
    place = place_of(bench.fleet, bench.host)
    if place is None:
        return
    _judge_answering(bench, place)
    _judge_silence(bench, place)
    _judge_proxy(bench, place)
    if isinstance(bench.host.sysctls, Sysctls):
        note_settings(bench, place, bench.host.sysctls)
    routing = bench.need(bench.host.routing, "the neighbour table")
    known = hardware_addresses(bench.fleet)
    failed = []
    for entry in routing.neighbours:
        if entry.interface not in place.rails or not is_among(entry.address, place.on_link):
            continue
        if entry.state == "FAILED":
            failed.append(known.get(entry.address, ("", entry.address))[1])
        elif shown(entry) not in bench.settings.accept:
            _judge(bench, entry, known.get(entry.address))
    if failed:
        bench.report(
            f"{fold(failed)} did not answer when this host asked for the hardware address",
            f"FAILED in the neighbour table, on {place.carrier.name}",
            f"See why there: ip link; by hand from here: arping -I {place.carrier.name} ADDRESS",
        )


@once_a_fleet
def hardware_addresses(fleet: Fleet) -> dict[str, tuple[str, str]]:
    """Return, by cluster address, the hardware address ("" where it is not known) and the host's name."""
    known = {}
    for name, cluster in fleet.addresses.items():
        state = fleet.states.get(name)
        network = state.network if state is not None else None
        if cluster.address is None:
            continue
        carrier = network.carrier_of(cluster.address) if isinstance(network, Network) else None
        known[cluster.address] = (carrier.mac if carrier else "", name)
    return known


def _judge(bench: Bench, entry: Neighbour, peer: tuple[str, str] | None) -> None:
    """Compare an entry that the kernel never renews with what the peer has."""
    if entry.state not in FIXED or peer is None:
        return
    mac, name = peer
    if not mac:
        title = (
            f"the hardware address of {name} is fixed here, and whether it is right is not known"
        )
        fix = f'Read {name} too, or add to neighbours.accept in remedy.yaml: "{shown(entry)}"'
        bench.unknown(title, f"ip neigh: {shown(entry)}", fix)
        return
    if mac.lower() == entry.mac.lower():
        return
    title = f"this host sends what is for {name} to a hardware address that {name} does not have"
    evidence = (f"ip neigh: {shown(entry)}", f"{name} itself has {mac}")
    if not bench.settings.repair:
        bench.report(title, evidence, f"Remove it: {_delete(entry)}")
        return
    show = command(["ip", "-4", "neigh", "show", "to", entry.address, "dev", entry.interface])
    bench.run(
        f"remove the neighbour entry {shown(entry)}, so that the kernel asks",
        because=bench.drift(title, evidence),
        risk=Risk.MEDIUM,
        guarded=True,
        observe=f"if {show} nud {entry.state.lower()} 2>/dev/null | grep -q lladdr; "
        f"then echo {THERE}; else echo {ABSENT}; fi",
        before=THERE,
        after=ABSENT,
        do=_delete(entry),
        undo=_replace(entry),
    )


def _delete(entry: Neighbour) -> str:
    return command(["ip", "neigh", "del", entry.address, "dev", entry.interface])


def _replace(entry: Neighbour) -> str:
    words = ["ip", "neigh", "replace", entry.address, "dev", entry.interface]
    return command([*words, "lladdr", entry.mac, "nud", entry.state.lower()])


def _judge_answering(bench: Bench, place: Place) -> None:
    carrier = place.carrier
    if carrier.arp or carrier.kind in WITHOUT_ARP or not place.on_link:
        return
    title = f"{carrier.name} does not answer who asks for its hardware address, so peers do not reach it"
    evidence = f"ip link: {carrier.name} has NOARP; {place.address} is on it"
    if not bench.settings.repair:
        bench.report(title, evidence, f"Switch it on: {_switch(carrier.name, ON)}")
        return
    show = command(["ip", "link", "show", "dev", carrier.name])
    bench.run(
        f"have {carrier.name} answer who asks for its address (arp on)",
        because=bench.drift(title, evidence),
        risk=Risk.MEDIUM,
        guarded=True,
        observe=f"if {show} | grep -q NOARP; then echo {OFF}; else echo {ON}; fi",
        before=OFF,
        after=ON,
        do=_switch(carrier.name, ON),
        undo=_switch(carrier.name, OFF),
    )


def _judge_silence(bench: Bench, place: Place) -> None:
    """Name an arp_ignore by which the host answers nobody, now or after the next boot (ip-sysctl.rst)."""
    sysctls = bench.host.sysctls
    if not isinstance(sysctls, Sysctls) or not place.on_link:
        return
    for name in ("all", place.carrier.name.replace(".", "/")):
        key = f"net.ipv4.conf.{name}.arp_ignore"
        line = sysctls.winner(key)
        if sysctls.live.get(key) == SILENT:
            when, evidence = "", f"{key} = {SILENT}"
        elif line is not None and line.value == SILENT:
            when, evidence = "after the next boot, ", f"{line.path}:{line.line}: {key} = {SILENT}"
        else:
            continue
        title = f"{when}this host answers nobody who asks for its hardware address"
        bench.blocked(
            title, evidence, f"Set it to 0, or to 1 on a host with rails: sysctl -w {key}=0"
        )


def _judge_proxy(bench: Bench, place: Place) -> None:
    """Name settings by which the host answers in the place of peers (net/ipv4/arp.c, arp_process).

    That is meant for routers; a host of the cluster gets the packets of its peers then.
    """
    sysctls = bench.host.sysctls
    if not isinstance(sysctls, Sysctls) or sysctls.live.get("net.ipv4.ip_forward") != ON_VALUE:
        return
    for rail in sorted(place.rails):
        name = rail.replace(".", "/")
        keys = [f"net.ipv4.conf.{name}.proxy_arp_pvlan"]
        if len(place.rails) > 1:  # asked by one rail for a peer that is reached by another
            keys += [f"net.ipv4.conf.{where}.proxy_arp" for where in (name, "all")]
        switched_on = [key for key in keys if sysctls.live.get(key) == ON_VALUE]
        if switched_on and place.on_link:
            bench.blocked(
                f"this host answers by {rail} who asks for the hardware addresses of peers",
                (
                    *(f"{key} = {ON_VALUE}" for key in switched_on),
                    f"net.ipv4.ip_forward = {ON_VALUE}",
                ),
                f"Switch it off: sysctl -w {' '.join(f'{key}=0' for key in switched_on)}",
            )


def _switch(interface: str, word: str) -> str:
    return command(["ip", "link", "set", "dev", interface, "arp", word])


@neighbours.fleetwide
def twins(bench: FleetBench[NeighboursSpec]) -> None:
    """Find hosts whose cluster interfaces have one hardware address."""
    hosts: dict[str, list[str]] = defaultdict(list)
    for mac, name in hardware_addresses(bench.fleet).values():
        if mac.strip("0:"):
            hosts[mac.lower()].append(name)
    for mac, names in hosts.items():
        if len(names) > 1:
            bench.report(
                f"the cluster interfaces of {fold(names)} have one hardware address",
                f"{mac} on {len(names)} hosts",
                "In one network all but one must change: a cloned virtual machine gets another from its host.",
            )


@neighbours.promises
def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after ``change``: the entry gone, or there again; the flag."""
    assert isinstance(change.action, CommandAction)
    words = shlex.split(change.action.do)
    if words[1] == "link":
        assert isinstance(state.network, Network)
        interfaces = tuple(
            i.model_copy(update={"arp": words[-1] == ON}) if i.name == words[4] else i
            for i in state.network.interfaces
        )
        network = state.network.model_copy(update={"interfaces": interfaces})
        return state.model_copy(update={"network": network})
    assert isinstance(state.routing, Routing)
    entries = [
        e for e in state.routing.neighbours if (e.address, e.interface) != (words[3], words[5])
    ]
    if words[2] == "replace":
        entry = Neighbour(
            address=words[3], mac=words[7], interface=words[5], state=words[9].upper()
        )
        entries.append(entry)
    routing = state.routing.model_copy(update={"neighbours": tuple(entries)})
    return state.model_copy(update={"routing": routing})


@neighbours.observes
def observation(state: HostState, change: Change) -> str:
    """Return whether the interface answers, or whether the entry is there."""
    assert isinstance(change.action, CommandAction)
    words = shlex.split(change.action.undo)
    if words[1] == "link":
        assert isinstance(state.network, Network)
        interface = state.network.interface(words[4])
        return ON if interface is not None and interface.arp else OFF
    assert isinstance(state.routing, Routing)
    fixed = {(e.address, e.interface) for e in state.routing.neighbours if e.state in FIXED}
    return THERE if (words[3], words[5]) in fixed else ABSENT
