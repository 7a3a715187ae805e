"""Interfaces, addresses and routes."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from remedy.probe.frames import NoAnswerError, Sections
from remedy.values import Record

MOST_INTERFACES = 4_000
"""A host of many containers has some hundred."""

MOST_ADDRESSES = 20_000
"""kube-proxy gives one interface the address of each service of its cluster, of which 10,000 are supported."""


class Address(Record):
    """An address of an interface; ``scope`` is "global", "link" or "host" (ip-address(8))."""

    address: str
    prefix: int
    scope: str

    @property
    def version(self) -> int:
        """Return 4 or 6."""
        return 6 if ":" in self.address else 4


class Interface(Record):
    """A network interface (ip-link(8), Documentation/ABI/testing/sysfs-class-net).

    ``state`` is the kernel's operational state ("UP", "DOWN", "UNKNOWN", ...); ``running`` that it has a
    carrier. ``kind`` is "physical" for a device on a bus, "loopback", else the link type ("veth", "bridge",
    "bond", "vlan", "tun", ...), "virtual" where the kernel names none. ``speed`` is in Mb/s, ``None`` where it
    is not known. ``master`` is the bond or bridge that it is a member of, "" for none.
    ``mac`` is its address on the wire, "" where it has none; ``arp`` whether it answers who asks for it (no
    flag NOARP); ``xdp`` the eBPF program that sees each packet before the kernel does, "" for none.
    """

    name: str
    index: int
    kind: str
    state: str
    up: bool
    running: bool
    mtu: int
    speed: int | None
    driver: str
    master: str
    addresses: tuple[Address, ...]
    mac: str = ""
    arp: bool = True
    xdp: str = ""
    discipline: str = ""

    @property
    def ipv4(self) -> tuple[str, ...]:
        """Return its IPv4 addresses, in the kernel's order."""
        return tuple(address.address for address in self.addresses if address.version == 4)


class Route(Record):
    """A route of the main table; ``destination`` "default" or a network, ``gateway`` "" when on the link."""

    destination: str
    gateway: str
    interface: str
    source: str
    metric: int


class RoutingRule(Record):
    """A rule of policy routing (ip-rule(8)); rules are in the order of their priority."""

    source: str
    table: str


class Network(Record):
    """The host's interfaces, the IPv4 and IPv6 routes of its main table, and its routing rules."""

    interfaces: tuple[Interface, ...]
    routes: tuple[Route, ...]
    rules: tuple[RoutingRule, ...]

    def interface(self, name: str) -> Interface | None:
        """Return the interface of that name."""
        return next((interface for interface in self.interfaces if interface.name == name), None)

    def carrier_of(self, address: str) -> Interface | None:
        """Return the interface that has ``address``."""
        return next(
            (i for i in self.interfaces if any(a.address == address for a in i.addresses)), None
        )


def parse_network(sections: Sections) -> Network:
    """Read section ``ip`` (three JSON arrays: addresses, routes, rules) and sysfs."""
    text = sections.text("ip")
    arrays = [value for value in sections.json_lines(text) if isinstance(value, list)]
    if len(arrays) != 3:
        raise NoAnswerError(
            f"ip printed no JSON (iproute2 4.13 and later can): {text.strip()[:80]}"
        )
    if len(arrays[0]) > MOST_INTERFACES:
        raise NoAnswerError(f"it has more than {MOST_INTERFACES:,} interfaces")
    if sum(len(entry.get("addr_info", ())) for entry in arrays[0]) > MOST_ADDRESSES:
        raise NoAnswerError(f"it has more than {MOST_ADDRESSES:,} addresses")
    try:
        sysfs: Mapping[str, list[str]] = sections.lines("links")
    except NoAnswerError:
        sysfs = {}  # a driver that hangs: speed and driver are not known then
    return Network(
        interfaces=tuple(_interface(entry, sysfs) for entry in arrays[0] if "ifname" in entry),
        routes=(
            *(_route(entry) for entry in arrays[1] if "dst" in entry),
            *_ipv6_routes(sections.lines("kernel").get("/proc/net/ipv6_route", [])),
        ),
        rules=tuple(
            RoutingRule(
                source=str(rule.get("src", "all")),
                table=str(rule.get("table", "")),
            )
            for rule in arrays[2]
        ),
    )


def _interface(entry: Mapping[str, Any], sysfs: Mapping[str, list[str]]) -> Interface:
    name = entry["ifname"]
    folder = f"/sys/class/net/{name}/"
    device = sysfs.get(f"{folder}device/uevent")
    speed = int((sysfs.get(f"{folder}speed") or ["-1"])[0] or -1)
    flags = entry.get("flags", ())
    return Interface(
        name=name,
        index=entry["ifindex"],
        kind=_kind(entry, device is not None or f"{folder}device/modalias" in sysfs),
        state=entry.get("operstate", "UNKNOWN"),
        up="UP" in flags,
        running="LOWER_UP" in flags,
        mtu=entry["mtu"],
        speed=speed if 0 < speed < 2**32 - 1 else None,
        driver=next((line[7:] for line in device or () if line.startswith("DRIVER=")), ""),
        master=entry.get("master", ""),
        addresses=tuple(
            Address(address=a["local"], prefix=a["prefixlen"], scope=a.get("scope", ""))
            for a in entry.get("addr_info", ())
            if "local" in a
        ),
        mac=entry.get("address", ""),
        arp="NOARP" not in flags,
        xdp=_xdp(entry),
        discipline=entry.get("qdisc", ""),
    )


def _xdp(entry: Mapping[str, Any]) -> str:
    program = entry.get("xdp")
    if not program:
        return ""
    details = program.get("prog") or (program.get("attached") or [{}])[0].get("prog") or {}
    return str(details.get("name") or f"program {details.get('id', '')}".strip())


def _kind(entry: Mapping[str, Any], on_a_bus: bool) -> str:
    if entry.get("link_type") == "loopback":
        return "loopback"
    kind = entry.get("linkinfo", {}).get("info_kind")
    if kind:
        return str(kind)
    return "physical" if on_a_bus else "virtual"


def _route(entry: Mapping[str, Any]) -> Route:
    hop = (entry.get("nexthops") or [{}])[0]
    return Route(
        destination=entry["dst"],
        gateway=entry.get("gateway", hop.get("gateway", "")),
        interface=entry.get("dev", hop.get("dev", "")),
        source=entry.get("prefsrc", ""),
        metric=entry.get("metric", 0),
    )


def _ipv6_routes(lines: list[str]) -> list[Route]:
    """Read /proc/net/ipv6_route without loopback, link-local, multicast and the local table's routes."""
    routes = []
    for line in lines:
        words = line.split()
        if len(words) != 10 or words[9] == "lo" or words[0].startswith(("fe80", "ff")):
            continue
        if int(words[8], 16) & 0x80000000:  # RTF_LOCAL
            continue
        network = ipaddress.IPv6Address(int(words[0], 16))
        gateway = ipaddress.IPv6Address(int(words[4], 16))
        length = int(words[1], 16)
        routes.append(
            Route(
                destination="default" if length == 0 else f"{network}/{length}",
                gateway=str(gateway) if int(gateway) else "",
                interface=words[9],
                source="",
                metric=int(words[5], 16),
            )
        )
    return routes
