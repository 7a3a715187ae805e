"""Resolver: DNS that is asked before the hosts file, or that does not answer.

Finds: where `dns` comes before `files` in /etc/nsswitch.conf, what DNS says of a node wins over the hosts
file, and each start of a job waits for DNS; where a name server is dead, every name that is not in the hosts
file takes seconds, so that ssh logins and rendezvous stall. What names resolve to is checked by hosts_file.

How it is measured: the `hosts:` line of /etc/nsswitch.conf as it is, and the time that the host's own
resolver (getent) took for all names of the inventory together. With every name in the hosts file DNS is not
asked, and a dead server is then not seen and does not matter.
"""

from __future__ import annotations

from pydantic import Field

from remedy.plan import Workbench, remedy
from remedy.probe import Names
from remedy.spec import SpecSection
from remedy.text import counted

# These read /etc/hosts by themselves (nss-resolve(8), nss-myhostname(8) does not; nscd caches what files said).
KNOWS_HOSTS_FILE = ("files", "resolve", "db")


class ResolverSpec(SpecSection):
    """``slow_seconds``: how long looking up all names of the inventory may take."""

    slow_seconds: float = Field(default=2.0, gt=0, le=60)


@remedy("Resolver", ResolverSpec, finds=("hostname-unresolvable",), order=90)
def resolver(bench: Workbench[ResolverSpec]) -> None:
    """Check the order in which the host's resolver asks, and how long it took."""
    names = bench.known(bench.host.names)  # that it is not known, hosts_file reports
    if _asks_dns_first(names):
        bench.report(
            "DNS is asked before the hosts file",
            f"/etc/nsswitch.conf: hosts: {' '.join(names.order)}",
            "Put `files` before `dns` in that line.",
        )
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


def _asks_dns_first(names: Names) -> bool:
    services = [word for word in names.order if not word.startswith("[")]
    if "dns" not in services:
        return False
    return not any(word in KNOWS_HOSTS_FILE for word in services[: services.index("dns")])
