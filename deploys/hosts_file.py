"""The hosts file: every host resolves every host of the cluster, itself included, to its cluster address.

Cures: peers whose names do not resolve; the own name resolving to 127.0.1.1, so that gloo, c10d and
Paddle tell their peers to connect to loopback; entries that point to a host that was replaced or has left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

from remedy.deploys._cloud import DROP_INS, MAIN, cloud_setting
from remedy.edit.hosts import Disabled, block_entries, edit_hosts, foreign_entries
from remedy.plan import Change, Finding, Fleet, Workbench, interface_addresses, remedy
from remedy.probe import HostState
from remedy.spec import SpecSection
from remedy.templating import render
from remedy.text import counted
from remedy.values import Unknown

PATH = "/etc/hosts"


class HostsFileSpec(SpecSection):
    """``manage``: whether remedy keeps a block in /etc/hosts; without it, names are only checked."""

    manage: bool = True


Bench: TypeAlias = Workbench[HostsFileSpec]


@dataclass(frozen=True)
class HostsEntry:
    """One line of the block: an address, and the names it has."""

    address: str
    names: tuple[str, ...]


def target_entries(fleet: Fleet, host: HostState, content: bytes) -> tuple[HostsEntry, ...]:
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
        entries.append(HostsEntry(address, tuple(dict.fromkeys(names))))
    return tuple(entries)


def _long_forms(name: str, content: bytes) -> Iterator[str]:
    """Yield the fully qualified names that the file gives ``name`` already.

    The first name of a line is the canonical one that getfqdn() and `hostname -f` return: it must not
    change because the line moves into the block.
    """
    for line in (*block_entries(content), *foreign_entries(content)):
        if name.lower() in line.names:
            yield from (long for long in line.names if long.startswith(f"{name.lower()}."))


@remedy(
    "Hosts file",
    HostsFileSpec,
    cures=("hostname-unresolvable", "loopback-hostname"),
    finds=("wrong-interface",),
    order=10,
    reads=(MAIN, DROP_INS + "*.cfg"),
)
def hosts_file(bench: Bench) -> None:
    """Decide what /etc/hosts of one host has to be, and whether its resolver agrees."""
    content = bench.file(PATH).content
    entries = target_entries(bench.fleet, bench.host, content)
    addresses = {name.lower(): entry.address for entry in entries for name in entry.names}
    _check_address(bench)
    edit = edit_hosts(content, render("hosts_block.j2", entries=entries).encode(), addresses)
    if bench.settings.manage:
        _note_cloud_init(bench)
    if not bench.settings.manage or edit.content == content:
        _check_resolver(bench, addresses, settled=True)
        return
    _check_resolver(bench, addresses, settled=False)
    finding = _note_drift(bench, content, entries, edit.disabled)
    title = f"write the cluster's {counted(len(entries), 'host')} into {PATH}"
    bench.write(PATH, edit.content, title, because=finding)


def _note_cloud_init(bench: Bench) -> None:
    """Say that cloud-init writes the file at each boot (its setting ``manage_etc_hosts``)."""
    setting = cloud_setting(bench.host, "manage_etc_hosts")
    # "localhost" is no better: it puts the 127.0.1.1 line back.
    if setting is not None and setting[0] not in (None, False):
        bench.blocked(
            f"cloud-init replaces {PATH} at each boot",
            setting[1],
            f"Write `manage_etc_hosts: false` into {DROP_INS}99-hosts.cfg, then run the command again.",
        )


def _check_address(bench: Bench) -> None:
    """Say what stands in the way of knowing this host's own cluster address."""
    host, chosen = bench.host, bench.fleet.addresses[bench.host.host]
    addresses = interface_addresses(host)
    if chosen.address is None:
        bench.blocked(
            f"no cluster address could be found for {host.host}: {chosen.reason}",
            fix="Set cluster_address of the host in the inventory, or cluster.subnet in remedy.yaml.",
            label="wrong-interface",
        )
    elif isinstance(host.network, Unknown):
        bench.unknown(
            f"whether {host.host} has its address {chosen.address} is not known",
            host.network.reason,
            label="wrong-interface",
        )
    elif chosen.address not in (str(address.ip) for address in addresses):
        bench.blocked(
            f"{host.host} has no interface with {chosen.address}, {chosen.reason}",
            f"its addresses: {', '.join(map(str, addresses)) or 'none'}",
            "Correct cluster_address in the inventory, or bring that interface up.",
            label="wrong-interface",
        )


def _note_drift(
    bench: Bench, content: bytes, entries: Sequence[HostsEntry], disabled: Sequence[Disabled]
) -> Finding:
    """Note what is wrong with the file; return the last finding."""
    for line in disabled:
        bench.drift(
            f"{PATH} line {line.number} contradicts the inventory: {line.reason}",
            line.before.decode("utf-8", "backslashreplace").strip(),
            label="loopback-hostname" if "127." in line.reason else "",
        )
    listed = {(name, line.address) for line in block_entries(content) for name in line.names}
    named = set[tuple[str, str]]().union(*map(_pairs, entries))
    lacking = [e.names[-1] for e in entries if not _pairs(e) <= listed]
    departures = sorted({name for name, _ in listed} - {name for name, _ in named})
    if lacking:
        bench.drift(f"{PATH} lacks {counted(len(lacking), 'host')} of the cluster", lacking)
    if departures:
        bench.drift(f"{PATH} lists hosts that left the inventory", departures)
    if not (disabled or lacking or departures):
        bench.drift(f"the block in {PATH} was edited or is out of order")
    return bench.findings[-1]


def _pairs(entry: HostsEntry) -> set[tuple[str, str]]:
    return {(name.lower(), entry.address) for name in entry.names}


def _check_resolver(bench: Bench, addresses: Mapping[str, str], *, settled: bool) -> None:
    """Name what the host's own resolver answers wrongly.

    Where the file is still to be changed (``settled`` false) that is expected to go away with it. Where the
    file is right, something else decides: nsswitch.conf, a name service cache, DNS.
    """
    if isinstance(bench.host.names, Unknown):
        bench.unknown("could not read how names resolve here", bench.host.names.reason)
        return
    answers = {name.lower(): answer for name, answer in bench.host.names.peers.items()}
    wrong, looped = _wrong_answers(answers, addresses)
    note = bench.blocked if settled else bench.drift
    fix = "Check `hosts:` in /etc/nsswitch.conf: `files` must come first." if settled else ""
    for label, text in (
        ("loopback-hostname", "resolve to loopback"),
        ("hostname-unresolvable", "do not resolve to the cluster address"),
    ):
        names = [name for name in wrong if (name in looped) is (label == "loopback-hostname")]
        if names:
            few = ", ".join(names) if len(names) <= 3 else f"{len(names)} of the cluster's hosts"
            evidence = (_answer(name, answers[name], addresses[name]) for name in names)
            note(f"names {text}: {few}", evidence, fix, label=label)
    if settled:
        _note_silent(bench, addresses.keys() - answers.keys())


def _wrong_answers(
    answers: Mapping[str, Sequence[str]], addresses: Mapping[str, str]
) -> tuple[list[str], set[str]]:
    """Return the names that are answered wrongly, and which of them with a loopback address."""
    wrong = [n for n, address in addresses.items() if answers.get(n, (address,))[:1] != (address,)]
    return wrong, {n for n in wrong if any(a.startswith("127.") for a in answers[n])}


def _answer(name: str, answer: Sequence[str], address: str) -> str:
    return f"{name}: {', '.join(answer) or 'no answer'}, expected {address}"


def _note_silent(bench: Bench, names: Set[str]) -> None:
    """Say which names of the inventory got no answer at all."""
    silent = sorted(names & {name.lower() for name in bench.fleet.inventory.names})
    if silent:
        bench.unknown(
            f"{counted(len(silent), 'name')} not resolved within the probe's time",
            silent[:8],
            "Check the DNS servers in /etc/resolv.conf: one may be dead.",
        )


@hosts_file.promises
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
