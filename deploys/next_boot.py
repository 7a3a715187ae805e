"""The next boot: what would be wrong after it, though it is right now.

Finds what files say about the next boot and what runs now does not: a service that runs and is not started at
boot (sshd, the network's, the batch system, the fabric manager of the GPUs, docker, a service for the clock),
files of sshd's by which it does not start again, or lets in nobody who got in now, a line of /etc/fstab whose
device is not there, so that the boot ends in emergency mode, a target of systemd's that starts no services
(rescue, one that is not there or is masked), another MTU or address of the cluster interface, a route or rule
that loses a peer, packet loss that a script sets up, IPv6 switched off or on by a sysctl file or by the
kernel's command line, or other words of the boot loader's, the network of the cluster for Docker's bridge, a
module that is loaded now and will not be, a systemd-sysctl that is masked, so that no setting of /etc/sysctl.d
comes into force, a line of tmpfiles.d, of udev's rules or of a script that writes another kernel setting or MTU
than is in force now, or a file that remedy knows. A script, a unit or a line of cron's that closes the firewall
at boot or loads rules from a file of its own is UNKNOWN; so is a line that writes a setting where it depends on
something: in a branch or a function, after a way out of the script, with a variable in it, in a unit that may
not be started. A file that could not be searched (a pipe, or far too large) is UNKNOWN by itself.

Each of the other remedies judges what it looks after now and for the next boot: names, limits, sizes, ports,
rails, firewalls. This one reports what belongs to none of them, with file and line. It changes nothing: the
files are those of the network configuration and the boot loader.

How it is judged: files of netplan, ifupdown, systemd-networkd, NetworkManager and network-scripts are searched
for the lines that name an interface, its MTU and routes; the boot loader's for the kernel's command line. sshd
is asked what it makes of its files (`sshd -T`) where one of them is younger than what it has read. What a DHCP
server or a script of another name does at boot is not seen.

Sources: netplan(5), interfaces(5), systemd.network(5), nm-settings(5), modprobe.d(5),
systemd-sysctl.service(8).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import Field

from remedy.causes import Cause
from remedy.deploys._boot_anew import note_docker, note_machine_id
from remedy.deploys._boot_lines import NETWORK, BootLine, is_run, lines_of, mtu_lines
from remedy.deploys._boot_mounts import note_mounts
from remedy.deploys._boot_scripts import NOT_AT_BOOT
from remedy.deploys._boot_services import note_services
from remedy.deploys._boot_sshd import note_sshd
from remedy.deploys._boot_target import note_command_line, note_target
from remedy.deploys._boot_writes import note_writes
from remedy.deploys._peers import Place, names_of, place_of
from remedy.deploys._unsearched import AT_BOOT, note_unsearched
from remedy.firewall import spans
from remedy.plan import Workbench, remedy
from remedy.probe import Firewalls, HostState, Mention, Sysctls, Unit
from remedy.spec import SpecSection
from remedy.values import Fact, Unknown

CAUSE = Cause(
    name="boot-differs",
    group="Launch",
    cause="What the host's files and services make of it at boot is not what it is now.",
    confirm="`remedy check` names the file and the line; after a boot, `remedy check --after-reboot`.",
    fix="Change the file, or enable the service.",
    silent="nothing fails before the next boot",
)
LOST = ("unreachable", "blackhole", "prohibit")
WITHOUT_PREFIX = ("/etc/network/", "/etc/sysconfig/network-scripts/")
_ADDRESS = re.compile(r"(?<![\d.])(\d+\.\d+\.\d+\.\d+(?:/\d+)?)(?![\d.])")
_STATIC = re.compile(r"^\s*(?:-\s*\"?\d|addresses\s*:|address\d*[=\s]|Address\s*=|IPADDR\d*\s*=)")
_DYNAMIC = re.compile(
    r"^\s*(?:dhcp4\s*:\s*(?:true|yes)|DHCP\s*=\s*(?:yes|ipv4|true)|BOOTPROTO\s*=\s*\"?dhcp|method\s*=\s*auto"
    r"|iface\s+\S+\s+inet\s+dhcp)"
)
_TYPE = re.compile(r"\s*(?:type|Type)\s*[:=]")
_WORD = re.compile(r"[^\s\"';&|()]+")
_DOWN, _AWAY = frozenset(("down", "ifdown")), frozenset(("flush", "del", "delete"))
_ADDR = frozenset(("addr", "address", "a"))


COMMANDS = (
    *(
        "/etc/systemd/system/",
        "/usr/local/lib/systemd/system/",
        "/etc/crontab",
        "/etc/cron.d/",
        "/var/spool/cron/",
    ),
    *(
        "/etc/udev/rules.d/",
        "/usr/local/lib/udev/rules.d/",
        "/etc/cloud/",
        "/etc/rc.d/",
        "/etc/init.d/",
        "/etc/dhcp/",
    ),
    *("/etc/ufw/before.init", "/etc/ufw/after.init"),
)
SCRIPTS = (*NETWORK, *COMMANDS)
_LOADS = re.compile(r"\bip6?tables(-legacy|-nft)?-restore\b|\bnft\b.*\s-f\b")
_CLOSES = re.compile(
    r"\bip6?tables(-legacy|-nft)?\s.*((-P|--policy)\s+(INPUT|OUTPUT)\s+DROP|(-j|--jump)\s+(DROP|REJECT))"
    r"|\bnft\s.*\b(drop|reject)\b"
    r"|\bufw\s.*\benable\b|\bfirewall-cmd\s.*--panic-on\b"
)
_NARROW = re.compile(
    r"\s(-s|--source|-d|--destination|-i|--in-interface|-o|--out-interface|saddr|daddr|iif|oif|iifname|oifname)\s"
    r"|\s(--dports?|dport)\s+\d{1,3}(\s|$)|\s-p\s+(udp|icmp)"
)


class NextBootSpec(SpecSection):
    """``report``: whether what the next boot changes is looked for; ``accept``: lines of scripts that close or
    load a firewall, or write settings at boot, lines of /etc/fstab and words of sshd, which are right as they
    are, each with its file, as findings show it.
    """

    report: bool = True
    accept: tuple[str, ...] = Field((), examples=[["/etc/rc.local: iptables -P INPUT DROP"]])


Bench = Workbench[NextBootSpec]


@remedy(
    "The next boot",
    NextBootSpec,
    finds=(CAUSE,),
    order=91,
)
def next_boot(bench: Bench) -> None:
    """Look for what files say of the next boot and what runs now does not."""
    if not bench.settings.report:
        return
    with bench.part():
        note_services(bench, bench.known(bench.host.units))
    with bench.part():
        note_sshd(bench, bench.settings.accept)
    with bench.part():
        note_mounts(bench, bench.settings.accept)
    note_target(bench)
    note_machine_id(bench)
    with bench.part():
        _note_ipv6(bench, bench.known(bench.host.sysctls))
    note_unsearched(bench, "does at boot", under=AT_BOOT)
    mentions = bench.need(bench.host.mentions, "the files of shells, services and the network")
    place = place_of(bench.fleet, bench.host)
    if place is not None:
        _note_mtu(bench, mentions, place)
        _note_address(bench, mentions, place)
        _note_routes(bench, mentions, place)
        _note_down(bench, mentions, place)
        note_docker(bench, place)
    _note_loss(bench, mentions)
    _note_firewall(bench, mentions)
    note_writes(bench, mentions, place, bench.settings.accept)
    note_command_line(bench, mentions)
    _note_modules(bench, mentions)


# --- IPv6, command line, modules ---------------------------------------------------------------------------


def _note_ipv6(bench: Bench, sysctls: Sysctls) -> None:
    """Report settings of files that switch IPv6 off or on where it is not so now."""
    for name in ("all", "default"):
        key = f"net.ipv6.conf.{name}.disable_ipv6"
        line, live = sysctls.winner(key), sysctls.live.get(key)
        if (
            line is not None
            and live is not None
            and line.value != live
            and line.value in ("0", "1")
        ):
            bench.report(
                f"after the next boot, IPv6 is {'off' if line.value == '1' else 'on'}, and now it is not",
                f"{line.path}:{line.line}: {key} = {line.value}; now {live}",
                "Remove that line, or say in remedy.yaml how it is to be: ipv6.mode",
            )
            return


def _note_modules(bench: Bench, mentions: Sequence[Mention]) -> None:
    """Report modules that are loaded now and that modprobe.d keeps from being loaded at boot."""
    kernel = bench.host.kernel
    if isinstance(kernel, Unknown):
        return
    for mention in mentions:
        words = mention.text.split()
        if not mention.path.startswith("/etc/modprobe.d/") or len(words) < 2:
            continue
        name = words[1].replace("-", "_")
        refused = words[0] == "install" and words[2:3] in (["/bin/false"], ["/bin/true"])
        if (words[0] == "blacklist" or refused) and name in kernel.modules:
            bench.report(
                f"after the next boot, the module {name} may not be loaded: it is now",
                f"{mention.path}:{mention.line}: {' '.join(words)}",
                "Remove that line if the module is needed, and make the initramfs again.",
            )


# --- the network's configuration ---------------------------------------------------------------------------


def _note_mtu(bench: Bench, mentions: Sequence[Mention], place: Place) -> None:
    """Name an MTU of the cluster interface, or of the loopback one, that is another than that in force."""
    interfaces = (place.carrier, *(i for i in place.network.interfaces if i.kind == "loopback"))
    for interface in interfaces:
        by_file = {
            line.mention.path: (mtu, line)
            for mtu, line in mtu_lines(bench.host, mentions, interface.name)
        }
        if not by_file or any(mtu == interface.mtu for mtu, _ in by_file.values()):
            continue
        mtu = next(iter(by_file.values()))[0]
        bench.blocked(
            f"after the next boot, the MTU of {interface.name} is {mtu}, and now it is {interface.mtu}",
            (line.shown for _, line in by_file.values()),
            "Write the MTU of the other hosts there: remedy check compares what is in force.",
        )


def _note_address(bench: Bench, mentions: Sequence[Mention], place: Place) -> None:
    """Name a configuration that gives the cluster interface another address than the cluster's."""
    lines: dict[str, BootLine] = {}
    for line in lines_of(bench.host, mentions):
        text = line.mention.text
        if line.interface != place.carrier.name:
            continue
        if _DYNAMIC.match(text):
            return  # who gives it an address is asked at boot
        # Where a prefix belongs to each address, one without is a name server or a gateway.
        needs_prefix = not line.mention.path.startswith(WITHOUT_PREFIX)
        for address in _ADDRESS.findall(text) if _STATIC.match(text) else ():
            if "/" in address or not needs_prefix:
                lines.setdefault(address.partition("/")[0], line)
    if lines and place.address not in lines:
        bench.blocked(
            f"after the next boot, {place.carrier.name} has {' and '.join(lines)}, and not the cluster "
            f"address {place.address}",
            (line.shown for line in lines.values()),
            "Write the address there that peers know, or correct the inventory.",
        )


def _note_routes(bench: Bench, mentions: Sequence[Mention], place: Place) -> None:
    """Name routes and rules of files that lose peers."""
    lines = list(lines_of(bench.host, mentions, SCRIPTS))
    for at, line in enumerate(lines):
        text = line.mention.text
        near = [text]
        for later in lines[
            at + 1 : at + 3
        ]:  # netplan and networkd have the type on a line of its own
            if later.mention.path == line.mention.path and _TYPE.match(later.mention.text):
                near.append(later.mention.text)
        words = set(re.findall(r"\w+", " ".join(near)))
        if not words & set(LOST):
            continue
        for address in _ADDRESS.findall(text):
            try:
                part = spans.meet(spans.of_networks([address]), place.peers)
            except ValueError:
                continue
            if part:
                bench.blocked(
                    f"after the next boot, this host drops what it sends to {names_of(bench.fleet, part)}",
                    line.shown,
                    "Remove that route or rule from the file, if nothing needs it.",
                )


def _note_loss(bench: Bench, mentions: Sequence[Mention]) -> None:
    """Name scripts that try a bad network."""
    for line in lines_of(bench.host, mentions, SCRIPTS):
        if re.search(r"\btc\b.*\b(netem|blackhole)\b", line.mention.text):
            bench.blocked(
                "after the next boot, traffic control loses or delays packets",
                line.shown,
                "Remove that line, if nothing needs it.",
            )


def _note_down(bench: Bench, mentions: Sequence[Mention], place: Place) -> None:
    """Name commands that take the cluster interface down, or its address away."""
    for line in lines_of(bench.host, mentions, SCRIPTS):
        words = set(_WORD.findall(line.mention.text))
        takes = place.carrier.name in words and (_DOWN & words or (_AWAY & words and _ADDR & words))
        if takes and not any(part in line.mention.path for part in NOT_AT_BOOT):
            bench.blocked(
                f"after the next boot, a script takes {place.carrier.name} down, or its address away",
                line.shown,
                "Remove that line, if nothing needs it.",
            )


def _note_firewall(bench: Bench, mentions: Sequence[Mention]) -> None:
    """Name lines of scripts that close the firewall at boot, or load rules where none are in force."""
    is_loaded = _has_rules(bench.host.firewalls)
    for mention in mentions:
        text = mention.text.strip()
        if not is_run(mention) or not mention.path.startswith(SCRIPTS):
            continue
        closes = _CLOSES.search(text) and not _NARROW.search(text)
        if not closes and (is_loaded or not _LOADS.search(text)):
            continue
        shown = f"{mention.path}: {text}"
        quote = "'" if '"' in text else '"'
        if shown not in bench.settings.accept:
            bench.unknown(
                "after the next boot, a script may keep the cluster's hosts out",
                f"{mention.path}:{mention.line}: {text}",
                f"If it lets them through, add to next_boot.accept in remedy.yaml: {quote}{shown}{quote}",
            )


def _has_rules(firewalls: Fact[Firewalls]) -> bool:
    """Return whether rules about what a host gets or sends are in force, or whether that is not known.

    What a script loaded at the last boot is judged with all others that are in force.
    """
    if isinstance(firewalls, Unknown) or isinstance(firewalls.nft, Unknown):
        return True
    texts = (firewalls.iptables_legacy, firewalls.ip6tables_legacy)
    return any(
        chain.hook in ("ingress", "input", "output") and (chain.rules or chain.policy == "drop")
        for chain in firewalls.nft.chains
    ) or any(isinstance(text, str) and "-A " in text for text in texts)


@next_boot.breaks
def boots_otherwise(state: HostState) -> HostState:
    """Have a service that nothing starts at boot, and a script that drops everything."""
    if isinstance(state.units, Unknown) or isinstance(state.mentions, Unknown):
        return state
    unit = Unit(name="slurmd.service", load="loaded", active="active", enabled="disabled")
    line = Mention(path="/etc/rc.local", line=2, text="iptables -P INPUT DROP")
    more = {"units": {**state.units, unit.name: unit}, "mentions": (*state.mentions, line)}
    return state.model_copy(update=more)
