"""What Open MPI has to be told on a host that it cannot work on unasked. Not a remedy itself."""

from __future__ import annotations

from remedy.deploys import _frameworks, _openmpi
from remedy.deploys import _interfaces as nic
from remedy.deploys._environment import Surroundings, Wish
from remedy.deploys.firewall import FirewallSpec, port_range
from remedy.firewall.walls import any_rules
from remedy.probe import HostState
from remedy.values import Unknown


def wishes(around: Surroundings) -> dict[str, Wish]:
    """Return what Open MPI needs unasked: to leave out what leads nowhere, and to stay within open ports."""
    host = around.bench.host
    if "mpi" not in _frameworks.in_use(around.bench.fleet) or not _openmpi.is_there(host):
        return {}
    return {**_interface(around), **_ports(around)}


def _interface(around: Surroundings) -> dict[str, Wish]:
    """Return the network that the ranks and the daemons of mpirun are to stay in, where another does harm."""
    fleet, host, carrier = around.bench.fleet, around.bench.host, around.interface
    subnet = nic.cluster_subnet(fleet, host)
    if subnet is None or isinstance(host.network, Unknown) or isinstance(carrier, Unknown):
        return {}
    reason = _openmpi.goes_astray(host.network, carrier)
    further = _openmpi.further_interfaces(host.network, carrier)
    if reason is None and further and _is_walled(host):
        names = ", ".join(further)
        reason = f"Open MPI takes {names} too, and peers are let in by their cluster addresses only"
    if reason is None or len(fleet.inventory.nodes) < 2:
        return {}
    foreign = {setting.name for setting in around.settings if not setting.ours}
    return {
        include: Wish(subnet, reason, from_spec=False)
        for include, exclude in _openmpi.CHOICES.items()
        if not foreign & {include, exclude}
    }


def _is_walled(host: HostState) -> bool:
    return not isinstance(host.firewalls, Unknown) and any_rules(host, host.firewalls)


def _ports(around: Surroundings) -> dict[str, Wish]:
    fleet, host = around.bench.fleet, around.bench.host
    bounds = port_range(fleet, host)
    if bounds is None or not _is_walled(host):
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
