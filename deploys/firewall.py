"""Firewall: the cluster's hosts reach each other on the ports that training needs, and nobody else does.

Cures: rendezvous that hangs without a word, because a firewall drops what peers send; "No route to host", with
which a firewall refuses; ranks that join and then never get on, because the master's port is open and the
ports between the workers are not; rules that still let in a node that has left.

What is opened is computed for each host: its own range of ports for new sockets, the ports of the launchers
in use and those of remedy's verification, for the cluster addresses in the inventory and nothing else. The
rule goes to where it takes effect, in each firewall that keeps peers out, and is there after a reload and a
reboot. A firewall that is off stays off; one that is on is switched off only where the spec says `mode: off`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Network
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from remedy.deploys import _frameworks
from remedy.firewall import firewalld, iptables, nftables, spans
from remedy.firewall.ports import (
    RANGE_KEY,
    VERIFICATION,
    Framework,
    Need,
    Ports,
    kernel_range,
    parse_ports,
)
from remedy.firewall.spans import Spans
from remedy.firewall.step import Amendment, CommandStep, FileStep, Opening, Path
from remedy.firewall.traffic import Traffic
from remedy.firewall.walls import AT_BOOT, NO_RULES, Wall, any_rules, unknowns, walls_of
from remedy.plan import (
    Change,
    CommandAction,
    Finding,
    FindingKind,
    Fleet,
    Risk,
    Workbench,
    remedy,
)
from remedy.probe import Firewalls, HostState, Network, Sysctls
from remedy.spec import SpecSection
from remedy.values import Unknown


def _mode(value: object) -> object:
    """Take YAML's word: a bare ``off`` is read as false."""
    return "off" if value is False else value


def _source(text: str) -> str:
    network = IPv4Network(text, strict=False)
    if network.prefixlen == 0:
        raise ValueError("0.0.0.0/0 is everybody; to switch the firewall off, write mode: off")
    return str(network)


class FirewallSpec(SpecSection):
    """What to do about firewalls.

    ``mode``: "open" lets the cluster's hosts in where a firewall keeps them out; "leave" only reports; "off"
    switches active firewalls off. ``frameworks``: whose launcher ports are opened; without it torch's, and
    those of Open MPI, Paddle, MindSpore and HCCL where a host has them. ``ports``: further ports or ranges
    ("9000-9100"). ``also_from``: addresses or networks besides the hosts, such as a login node.
    """

    mode: Annotated[Literal["open", "leave", "off"], BeforeValidator(_mode)] = "open"
    frameworks: tuple[Framework, ...] | None = Field(None, examples=[["torch", "mpi"]])
    ports: tuple[Ports, ...] = ()
    also_from: tuple[Annotated[str, AfterValidator(_source)], ...] = ()


Bench: TypeAlias = Workbench[FirewallSpec]


def port_range(fleet: Fleet, host: HostState) -> tuple[int, int] | None:
    """Return the ports that new sockets get on a host: what the spec wants, else what the kernel has."""
    chosen: tuple[int, int] | None = getattr(fleet.spec.sections.get("port_range"), "range", None)
    if chosen is not None:
        return chosen
    return kernel_range(host.sysctls) if isinstance(host.sysctls, Sysctls) else None


def needs(fleet: Fleet, host: HostState, spec: FirewallSpec) -> tuple[Need, ...]:
    """Return every range of ports that has to be open on a host, each with its reason."""
    result = []
    bounds = port_range(fleet, host)
    if bounds is not None:
        result.append(Need(*bounds, f"{RANGE_KEY}: NCCL, gloo, MPI and c10d between the workers"))
    result += _frameworks.needs(fleet, host)
    result.append(VERIFICATION)
    port = fleet.spec.verify.port
    if port is not None:
        result.append(Need(port, port, "verify.port of the spec"))
    result += [Need(*parse_ports(text), "firewall.ports of the spec") for text in spec.ports]
    return tuple(result)


def sources(fleet: Fleet, spec: FirewallSpec) -> Spans:
    """Return the cluster addresses of all hosts; a host reaches itself by its own, so it is among them."""
    known = fleet.known_addresses
    return _spans((*known, *spec.also_from) if spec.also_from else known)


# All hosts of a fleet ask for the same addresses.
_spans = lru_cache(maxsize=8)(spans.of_networks)


def target_opening(
    fleet: Fleet, host: HostState, spec: FirewallSpec, now: Opening | None
) -> Opening:
    """Return what remedy's rules on a host are to let in.

    While the address of some host is not known, nobody who is let in ``now`` is shut out; while it is not known
    what some host trains with, no port is closed.
    """
    if spec.mode == "off":
        return Opening(spans.ALL_ADDRESSES, ((1, 65535),))
    if len(fleet.inventory.names) < 2 and not spec.also_from:
        return Opening()
    peers = sources(fleet, spec)
    if now is not None and len(fleet.known_addresses) < len(fleet.inventory.names):
        peers = spans.merge([*peers, *now.sources])
    ports = spans.merge((n.low, n.high) for n in needs(fleet, host, spec))
    if now is not None and not _frameworks.is_settled(fleet):
        ports = spans.merge([*ports, *now.ports])
    return Opening(peers, ports)


@remedy(
    "Firewall",
    FirewallSpec,
    cures=("firewall-ports",),
    order=40,
    reads=(nftables.INCLUDED, firewalld.IPSET_FILE, firewalld.POLICY_FILE),
)
def firewall(bench: Bench) -> None:
    """Decide which firewalls of a host keep peers out, and what lets them in."""
    host, settings = bench.host, bench.settings
    firewalls = bench.need(host.firewalls, "the firewalls")
    for name, reason in unknowns(host, firewalls):
        bench.unknown(f"could not read what {name} lets in", reason)
    if not any_rules(host, firewalls):
        return
    needed = needs(bench.fleet, host, settings)
    walls = _walls(bench, firewalls, needed)
    _report_powerless(bench, firewalls, walls)
    present: Opening | None = None
    for wall in walls:
        if wall.leftover:
            _note_leftover(bench, wall)
        elif settings.mode == "off" and wall.switch:
            _switch_off(bench, wall)
        else:
            now = wall.propose(Opening()).present
            present = present or now
            if wall.dropped or now is not None or wall.name == AT_BOOT:
                opening = target_opening(bench.fleet, host, settings, now or present)
                _open(bench, wall, wall.propose(opening), needed)
    if bench.changes and settings.mode == "open" and port_range(bench.fleet, host) is None:
        title = f"could not read {RANGE_KEY}, so what to open is not known"
        bench.unknown(title, fix=f"See that the probe can read it: sysctl {RANGE_KEY}")
        bench.withdraw()


def _walls(bench: Bench, firewalls: Firewalls, needed: tuple[Need, ...]) -> tuple[Wall, ...]:
    """Return the firewalls of a host, each with what it keeps out of the traffic from its peers."""
    network, local = bench.host.network, bench.fleet.addresses[bench.host.host].address
    carrier = network.carrier_of(local) if isinstance(network, Network) and local else None
    others = sources(bench.fleet, bench.settings)
    if local:
        others = spans.minus(others, _spans((local,)))
    traffic = Traffic(others, spans.merge((need.low, need.high) for need in needed))
    path = Path(carrier.name if carrier else None, local)
    return tuple(walls_of(bench.host, firewalls, traffic, path))


def _open(bench: Bench, wall: Wall, proposal: Amendment, needed: tuple[Need, ...]) -> None:
    """Say what is wrong with a firewall, and plan what its proposal says."""
    already = len(bench.findings)
    _explain(bench, wall, proposal, needed)
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
        bench.run(
            step.title,
            because=finding,
            risk=risk,
            guarded=True,
            disrupts=step.disrupts,
            **step.command,
        )


def _explain(bench: Bench, wall: Wall, proposal: Amendment, needed: tuple[Need, ...]) -> None:
    """Say what is wrong with a firewall, in words."""
    leaves = bench.settings.mode == "leave"
    if wall.dropped:
        closed = [n for n in needed if spans.meet(((n.low, n.high),), wall.dropped.ports)]
        evidence = (*wall.dropped.words[:3], *(f"needed: {need}" for need in closed))
        title = f"{wall.name} keeps the cluster's hosts out of ports that training needs"
        if leaves:
            fix = "Let the other hosts' cluster addresses in on these ports, or take firewall.mode: leave out."
            bench.report(title, evidence, fix)
        elif proposal.steps:
            bench.drift(title, evidence)
        elif all(note.kind is FindingKind.REPORT for note in proposal.notes):
            bench.blocked(
                f"{wall.name} keeps the cluster's hosts out, by a rule that comes before remedy's",
                evidence,
                "Remove that rule, or let the cluster's addresses in ahead of it.",
            )
    elif proposal.steps and not leaves:
        title = f"remedy's rules in {wall.name} are not those that the cluster needs now"
        if wall.name == AT_BOOT:
            title = f"{AT_BOOT} does not let in whom the cluster needs now"
        bench.drift(title, (step.path for step in proposal.steps if isinstance(step, FileStep)))


def _report_powerless(bench: Bench, firewalls: Firewalls, walls: Sequence[Wall]) -> None:
    """Report that firewalld runs and holds nothing back: a reload that failed leaves it so."""
    if (
        isinstance(firewalls.firewalld, str)
        and not isinstance(firewalls.nft, Unknown)
        and not any(wall.name == "firewalld" for wall in walls)
    ):
        bench.report(
            "firewalld runs, but none of its rules is in force: every port is open to everybody",
            fix="See why: journalctl -u firewalld; its rules come back with: firewall-cmd --reload",
        )


def _note_leftover(bench: Bench, wall: Wall) -> None:
    if wall.dropped:
        bench.blocked(
            f"{wall.name} is off, but its rules are in force and keep the cluster's hosts out",
            wall.dropped.words[:3],
            f"Start {wall.name} and run the command again, or stop it in good order to have its rules removed.",
        )


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
    )


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
