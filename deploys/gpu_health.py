"""GPUs: what keeps the GPUs of a host from training with others, and what slows them.

Finds: a driver that does not answer, or a GPU that fell off the bus; an NVSwitch machine whose fabric manager
does not run (CUDA error 802); GPUs that are in use already (NCCL error 5, out of memory); Docker that cannot
hand GPUs to a container; persistence mode off, so that every start waits for the driver; access control
between PCIe devices, which breaks or slows direct transfers between GPUs.

How it is measured: the PCI bus by sysfs, the driver by /proc/driver/nvidia, the rest by one nvidia-smi query
each for GPUs and processes, `lspci -vvv` and `docker info`, all with a deadline. Only a driver that is loaded
and does not answer, and a fabric manager that has to run and does not, make a host fail; a host without GPUs
has nothing to tell.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from remedy.plan import Assessment, Finder, Finding, FindingKind, Fleet
from remedy.plan.legacy import old_remedy
from remedy.probe import Containers, Docker, Gpus, HostState, Identity, Session
from remedy.probe.accelerators import NVIDIA
from remedy.spec import SpecSection
from remedy.values import Unknown

NAME = "gpu_health"
_finding = Finder(NAME)
FABRIC_MANAGER = "nvidia-fabricmanager.service"
PASSED_THROUGH = "/sys/bus/pci/drivers/vfio-pci/"


class GpuHealthSpec(SpecSection):
    """``busy_mib``: how much memory of an idle GPU may be in use before it is reported (MiB)."""

    busy_mib: int = Field(default=1024, ge=0)


def assess(_fleet: Fleet, host: HostState, spec: GpuHealthSpec) -> Assessment:
    """Look at the GPUs of one host, where it has any."""
    if not isinstance(host.gpus, Gpus):
        return Assessment()
    findings = [
        *_driver(host, host.gpus),
        *_fabric(host, host.gpus),
        *_in_use(host, host.gpus, spec.busy_mib),
        *_slow(host, host.gpus),
        *_containers(host, host.gpus),
    ]
    return Assessment(tuple(findings))


def on_the_bus(host: HostState, gpus: Gpus) -> int:
    """Return how many NVIDIA GPUs are on the bus and not passed through to a virtual machine."""
    present = host.session.present if isinstance(host.session, Session) else frozenset()
    return sum(
        device.vendor == NVIDIA and device.is_gpu and PASSED_THROUGH + device.address not in present
        for device in gpus.pci
    )


def _driver(host: HostState, gpus: Gpus) -> Iterator[Finding]:
    there = on_the_bus(host, gpus)
    if isinstance(gpus.devices, Unknown):
        yield _finding(
            host,
            FindingKind.UNKNOWN if gpus.driver else FindingKind.REPORT,
            "nvidia-smi does not tell what GPUs there are",
            (gpus.devices.reason, f"on the bus: {there}; loaded driver: {gpus.driver or 'none'}"),
            "Look at `dmesg | grep -iE 'nvrm|xid'`. Reboot after an upgrade of the driver; one that hangs "
            "needs a reboot too.",
            label="driver-mismatch",
        )
    elif there and not gpus.driver:
        yield _finding.report(
            host,
            f"{there} NVIDIA GPUs are on the bus and no driver is loaded",
            "driver-mismatch",
            (),
            "Install the driver that the other hosts have, then reboot.",
        )
    elif len(gpus.devices) < there:
        yield _finding.report(
            host,
            f"nvidia-smi lists {len(gpus.devices)} of the {there} GPUs on the bus",
            "gpu-hardware-xid",
            tuple(d.address for d in gpus.pci if d.vendor == NVIDIA and d.is_gpu),
            "Look at `dmesg | grep -i xid` (79: a GPU fell off the bus); take the host out of the job.",
        )


def _fabric(host: HostState, gpus: Gpus) -> Iterator[Finding]:
    if not gpus.nvswitches or not gpus.driver:
        return
    unit = None if isinstance(host.units, Unknown) else host.units.get(FABRIC_MANAGER)
    if isinstance(host.units, Unknown):
        kind, title = FindingKind.UNKNOWN, "whether the fabric manager runs is not known"
        seen = host.units.reason
    elif unit is not None and unit.running:
        return
    else:
        kind, title = FindingKind.BLOCKED, "the fabric manager does not run (CUDA error 802)"
        seen = f"{FABRIC_MANAGER}: {f'{unit.load}, {unit.active}' if unit else 'not-found'}"
    yield _finding(
        host,
        kind,
        title,
        (f"{gpus.nvswitches} NVSwitches on the bus", seen),
        f"Install nvidia-fabricmanager of exactly version {gpus.driver}, then systemctl enable --now "
        "nvidia-fabricmanager.",
        label="fabricmanager-not-running",
    )


def _in_use(host: HostState, gpus: Gpus, busy: int) -> Iterator[Finding]:
    held = {} if isinstance(gpus.processes, Unknown) else {p.gpu: p for p in gpus.processes}
    if held and isinstance(gpus.processes, tuple):
        yield _finding.report(
            host,
            f"{len(gpus.processes)} processes use {len(held)} GPUs",
            "stale-process",
            tuple(f"pid {p.pid}: {p.memory} MiB of {p.gpu}" for p in gpus.processes),
            "Is it a job that shall run? A left-over is ended by its pid, after a look at its owner: "
            "ps -fp PID",
        )
    if isinstance(gpus.devices, Unknown):
        return
    full = [g for g in gpus.devices if g.uuid not in held and (g.memory_used or 0) > busy]
    if full:
        yield _finding.report(
            host,
            f"{len(full)} GPUs have memory in use by no process that is listed",
            "stale-process",
            tuple(f"GPU {g.number}: {g.memory_used} MiB of {g.memory_total}" for g in full),
            "Look for who holds it: fuser -v /dev/nvidia*",
        )


def _slow(host: HostState, gpus: Gpus) -> Iterator[Finding]:
    if not isinstance(gpus.devices, Unknown):
        off = [gpu.number for gpu in gpus.devices if gpu.persistence is False]
        if off:
            yield _finding.report(
                host,
                f"persistence mode is off on {len(off)} GPUs",
                "peer-died-timeout",
                (f"GPUs {', '.join(map(str, off))}: persistence_mode Disabled",),
                "Every start of a job waits for the driver: systemctl enable --now nvidia-persistenced.",
            )
    virtual = not isinstance(host.identity, Identity) or host.identity.virtualization not in (
        "",
        "none",
    )
    if isinstance(gpus.acs, Unknown) or virtual:
        return
    on = {address: line for address, line in gpus.acs.items() if "SrcValid+" in line}
    if on:
        yield _finding.report(
            host,
            f"access control (ACS) is on for {len(on)} PCIe devices",
            "p2p-acs-iommu",
            tuple(f"{address} {line}" for address, line in on.items()),
            "Direct transfers between GPUs then go through the processor, or hang: switch ACS off in the "
            "BIOS, or at each boot with setpci -s ADDRESS ECAP_ACS+0x6.w=0000",
        )


def _containers(host: HostState, gpus: Gpus) -> Iterator[Finding]:
    if not gpus.driver or not isinstance(host.containers, Containers):
        return
    docker = host.containers.docker
    if not isinstance(docker, Docker) or not isinstance(host.session, Session):
        return
    tools = [name for name in ("nvidia-ctk", "nvidia-container-runtime") if host.session.has(name)]
    if "nvidia" not in docker.runtimes and not tools:
        yield _finding.report(
            host,
            "Docker has no GPU runtime",
            "container-gpu-runtime",
            (f"docker info, runtimes: {', '.join(docker.runtimes)}",),
            "Install nvidia-container-toolkit, then nvidia-ctk runtime configure --runtime=docker and restart "
            "docker when no job runs.",
        )


old_remedy(
    name=NAME,
    title="GPUs",
    text=__doc__,
    cures=(),
    finds=(
        "driver-mismatch",
        "gpu-hardware-xid",
        "fabricmanager-not-running",
        "stale-process",
        "container-gpu-runtime",
        "p2p-acs-iommu",
        "peer-died-timeout",
    ),
    spec=GpuHealthSpec,
    assess=assess,
    order=90,
)
