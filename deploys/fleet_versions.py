"""Versions: drivers, frameworks and NCCL that are not the same on every host, and GPUs that are not.

Finds: ranks with different NCCL versions refuse each other ("Mismatched NCCL version detected") or fail with
an error that names none of it; a host with an older driver fails alone; hosts with different numbers of GPUs
make a launcher wait for ranks that never come.

How it is measured: the loaded driver by /proc/driver/nvidia/version, GPUs by nvidia-smi, Python packages by
the names of their metadata directories, torch's CUDA by its version.py, NCCL and Open MPI of the system by the
names of their libraries. Nothing is imported or started. What could not be read on a host is not compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from remedy.plan import Fleet, FleetBench, Workbench, remedy
from remedy.plan.compare import differences
from remedy.probe import Gpus, HostState, Software
from remedy.spec import SpecSection
from remedy.text import fold
from remedy.values import Unknown

NCCL_WHEELS = ("nvidia_nccl_cu11", "nvidia_nccl_cu12", "nvidia_nccl_cu13")
FRAMEWORKS = ("torch", "torch_npu", "paddlepaddle", "paddlepaddle_gpu", "mindspore")
NONE = "none"


_VERSION = {
    "type": "string",
    "description": 'a version in quotes, such as "2.8"',
    "pattern": r"^\d+(\.\d+){0,3}$",
}


def _version(text: str) -> str:
    if not re.fullmatch(r"\d+(\.\d+){0,3}", text):
        raise ValueError
    return text


class FleetVersionsSpec(SpecSection):
    """``nccl_minimum``: the oldest NCCL that is not reported. ``compare``: whether hosts are compared."""

    nccl_minimum: Annotated[
        str, AfterValidator(_version), WithJsonSchema(_VERSION, mode="validation")
    ] = Field("2.8", examples=["99.1"])
    compare: bool = True


def driver(state: HostState) -> str | None:
    """Return the loaded NVIDIA driver; None on a host without such GPUs, or where that is not known."""
    gpus = state.gpus
    if not isinstance(gpus, Gpus) or not (gpus.driver or any(d.is_gpu for d in gpus.pci)):
        return None
    return gpus.driver or NONE


def gpu_kinds(state: HostState) -> str | None:
    """Return how many GPUs of which kind nvidia-smi lists; None where it lists none or was not asked."""
    gpus = state.gpus
    if not isinstance(gpus, Gpus) or not isinstance(gpus.devices, tuple) or not gpus.devices:
        return None
    names = [device.name for device in gpus.devices]
    return ", ".join(f"{names.count(name)} x {name}" for name in sorted(set(names)))


def installed(*names: str) -> Callable[[HostState], str | None]:
    """Return a function that gives the versions of these packages that a host has."""

    def versions(state: HostState) -> str | None:
        if not isinstance(state.software, Software):
            return None
        numbers = {package.version for package in state.software.versions(*names)}
        return " and ".join(sorted(numbers)) or NONE

    return versions


def torch_cuda(state: HostState) -> str | None:
    """Return the CUDA versions that the host's torch is built for; None where there is no torch."""
    if not isinstance(state.software, Software) or not state.software.cuda:
        return None
    return " and ".join(sorted({version or "no CUDA" for _, version in state.software.cuda}))


def system_nccl(state: HostState) -> str | None:
    """Return the versions of the NCCL that is installed for the whole system."""
    if not isinstance(state.software, Software):
        return None
    return " and ".join(sorted({version for _, version in state.software.nccl})) or NONE


def open_mpi(state: HostState) -> str | None:
    """Return the versions of Open MPI's library; None where only mpirun is found."""
    if not isinstance(state.software, Software) or isinstance(state.session, Unknown):
        return None
    versions = {version for _, version in state.software.libmpi}
    if not versions and state.session.has("mpirun"):
        return None
    return " and ".join(f"libmpi {version}" for version in sorted(versions)) or NONE


COMPARED: tuple[tuple[str, str, Callable[[HostState], str | None], str], ...] = (
    (
        "the NVIDIA driver",
        "driver-mismatch",
        driver,
        "Install one driver version on all of them, reboot, and hold its package.",
    ),
    (
        "the GPUs",
        "rank-mismatch",
        gpu_kinds,
        "Start as many ranks on each host as it has GPUs, or keep the hosts that differ out of the job.",
    ),
    *(
        (name, "multi-python", installed(name), f"Install one version of {name} on all of them.")
        for name in FRAMEWORKS
    ),
    (
        "the CUDA version of torch",
        "driver-mismatch",
        torch_cuda,
        "Install the same build of torch on all of them.",
    ),
    (
        "the NCCL that comes with Python",
        "nccl-version-mismatch",
        installed(*NCCL_WHEELS),
        "NCCL refuses ranks of a different version: install the same framework wheels on all of them.",
    ),
    (
        "the NCCL of the system",
        "nccl-version-mismatch",
        system_nccl,
        "NCCL refuses ranks of a different version: install one version of libnccl2 on all hosts and hold it.",
    ),
    (
        "Open MPI",
        "mpi-version-conflict",
        open_mpi,
        "Install one version of Open MPI on all of them (Debian: openmpi-bin).",
    ),
)
"""What is compared: the words for it, the label, how a host's value is found, what to do."""


@remedy(
    "Versions across the fleet",
    FleetVersionsSpec,
    finds=(
        "nccl-version-mismatch",
        "driver-mismatch",
        "multi-python",
        "rank-mismatch",
        "mpi-version-conflict",
    ),
    order=90,
)
def fleet_versions(_bench: Workbench[FleetVersionsSpec]) -> None:
    """Decide nothing: a version alone is neither right nor wrong."""


@fleet_versions.fleetwide
def compare(bench: FleetBench[FleetVersionsSpec]) -> None:
    """Find what differs between hosts, and an NCCL that is too old."""
    minimum = bench.settings.nccl_minimum
    if old := _old_nccl(bench.fleet, minimum):
        bench.report(
            f"NCCL is older than {minimum}",
            (f"{fold(hosts)}: {place}" for place, hosts in old.items()),
            "Install a newer NCCL, the same on every host.",
        )
    for what, label, value, fix in COMPARED if bench.settings.compare else ():
        if lines := differences(_values(bench.fleet, value)):
            verb = "differ" if what.endswith("s") else "differs"
            bench.report(f"{what} {verb} between the hosts", lines, fix, label=label)


def _values(fleet: Fleet, value: Callable[[HostState], str | None]) -> Mapping[str, str]:
    values = {host: value(state) for host, state in fleet.states.items()}
    return {host: text for host, text in values.items() if text is not None}


def _old_nccl(fleet: Fleet, minimum: str) -> Mapping[str, list[str]]:
    """Return each place of an NCCL that is too old, with the hosts that have it."""
    old: dict[str, list[str]] = {}
    for host, state in fleet.states.items():
        if not isinstance(state.software, Software):
            continue
        wheels = [
            (f"{p.site}: {p.name} {p.version}", p.version)
            for p in state.software.versions(*NCCL_WHEELS)
        ]
        for place, version in (*wheels, *state.software.nccl):
            if _numbers(version) < _numbers(minimum):
                old.setdefault(place, []).append(host)
    return old


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d{1,9}", version)[:4])
