"""Resolver: DNS that is asked before the hosts file, or that does not answer.

Finds: where `dns` comes before `files` in /etc/nsswitch.conf, what DNS says of a node wins over the hosts
file, and each start of a job waits for DNS; where a name server is dead, every name that is not in the hosts
file takes seconds, so that ssh logins and rendezvous stall. What names resolve to is told by hosts_file.

How it is measured: the `hosts:` line of /etc/nsswitch.conf as it is, and the time that the host's own
resolver (getent) took for all names of the inventory together. With every name in the hosts file DNS is not
asked, and a dead server is then not seen and does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from remedy.plan import Assessment, Finder, Finding, Fleet
from remedy.plan.legacy import old_remedy
from remedy.probe import HostState, Names
from remedy.spec import SpecSection

NAME = "resolver"
LABEL = "hostname-unresolvable"
_finding = Finder(NAME)
# These read /etc/hosts by themselves (nss-resolve(8), nss-myhostname(8) does not; nscd caches what files said).
KNOWS_HOSTS_FILE = ("files", "resolve", "db")


class ResolverSpec(SpecSection):
    """``slow_seconds``: how long looking up all names of the inventory may take."""

    slow_seconds: float = Field(default=2.0, gt=0, le=60)


def assess(fleet: Fleet, host: HostState, spec: ResolverSpec) -> Assessment:
    """Look at the order in which the host's resolver asks, and at how long it took."""
    if not isinstance(host.names, Names):
        return Assessment()  # hosts_file says so
    return Assessment((*_order(host, host.names), *_slow(fleet, host, host.names, spec)))


def _order(host: HostState, names: Names) -> Iterator[Finding]:
    services = [word for word in names.order if not word.startswith("[")]
    if "dns" not in services:
        return
    before = services[: services.index("dns")]
    if not any(service in KNOWS_HOSTS_FILE for service in before):
        yield _finding.report(
            host,
            "DNS is asked before the hosts file",
            LABEL,
            (f"/etc/nsswitch.conf: hosts: {' '.join(names.order)}",),
            "Put `files` before `dns` in that line.",
        )


def _slow(fleet: Fleet, host: HostState, names: Names, spec: ResolverSpec) -> Iterator[Finding]:
    took = host.costs.get("names", 0.0)
    if took < spec.slow_seconds or not names.servers:
        return
    asked = len(fleet.inventory.names)
    yield _finding.report(
        host,
        "looking up the names of the cluster is slow: a name server does not answer",
        LABEL,
        (
            f"{asked} names took {took:.1f} s, {asked - len(names.peers)} of them were not asked in time",
            f"/etc/resolv.conf: {', '.join(f'nameserver {server}' for server in names.servers)}",
        ),
        "Ask each server: getent -s dns hosts NAME. Remove a dead one from /etc/resolv.conf, or from what "
        "writes it (resolvectl status).",
    )


old_remedy(
    name=NAME,
    title="Resolver",
    text=__doc__,
    cures=(),
    finds=(LABEL,),
    spec=ResolverSpec,
    assess=assess,
    order=90,
)
