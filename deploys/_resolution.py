"""What names resolve to on a host, held against the cluster addresses. Not a remedy: two of them need it.

What is compared is what getaddrinfo gives first (see ``remedy.probe.Names``): gloo listens on the first address
of the own name that it can bind, whatever its family, and refuses to connect two families; c10d tries a peer's
addresses in their order, and waits its whole time for one that is silent.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from remedy.edit.hosts import block_entries, foreign_entries
from remedy.edit.nsswitch import files_first
from remedy.plan import Change, CommandAction, Workbench, once_alike
from remedy.probe import File, HostState, Names, Resolved
from remedy.probe.names import hosts_order
from remedy.values import Unknown

HOSTS = "/etc/hosts"
NSSWITCH = "/etc/nsswitch.conf"
RESOLV = "/etc/resolv.conf"
GAI = "/etc/gai.conf"
ORDERING = ("label", "precedence", "scopev4")
# These read /etc/hosts by themselves, or only answer to names that no host has (nss-resolve(8),
# nss-mymachines(8), nss-mdns's *_minimal: .local alone). nss-myhostname(8) does not: it gives all addresses of
# the host.
HARMLESS = frozenset((
    "resolve", "db", "mymachines", "libvirt", "libvirt_guest",
    "mdns4_minimal", "mdns6_minimal", "mdns_minimal",
))  # fmt: skip


@dataclass(frozen=True)
class WrongAnswer:
    """A name whose first address is not the cluster address.

    Args:
        name: in lower case.
        addresses: all that the resolver gave, in its order; () for none.
        expected: the cluster address.
    """

    name: str
    addresses: tuple[str, ...]
    expected: str

    @cached_property
    def label(self) -> str:
        """The cause that it is: loopback in either family, another IPv6 address first, or anything else."""
        if any(map(_is_loopback, self.addresses)):
            return "loopback-hostname"
        if ":" in "".join(self.addresses[:1]):
            return "ipv6-issue"
        return "hostname-unresolvable"

    def __str__(self) -> str:
        answer = ", ".join(self.addresses) or "no answer"
        return f"{self.name}: {answer}, expected {self.expected}"


def wrong_answers(names: Names, addresses: Mapping[str, str]) -> tuple[WrongAnswer, ...]:
    """Return what the host's resolver answers wrongly to the user who runs the jobs."""
    peers = names.peers
    if not isinstance(peers, Resolved):
        return _wrong_answers(peers, addresses)
    alike = _wrong_answers(peers.alike, addresses)
    if not peers.otherwise:
        return alike
    own = {name.lower(): answer for name, answer in peers.otherwise.items()}
    wrong = {
        name: WrongAnswer(name, answer, addresses[name])
        for name, answer in own.items()
        if name in addresses and answer[:1] != (addresses[name],)
    }
    kept = [answer for answer in alike if answer.name not in own]
    return (*wrong.values(), *kept)


def unanswered(names: Names, addresses: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names, in lower case, to which the host's resolver gave no answer in time."""
    peers = names.peers
    if not isinstance(peers, Resolved):
        return _unanswered(peers, addresses)
    own = {name.lower() for name in peers.otherwise}
    return tuple(name for name in _unanswered(peers.alike, addresses) if name not in own)


@once_alike
def _unanswered(
    peers: Mapping[str, tuple[str, ...]], addresses: Mapping[str, str]
) -> tuple[str, ...]:
    return tuple(sorted(addresses.keys() - {name.lower() for name in peers}))


@once_alike
def _wrong_answers(
    peers: Mapping[str, tuple[str, ...]], addresses: Mapping[str, str]
) -> tuple[WrongAnswer, ...]:
    answers = {name.lower(): answer for name, answer in peers.items()}
    return tuple(
        WrongAnswer(name, answers[name], address)
        for name, address in addresses.items()
        if name in answers and answers[name][:1] != (address,)
    )


def ipv6_first(names: Names | Unknown) -> Set[str]:
    """Return the names (lower case) that lead to an IPv6 address before any other."""
    if isinstance(names, Unknown):
        return frozenset()
    peers = names.peers
    if not isinstance(peers, Resolved):
        return _ipv6_first(peers)
    own = {name.lower() for name in peers.otherwise}
    return (_ipv6_first(peers.alike) - own) | _by_ipv6(peers.otherwise)


@once_alike
def _ipv6_first(peers: Mapping[str, tuple[str, ...]]) -> Set[str]:
    return _by_ipv6(peers)


def _by_ipv6(peers: Mapping[str, tuple[str, ...]]) -> Set[str]:
    return {name.lower() for name, answer in peers.items() if ":" in "".join(answer[:1])}


def services_before_files(names: Names) -> tuple[str, ...]:
    """Return the services of the ``hosts`` line that are asked before the hosts file."""
    services = [word for word in names.order if not word.startswith("[")]
    if "files" in services:
        services = services[: services.index("files")]
    return tuple(services)


def _usual_services(host: HostState) -> tuple[str, ...]:
    """Return what glibc asks before the hosts file where nsswitch.conf has no line for hosts."""
    file = host.file(NSSWITCH)
    is_usual = isinstance(file, Unknown) or hosts_order(file.content.decode("utf-8", "replace"))
    return () if is_usual else ("dns",)


def asked_too_late(host: HostState, addresses: Mapping[str, str]) -> tuple[WrongAnswer, ...]:
    """Return the wrong answers that come from a service which is asked before the hosts file."""
    file = host.file(HOSTS)
    if isinstance(host.names, Unknown) or isinstance(file, Unknown):
        return ()
    before = services_before_files(host.names) or _usual_services(host)
    wrong = wrong_answers(host.names, addresses) if before else ()
    if not wrong:
        return ()
    closed = not readable(file) and host.names.user not in ("", "root")
    listed = as_files_say(file.content, addresses)
    harmless = HARMLESS.issuperset(before)
    return tuple(
        answer
        for answer in wrong
        if not (answer.addresses and set(answer.addresses) <= set(listed[answer.name]))
        and not (harmless and not listed[answer.name])
        and not (closed and not answer.addresses)
    )


def as_files_say(
    content: bytes, names: Sequence[str] | Mapping[str, object]
) -> dict[str, tuple[str, ...]]:
    """Return what a hosts file says of each name, in the order of getaddrinfo on a host with IPv4 alone."""
    lines = [*foreign_entries(content), *block_entries(content)]
    answers: dict[str, list[str]] = {}
    for line in lines:
        for name in line.names:
            answers.setdefault(name, []).append(line.address)
    return {
        name: tuple(dict.fromkeys(sorted(answers.get(name.lower(), ()), key=lambda a: ":" in a)))
        for name in names
    }


def can_put_files_first(host: HostState) -> bool:
    """Return whether nsswitch.conf is known, and is nobody's but the administrator's."""
    file = host.file(NSSWITCH)
    return isinstance(file, File) and not is_authselects(file)


def is_authselects(file: File) -> bool:
    """Return whether authselect(8) writes the file again: it leads into its folder, or says so at its top."""
    return (
        file.real_path.startswith("/etc/authselect/")
        or b"generated by authselect" in file.content[:1024].lower()
    )


def with_files_first(file: File) -> bytes:
    """Return the content that nsswitch.conf is to have."""
    return files_first(file.content)


# --- the order of families ----------------------------------------------------------------------------------


def order_lines(host: HostState) -> tuple[str, ...]:
    """Return the lines of gai.conf(5) that change which address of a name comes first, with their places."""
    file = host.file(GAI)
    if isinstance(file, Unknown):
        return ()
    lines = enumerate(file.content.decode("utf-8", "replace").splitlines(), 1)
    words = ((at, line.partition("#")[0].split()) for at, line in lines)
    return tuple(
        f"{GAI}:{at}: {' '.join(line)}" for at, line in words if line[:1] and line[0] in ORDERING
    )


# --- files that everybody has to be able to read -----------------------------------------------------------


def readable(file: File) -> bool:
    """Return whether every user can read a file; one that is not there keeps nobody from anything."""
    return not file.exists or bool(file.mode & 0o004)


def let_everybody_read(bench: Workbench[Any], path: str, *, label: str, manage: bool) -> bool:
    """Plan that everybody may read a file that only some can read; return whether it is planned."""
    file = bench.host.file(path)
    if isinstance(file, Unknown) or readable(file):
        return False
    mode = file.mode | 0o444
    note = bench.drift if manage else bench.report
    finding = note(
        f"{path} has mode {file.mode:04o}: names resolve for root alone, others cannot read it",
        f"the resolver reads it as the user of each program; needs {mode:04o}",
        "" if manage else f"Let everybody read it: chmod a+r {path}",
        label=label,
    )
    if not manage or not bench.can_write(path, because=finding):
        return False
    bench.run(
        f"let every user read {path}",
        because=finding,
        observe=f"stat -L -c %a {path}",
        before=f"{file.mode:o}",
        after=f"{mode:o}",
        do=f"roots {path} && chmod {mode:o} {path}",
        undo=f"roots {path} && chmod {file.mode:o} {path}",
        does=f"chmod {mode:o} {path}, if no folder above it is of a different user",
        undoes=f"chmod {file.mode:o} {path}, if no folder above it is of a different user",
    )
    return True


def mode_promise(state: HostState, change: Change, path: str) -> HostState:
    """Return the host with the mode that ``let_everybody_read`` gives a file."""
    file = state.file(path)
    assert isinstance(change.action, CommandAction)
    assert isinstance(file, File)
    changed = file.model_copy(update={"mode": int(change.action.after, 8)})
    return state.model_copy(update={"files": {**state.files, path: changed}})


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
