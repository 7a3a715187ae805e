"""The probe: the one read-only command run on a host, and what it found.

``render_probe`` makes the script, ``parse_probe`` reads its output into a ``HostState``, ``fingerprint`` names
that state. Nothing here talks to a host.
"""

from remedy.probe.accelerators import Gpu, GpuProcess, Gpus, PciDevice, RdmaPort
from remedy.probe.boot import BootMounts, Sshd
from remedy.probe.clock import Clock
from remedy.probe.containers import Container, Containers, Docker
from remedy.probe.files import File, Mention
from remedy.probe.fingerprint import differing, fingerprint
from remedy.probe.firewall import Firewalls, NftChain, NftRule, NftRuleset, NftSet
from remedy.probe.guards import Guards, PendingGuard, RunAtWork
from remedy.probe.identity import Identity
from remedy.probe.kernel import Kernel
from remedy.probe.memory import Queue, Segment, Semaphores, SharedMemory, ShmFile, SysvIpc
from remedy.probe.names import Names
from remedy.probe.network import Address, Interface, Network, Route, RoutingRule
from remedy.probe.parse import parse_probe
from remedy.probe.processes import Listener, Process
from remedy.probe.request import ProbeRequest, render_probe
from remedy.probe.resolved import Resolved
from remedy.probe.routing import (
    Discipline,
    FibRoute,
    IpsecPolicy,
    Neighbour,
    PolicyRule,
    Queueing,
    Routing,
    TrafficFilter,
)
from remedy.probe.services import ServiceVariable
from remedy.probe.session import UNLIMITED, Limit, LoginSession
from remedy.probe.software import Package, Software
from remedy.probe.space import Mount, Space
from remedy.probe.state import HostState
from remedy.probe.stuck import explain_stuck_probe, stuck_processes
from remedy.probe.sysctl import Sysctls, SysctlSetting
from remedy.probe.units import Unit
from remedy.values import Record

__all__ = [
    "UNLIMITED",
    "Address",
    "BootMounts",
    "Clock",
    "Container",
    "Containers",
    "Discipline",
    "Docker",
    "FibRoute",
    "File",
    "Firewalls",
    "Gpu",
    "GpuProcess",
    "Gpus",
    "Guards",
    "HostState",
    "Identity",
    "Interface",
    "IpsecPolicy",
    "Kernel",
    "Limit",
    "Listener",
    "LoginSession",
    "Mention",
    "Mount",
    "Names",
    "Neighbour",
    "Network",
    "NftChain",
    "NftRule",
    "NftRuleset",
    "NftSet",
    "Package",
    "PciDevice",
    "PendingGuard",
    "PolicyRule",
    "ProbeRequest",
    "Process",
    "Queue",
    "Queueing",
    "RdmaPort",
    "Resolved",
    "Route",
    "Routing",
    "RoutingRule",
    "RunAtWork",
    "Segment",
    "Semaphores",
    "ServiceVariable",
    "SharedMemory",
    "ShmFile",
    "Software",
    "Space",
    "Sshd",
    "SysctlSetting",
    "Sysctls",
    "SysvIpc",
    "TrafficFilter",
    "Unit",
    "differing",
    "explain_stuck_probe",
    "fingerprint",
    "parse_probe",
    "records",
    "render_probe",
    "stuck_processes",
]


def records() -> tuple[type[Record], ...]:
    """Return the kinds of records that states are made of."""
    values = map(globals().__getitem__, __all__)
    return tuple(v for v in values if isinstance(v, type) and issubclass(v, Record))
