"""Lines of network configurations and of scripts that are carried out at boot. Not a remedy.

What each is about is the interface that its file, or a line before it, names: netplan(5), interfaces(5),
systemd.network(5), nm-settings(5), ifcfg(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from remedy.bounds import fits_name
from remedy.deploys._boot_writes import writes
from remedy.probe import HostState, Mention, Network

NETWORK = (
    *("/etc/netplan/", "/etc/network/", "/etc/systemd/network/", "/etc/NetworkManager/"),
    *("/etc/sysconfig/network-scripts/", "/etc/networkd-dispatcher/", "/etc/rc.local"),
)
_MTU = re.compile(r"^\s*(?:mtu|MTU|MTUBytes)\s*[:=\s]\s*\"?(\d+)")
_NAMES = re.compile(
    r"^\s*(?:iface\s+(\S+)|(?:Name|OriginalName|interface-name|DEVICE)\s*=\s*\"?([^\"\s]+)|([\w.-]+):\s*$)"
)


@dataclass(frozen=True)
class BootLine:
    """A line of a network configuration, and the interface that it is about ("" where none is named)."""

    mention: Mention
    interface: str

    @property
    def shown(self) -> str:
        """Return the place and the line, for evidence."""
        return f"{self.mention.path}:{self.mention.line}: {self.mention.text.strip()[:100]}"


def is_run(mention: Mention) -> bool:
    """Return whether a line is carried out at boot, as far as it shows that itself."""
    text = mention.text.strip()
    return "@reboot" in text if "/cron" in mention.path else not text.startswith(("#", ";"))


def lines_of(
    host: HostState, mentions: Sequence[Mention], places: tuple[str, ...] = NETWORK
) -> Iterator[BootLine]:
    """Yield the lines of network configurations, or of other ``places``, in the order of each file."""
    known = {i.name for i in host.network.interfaces} if isinstance(host.network, Network) else ()
    path = interface = ""
    for mention in sorted(mentions, key=lambda m: (m.path, m.line)):
        if not mention.path.startswith(places) or not is_run(mention):
            continue
        if mention.path != path:
            path, name = mention.path, mention.path.rpartition("/")[2]
            interface = name.partition("-")[2] if name.startswith("ifcfg-") else ""
        match = _NAMES.match(mention.text)
        name = (match[1] or match[2] or match[3]) if match is not None else ""
        interface = name if name in known else interface
        yield BootLine(mention, interface)


def mtu_lines(
    host: HostState, mentions: Sequence[Mention], interface: str
) -> Iterator[tuple[int, BootLine]]:
    """Yield the lines of network configurations that give an interface its MTU, each with that MTU."""
    for line in lines_of(host, mentions):
        match = _MTU.match(line.mention.text)
        if match is not None and line.interface == interface:
            yield int(match[1]), line


def sources(mentions: Sequence[Mention], path: str, value: str) -> Iterator[str]:
    """Yield the lines of scripts, tmpfiles.d and udev that write a value to a path at boot."""
    for mention, write in writes(mentions):
        if write.value == value and fits_name(path, write.path):
            yield f"{mention.path}:{mention.line}: {mention.text.strip()[:100]}"
