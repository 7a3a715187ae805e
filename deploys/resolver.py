"""Resolver: the hosts file is asked first, and by everybody.

Cures: a service that is asked before the hosts file and gives another address than the cluster's: DNS with an
old record, nss-myhostname with all addresses of the host (link-local and IPv6 ones among them); nsswitch.conf
or resolv.conf that only root can read, so that the names of the cluster resolve for nobody else.

Finds: /etc itself open to root alone; lines of gai.conf that put IPv6 first, or differ between hosts; `dns`
before `files` in /etc/nsswitch.conf, by which what DNS says of a host wins over the hosts file, and each start
of a job waits for DNS; a dead name server, by which every name that is not in the hosts file takes seconds, so
that ssh logins and rendezvous stall. What names resolve to is checked by hosts_file.

The order is changed only where an answer is wrong that the hosts file has right. What authselect(8) writes is
left to it.

How it is measured: the `hosts:` line of /etc/nsswitch.conf as it is, and the time that the host's own
resolver (getent) took for all names of the inventory together. With every name in the hosts file DNS is not
asked, and a dead server is then not seen and does not matter.
"""

from __future__ import annotations

from typing import TypeAlias

from pydantic import Field

from remedy.deploys import _resolution as resolution
from remedy.deploys._hosts_block import target
from remedy.deploys._resolution import NSSWITCH, RESOLV
from remedy.plan import Change, CommandAction, Fleet, Risk, Workbench, once_a_fleet, remedy
from remedy.probe import File, HostState, Names
from remedy.probe.names import hosts_order
from remedy.spec import SpecSection
from remedy.text import counted
from remedy.values import Unknown

# Read by the resolver in every process (resolver(5), nsswitch.conf(5), host.conf(5)).
FILES = (NSSWITCH, RESOLV, "/etc/host.conf", resolution.GAI)
FOLDER = "/etc"
NOT_FILES = ("dns", "myhostname")


class ResolverSpec(SpecSection):
    """``slow_seconds``: how long looking up all names of the inventory may take.

    ``manage``: whether remedy puts the hosts file first and lets every user read what the resolver reads;
    without it, both are only checked.
    """

    slow_seconds: float = Field(default=2.0, gt=0, le=60)
    manage: bool = True


Bench: TypeAlias = Workbench[ResolverSpec]


@remedy(
    "Resolver",
    ResolverSpec,
    cures=("hostname-unresolvable", "loopback-hostname", "ipv6-issue"),
    order=15,
)
def resolver(bench: Bench) -> None:
    """Decide who is asked first, and check how long it took."""
    for path in FILES:
        resolution.let_everybody_read(
            bench, path, label="hostname-unresolvable", manage=bench.settings.manage
        )
    _note_folder(bench)
    names = bench.known(bench.host.names)  # that it is not known, hosts_file reports
    if not _put_files_first(bench):
        _note_order(bench, names)
    _note_options(bench, names)
    _note_families(bench, names)
    _note_slowness(bench, names)


def _put_files_first(bench: Bench) -> bool:
    """Have the hosts file asked before what gives a wrong answer; return whether something does."""
    hosts = bench.host.file(resolution.HOSTS)
    if isinstance(hosts, Unknown):
        return False
    wrong = resolution.asked_too_late(bench.host, target(bench.fleet, hosts.content).addresses)
    if not wrong:
        return False
    names = bench.known(bench.host.names)
    before = ", ".join(resolution.services_before_files(names)) or "dns"
    title = f"{before} is asked before the hosts file, and gives other addresses than the cluster's"
    line = f"hosts: {' '.join(names.order)}" if names.order else "no line for hosts"
    evidence = (f"{NSSWITCH}: {line}", *map(str, wrong[:8]))
    file = bench.file(NSSWITCH)
    if not bench.settings.manage or resolution.is_authselects(file):
        fix = f"Put `files` first in the line `hosts:` of {NSSWITCH}."
        if resolution.is_authselects(file):
            fix = "Put `files` first in /etc/authselect/user-nsswitch.conf, then: authselect apply-changes"
        bench.blocked(title, evidence, fix, label=wrong[0].label)
        return True
    finding = bench.drift(title, evidence, label=wrong[0].label)
    bench.write(
        NSSWITCH,
        resolution.with_files_first(file),
        f"have the hosts file asked first ({NSSWITCH})",
        because=finding,
        risk=Risk.MEDIUM,
        disrupts="programs that run keep the old order (with glibc before 2.33, until they are started again)",
    )
    return True


def _note_order(bench: Bench, names: Names) -> None:
    """Report an order that can give wrong answers, although it gives none now."""
    for service in resolution.services_before_files(names):
        if service in resolution.HARMLESS and service not in ("mymachines", "libvirt"):
            return  # it reads the hosts file by itself
        if service in NOT_FILES:
            who = "DNS" if service == "dns" else "nss-myhostname"
            bench.report(
                f"{who} is asked before the hosts file",
                f"{NSSWITCH}: hosts: {' '.join(names.order)}",
                f"Put `files` before `{service}` in that line.",
            )
            return


def _note_options(bench: Bench, names: Names) -> None:
    if "inet6" in names.resolver_options:
        bench.report(
            f"{RESOLV} has the option inet6: gethostbyname gives IPv6 addresses",
            f"{RESOLV}: options {' '.join(names.resolver_options)}",
            "Remove it: glibc no longer supports it (resolv.conf(5)).",
            label="ipv6-issue",
        )


def _note_folder(bench: Bench) -> None:
    """Name a directory that keeps others than root from every file that the resolver reads."""
    folder = bench.host.file(FOLDER)
    if isinstance(folder, File) and folder.exists and folder.mode & 0o005 != 0o005:
        bench.blocked(
            f"{FOLDER} has mode {folder.mode:04o}: names and users are known to root alone",
            f"stat: {FOLDER} {folder.mode:04o}; names are asked as the user of each program",
            f"Let everybody in: chmod 755 {FOLDER}",
        )


def _note_families(bench: Bench, names: Names) -> None:
    """Name lines that reorder the answers of getaddrinfo, here or unlike elsewhere."""
    lines = resolution.order_lines(bench.host)
    if not lines:
        return
    wrong = resolution.ipv6_first(names)
    if wrong or not _order_alike(bench.fleet):
        note = bench.blocked if wrong else bench.report
        title = (
            "puts IPv6 first for names of the cluster" if wrong else "is not the same on all hosts"
        )
        note(
            f"{resolution.GAI}, by which getaddrinfo orders addresses, {title}",
            lines[:8],
            "Take these lines out, or have them on all hosts: without any, glibc's order holds (gai.conf(5)).",
            label="ipv6-issue",
        )


@once_a_fleet
def _order_alike(fleet: Fleet) -> bool:
    """Return whether all hosts that were read order addresses by the same lines."""
    orders = {
        tuple(line.partition(" ")[2] for line in resolution.order_lines(state))
        for state in fleet.states.values()
    }
    return len(orders) <= 1


def _note_slowness(bench: Bench, names: Names) -> None:
    seconds = bench.host.costs.get("names", 0.0)
    if seconds >= bench.settings.slow_seconds and names.servers:
        number = len(bench.fleet.inventory.names)
        late = number - len(names.peers)
        bench.report(
            "looking up the names of the cluster is slow: no answer from a name server",
            (
                f"{counted(number, 'name')} took {seconds:.1f} s, {late} of them were not asked in time",
                f"/etc/resolv.conf: {', '.join(f'nameserver {server}' for server in names.servers)}",
            ),
            "Ask each server: getent -s dns hosts NAME. Remove a dead one from /etc/resolv.conf, or from what "
            "writes it (resolvectl status).",
        )


@resolver.promises
def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after the change: with the hosts file first, its answers."""
    if isinstance(change.action, CommandAction):
        return resolution.mode_promise(state, change, _path_of(change))
    nsswitch, hosts = state.file(NSSWITCH), state.file(resolution.HOSTS)
    if (
        isinstance(nsswitch, Unknown)
        or isinstance(hosts, Unknown)
        or isinstance(state.names, Unknown)
    ):
        return state
    listed = resolution.as_files_say(hosts.content, state.names.peers)
    peers = {name: listed[name] or answer for name, answer in state.names.peers.items()}
    order = hosts_order(nsswitch.content.decode("utf-8", "replace"))
    names = state.names.model_copy(update={"peers": peers, "order": order})
    return state.model_copy(update={"names": names})


@resolver.observes
def observation(state: HostState, change: Change) -> str:
    """Return the mode of the file that the change is about."""
    file = state.file(_path_of(change))
    return "" if isinstance(file, Unknown) else f"{file.mode:o}"


def _path_of(change: Change) -> str:
    assert isinstance(change.action, CommandAction)
    return change.action.observe.rpartition(" ")[2]
