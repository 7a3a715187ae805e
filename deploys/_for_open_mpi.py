"""What Open MPI has to be told on a host that it cannot work on unasked. Not a remedy itself."""

from __future__ import annotations

from remedy.deploys import _frameworks, _openmpi
from remedy.deploys import _interfaces as nic
from remedy.deploys._environment import Surroundings, Wish
from remedy.deploys.firewall import FirewallSpec, port_range
from remedy.firewall.walls import any_rules
from remedy.values import Unknown


def wishes(around: Surroundings) -> dict[str, Wish]:
    """Return what Open MPI needs unasked: to leave out what leads nowhere, and to stay within open ports."""
    host = around.bench.host
    if "mpi" not in _frameworks.in_use(around.bench.fleet) or not _openmpi.is_there(host):
        return {}
    return {**_interface(around), **_ports(around)}


def _interface(around: Surroundings) -> dict[str, Wish]:
    fleet, host, carrier = around.bench.fleet, around.bench.host, around.interface
    foreign = {setting.name for setting in around.settings if not setting.ours}
    subnet = nic.cluster_subnet(fleet, host)
    if subnet is None or isinstance(host.network, Unknown) or isinstance(carrier, Unknown):
        return {}
    if len(fleet.inventory.nodes) < 2 or foreign & {_openmpi.INCLUDE, _openmpi.EXCLUDE}:
        return {}
    astray = _openmpi.goes_astray(host.network, carrier)
    return {_openmpi.INCLUDE: Wish(subnet, astray, from_spec=False)} if astray else {}


def _ports(around: Surroundings) -> dict[str, Wish]:
    fleet, host = around.bench.fleet, around.bench.host
    bounds, walls = port_range(fleet, host), host.firewalls
    if bounds is None or isinstance(walls, Unknown) or not any_rules(host, walls):
        return {}
    opens = fleet.spec.section("firewall", FirewallSpec).mode == "open"
    if not opens or _openmpi.chosen_ports(host) is not None:
        return {}
    why = (
        f"peers are let in on {bounds[0]}-{bounds[1]}, and Open MPI listens from port 1024 upwards"
    )
    return {
        name: Wish(value, why, from_spec=False)
        for name, value in _openmpi.confinement(bounds).items()
    }
