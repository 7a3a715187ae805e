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

from collections.abc import Iterator, Sequence
from functools import lru_cache
from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator

from remedy.firewall import firewalld, iptables, nftables, spans
from remedy.firewall.judge import Traffic
from remedy.firewall.ports import FRAMEWORKS, RANGE_KEY, VERIFICATION, Framework, Need, parse_ports
from remedy.firewall.spans import Spans
from remedy.firewall.step import Note, Opening, Path, Proposal, Step
from remedy.firewall.walls import AT_BOOT, NO_RULES, Wall, any_rules, unknowns, walls_of
from remedy.plan import (
    Assessment,
    Change,
    CommandAction,
    Finder,
    Finding,
    FindingKind,
    Fleet,
    Risk,
)
from remedy.plan.legacy import old_remedy
from remedy.probe import Firewalls, HostState, Network, Sysctls
from remedy.spec import SpecSection
from remedy.values import Unknown

NAME = "firewall"
LABEL = "firewall-ports"
_finding = Finder(NAME, LABEL)


def _mode(value: object) -> object:
    """Take YAML's word: a bare ``off`` is read as false."""
    return "off" if value is False else value


def _ports(text: str) -> str:
    parse_ports(text)
    return text


def _source(text: str) -> str:
    network = IPv4Network(text, strict=False)
    if network.prefixlen == 0:
        raise ValueError("0.0.0.0/0 is everybody; to switch the firewall off, write mode: off")
    return str(network)


class FirewallSpec(SpecSection):
    """What to do about firewalls.

    ``mode``: "open" lets the cluster's hosts in where a firewall keeps them out; "leave" only reports; "off"
    switches active firewalls off. ``frameworks``: whose launcher ports are opened. ``ports``: further ports or
    ranges ("9000-9100"). ``also_from``: addresses or networks besides the hosts, such as a login node.
    """

    mode: Annotated[Literal["open", "leave", "off"], BeforeValidator(_mode)] = "open"
    frameworks: tuple[Framework, ...] = ("torch",)
    ports: tuple[Annotated[str, BeforeValidator(str), AfterValidator(_ports)], ...] = ()
    also_from: tuple[Annotated[str, AfterValidator(_source)], ...] = ()


def port_range(fleet: Fleet, host: HostState) -> tuple[int, int] | None:
    """Return the ports that new sockets get on a host: what the spec wants, else what the kernel has."""
    wanted: tuple[int, int] | None = getattr(fleet.spec.sections.get("port_range"), "range", None)
    if wanted is not None:
        return wanted
    if not isinstance(host.sysctls, Sysctls):
        return None
    words = host.sysctls.live.get(RANGE_KEY, "").split()
    return (int(words[0]), int(words[1])) if len(words) == 2 else None


def needs(fleet: Fleet, host: HostState, spec: FirewallSpec) -> tuple[Need, ...]:
    """Return every range of ports that has to be open on a host, each with its reason."""
    found = []
    bounds = port_range(fleet, host)
    if bounds is not None:
        found.append(Need(*bounds, f"{RANGE_KEY}: NCCL, gloo, MPI and c10d between the workers"))
    found += [need for name in spec.frameworks for need in FRAMEWORKS[name]]
    found.append(VERIFICATION)
    own = fleet.spec.verify.port
    if own is not None:
        found.append(Need(own, own, "verify.port of the spec"))
    found += [Need(*parse_ports(text), "firewall.ports of the spec") for text in spec.ports]
    return tuple(found)


def sources(fleet: Fleet, spec: FirewallSpec) -> Spans:
    """Return the cluster addresses of all hosts; a host reaches itself by its own, so it is among them."""
    known = fleet.known_addresses
    return _spans((*known, *spec.also_from) if spec.also_from else known)


# All hosts of a fleet ask for the same addresses.
_spans = lru_cache(maxsize=8)(spans.of_networks)


def wanted_opening(
    fleet: Fleet, host: HostState, spec: FirewallSpec, now: Opening | None
) -> Opening:
    """Return what remedy's rules on a host shall let in.

    While the address of some host is not known, nobody who is let in ``now`` is shut out.
    """
    if spec.mode == "off":
        return Opening(spans.ALL_ADDRESSES, ((1, 65535),))
    if len(fleet.inventory.names) < 2 and not spec.also_from:
        return Opening()
    peers = sources(fleet, spec)
    if now is not None and len(fleet.known_addresses) < len(fleet.inventory.names):
        peers = spans.merge([*peers, *now.sources])
    return Opening(peers, spans.merge((n.low, n.high) for n in needs(fleet, host, spec)))


def assess(fleet: Fleet, host: HostState, spec: FirewallSpec) -> Assessment:
    """Decide which firewalls of a host keep peers out, and what lets them in."""
    if isinstance(host.firewalls, Unknown):
        reason = (host.firewalls.reason,)
        return Assessment(
            (_finding(host, FindingKind.UNKNOWN, "the firewalls are not known", reason),)
        )
    findings = [
        _finding(host, FindingKind.UNKNOWN, f"what {name} lets in is not known", (why,))
        for name, why in unknowns(host, host.firewalls)
    ]
    if not any_rules(host, host.firewalls):
        return Assessment(tuple(findings))
    mine = fleet.addresses[host.host].address
    carrier = host.network.carrier_of(mine) if isinstance(host.network, Network) and mine else None
    path = Path(carrier.name if carrier else None, mine)
    wanted = needs(fleet, host, spec)
    others = sources(fleet, spec)
    others = spans.minus(others, _spans((mine,))) if mine else others
    traffic = Traffic(others, spans.merge((need.low, need.high) for need in wanted))
    changes: list[Change] = []
    blobs: dict[str, bytes] = {}
    present: Opening | None = None
    walls = tuple(walls_of(host, host.firewalls, traffic, path))
    findings += _powerless(host, host.firewalls, walls)
    for wall in walls:
        if wall.leftover:
            findings += _left_over(host, wall)
            continue
        if spec.mode == "off" and wall.switch:
            findings.append(
                _finding(host, FindingKind.DRIFT, f"{wall.name} is on, the spec says off")
            )
            changes.append(_change(host, _switched_off(wall, host.firewalls), findings[-1], spec))
            continue
        now = wall.propose(Opening()).present
        present = present or now
        if not (wall.dropped or now is not None or wall.name == AT_BOOT):
            continue
        proposal = wall.propose(wanted_opening(fleet, host, spec, now or present))
        found = [
            *_explained(host, wall, proposal, wanted, spec),
            *(_noted(host, note) for note in proposal.notes),
        ]
        findings += found
        if spec.mode == "leave" or not found:
            continue
        changes += [_change(host, step, found[0], spec) for step in proposal.steps]
        for step in proposal.steps:
            blobs.update(step.blobs)
    if changes and port_range(fleet, host) is None and spec.mode == "open":
        findings.append(
            _finding(
                host,
                FindingKind.UNKNOWN,
                f"{RANGE_KEY} is not known, so what to open is not either",
                fix=f"See that the probe can read it: sysctl {RANGE_KEY}",
            )
        )
        changes = []
    return Assessment(tuple(findings), tuple(changes), blobs)


def _explained(
    host: HostState, wall: Wall, proposal: Proposal, wanted: tuple[Need, ...], spec: FirewallSpec
) -> Iterator[Finding]:
    """Yield what is wrong with a firewall, in words."""
    if wall.dropped:
        closed = [n for n in wanted if spans.meet(((n.low, n.high),), wall.dropped.ports)]
        evidence = (*wall.dropped.words[:3], *(f"needed: {need}" for need in closed))
        title = f"{wall.name} keeps the cluster's hosts out of ports that training needs"
        if spec.mode == "leave":
            fix = "Let the other hosts' cluster addresses in on these ports, or take firewall.mode: leave out."
            yield _finding(host, FindingKind.REPORT, title, evidence, fix)
        elif proposal.steps:
            yield _finding(host, FindingKind.DRIFT, title, evidence)
        elif not any(note.kind is not FindingKind.REPORT for note in proposal.notes):
            yield _finding(
                host,
                FindingKind.BLOCKED,
                f"{wall.name} keeps the cluster's hosts out, by a rule that comes before remedy's",
                evidence,
                "Remove that rule, or let the cluster's addresses in ahead of it.",
            )
    elif proposal.steps and spec.mode != "leave":
        files = [s.action.path for s in proposal.steps if not isinstance(s.action, CommandAction)]
        title = f"remedy's rules in {wall.name} are not those that the cluster needs now"
        if wall.name == AT_BOOT:
            title = f"{AT_BOOT} does not let in whom the cluster needs now"
        yield _finding(host, FindingKind.DRIFT, title, tuple(files))


def _powerless(host: HostState, found: Firewalls, walls: Sequence[Wall]) -> Iterator[Finding]:
    """Yield that firewalld runs and holds nothing back: a reload that failed leaves it so."""
    if (
        isinstance(found.firewalld, str)
        and not isinstance(found.nft, Unknown)
        and not any(wall.name == "firewalld" for wall in walls)
    ):
        yield _finding(
            host,
            FindingKind.REPORT,
            "firewalld runs, but none of its rules is in force: every port is open to everybody",
            fix="See why: journalctl -u firewalld; its rules come back with: firewall-cmd --reload",
        )


def _left_over(host: HostState, wall: Wall) -> Iterator[Finding]:
    if wall.dropped:
        yield _finding(
            host,
            FindingKind.BLOCKED,
            f"{wall.name} is off, but its rules are in force and keep the cluster's hosts out",
            wall.dropped.words[:3],
            f"Start {wall.name} and run the command again, or stop it in good order to have its rules removed.",
        )


def _noted(host: HostState, note: Note) -> Finding:
    return _finding(host, note.kind, note.title, note.evidence, note.fix)


def _switched_off(wall: Wall, walls: Firewalls) -> Step:
    """Return the step that switches a firewall off, now and for the next boot."""
    if wall.switch == "ufw":
        action = CommandAction(
            observe="sed -n 's/^ENABLED=//p' /etc/ufw/ufw.conf",
            before="yes",
            after="no",
            do="ufw --force disable",
            undo="ufw --force enable",
        )
    else:
        # --no-reload: a daemon-reload of systemd can take the GPUs from running containers.
        action = CommandAction(
            observe="firewall-cmd --list-all-zones 2>/dev/null",
            before=str(walls.firewalld),
            after="",
            do="systemctl --no-reload disable firewalld.service && systemctl stop firewalld.service",
            undo="systemctl --no-reload enable firewalld.service && systemctl start firewalld.service",
        )
    return Step(
        f"switch {wall.name} off", action, disrupts="every port of this host is open to everybody"
    )


def _change(host: HostState, step: Step, finding: Finding, spec: FirewallSpec) -> Change:
    return Change(
        id="",
        host=host.host,
        remedy=NAME,
        title=step.title,
        reason=finding.title,
        label=LABEL,
        risk=Risk.HIGH if spec.mode == "off" else Risk.MEDIUM,
        disrupts=step.disrupts,
        guarded=True,
        action=step.action,
    )


def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after the change: the rules in force (files are known without it)."""
    action, walls = change.action, state.firewalls
    if not isinstance(action, CommandAction) or isinstance(walls, Unknown):
        return state
    ruleset = NO_RULES if isinstance(walls.nft, Unknown) else walls.nft
    found: dict[str, object]
    if action.observe.startswith("nft "):
        found = {"nft": nftables.after_live(ruleset, action)}
    elif "ipset" in action.do:
        files, after = firewalld.after_reload(ruleset, action)
        state = state.model_copy(update={"files": {**state.files, **files}})
        found = {"nft": after}
    elif "iptables" in action.do:
        name = "iptables_legacy" if "iptables-legacy" in action.do else "iptables"
        text = str(getattr(walls, name))
        found = {name: iptables.apply_restore(text, iptables.restore_of(action))}
    elif "ufw" in action.do:
        found = {"ufw": action.after == "yes"}
    else:
        found = {"firewalld": action.after or None}
    return state.model_copy(update={"firewalls": walls.model_copy(update=found)})


old_remedy(
    name=NAME,
    title="Firewall",
    text=__doc__,
    cures=(LABEL,),
    spec=FirewallSpec,
    assess=assess,
    order=40,
    promise=promise,
    reads=(nftables.INCLUDED, firewalld.IPSET_FILE, firewalld.POLICY_FILE),
)
