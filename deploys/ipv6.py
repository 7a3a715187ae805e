"""IPv6: kept as it is, switched off or switched on, on all hosts or on single interfaces.

Cures: programs that prefer IPv6 where only some hosts, or only link-local addresses, have it, so that they try
an address which no peer answers.

It is left alone unless the spec says otherwise. The warning of c10d that "The IPv6 network addresses of (host,
port) cannot be retrieved" is no reason to switch it off: it says that a name does not resolve; IPv6 is only
what is tried first. The remedy `hosts_file` cures that. "Address family not supported by protocol" (errno 97)
alone says that IPv6 is off, and is harmless. Where the ssh connection itself runs over IPv6, switching it off
is refused.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from remedy.plan import Finding, Fleet, FleetBench, Risk, Workbench, command, kernel, remedy
from remedy.probe import HostState, Kernel, Network
from remedy.spec import SpecSection
from remedy.text import counted
from remedy.values import Unknown

PATH = "/etc/sysctl.d/90-remedy-ipv6.conf"
FILE = kernel.SettingsFile(PATH, "where IPv6 is on and where it is off", default="0", guarded=True)
START, END = "net.ipv6.conf.", ".disable_ipv6"
WORDS = {"0": "on", "1": "off"}
NO_CURE = (
    "It does not cure c10d's warning about IPv6 network addresses: there a name does not resolve."
)
# Interfaces of containers come and go, and belong to whoever makes them.
OF_CONTAINERS = ("veth", "docker", "br-", "cni", "cali", "flannel", "lxc", "podman")

Toggle = Literal["keep", "disable", "enable"]
VALUES: Mapping[Toggle, str] = {"disable": "1", "enable": "0"}


class Ipv6Spec(SpecSection):
    """``mode``: for all interfaces of all hosts; ``interfaces``: by name, instead of the mode."""

    mode: Toggle = "keep"
    interfaces: Mapping[str, Toggle] = {}


Bench: TypeAlias = Workbench[Ipv6Spec]


def key_of(name: str) -> str:
    """Return the setting of an interface, in sysctl's way of writing a dot inside a name."""
    return f"{START}{name.replace('.', '/')}{END}"


def target_now(live: Mapping[str, str], spec: Ipv6Spec) -> dict[str, str]:
    """Return what each setting is to be in force, in the order in which they have to be written.

    ``all`` comes first: writing it writes every interface (Documentation/networking/ip-sysctl.rst).
    """
    target: dict[str, str] = {}
    if spec.mode != "keep":
        rest = [
            key
            for key in live
            if key.startswith(START)
            and key.endswith(END)
            and not key.startswith(OF_CONTAINERS, len(START))
        ]
        first = [key_of("all"), key_of("default")]
        target = dict.fromkeys([*first, *(k for k in rest if k not in first)], VALUES[spec.mode])
    for name, toggle in spec.interfaces.items():
        key = key_of(name)
        if key in live and (toggle != "keep" or key in target):
            target[key] = VALUES.get(toggle, live[key])
    return target


def target_at_boot(now: Mapping[str, str], spec: Ipv6Spec) -> dict[str, str]:
    """Return what the files are to say: the mode, and the interfaces that are named."""
    named = {key_of(name) for name in spec.interfaces}
    return {k: v for k, v in now.items() if k in named or k in (key_of("all"), key_of("default"))}


@remedy("IPv6", Ipv6Spec, cures=("ipv6-issue",), order=35, reads=(PATH,))
def ipv6(bench: Bench) -> None:
    """Decide where IPv6 of a host has to be on or off, and whether that is safe."""
    host, settings = bench.host, bench.settings
    if settings.mode == "keep" and all(word == "keep" for word in settings.interfaces.values()):
        FILE.withdraw(bench, "IPv6 stays as it is until the next boot")
        return
    sysctls = bench.need(host.sysctls, "the kernel's settings of IPv6")
    if key_of("all") not in sysctls.live:
        _note_absent(bench)
        return
    now = target_now(sysctls.live, settings)
    boot = target_at_boot(now, settings)
    wrong = kernel.wrong_now(sysctls, now)
    if wrong or not FILE.lasts(bench, boot):
        finding = _drift(bench, sysctls.live, wrong, boot)
        if _is_refused(bench, wrong) or not FILE.keep(bench, boot, because=finding):
            return
        if wrong:
            _switch(bench, sysctls.live, wrong, now, finding)
    FILE.note_overruled(bench, boot)


def _note_absent(bench: Bench) -> None:
    """Say what there is to say of a kernel without IPv6."""
    if bench.settings.mode != "enable" and "enable" not in bench.settings.interfaces.values():
        return
    kernel = bench.host.kernel
    line = kernel.command_line if isinstance(kernel, Kernel) else ""
    bench.blocked(
        "the kernel has no IPv6 that could be switched on",
        (word for word in line.split() if word.startswith("ipv6.")),
        "Take ipv6.disable=1 from the kernel's command line and reboot.",
    )


def _drift(
    bench: Bench, live: Mapping[str, str], wrong: Mapping[str, str], boot: Mapping[str, str]
) -> Finding:
    if not wrong:
        return bench.drift(
            "after a reboot, IPv6 will not be as the spec says",
            (f"at boot: needs {key} = {value}" for key, value in boot.items()),
        )
    state = " and ".join(sorted({WORDS.get(live[key], live[key]) for key in wrong}))
    return bench.drift(
        f"IPv6 is {state}, the spec says otherwise",
        (f"{key} = {live[key]}, needs {value}" for key, value in wrong.items()),
        NO_CURE if "1" in wrong.values() else "",
    )


def _is_refused(bench: Bench, wrong: Mapping[str, str]) -> bool:
    """Return whether IPv6 is not switched off: ssh itself uses it, or that is not known."""
    off = {key for key, value in wrong.items() if value == "1"}
    if not off:
        return False
    server, source = _ssh_server(bench.fleet, bench.host)
    fix = "Give ssh_hostname in the inventory as an IPv4 address."
    if server is None:
        title = "whether ssh itself runs over IPv6 is not known, so IPv6 is not switched off"
        bench.unknown(title, source, fix)
        return True
    network = bench.host.network
    carrier = network.carrier_of(str(server)) if isinstance(network, Network) else None
    if server.version == 4 or (carrier is not None and key_of(carrier.name) not in off):
        return False
    bench.blocked(
        "the ssh connection itself runs over IPv6, so it is not switched off", source, fix
    )
    return True


def _ssh_server(
    fleet: Fleet, host: HostState
) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address | None, str]:
    """Return the address of the host that ssh has connected to, and how that is known."""
    environment = {} if isinstance(host.environment, Unknown) else host.environment
    connection = environment.get("SSH_CONNECTION", "")
    words = connection.split()
    for text, source in (
        (words[2] if len(words) == 4 else "", f"SSH_CONNECTION={connection}"),
        (
            fleet.inventory.node(host.host).ssh_address,
            f"ssh_hostname of {host.host} in the inventory",
        ),
    ):
        try:
            address = ipaddress.ip_address(text.partition("%")[0])
        except ValueError:
            continue
        mapped = getattr(address, "ipv4_mapped", None)
        return (mapped or address), source
    return None, "there is no SSH_CONNECTION, and the inventory has a name"


def _switch(
    bench: Bench,
    live: Mapping[str, str],
    wrong: Mapping[str, str],
    now: Mapping[str, str],
    finding: Finding,
) -> None:
    # Writing `all` writes every interface, so all of them are watched and written.
    keys = now if key_of("all") in wrong else wrong
    after = {key: now[key] for key in keys}
    before = {key: live[key] for key in keys}
    off = [key for key in wrong if wrong[key] == "1"]
    losses = list(_lost_addresses(bench.host, off))
    names = [key.removeprefix(START).removesuffix(END) for key in wrong]
    place = "everywhere" if key_of("all") in keys else f"on {', '.join(names)}"
    bench.run(
        f"switch IPv6 {'off' if off else 'on'} {place}",
        because=finding,
        risk=Risk.HIGH if losses else Risk.MEDIUM,
        guarded=True,
        disrupts=_loss(losses),
        **kernel.live_command(before, after, " && ".join(command(words) for words in losses)),
    )


def _loss(commands: Sequence[Sequence[str]]) -> str:
    """Return what a host loses with IPv6, from the commands that bring it back; "" for nothing."""
    if not commands:
        return ""
    routes = sum("route" in words for words in commands)
    numbers = {"IPv6 address": len(commands) - routes, "IPv6 route": routes}
    lost = " and ".join(counted(number, noun) for noun, number in numbers.items() if number)
    over = "it" if len(commands) == 1 else "them"
    return f"takes {lost} from the host, and ends connections over {over}"


def _lost_addresses(host: HostState, off: list[str]) -> Iterator[list[str]]:
    """Yield the commands that bring back what goes with IPv6 and does not come back by itself."""
    if not isinstance(host.network, Network):
        return
    for interface in host.network.interfaces:
        if key_of(interface.name) not in off:
            continue
        for address in interface.addresses:
            if address.version == 6 and address.scope == "global":
                where = f"{address.address}/{address.prefix}"
                yield ["ip", "-6", "address", "replace", where, "dev", interface.name]
    for route in host.network.routes:
        if ":" in route.gateway and key_of(route.interface) in off:
            yield [
                *("ip", "-6", "route", "replace", route.destination, "via", route.gateway),
                *("dev", route.interface, "metric", str(route.metric)),
            ]


@ipv6.fleetwide
def unknown_interfaces(bench: FleetBench[Ipv6Spec]) -> None:
    """Find interfaces that the spec names and no host has."""
    networks = [state.network for state in bench.fleet.states.values()]
    known = {i.name for n in networks if isinstance(n, Network) for i in n.interfaces}
    if not networks or any(isinstance(network, Unknown) for network in networks):
        return
    for name in bench.settings.interfaces:
        if name not in known:
            bench.report(
                f"no host has an interface {name!r}, which ipv6.interfaces names",
                f"there are: {', '.join(sorted(known))}",
                "Correct the name in remedy.yaml.",
            )


ipv6.promises(FILE.promise)
ipv6.observes(kernel.observation)
