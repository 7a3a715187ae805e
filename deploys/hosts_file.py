"""The hosts file: every host resolves every host of the cluster, itself included, to its cluster address.

Cures: peers whose names do not resolve; the own name resolving to 127.0.1.1, so that gloo, c10d and
Paddle tell their peers to connect to loopback; entries that point to a node that was replaced or has left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from remedy.deploys._cloud import DROP_INS, MAIN, cloud_setting
from remedy.edit.hosts import (
    Disabled,
    block_entries,
    edit_hosts,
    foreign_entries,
)
from remedy.plan import (
    Assessment,
    Change,
    FileAction,
    Finder,
    Finding,
    FindingKind,
    Fleet,
    interface_addresses,
    sha256,
)
from remedy.plan.files import blocker
from remedy.plan.legacy import old_remedy
from remedy.probe import File, HostState
from remedy.spec import SpecSection
from remedy.templating import render
from remedy.values import Unknown

NAME = "hosts_file"
_finding = Finder(NAME, "hostname-unresolvable")
PATH = "/etc/hosts"


class HostsFileSpec(SpecSection):
    """``manage``: whether remedy keeps a block in /etc/hosts; without it, names are only checked."""

    manage: bool = True


@dataclass(frozen=True)
class Entry:
    """One line of the block: an address, and the names it has."""

    address: str
    names: tuple[str, ...]


def wanted_entries(fleet: Fleet, host: HostState, content: bytes) -> tuple[Entry, ...]:
    """Return the lines of the block on ``host``, one for each node whose address is known.

    A node that was not probed (it is down, or ``--limit`` left it out) keeps the entry it has, unless the
    inventory itself says otherwise: the address that ssh uses may not be the one on the cluster network.
    """
    present = {name: line.address for line in block_entries(content) for name in line.names}
    shorts = [name.split(".")[0].lower() for name in fleet.inventory.names]
    entries = []
    for name in fleet.inventory.names:
        address = fleet.addresses[name].address
        guessed = name not in fleet.states and fleet.inventory.node(name).cluster_address is None
        if address is None or guessed:
            address = present.get(name.lower(), address)
        if address is None:
            continue
        short = name.split(".")[0]
        names = [name]
        if name == host.host:
            names = [*_long_forms(name, content), name]
        if short != name and shorts.count(short.lower()) == 1:
            names.append(short)
        entries.append(Entry(address, tuple(dict.fromkeys(names))))
    return tuple(entries)


def _long_forms(name: str, content: bytes) -> Iterator[str]:
    """Yield the fully qualified names that the file gives ``name`` already.

    The first name of a line is the canonical one that getfqdn() and `hostname -f` return: it must not
    change because the line moves into the block.
    """
    for line in (*block_entries(content), *foreign_entries(content)):
        if name.lower() in line.names:
            yield from (long for long in line.names if long.startswith(f"{name.lower()}."))


def assess(fleet: Fleet, host: HostState, spec: HostsFileSpec) -> Assessment:
    """Decide what /etc/hosts of one host shall be, and whether its resolver agrees."""
    current = host.file(PATH)
    if isinstance(current, Unknown):
        return Assessment(
            (_finding(host, FindingKind.UNKNOWN, f"{PATH} could not be read", (current.reason,)),)
        )
    entries = wanted_entries(fleet, host, current.content)
    addresses = {name.lower(): e.address for e in entries for name in e.names}
    findings = [*_undecided(fleet, host)]
    if not spec.manage:
        return Assessment((*findings, *_resolver_findings(fleet, host, addresses, settled=True)))
    findings += _cloud_init(host)
    edit = edit_hosts(
        current.content, render("hosts_block.j2", entries=entries).encode(), addresses
    )
    if edit.content == current.content:
        return Assessment((*findings, *_resolver_findings(fleet, host, addresses, settled=True)))
    findings += _resolver_findings(fleet, host, addresses, settled=False)
    findings += _drift(host, current, entries, edit.disabled)
    blocked = blocker(current, NAME)
    if blocked is not None:
        return Assessment((*findings, blocked.on(host.host, "hostname-unresolvable")))
    change = Change(
        id="",
        host=host.host,
        remedy=NAME,
        title=f"write the cluster's {len(entries)} hosts into {PATH}",
        reason=findings[-1].title,
        label=findings[-1].label,
        action=FileAction(
            path=PATH,
            real_path=current.real_path,
            before=sha256(current.content) if current.exists else None,
            after=sha256(edit.content),
        ),
    )
    blobs = {sha256(content): content for content in (current.content, edit.content)}
    return Assessment(tuple(findings), (change,), blobs)


def _cloud_init(host: HostState) -> Iterator[Finding]:
    """Yield that cloud-init writes the file anew at each boot (its setting ``manage_etc_hosts``)."""
    said = cloud_setting(host, "manage_etc_hosts")
    # "localhost" is no better: it puts the 127.0.1.1 line back.
    if said is not None and said[0] not in (None, False):
        yield _finding(
            host,
            FindingKind.BLOCKED,
            f"cloud-init writes {PATH} anew at each boot",
            (said[1],),
            fix=f"Write `manage_etc_hosts: false` into {DROP_INS}99-hosts.cfg, then run the command again.",
        )


def _undecided(fleet: Fleet, host: HostState) -> Iterator[Finding]:
    """Yield what stands in the way of knowing this host's own cluster address."""
    mine = fleet.addresses[host.host]
    if mine.address is None:
        yield _finding(
            host,
            FindingKind.BLOCKED,
            f"no cluster address could be found for {host.host}: {mine.reason}",
            fix="Set cluster_address of the host in the inventory, or cluster.subnet in remedy.yaml.",
            label="wrong-interface",
        )
    elif isinstance(host.network, Unknown):
        yield _finding(
            host,
            FindingKind.UNKNOWN,
            f"whether {host.host} has its address {mine.address} is not known",
            (host.network.reason,),
            label="wrong-interface",
        )
    elif not any(str(address.ip) == mine.address for address in interface_addresses(host)):
        have = ", ".join(str(address) for address in interface_addresses(host))
        yield _finding(
            host,
            FindingKind.BLOCKED,
            f"{host.host} has no interface with {mine.address}, {mine.reason}",
            (f"its addresses: {have or 'none'}",),
            fix="Correct cluster_address in the inventory, or bring that interface up.",
            label="wrong-interface",
        )


def _drift(
    host: HostState, current: File, entries: tuple[Entry, ...], disabled: tuple[Disabled, ...]
) -> Iterator[Finding]:
    for line in disabled:
        text = line.before.decode("utf-8", "backslashreplace").strip()
        yield _finding(
            host,
            FindingKind.DRIFT,
            f"{PATH} line {line.number} contradicts the inventory: {line.reason}",
            (text,),
            label="loopback-hostname" if "127." in line.reason else "hostname-unresolvable",
        )
    listed = {
        (name, line.address) for line in block_entries(current.content) for name in line.names
    }
    lacking = [
        e.names[-1] for e in entries if any((n.lower(), e.address) not in listed for n in e.names)
    ]
    known = {name.lower() for e in entries for name in e.names}
    left = sorted({name for name, _ in listed if name not in known})
    if lacking:
        yield _finding(
            host,
            FindingKind.DRIFT,
            f"{PATH} lacks {len(lacking)} hosts of the cluster",
            tuple(lacking),
        )
    if left:
        yield _finding(
            host, FindingKind.DRIFT, f"{PATH} lists hosts that left the inventory", tuple(left)
        )
    if not (disabled or lacking or left):
        yield _finding(
            host, FindingKind.DRIFT, f"the block in {PATH} was edited or is out of order"
        )


def _resolver_findings(
    fleet: Fleet, host: HostState, addresses: Mapping[str, str], *, settled: bool
) -> Iterator[Finding]:
    """Yield names that the host's own resolver answers wrongly.

    Where the file is still to be changed (``settled`` false) that is expected to go away with it. Where the
    file is right, something else decides: nsswitch.conf, a name service cache, DNS.
    """
    if isinstance(host.names, Unknown):
        yield _finding(
            host, FindingKind.UNKNOWN, "how names resolve here is not known", (host.names.reason,)
        )
        return
    kind = FindingKind.BLOCKED if settled else FindingKind.DRIFT
    fix = "Look at `hosts:` in /etc/nsswitch.conf: `files` must come first." if settled else ""
    answered = {name.lower(): answers for name, answers in host.names.peers.items()}
    wrong = {
        name: answered[name]
        for name, address in addresses.items()
        if name in answered and answered[name][:1] != (address,)
    }
    looped = {n: a for n, a in wrong.items() if any(answer.startswith("127.") for answer in a)}
    elsewhere = {name: answers for name, answers in wrong.items() if name not in looped}
    for names, label, what in (
        (looped, "loopback-hostname", "resolve to loopback"),
        (elsewhere, "hostname-unresolvable", "do not resolve to the cluster address"),
    ):
        if not names:
            continue
        told = ", ".join(names) if len(names) <= 3 else f"{len(names)} of the cluster's hosts"
        yield _finding(
            host,
            kind,
            f"names {what}: {told}",
            tuple(
                f"{name}: {', '.join(answers) or 'no answer'}, wanted {addresses[name]}"
                for name, answers in names.items()
            ),
            fix=fix,
            label=label,
        )
    asked = {name.lower() for name in fleet.inventory.names}
    silent = sorted((addresses.keys() & asked) - answered.keys())
    if settled and silent:
        yield _finding(
            host,
            FindingKind.UNKNOWN,
            f"{len(silent)} names were not resolved within the probe's time",
            tuple(silent[:8]),
            fix="Is a DNS server in /etc/resolv.conf dead?",
        )


def promise(state: HostState, _change: Change) -> HostState:
    """Return what the probe finds after the change: the resolver answers what the file says."""
    file = state.file(PATH)
    if isinstance(file, Unknown) or isinstance(state.names, Unknown):
        return state
    lines = [*foreign_entries(file.content), *block_entries(file.content)]
    peers = {
        name: tuple(x.address for x in lines if name.lower() in x.names and ":" not in x.address)
        for name in state.names.peers
    }
    return state.model_copy(update={"names": state.names.model_copy(update={"peers": peers})})


old_remedy(
    name=NAME,
    title="Hosts file",
    text=__doc__,
    cures=("hostname-unresolvable", "loopback-hostname"),
    spec=HostsFileSpec,
    assess=assess,
    order=10,
    reads=(MAIN, DROP_INS + "*.cfg"),
    promise=promise,
)
