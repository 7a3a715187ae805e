"""The hosts file: every host resolves every host of the cluster, itself included, to its cluster address.

Cures: peers whose names do not resolve; the host's own name resolving to 127.0.1.1 or ::1, so that gloo, c10d
and Paddle have their peers connect to loopback; a name that leads to an IPv6 address first, so that gloo
listens there while its peers come by IPv4; entries that point to a host that was replaced or has left; a file
that only root can read.

What counts is what getaddrinfo gives first, in both families, to the user who runs the jobs (cluster.user, else
the user of ssh). An IPv6 line of a host stays as long as it does not come first. The long name that a host's
own file gives it (gpu01.example.org) is on its line everywhere: c10d gives it to the peers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from typing import TypeAlias

from remedy.deploys import _resolution as resolution
from remedy.deploys._cloud import DROP_INS, MAIN, cloud_setting
from remedy.deploys._hosts_block import HostsEntry, target
from remedy.deploys._resolution import HOSTS as PATH
from remedy.deploys.hostname import HostnameSpec
from remedy.deploys.resolver import ResolverSpec
from remedy.edit.hosts import (
    Disabled,
    block_entries,
    edit_hosts,
    foreign_entries,
    parse_line,
)
from remedy.plan import (
    Change,
    CommandAction,
    Finding,
    Workbench,
    interface_addresses,
    once_alike,
    remedy,
)
from remedy.probe import HostState
from remedy.spec import SpecSection
from remedy.text import counted
from remedy.values import Unknown

# One search: the file of a large fleet has thousands of lines, and this one is mostly its first.
_OF_LOCALHOST = re.compile(
    rb"^[ \t]*(?:127\.[\d.]+|::1)[ \t][^#\n]*(?<![\w.-])localhost(?![\w.-])",
    re.IGNORECASE | re.MULTILINE,
)
# Where nscd(8) answers in place of the files, from what it has read before.
CACHES = ("/run/nscd/socket", "/var/run/nscd/socket")


MOST_SHOWN = 16
"""Names in the evidence of a finding."""


class HostsFileSpec(SpecSection):
    """``manage``: whether remedy keeps a block in /etc/hosts; without it, names are only checked."""

    manage: bool = True


Bench: TypeAlias = Workbench[HostsFileSpec]


@remedy(
    "Hosts file",
    HostsFileSpec,
    cures=("hostname-unresolvable", "loopback-hostname", "ipv6-issue"),
    finds=("wrong-interface",),
    order=10,
    reads=(MAIN, DROP_INS + "*.cfg"),
)
def hosts_file(bench: Bench) -> None:
    """Decide what /etc/hosts of one host has to be, and whether its resolver agrees."""
    content = bench.file(PATH).content
    block = target(bench.fleet, content)
    addresses = block.addresses
    managed = bench.settings.manage
    _check_address(bench)
    _check_own_name(bench)
    _check_localhost(bench, content)
    edit = edit_hosts(content, block.text, addresses, resolution.ipv6_first(bench.host.names))
    due = managed and edit.content != content
    if managed:
        _note_cloud_init(bench)
    opened = resolution.let_everybody_read(
        bench, PATH, label="hostname-unresolvable", manage=managed
    )
    _check_resolver(
        bench, addresses, settled=not (due or opened or _resolver_mends(bench, addresses))
    )
    if due:
        finding = _note_drift(bench, content, block.entries, edit.disabled)
        title = f"write the cluster's {counted(len(block.entries), 'host')} into {PATH}"
        bench.write(PATH, edit.content, title, because=finding)


def _check_own_name(bench: Bench) -> None:
    """Name what the host's own name resolves to where it is not the inventory's, and stays.

    gloo and c10d ask for what gethostname(2) gives, whatever the inventory calls the host.
    """
    host, names, identity = bench.host, bench.host.names, bench.host.identity
    if bench.fleet.spec.section("hostname", HostnameSpec).manage:
        return  # it will be the inventory's
    if isinstance(names, Unknown) or isinstance(identity, Unknown):
        return
    current, expected = identity.transient_name, bench.fleet.addresses[host.host].address
    if current.lower() == host.host.lower() or expected is None or isinstance(names.local, Unknown):
        return
    wrong = resolution.WrongAnswer(current, names.local, expected)
    if names.local[:1] != (expected,):
        bench.blocked(
            f"the host calls itself {current!r}, and that name does not lead to its cluster address first",
            str(wrong),
            f"Add {current} to the line of {expected} in {PATH}, or set hostname.manage: true.",
            label=wrong.label,
        )


def _check_localhost(bench: Bench, content: bytes) -> None:
    """Name a file that leaves the name of every host for itself to name servers (hosts(5))."""
    names = bench.host.names
    # nss-myhostname(8) and nss-resolve(8) know it without the file.
    known = not isinstance(names, Unknown) and {"myhostname", "resolve"} & set(names.order)
    if known or _OF_LOCALHOST.search(content):
        return
    bench.report(
        f"{PATH} has no line for localhost: what programs of one host say to each other may not arrive",
        fix="Add the line: 127.0.0.1 localhost",
        label="hostname-unresolvable",
    )


def _resolver_mends(bench: Bench, addresses: Mapping[str, str]) -> bool:
    """Return whether the wrong answers go away with what the remedy `resolver` changes."""
    settings = bench.fleet.spec.section("resolver", ResolverSpec)
    return settings.manage and bool(
        resolution.asked_too_late(bench.host, addresses)
        and resolution.can_put_files_first(bench.host)
    )


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
            fix="Set cluster_address of the host in the inventory to its IPv4 address in the cluster's network,"
            " or cluster.subnet in remedy.yaml.",
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
            label=_label(line),
        )
    listed = {(name, line.address) for line in block_entries(content) for name in line.names}
    pairs, known = _named(entries)
    lacking = [name for name, pair in pairs if not (listed and pair <= listed)]
    departures = sorted({name for name, _ in listed if name not in known})
    absent, kept_elsewhere = _parted(lacking, dict(pairs), content)
    if absent:
        bench.drift(f"{PATH} lacks {counted(len(absent), 'host')} of the cluster", _few(absent))
    if kept_elsewhere:
        hosts = counted(len(kept_elsewhere), "host")
        bench.drift(
            f"only lines of {PATH} that are not remedy's name {hosts} of the cluster",
            _few(kept_elsewhere),
        )
    if departures:
        bench.drift(f"{PATH} lists hosts that left the inventory", _few(departures))
    if not (disabled or lacking or departures):
        bench.drift(f"the block in {PATH} was edited or is out of order")
    return bench.findings[-1]


def _parted(
    lacking: Sequence[str], pairs: Mapping[str, Set[tuple[str, str]]], content: bytes
) -> tuple[list[str], list[str]]:
    """Part the hosts that the block lacks: those that no line names, and those that others name rightly."""
    outside = frozenset[tuple[str, str]]()
    if lacking:
        outside = frozenset(
            (n, line.address) for line in foreign_entries(content) for n in line.names
        )
    named = {name for name in lacking if pairs[name] <= outside}
    return [n for n in lacking if n not in named], [n for n in lacking if n in named]


def _label(line: Disabled) -> str:
    """Return the cause that a disabled line is."""
    entry = parse_line(line.before)
    assert entry is not None  # no other line is disabled
    if entry.loopback:
        return "loopback-hostname"
    return "ipv6-issue" if ":" in entry.address else ""


@once_alike
def _named(
    entries: Sequence[HostsEntry],
) -> tuple[Sequence[tuple[str, Set[tuple[str, str]]]], Set[str]]:
    """Return the last name of each entry with all that it names, and all names."""
    pairs = [(e.names[-1], {(name.lower(), e.address) for name in e.names}) for e in entries]
    return pairs, {name for _, pair in pairs for name, _ in pair}


def _few(words: Sequence[object]) -> tuple[str, ...]:
    """Return words as evidence: of thousands, which every host would have, the first and how many more."""
    shown = tuple(map(str, words[:MOST_SHOWN]))
    rest = len(words) - len(shown)
    return (*shown, f"and {rest:,} more") if rest else shown


def _check_resolver(bench: Bench, addresses: Mapping[str, str], *, settled: bool) -> None:
    """Name what the host's own resolver answers wrongly.

    Where the file is still to be changed (``settled`` false) that is expected to go away with it. Where the
    file is right, something else decides: nsswitch.conf, a name service cache, DNS.
    """
    if isinstance(bench.host.names, Unknown):
        bench.unknown("could not read how names resolve here", bench.host.names.reason)
        return
    names = bench.host.names
    wrong = resolution.wrong_answers(names, addresses)
    note = bench.blocked if settled else bench.drift
    for label, text in (
        ("loopback-hostname", "resolve to loopback"),
        ("ipv6-issue", "resolve to an IPv6 address first"),
        ("hostname-unresolvable", "do not resolve to the cluster address"),
    ):
        few = [answer for answer in wrong if answer.label == label]
        if few:
            which = f"{len(few)} of the cluster's hosts"
            if len(few) <= 3:
                which = ", ".join(answer.name for answer in few)
            whose = f" for the user {names.user}" if names.user else ""
            fix = _way_out(bench.host) if settled else ""
            note(f"names {text}{whose}: {which}", _few(few), fix, label=label)
    if settled:
        _note_silent(bench, resolution.unanswered(names, addresses))


def _way_out(host: HostState) -> str:
    """Return where to look when the file is right and the answer is not."""
    assert not isinstance(host.names, Unknown)
    before = resolution.services_before_files(host.names)
    if before:
        late = " ".join(before)
        return f"Put `files` first in the line `hosts:` of {resolution.NSSWITCH}, before {late}."
    if host.names.user and not any(host.names.peers.values()):
        who = host.names.user
        return f"Check what keeps {who} from reading {PATH}: namei -l, getfacl and ls -Z of it."
    caches = [path for path in CACHES if path in _present(host)]
    if caches:
        return f"A cache answers ({caches[0]}): empty it with `nscd -i hosts`, or restart it."
    return (
        f"Check `hosts:` in {resolution.NSSWITCH}: `files` must come first; and gai.conf(5), which sorts "
        "the answers."
    )


def _present(host: HostState) -> Set[str]:
    return frozenset() if isinstance(host.session, Unknown) else host.session.present


def _note_silent(bench: Bench, names: Sequence[str]) -> None:
    """Say which names of the inventory got no answer at all."""
    asked = {name.lower() for name in bench.fleet.inventory.names} if names else set()
    silent = [name for name in names if name in asked]
    if silent:
        bench.unknown(
            f"{counted(len(silent), 'name')} not resolved within the probe's time",
            silent[:8],
            "Check the DNS servers in /etc/resolv.conf: one may be dead.",
        )


@hosts_file.promises
def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after the change: the resolver answers what the file says."""
    if isinstance(change.action, CommandAction):
        state = resolution.mode_promise(state, change, PATH)
    file = state.file(PATH)
    if isinstance(file, Unknown) or isinstance(state.names, Unknown):
        return state
    peers = resolution.as_files_say(file.content, state.names.peers)
    return state.model_copy(update={"names": state.names.model_copy(update={"peers": peers})})


@hosts_file.observes
def observation(state: HostState, _change: Change) -> str:
    """Return the mode of the file."""
    file = state.file(PATH)
    return "" if isinstance(file, Unknown) else f"{file.mode:o}"
