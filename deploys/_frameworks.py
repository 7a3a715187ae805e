"""Which frameworks train on the hosts, and which ports their launchers need. Not a remedy itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from remedy.deploys import _openmpi
from remedy.deploys.ascend import HCCN, AscendSpec
from remedy.deploys.paddle import PaddleSpec
from remedy.firewall.ports import ENGINES, VERIFICATION, Framework, Need, needs_of
from remedy.plan import Fleet, once_a_fleet
from remedy.probe import File, HostState
from remedy.values import Unknown

# The distributions whose metadata the probe finds, as their directories are spelt.
PACKAGES: Mapping[Framework, tuple[str, ...]] = {
    "paddle": ("paddlepaddle", "paddlepaddle_gpu"),
    "mindspore": ("mindspore", "mindspore_gpu", "mindspore_ascend"),
}


@once_a_fleet
def in_use(fleet: Fleet) -> tuple[Framework, ...]:
    """Return the frameworks of ``firewall.frameworks``; without it torch, and those that hosts have."""
    chosen: tuple[Framework, ...] | None = getattr(
        fleet.spec.sections.get("firewall"), "frameworks", None
    )
    if chosen is not None:
        return chosen
    frameworks = {framework for state in fleet.states.values() for framework in _installed(state)}
    engine = ENGINES.get(fleet.spec.verify.engine)
    every: tuple[Framework, ...] = ("torch", "mpi", "paddle", "mindspore", "hccl")
    return tuple(name for name in every if name == "torch" or name in frameworks or name == engine)


@once_a_fleet
def is_settled(fleet: Fleet) -> bool:
    """Return whether no host that was not read could have a framework that no other has."""
    if getattr(fleet.spec.sections.get("firewall"), "frameworks", None) is not None:
        return True
    return len(fleet.states) == len(fleet.inventory.names) and not any(
        isinstance(state.software, Unknown) for state in fleet.states.values()
    )


def needs(fleet: Fleet, host: HostState) -> Iterator[Need]:
    """Yield what the launchers on a host listen on, beside the kernel's choice: of frameworks and settings."""
    frameworks = in_use(fleet)
    yield from needs_of(name for name in frameworks if name != "hccl")
    if "hccl" in frameworks:
        base = fleet.spec.section("ascend", AscendSpec).base_port
        for need in needs_of(("hccl",)):
            yield replace(need, low=base, high=min(base + need.high - need.low, 65535))
    if "mpi" in frameworks and (chosen := _openmpi.chosen_ports(host)) is not None:
        yield Need(*chosen, "Open MPI, by a setting of this host", fixed=False)
    ports = fleet.spec.section("paddle", PaddleSpec).range
    if ports:
        yield Need(ports.start, ports.stop - 1, "paddle.ports of the spec", meeting=True)


def meeting_ports(fleet: Fleet, host: HostState) -> tuple[int, ...]:
    """Return the ports on which a launcher fails where another process has them.

    The verification's ports, from torch's usual one on, are among them: jobs started by hand take these too.
    """
    spans = [(need.low, need.high) for need in needs(fleet, host) if need.meeting]
    spans.append((VERIFICATION.low, VERIFICATION.high))
    if fleet.spec.verify.port is not None:
        spans.append((fleet.spec.verify.port, fleet.spec.verify.port))
    return tuple(dict.fromkeys(port for low, high in spans for port in range(low, high + 1)))


def _installed(state: HostState) -> Iterator[Framework]:
    if _openmpi.is_there(state):
        yield "mpi"
    if not isinstance(state.software, Unknown):
        for framework, names in PACKAGES.items():
            if state.software.versions(*names):
                yield framework
    table = state.file(HCCN)
    if isinstance(table, File) and table.exists:
        yield "hccl"
