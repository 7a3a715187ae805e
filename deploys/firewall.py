"""Firewall: the cluster's hosts reach each other on the ports that training needs, and nobody else does.

Cures: rendezvous that hangs without a message, because a firewall drops what peers send; "No route to host",
with which a firewall refuses; ranks that join and then hang, because the master's port is open and the
ports between the workers are not; hosts that may not connect to others (`ufw default deny outgoing`); rules
that still let in a host that has left.

Each chain that packets between two hosts of the cluster pass is judged, in both directions: input, output,
prerouting and postrouting of all tables, ingress and egress, bridges, ARP. Where hosts talk over IPv6 (names
lead there first and stay so, NCCL_SOCKET_FAMILY, an inventory with nothing else), its rules are judged as well,
and named; where they only could, that is a report. A rule of which it cannot be known
from its text whether it drops such packets (a rate limit, a time of day, a queue to a program) is reported as
unknown, with its text; `accepted_rules` accepts it.

What is opened is computed for each host: its own range of ports for new sockets, the ports of the launchers
in use and those of remedy's verification, for the cluster addresses in the inventory and nothing else. The
rule goes to where it takes effect, in each firewall that keeps peers out, and is there after a reload and a
reboot. A firewall that is off stays off; one that is on is switched off only where the spec says `mode: off`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from remedy.deploys import _frameworks
from remedy.deploys._ipv6 import ipv6_peers
from remedy.deploys._packets import all_client_ports, client_ports, path_of
from remedy.deploys._peers import all_addresses
from remedy.deploys._walls import (
    Reasons,
    alike,
    explain,
    note_doubts,
    note_leftover,
    note_stuck,
    present_of,
    shared_ways,
    without_doubts_of_services,
)
from remedy.deploys._walls_beside import note_beside
from remedy.deploys._walls_ipv6 import note_walls_of_ipv6
from remedy.firewall import firewalld, iptables, nftables, spans
from remedy.firewall.boot.armed import PacketQuestion
from remedy.firewall.hooks import Path
from remedy.firewall.ports import (
    RANGE_KEY,
    VERIFICATION,
    Framework,
    Need,
    Ports,
    Sender,
    boot_range,
    kernel_range,
    parse_ports,
)
from remedy.firewall.spans import Spans
from remedy.firewall.step import Amendment, CommandStep, FileStep, Opening, Side, Way, opening_of
from remedy.firewall.traffic import NOTHING, Traffic
from remedy.firewall.walls import (
    AT_BOOT,
    NO_RULES,
    Wall,
    any_rules,
    unknowns,
    walls_of,
    with_the_next_boot,
)
from remedy.plan import Change, CommandAction, Finding, FindingKind, Fleet, Risk, Workbench, remedy
from remedy.plan.fleet import once_a_fleet
from remedy.probe import Firewalls, HostState, Sysctls
from remedy.spec import SpecSection
from remedy.values import Unknown


def _mode(value: object) -> object:
    """Take YAML's word: a bare ``off`` is read as false."""
    return "off" if value is False else value


_LIMITED = "-A INPUT -m hashlimit --hashlimit-above 9/sec --hashlimit-name peers -j DROP"


class FirewallSpec(SpecSection):
    """What to do about firewalls.

    ``mode``: "open" lets the cluster's hosts in where a firewall keeps them out; "leave" only reports; "off"
    switches active firewalls off. ``frameworks``: whose launcher ports are opened; without it torch's, and
    those of Open MPI, Paddle, MindSpore and HCCL where a host has them. ``ports``: further ports or ranges
    ("9000-9100"). ``also_from``: addresses or networks besides the hosts, such as a login node.
    ``accepted_rules``: rules that cannot be judged and that you know to drop nothing of the cluster's, each
    by its text as a finding shows it.
    """

    mode: Annotated[Literal["open", "leave", "off"], BeforeValidator(_mode)] = "open"
    frameworks: tuple[Framework, ...] | None = Field(None, examples=[["torch", "mpi"]])
    ports: tuple[Ports, ...] = ()
    also_from: tuple[Sender, ...] = ()
    accepted_rules: tuple[str, ...] = Field((), examples=[(_LIMITED,)])


Bench: TypeAlias = Workbench[FirewallSpec]


def port_range(fleet: Fleet, host: HostState) -> tuple[int, int] | None:
    """Return the ports that new sockets get on a host: what the spec wants, else what the kernel has."""
    chosen = _chosen_range(fleet)
    if chosen is not None:
        return chosen
    return kernel_range(host.sysctls) if isinstance(host.sysctls, Sysctls) else None


def _chosen_range(fleet: Fleet) -> tuple[int, int] | None:
    chosen: tuple[int, int] | None = getattr(fleet.spec.sections.get("port_range"), "range", None)
    return chosen


def needs(fleet: Fleet, host: HostState, spec: FirewallSpec) -> tuple[Need, ...]:
    """Return every range of ports that has to be open on a host, each with its reason."""
    result = []
    bounds = port_range(fleet, host)
    if bounds is not None:
        result.append(Need(*bounds, f"{RANGE_KEY}: NCCL, gloo, MPI and c10d between the workers"))
        later = boot_range(host.sysctls) if isinstance(host.sysctls, Sysctls) else None
        if later not in (None, bounds) and not _chosen_range(fleet):
            result.append(Need(*later, f"{RANGE_KEY} after the next boot"))
    result += _frameworks.needs(fleet, host)
    result.append(VERIFICATION)
    port = fleet.spec.verify.port
    if port is not None:
        result.append(Need(port, port, "verify.port of the spec"))
    result += [Need(*parse_ports(text), "firewall.ports of the spec") for text in spec.ports]
    return tuple(result)


def sources(fleet: Fleet, spec: FirewallSpec) -> Spans:
    """Return the cluster addresses of all hosts; a host reaches itself by its own, so it is among them."""
    more = spec.also_from
    return _spans((*fleet.known_addresses, *more)) if more else all_addresses(fleet)


# All hosts of a fleet ask for the same addresses.
_spans = lru_cache(maxsize=8)(spans.of_networks)


def target_opening(
    fleet: Fleet,
    host: HostState,
    spec: FirewallSpec,
    now: Opening | None,
    ways: Sequence[Way] = ("in",),
) -> Opening:
    """Return what remedy's rules on a host are to let through.

    While the address of some host is not known, nobody who is let through ``now`` is shut out; while it is not
    known what some host trains with, no port is closed.
    """
    if len(fleet.inventory.names) < 2 and not spec.also_from and spec.mode != "off":
        return Opening()
    peers = sources(fleet, spec)
    if now is not None and len(fleet.known_addresses) < len(fleet.inventory.names):
        peers = spans.merge([*peers, *now.sources, *now.targets])
    ports = {
        "in": spans.merge((n.low, n.high) for n in needs(fleet, host, spec)),
        "out": _needed_anywhere(fleet),
    }
    if now is not None and not _frameworks.is_settled(fleet):
        ports["in"] = spans.merge([*ports["in"], *now.ports])
        ports["out"] = spans.merge([*ports["out"], *now.target_ports])
    if spec.mode == "off":
        peers, ports = spans.ALL_ADDRESSES, dict.fromkeys(ports, ((1, 65535),))
    return opening_of(Side(way, peers, ports[way]) for way in ways)


@once_a_fleet
def _needed_anywhere(fleet: Fleet) -> Spans:
    """Return the ports that have to be open on some host."""
    return spans.merge((need.low, need.high) for need in _needs_anywhere(fleet))


@once_a_fleet
def _needs_anywhere(fleet: Fleet) -> tuple[Need, ...]:
    """Return every range of ports that has to be open on some host."""
    spec = fleet.spec.sections.get("firewall")
    settings = spec if isinstance(spec, FirewallSpec) else FirewallSpec()
    hosts = fleet.states.values()
    return tuple(dict.fromkeys(n for host in hosts for n in needs(fleet, host, settings)))


@remedy(
    "Firewall",
    FirewallSpec,
    cures=("firewall-ports",),
    order=40,
    reads=(nftables.INCLUDED, *firewalld.FILES),
)
def firewall(bench: Bench) -> None:
    """Decide which firewalls of a host keep peers out, and what lets them in."""
    host, settings = bench.host, bench.settings
    firewalls = bench.need(host.firewalls, "the firewalls")
    path = _path(bench)
    for name, reason in unknowns(host, firewalls, bridged=path.bridged):
        bench.unknown(f"could not read what {name} lets in", reason)
    needed, anywhere = needs(bench.fleet, host, settings), _needs_anywhere(bench.fleet)
    if ipv6_peers(bench.fleet).addresses:
        reasons = Reasons(needed, anywhere, True).without_services
        note_walls_of_ipv6(bench, firewalls, _question(bench, reasons, path), reasons)
    if not any_rules(host, firewalls):
        return
    reasons = Reasons(needed, anywhere, settings.mode == "leave")
    walls = _walls(host, firewalls, _question(bench, reasons, path))
    if reasons.without_services != reasons and any(wall.doubts for wall in walls):
        walls = without_doubts_of_services(
            walls, _walls(host, firewalls, _question(bench, reasons.without_services, path))
        )
    note_beside(bench, firewalls, walls, _question(bench, reasons.without_services, path), reasons)
    present: Opening | None = None
    for wall in walls:
        note_doubts(bench, wall)
        if wall.leftover:
            note_leftover(bench, wall)
        elif settings.mode == "off" and wall.switch:
            _switch_off(bench, wall)
        else:
            present = _settle(bench, wall, alike(wall, walls), reasons, present)
    if bench.changes and settings.mode == "open" and port_range(bench.fleet, host) is None:
        title = f"could not read {RANGE_KEY}, so what to open is not known"
        bench.unknown(title, fix=f"See that the probe can read it: sysctl {RANGE_KEY}")
        bench.withdraw()


def _walls(host: HostState, firewalls: Firewalls, question: PacketQuestion) -> tuple[Wall, ...]:
    """Return what the firewalls of a host do with packets of the cluster, now and after the next boot."""
    walls = walls_of(host, firewalls, question.traffic, question.path, question.accepted)
    return tuple(with_the_next_boot(host, tuple(walls), question))


def _settle(
    bench: Bench, wall: Wall, same: Sequence[Wall], reasons: Reasons, present: Opening | None
) -> Opening | None:
    """Decide what one firewall needs; return what remedy's own rules let through, of it or of one before."""
    if wall.propose is None:
        note_stuck(bench, wall, reasons)
        return present
    now = present_of(wall)
    present = present or next(filter(None, map(present_of, same)), None)
    if wall.drops or now is not None or wall.name == AT_BOOT:
        known = present if len(same) > 1 else now or present
        opening = target_opening(bench.fleet, bench.host, bench.settings, known, shared_ways(same))
        _open(bench, wall, wall.propose(opening), reasons)
    if wall.arp:
        note_stuck(bench, replace(wall, incoming=NOTHING, outgoing=NOTHING), reasons)
    return present


def _peers(bench: Bench) -> Spans:
    """Return the addresses of all others that have to reach a host."""
    local = bench.fleet.addresses[bench.host.host].address
    others = sources(bench.fleet, bench.settings)
    return spans.minus(others, _spans((local,))) if local else others


def _path(bench: Bench) -> Path:
    """Return the way of packets of the cluster through a host."""
    local = bench.fleet.addresses[bench.host.host].address
    return path_of(bench.host, local, _peers(bench))


def _question(bench: Bench, reasons: Reasons, path: Path) -> PacketQuestion:
    """Return what is asked of each firewall: what it does with packets between the host and its peers."""
    fleet, host = bench.fleet, bench.host
    fixed = [need for need in (*reasons.at_this_host, *reasons.in_fleet) if need.meeting]
    traffic = Traffic(
        _peers(bench),
        spans.merge((need.low, need.high) for need in reasons.at_this_host),
        spans.merge((need.low, need.high) for need in reasons.in_fleet),
        client_ports(host),
        all_client_ports(fleet),
        spans.merge((need.low, need.high) for need in fixed),
    )
    accepted = frozenset(text.strip() for text in bench.settings.accepted_rules)
    return PacketQuestion(traffic, path, accepted)


def _open(bench: Bench, wall: Wall, proposal: Amendment, reasons: Reasons) -> None:
    """Say what is wrong with a firewall, and plan what its proposal says."""
    already = len(bench.findings)
    explain(bench, wall, proposal, reasons)
    note = {
        FindingKind.UNKNOWN: bench.unknown,
        FindingKind.BLOCKED: bench.blocked,
        FindingKind.REPORT: bench.report,
    }
    for line in proposal.notes:
        note[line.kind](line.title, line.evidence, line.fix)
    if bench.settings.mode == "leave" or not proposal.steps or len(bench.findings) == already:
        return
    finding = bench.findings[already]
    barred = [s for s in proposal.steps if not bench.can_write(*_writes(s), because=finding)]
    for step in proposal.steps if proposal.independent or not barred else ():
        if step not in barred:
            _plan(bench, step, finding)


def _writes(step: FileStep | CommandStep) -> tuple[str, ...]:
    return (step.path,) if isinstance(step, FileStep) else step.writes


def _plan(bench: Bench, step: FileStep | CommandStep, finding: Finding) -> None:
    risk = Risk.HIGH if bench.settings.mode == "off" else Risk.MEDIUM
    if isinstance(step, FileStep):
        bench.write(step.path, step.content, step.title, because=finding, risk=risk, guarded=True)
    else:
        words = {"disrupts": step.disrupts, "restarts": step.restarts}
        bench.run(step.title, because=finding, risk=risk, guarded=True, **words, **step.command)


def _switch_off(bench: Bench, wall: Wall) -> None:
    """Plan that a firewall is off, now and after the next boot."""
    # --no-reload: a daemon-reload of systemd can take the GPUs from running containers.
    observe, before, after = "systemctl is-active firewalld.service", "active", "inactive"
    do = "systemctl --no-reload disable firewalld.service && systemctl stop firewalld.service"
    undo = "systemctl --no-reload enable firewalld.service && systemctl start firewalld.service"
    if wall.switch == "ufw":
        observe, before, after = "sed -n 's/^ENABLED=//p' /etc/ufw/ufw.conf", "yes", "no"
        do, undo = "ufw --force disable", "ufw --force enable"
    bench.run(
        f"switch {wall.name} off",
        because=bench.drift(f"{wall.name} is on, the spec says off"),
        observe=observe,
        before=str(before),
        after=after,
        do=do,
        undo=undo,
        risk=Risk.HIGH,
        guarded=True,
        disrupts="every port of this host is open to everybody",
        restarts=f"{wall.name}, which stops",
    )


@firewall.breaks
def a_rate_is_limited(state: HostState) -> HostState:
    """Have a rule in iptables that depends on a rate."""
    walls = state.firewalls
    if isinstance(walls, Unknown) or isinstance(walls.iptables, Unknown) or walls.iptables:
        return state
    text = f"*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n{_LIMITED}\nCOMMIT\n"
    return state.model_copy(update={"firewalls": walls.model_copy(update={"iptables": text})})


@firewall.promises
def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after the change: the rules in force (files are known without it)."""
    action, walls = change.action, state.firewalls
    if not isinstance(action, CommandAction) or isinstance(walls, Unknown):
        return state
    ruleset = NO_RULES if isinstance(walls.nft, Unknown) else walls.nft
    update: dict[str, object]
    if action.observe.startswith("nft "):
        update = {"nft": nftables.after_live(ruleset, action)}
    elif "ipset" in action.do:
        files, after = firewalld.after_reload(ruleset, action)
        state = state.model_copy(update={"files": {**state.files, **files}})
        update = {"nft": after}
    elif "iptables" in action.do:
        name = _table_of(action)
        text = str(getattr(walls, name))
        update = {name: iptables.apply_restore(text, iptables.restore_of(action))}
    elif "ufw" in action.do:
        update = {"ufw": action.after == "yes"}
    else:
        update = {"firewalld": "running" if action.after == "active" else None}
    return state.model_copy(update={"firewalls": walls.model_copy(update=update)})


@firewall.observes
def observation(state: HostState, change: Change) -> str:
    """Return what is in force, as the command of each firewall shows it."""
    action, firewalls = change.action, state.firewalls
    assert isinstance(action, CommandAction)
    assert isinstance(firewalls, Firewalls)
    ruleset = NO_RULES if isinstance(firewalls.nft, Unknown) else firewalls.nft
    if action.observe.startswith("nft "):
        return nftables.observed(ruleset, action)
    if "ipset" in action.do:
        return firewalld.observed(state.files, ruleset, action)
    if "iptables" in action.do:
        return iptables.observed(str(getattr(firewalls, _table_of(action))), action)
    if "ufw" in action.do:
        return "yes" if firewalls.ufw is True else "no"
    return "active" if isinstance(firewalls.firewalld, str) else "inactive"


def _table_of(action: CommandAction) -> str:
    return "iptables_legacy" if "iptables-legacy" in action.do else "iptables"
