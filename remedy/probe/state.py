"""HostState: what one probe found on one host.

Every group of facts is a ``Fact``: the value, or ``Unknown`` with the reason. A group is unknown when its
section of the probe could not run, ran out of its time or printed what cannot be parsed; the other groups are
not affected. Where "there is none" is an answer, it is a value (an empty tuple, "", ``None``) and not unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

from remedy.probe.accelerators import Gpus, RdmaPort
from remedy.probe.boot import BootMounts, Sshd
from remedy.probe.clock import Clock
from remedy.probe.containers import Containers
from remedy.probe.files import File, Mention
from remedy.probe.firewall import Firewalls
from remedy.probe.guards import Guards
from remedy.probe.identity import Identity
from remedy.probe.kernel import Kernel
from remedy.probe.memory import SharedMemory, SysvIpc
from remedy.probe.names import Names
from remedy.probe.network import Network
from remedy.probe.processes import Listener, Process
from remedy.probe.routing import Queueing, Routing
from remedy.probe.services import ServiceVariable
from remedy.probe.session import Limit, LoginSession
from remedy.probe.software import Software
from remedy.probe.space import Mount, Space
from remedy.probe.sysctl import Sysctls
from remedy.probe.units import Unit
from remedy.values import Fact, Record, Unknown

__all__ = ["File", "HostState", "Identity", "Names"]

NOT_PROBED = Unknown(reason="the probe did not read this")


class HostState(Record):
    """What one probe found on one host.

    ``root`` is whether the probe ran as root; ``complete`` whether it came to its end; ``costs`` the seconds of
    wall clock that each section took on the host. ``unsearched`` are the files, or homes, whose lines are not
    among ``mentions``. ``refusal`` is what sudo said where it refused to make the ssh user root.
    """

    host: str
    root: bool
    refusal: str = ""
    identity: Fact[Identity]
    names: Fact[Names]
    files: Mapping[str, Fact[File]]
    complete: bool = True
    costs: Mapping[str, float] = {}
    clock: Fact[Clock] = NOT_PROBED
    session: Fact[LoginSession] = NOT_PROBED
    guards: Fact[Guards] = NOT_PROBED
    kernel: Fact[Kernel] = NOT_PROBED
    mentions: Fact[tuple[Mention, ...]] = NOT_PROBED
    unsearched: Mapping[str, Unknown] = {}
    network: Fact[Network] = NOT_PROBED
    routing: Fact[Routing] = NOT_PROBED
    queueing: Fact[Queueing] = NOT_PROBED
    listeners: Fact[tuple[Listener, ...]] = NOT_PROBED
    sysctls: Fact[Sysctls] = NOT_PROBED
    firewalls: Fact[Firewalls] = NOT_PROBED
    units: Fact[Mapping[str, Unit]] = NOT_PROBED
    sshd: Fact[Sshd | None] = NOT_PROBED
    boot_mounts: Fact[BootMounts] = NOT_PROBED
    containers: Fact[Containers] = NOT_PROBED
    mounts: Fact[tuple[Mount, ...]] = NOT_PROBED
    space: Fact[Mapping[str, Space]] = NOT_PROBED
    shared_memory: Fact[SharedMemory] = NOT_PROBED
    ipc: Fact[SysvIpc] = NOT_PROBED
    processes: Fact[tuple[Process, ...]] = NOT_PROBED
    gpus: Fact[Gpus] = NOT_PROBED
    rdma: Fact[tuple[RdmaPort, ...]] = NOT_PROBED
    limits: Fact[Mapping[str, Limit]] = NOT_PROBED
    environment: Fact[Mapping[str, str]] = NOT_PROBED
    service_environments: Fact[tuple[ServiceVariable, ...]] = NOT_PROBED
    software: Fact[Software] = NOT_PROBED

    def file(self, path: str) -> Fact[File]:
        """Return the file at ``path``; ``Unknown`` when the probe did not read it."""
        file = self.files.get(path)
        return Unknown(reason=f"the probe did not read {path}") if file is None else file

    def files_in(self, directory: str) -> tuple[Fact[File], ...]:
        """Return the files right in ``directory`` that a pattern found, in the order of their names."""
        start = f"{directory.rstrip('/')}/"
        paths = sorted(
            path for path in self.files if path.startswith(start) and "/" not in path[len(start) :]
        )
        return tuple(self.files[path] for path in paths)
