"""Units and the network: systemd lets jobs talk to the cluster's hosts, and take what they need.

Finds: a unit, or a slice that it is in, whose settings keep packets of its processes from peers, though no
firewall shows a rule: IPAddressDeny= without an IPAddressAllow= for them, RestrictNetworkInterfaces= without
the cluster's interface, PrivateNetwork=, RestrictAddressFamilies= without AF_INET; each with file and line. It
is UNKNOWN what a program decides (IPIngressFilterPath=, IPEgressFilterPath=), which ports SocketBindDeny=
leaves, and what another network namespace leads to (NetworkNamespacePath=).

So is what leaves jobs too little there: MemoryMax= below half of the memory, TasksMax=, CPUQuota= below a CPU,
DevicePolicy= on hosts with GPUs, RuntimeMaxSec=.

How it is judged: the files of units and their drop-ins, as systemd adds them up, also those of `systemctl
set-property`. Checked are sessions of users (user.slice, user-UID.slice, sessions and user@UID.service),
containers and services that start jobs (system.slice, slurmd, kubelet, containerd, docker) and sshd; the lists
of a unit and of the slices above it count together, and what is allowed wins. Files are read, and systemd is
not asked: a file that it has not loaded yet counts, and so does one on a host whose kernel cannot enforce it
(control groups of version 1). What was set for a single run (`systemd-run -p`) and programs that others attach
to control groups are not seen: `bpftool cgroup tree`. Nothing is changed: whoever wrote such a line meant to
close something. A line that is right is accepted by its text.

Sources: systemd.resource-control(5), systemd.exec(5), systemd.unit(5); systemd's bpf-firewall.c.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from pydantic import Field

from remedy.causes import Cause
from remedy.deploys import _units
from remedy.deploys._ipv6 import ipv6_peers
from remedy.deploys._peers import Place, names_of, place_of
from remedy.deploys._systemd import FALSE
from remedy.deploys._unit_resources import LABEL, too_little
from remedy.deploys._units import UnitLine
from remedy.firewall import spans
from remedy.firewall.spans import Spans
from remedy.plan import Workbench, remedy
from remedy.probe import HostState, Mention
from remedy.spec import SpecSection
from remedy.values import Unknown

CAUSE = Cause(
    name="unit-keeps-from-peers",
    group="Network path",
    cause="systemd keeps the processes of a unit from the cluster's hosts: IPAddressDeny= and its like.",
    confirm="`systemctl show -p IPAddressDeny -p IPAddressAllow UNIT`, and of the slices that it is in.",
    fix="`systemctl edit UNIT`: IPAddressAllow= with the cluster's network; then `systemctl daemon-reload`.",
    silent="connections time out, or get Operation not permitted, as they do behind a firewall",
)
SERVICES = ("slurmd.service", "kubelet.service", "containerd.service", "docker.service")
SSH = ("ssh.service", "sshd.service")
BY_PROGRAM = ("IPIngressFilterPath", "IPEgressFilterPath")
_WORDS = {
    "any": ("0.0.0.0/0", "::/0"),
    "localhost": ("127.0.0.0/8", "::1/128"),
    "link-local": ("169.254.0.0/16", "fe80::/64"),
    "multicast": ("224.0.0.0/4", "ff00::/8"),
}
"""systemd.resource-control(5)."""


class UnitNetworkSpec(SpecSection):
    """``accept``: lines that are right as they are, each with its file, as findings show them."""

    accept: tuple[str, ...] = Field(
        (), examples=[["/etc/systemd/system/system.slice.d/closed.conf: IPAddressDeny=any"]]
    )


Bench = Workbench[UnitNetworkSpec]


@dataclass(frozen=True)
class Jobs:
    """Where jobs run: in words, and the unit with the slices above it, from the inside out."""

    words: str
    units: tuple[str, ...]


@remedy("Units and the network", UnitNetworkSpec, finds=(CAUSE, LABEL), order=92)
def unit_network(bench: Bench) -> None:
    """Look for settings of units that keep jobs from peers."""
    place = place_of(bench.fleet, bench.host)
    mentions = bench.host.mentions
    if place is None or isinstance(mentions, Unknown):
        return  # that the files were not read is said by `environment`
    units = [m for m in mentions if m.path.startswith(_units.DIRECTORIES)]
    noted = set(bench.settings.accept)
    for jobs in _jobs(bench.host, units) if units else ():
        lines = {unit: _units.lines_of(units, unit) for unit in jobs.units}
        for title, culprits in _found(bench, jobs, lines, place):
            if not noted.issuperset(line.text for line in culprits):
                noted |= {line.text for line in culprits}
                _note(bench, title, culprits)
        _note_too_little(bench, jobs, lines, noted)
        for line in _by_program(lines):
            if line.text not in noted:
                noted.add(line.text)
                title = f"what {line.key} of {line.unit} lets through is not known"
                fix = f"If it lets the cluster's hosts through, {_accept(line)}"
                bench.unknown(title, line.shown, fix)


def _jobs(host: HostState, mentions: Sequence[Mention]) -> Iterator[Jobs]:
    """Yield where jobs run on a host."""
    uid = "1000"  # stands for each user: drop-ins are for all, or name one whom jobs may be of
    users = {m.path.split("/user-")[1].split(".")[0] for m in mentions if "/user-" in m.path}
    for user in sorted({uid, *filter(str.isdigit, users)}):
        slices = (f"user-{user}.slice", "user.slice", _units.ROOT)
        yield Jobs("sessions of users", ("session-1.scope", *slices))
        yield Jobs("services of users", (f"user@{user}.service", *slices))
    yield Jobs("containers and services", ("system.slice", _units.ROOT))
    known = {} if isinstance(host.units, Unknown) else host.units
    for name in (*SERVICES, *SSH):
        if name in known and known[name].load == "loaded":
            yield Jobs(name, _units.above(name, mentions))


Lines = Mapping[str, tuple[UnitLine, ...]]
"""The lines of a unit and of each slice that it is in."""


def _found(
    bench: Bench, jobs: Jobs, lines: Lines, place: Place
) -> Iterator[tuple[str, tuple[UnitLine, ...]]]:
    """Yield what keeps jobs from peers, in words and with the lines that do."""
    ipv6 = ipv6_peers(bench.fleet)
    beyond = ipv6.of_peers(bench.host.host) if ipv6.used else ()
    for version, peers in ((4, place.peers), (6, beyond)):
        lost, guilty = _denied(bench, lines, peers, version)
        if lost:
            whom = names_of(bench.fleet, lost) if version == 4 else "the cluster's hosts over IPv6"
            yield f"systemd keeps {jobs.words} from {whom}", guilty
    for known in lines.values():
        listed = _units.values_of(known, "RestrictNetworkInterfaces")
        if listed and not _is_among(place.rails, listed):
            yield f"systemd keeps {jobs.words} from {place.carrier.name}", listed
    own = lines[jobs.units[0]]
    private = _units.values_of(own, "PrivateNetwork")[-1:]
    if private and private[0].value.lower() not in FALSE:
        yield f"systemd gives {jobs.words} a network of its own, without the cluster's", private
    families = _units.values_of(own, "RestrictAddressFamilies")
    if families and not _is_among({"AF_INET"}, families):
        yield f"systemd lets {jobs.words} use no IPv4", families


def _denied(
    bench: Bench, lines: Lines, peers: Spans, version: int
) -> tuple[Spans, tuple[UnitLine, ...]]:
    """Return which peers the address lists of a unit and its slices leave out, and the lines that do."""
    listed = [
        line
        for known in lines.values()
        for line in _units.values_of(known, "IPAddressDeny", "IPAddressAllow")
    ]
    allowed = [line for line in listed if line.key == "IPAddressAllow"]
    guilty = [
        line
        for line in listed
        if line.key == "IPAddressDeny"
        and not _accepted(bench, line)
        and spans.meet(peers, _addresses(line, version))
    ]
    denied, let = (
        spans.merge(span for line in known for span in _addresses(line, version))
        for known in (guilty, allowed)
    )
    return spans.minus(spans.meet(peers, denied), let), tuple(guilty)


def _is_among(names: Set[str], lines: Sequence[UnitLine]) -> bool:
    """Return whether a list holds one of these, or a list of what is refused (``~``) none of them."""
    refuses = lines[0].value.startswith("~")  # the first line decides what the others mean
    listed = {word for line in lines for word in line.value.removeprefix("~").split()}
    return bool(listed & names) is not refuses


def _accepted(bench: Bench, line: UnitLine) -> bool:
    return line.text in bench.settings.accept


def _addresses(line: UnitLine, version: int) -> Spans:
    """Return the addresses of a list, of one family."""
    networks = []
    for word in line.value.split():
        for text in _WORDS.get(word, (word,)):
            try:
                network = ipaddress.ip_network(text, strict=False)
            except ValueError:
                continue  # systemd takes no notice of it either
            if network.version == version:
                networks.append(text)
    return spans.of_networks(networks)


def _by_program(lines: Lines) -> tuple[UnitLine, ...]:
    """Return the lines of which it cannot be known what they let through."""
    every = [line for known in lines.values() for line in known]
    return _units.values_of(every, *BY_PROGRAM, "SocketBindDeny", "NetworkNamespacePath")


def _note(bench: Bench, title: str, lines: tuple[UnitLine, ...]) -> None:
    unit = lines[0].unit
    fix = (
        f"Let the cluster through: systemctl edit {unit}; then systemctl daemon-reload. If it is right, "
        f"{_accept(lines[0])}"
    )
    bench.blocked(title, (line.shown for line in lines), fix)


def _note_too_little(bench: Bench, jobs: Jobs, lines: Lines, noted: set[str]) -> None:
    for title, line in too_little(bench.host, jobs.words, lines):
        if line.text not in noted:
            noted.add(line.text)
            fix = (
                f"Remove line {line.number} of {line.path}, then: systemctl daemon-reload. If it is right, "
                f"{_accept(line)}"
            )
            bench.blocked(title, line.shown, fix, label=LABEL)


def _accept(line: UnitLine) -> str:
    return f'add to unit_network.accept in remedy.yaml: "{line.text}"'


@unit_network.breaks
def the_slice_is_closed(state: HostState) -> HostState:
    """Have a slice whose processes may talk to nobody."""
    if isinstance(state.mentions, Unknown):
        return state
    path = "/etc/systemd/system/system.slice.d/closed.conf"
    line = Mention(path=path, line=2, text="IPAddressDeny=any")
    return state.model_copy(update={"mentions": (*state.mentions, line)})
