"""Rails: each of several interfaces in one network answers for its own address, and takes what arrives there.

Cures: NCCL connections over the second rail of a host (a further interface in the same network) that hang or
time out, and peers that send to one rail's address by another rail. Linux answers ARP for every address of the
host on every interface ("ARP flux"), and strict reverse path filtering (rp_filter 1) drops what arrives by
another interface than the one that the answer would leave by.

It acts only where two or more interfaces of a host are up and have global IPv4 addresses in the same network.
There it changes what is wrong now or will be after a reboot: net.ipv4.conf.all.arp_ignore becomes 1 and
arp_announce 2, and rp_filter 2 (loose) on each rail where it is strict. The larger value of an interface and
of "all" counts, so rp_filter of "all" stays, and other interfaces are as strict as before. Where routing rules
send what leaves from each rail's address out by that rail, rp_filter stays, and with arp_filter the settings of
ARP too. With `manage: false` it only reports.

It never changes arp_filter, which is right only together with such rules: without them a host answers by one
rail for all addresses, and that is named. It never changes an arp_ignore above 2, which somebody chose, nor a
host with a rail without a carrier, whose address may be reached by ARP flux alone. Addresses with prefix 32 and
members of a bond, bridge or VRF are no rails.

Sources: Documentation/networking/ip-sysctl.rst (arp_filter, arp_announce, arp_ignore, rp_filter); ip-rule(8).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from functools import lru_cache
from ipaddress import IPv4Interface, IPv4Network

from remedy.causes import Cause
from remedy.plan import Risk, Workbench, remedy
from remedy.plan.kernel import SettingsFile, live_command, observation, wrong_now
from remedy.probe import Address, HostState, Interface, Network, Sysctls
from remedy.spec import SpecSection
from remedy.text import is_number

FILE = SettingsFile("/etc/sysctl.d/90-remedy-rails.conf", "each rail answers for its own address")
CAUSE = Cause(
    name="arp-flux",
    group="Network path",
    cause="Several interfaces of a host are in one network: each answers ARP for all addresses, and strict "
    "filtering drops what comes in by the wrong one.",
    confirm="`ip -br -4 addr` shows one network twice, `ip neigh` on a peer one MAC address for both; "
    "`sysctl -a | grep -E 'arp_ignore|arp_announce|rp_filter'`.",
    fix="`sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2`, rp_filter=2 for each "
    "such interface, and the same in /etc/sysctl.d.",
    silent="connections over a rail time out, as they do behind a firewall",
)
STRICT, LOOSE = 1, 2
# Values of arp_ignore with which an interface answers for its own addresses only.
OWN_ONLY = (1, 2)
TITLE = "interfaces in one network answer for each other's addresses, or drop what comes in"
SETTINGS = ("rp_filter", "arp_announce", "arp_ignore", "arp_filter")


# Each network in which the host has several interfaces, and these.
Networks = Mapping[IPv4Network, list[Interface]]


class RailsSpec(SpecSection):
    """``manage``: whether rails are repaired where they are wrong; otherwise they are only reported."""

    manage: bool = True


@remedy("Rails", RailsSpec, cures=(CAUSE,), order=33, reads=(FILE.path,))
def rails(bench: Workbench[RailsSpec]) -> None:
    """Decide which settings the interfaces of a host need that share a network."""
    network = bench.need(bench.host.network, "the host's interfaces")
    shared = shared_networks(network)
    if not shared or not bench.settings.manage:
        FILE.withdraw(bench, "the values in force stay until the next boot")
    if not shared:
        return
    sysctls = bench.need(bench.host.sysctls, "the kernel's settings")
    names = dict.fromkeys(rail.name for group in shared.values() for rail in group)
    keys = [key_of(name, setting) for name in ("all", *names) for setting in SETTINGS]
    if missing := [key for key in keys if key not in sysctls.live]:
        bench.unknown("settings of interfaces in one network were not read", missing)
        return
    _note_choices(bench, network, shared, sysctls.live)
    target = target_of(network, shared, sysctls)
    if bench.settings.manage:
        _repair(bench, shared, sysctls, target)
    elif wrong_now(sysctls, target):
        fix = "Take `manage: false` out of the section rails of remedy.yaml."
        bench.report(TITLE, _evidence(shared, sysctls.live), fix)


def _repair(
    bench: Workbench[RailsSpec], shared: Networks, sysctls: Sysctls, target: Mapping[str, str]
) -> None:
    """Plan what gives the rails their settings, now and after a reboot."""
    if not target:
        FILE.withdraw(bench, "others set what is needed")
        return
    wrong = wrong_now(sysctls, target)
    if not wrong and FILE.lasts(bench, target):
        FILE.note_overruled(bench, target)
        return
    evidence = tuple(_evidence(shared, sysctls.live))
    rails = {rail.name: rail for group in shared.values() for rail in group}
    if dead := [name for name, rail in rails.items() if not rail.running]:
        bench.blocked(
            f"no carrier on {' and '.join(dead)}, so the rails stay as they are",
            evidence,
            "Repair the link, or take the interface down: ip link set dev INTERFACE down",
        )
        return
    finding = bench.drift(
        TITLE if wrong else "after a reboot, the rails will not answer for their own addresses",
        evidence,
    )
    if FILE.keep(bench, target, because=finding) and wrong:
        bench.run(
            f"set {', '.join(f'{key} = {value}' for key, value in wrong.items())}",
            because=finding,
            risk=Risk.MEDIUM,
            guarded=True,
            **live_command({key: sysctls.live[key] for key in wrong}, wrong),
        )


def shared_networks(network: Network) -> dict[IPv4Network, list[Interface]]:
    """Return each network in which the host has several interfaces, and these."""
    members: dict[IPv4Network, list[Interface]] = {}
    for interface in network.interfaces:
        if interface.up and not interface.master and interface.kind != "loopback":
            for subnet in dict.fromkeys(_subnet(address) for address in _global(interface)):
                members.setdefault(subnet, []).append(interface)
    return {subnet: group for subnet, group in members.items() if len(group) > 1}


def target_of(network: Network, shared: Networks, sysctls: Sysctls) -> dict[str, str]:
    """Return the settings that are wrong in force or at boot, and those that the file has already."""
    kept = {line.key for line in sysctls.persisted if line.path == FILE.path}
    target: dict[str, str] = {}
    mixed: list[Interface] = []
    for subnet, group in shared.items():
        routed = is_source_routed(network, subnet, group)
        target |= {} if routed else _loose(group, sysctls, kept)
        if not routed or not all(in_force(sysctls.live, r.name, "arp_filter") for r in group):
            mixed += group
    for setting, least in (("arp_announce", 2), ("arp_ignore", 1)):
        key = key_of("all", setting)
        values = [value for rail in mixed for value in _values(sysctls, rail.name, setting)]
        if values and (key in kept or min(values) < least):
            target[key] = str(least)
    return target


def _loose(group: list[Interface], sysctls: Sysctls, kept: Set[str]) -> dict[str, str]:
    """Return rp_filter of each rail where it is strict, or where the file has it."""
    keys = {rail.name: key_of(rail.name, "rp_filter") for rail in group}
    return {
        key: str(LOOSE)
        for name, key in keys.items()
        if key in kept or STRICT in _values(sysctls, name, "rp_filter")
    }


def is_source_routed(network: Network, subnet: IPv4Network, group: list[Interface]) -> bool:
    """Return whether rules choose the way by each rail's address; one rail may have the main table."""
    sources = {rule.source for rule in network.rules}
    without = [
        rail
        for rail in group
        if any(a.address not in sources for a in _global(rail) if _subnet(a) == subnet)
    ]
    return len(without) <= 1


def in_force(live: Mapping[str, str], name: str, setting: str) -> int:
    """Return the value that counts for an interface: the larger of its own and of "all"."""
    return max(int(live[key_of(place, setting)]) for place in ("all", name))


def at_boot(sysctls: Sysctls, name: str, setting: str) -> int:
    """Return the value that will count after a reboot; the kernel's default is 0 for all of them."""
    lines = [sysctls.winner(key_of(place, setting)) for place in ("all", name, "default")]
    everywhere, local, new = (
        int(line.value) if line and is_number(line.value) else None for line in lines
    )
    return max(everywhere or 0, (new or 0) if local is None else local)


def key_of(name: str, setting: str) -> str:
    """Return the name of an interface's setting."""
    return f"net.ipv4.conf.{name.replace('.', '/')}.{setting}"


def _values(sysctls: Sysctls, name: str, setting: str) -> tuple[int, int]:
    return in_force(sysctls.live, name, setting), at_boot(sysctls, name, setting)


def _global(interface: Interface) -> Iterator[Address]:
    for address in interface.addresses:
        if address.version == 4 and address.scope == "global" and address.prefix < 32:
            yield address


def _subnet(address: Address) -> IPv4Network:
    return _network(f"{address.address}/{address.prefix}")


# Of each address of a host it is asked for several times.
@lru_cache(maxsize=1 << 10)
def _network(text: str) -> IPv4Network:
    return IPv4Interface(text).network


def _evidence(shared: Networks, live: Mapping[str, str]) -> Iterator[str]:
    for subnet, group in shared.items():
        for rail in group:
            values = ", ".join(f"{what} {in_force(live, rail.name, what)}" for what in SETTINGS[:3])
            yield f"{rail.name} in {subnet}: {values}"


def _note_choices(
    bench: Workbench[RailsSpec],
    network: Network,
    shared: Networks,
    live: Mapping[str, str],
) -> None:
    """Name what somebody chose and no setting of remedy's can overrule."""
    names: Iterable[str] = dict.fromkeys(rail.name for group in shared.values() for rail in group)
    chosen = {name: in_force(live, name, "arp_ignore") for name in names}
    if odd := {name: value for name, value in chosen.items() if value > max(OWN_ONLY)}:
        bench.blocked(
            "arp_ignore is above 2 on interfaces in one network",
            (f"{name}: arp_ignore {value}" for name, value in odd.items()),
            "Set net.ipv4.conf.all.arp_ignore and that of the interface to 1, where nothing needs more.",
        )
    filtered = [
        rail.name
        for subnet, group in shared.items()
        if not is_source_routed(network, subnet, group)
        for rail in group
        if in_force(live, rail.name, "arp_filter")
    ]
    if filtered:
        bench.blocked(
            "arp_filter is on without routing rules for the addresses, so only one rail answers",
            (f"{name}: arp_filter 1" for name in filtered),
            "Set net.ipv4.conf.*.arp_filter to 0, or route by source: ip rule add from ADDRESS table N",
        )


rails.promises(FILE.promise)
rails.observes(observation)


@rails.breaks
def two_rails(state: HostState) -> HostState:
    """Have a second interface in the network of the first, both with strict filtering."""
    if not isinstance(state.sysctls, Sysctls) or not isinstance(state.network, Network):
        return state
    first = next((i for i in state.network.interfaces if any(_global(i)) and not i.master), None)
    if first is None:
        return state
    local = next(_global(first))
    address = str(IPv4Interface(f"{local.address}/{local.prefix}") + 1).partition("/")[0]
    first = first.model_copy(update={"up": True, "running": True})
    second = first.model_copy(
        update={"name": "rail1", "addresses": (local.model_copy(update={"address": address}),)}
    )
    others = (i for i in state.network.interfaces if i.name not in (first.name, second.name))
    network = state.network.model_copy(update={"interfaces": (first, second, *others)})
    live = dict(state.sysctls.live)
    for name in ("all", first.name, second.name):
        live |= {key_of(name, what): "0" for what in SETTINGS}
        live[key_of(name, "rp_filter")] = str(STRICT)
    sysctls = state.sysctls.model_copy(update={"live": live})
    return state.model_copy(update={"network": network, "sysctls": sysctls})
