"""GPUs: what keeps the GPUs of a host from training with others, and what slows them.

Finds: a driver that does not answer, or a GPU that fell off the bus; an NVSwitch machine whose fabric manager
does not run (CUDA error 802); GPUs that are in use already (NCCL error 5, out of memory); Docker that cannot
hand GPUs to a container; libcuda that is missing, a stub or another driver's (nvidia-smi shows no CUDA
version, "your CUDA device is not set properly"); persistence mode off, so that every start waits for the
driver; access control between PCIe devices, which breaks or slows direct transfers between GPUs.

How it is measured: the PCI bus by sysfs, the driver by /proc/driver/nvidia, the rest by one nvidia-smi query
each for GPUs and processes, `lspci -vvv` and the settings of dockerd. Only a driver that is loaded
and does not answer, and a fabric manager that has to run and does not, make a host fail; a host without GPUs
has nothing to report.
"""

from __future__ import annotations

from typing import TypeAlias

from pydantic import Field

from remedy.plan import Workbench, remedy
from remedy.probe import Docker, Gpus, HostState, LoginSession
from remedy.probe.accelerators import NVIDIA
from remedy.spec import SpecSection
from remedy.text import counted
from remedy.values import Unknown

FABRIC_MANAGER = "nvidia-fabricmanager.service"
PASSED_THROUGH = "/sys/bus/pci/drivers/vfio-pci/"
COMPAT = "compat"
"""The folder of a libcuda that is newer than the driver on purpose (CUDA Compatibility)."""


class GpuHealthSpec(SpecSection):
    """``busy_mib``: how much memory of an idle GPU may be in use before it is reported (MiB)."""

    busy_mib: int = Field(default=1024, ge=0)


Bench: TypeAlias = Workbench[GpuHealthSpec]


@remedy(
    "GPUs",
    GpuHealthSpec,
    finds=(
        "driver-mismatch",
        "gpu-hardware-xid",
        "fabricmanager-not-running",
        "stale-process",
        "container-gpu-runtime",
        "p2p-acs-iommu",
        "peer-died-timeout",
    ),
    order=90,
)
def gpu_health(bench: Bench) -> None:
    """Check the GPUs of one host, where it has any."""
    gpus = bench.known(bench.host.gpus)
    _driver(bench, gpus)
    _cuda(bench, gpus)
    _fabric(bench, gpus)
    _in_use(bench, gpus)
    _slow(bench, gpus)
    _containers(bench, gpus)


def on_the_bus(host: HostState, gpus: Gpus) -> int:
    """Return how many NVIDIA GPUs are on the bus and not passed through to a virtual machine."""
    present = host.session.present if isinstance(host.session, LoginSession) else frozenset()
    return sum(
        device.vendor == NVIDIA and device.is_gpu and PASSED_THROUGH + device.address not in present
        for device in gpus.pci
    )


def _driver(bench: Bench, gpus: Gpus) -> None:
    number = on_the_bus(bench.host, gpus)
    if isinstance(gpus.devices, Unknown):
        note = bench.unknown if gpus.driver else bench.report
        note(
            "no answer from nvidia-smi on which GPUs there are",
            (gpus.devices.reason, f"on the bus: {number}; loaded driver: {gpus.driver or 'none'}"),
            "Check `dmesg | grep -iE 'nvrm|xid'`. Reboot after an upgrade of the driver; one that hangs "
            "needs a reboot too.",
        )
    elif number and not gpus.driver:
        bench.report(
            f"{counted(number, 'NVIDIA GPU')} on the bus, and no driver is loaded",
            fix="Install the driver that the other hosts have, then reboot.",
        )
    elif len(gpus.devices) < number:
        bench.report(
            f"nvidia-smi lists {len(gpus.devices)} of {counted(number, 'GPU')} on the bus",
            (d.address for d in gpus.pci if d.vendor == NVIDIA and d.is_gpu),
            "Check `dmesg | grep -i xid` (79: a GPU fell off the bus); take the host out of the job.",
            label="gpu-hardware-xid",
        )


def _cuda(bench: Bench, gpus: Gpus) -> None:
    """Report what makes nvidia-smi show no CUDA version, and programs find no CUDA device."""
    host, software = bench.host, bench.host.software
    if not gpus.driver or isinstance(software, Unknown):
        return
    strange = [
        path
        for path, version in software.libcuda
        if version not in ("", gpus.driver) and COMPAT not in path.split("/")
    ]
    if not software.libcuda:
        bench.report(
            "no libcuda of the driver where programs look for it",
            (
                f"loaded driver: {gpus.driver}; nvidia-smi then shows no CUDA version",
                f"searched for libcuda.so.1: {', '.join(software.searched)}",
                *(f"{link} leads to a file that is not there" for link in software.dangling),
                *(f"not searched, since looking may mount it: {path}" for path in software.aside),
            ),
            f"Install libcuda of version {gpus.driver} (Debian: libcuda1, Ubuntu: libnvidia-compute). Where "
            "the driver is mounted from elsewhere, name its folder in /etc/ld.so.conf.d and run ldconfig.",
        )
    elif strange:
        bench.report(
            f"libcuda is not that of the loaded driver {gpus.driver}",
            strange,
            "Reboot after an upgrade of the driver; else remove the other version.",
        )
    environment = {} if isinstance(host.environment, Unknown) else host.environment
    path = environment.get("LD_LIBRARY_PATH", "")
    if stubs := [folder for folder in path.split(":") if folder.rstrip("/").endswith("/stubs")]:
        bench.report(
            "LD_LIBRARY_PATH of sessions names stubs, whose libcuda finds no device",
            stubs,
            "Take them out of LD_LIBRARY_PATH: they are for linking only.",
        )


def _fabric(bench: Bench, gpus: Gpus) -> None:
    if not gpus.nvswitches or not gpus.driver:
        return
    units = bench.host.units
    unit = None if isinstance(units, Unknown) else units.get(FABRIC_MANAGER)
    if isinstance(units, Unknown):
        note, title, reason = (
            bench.unknown,
            "could not read whether the fabric manager runs",
            units.reason,
        )
    elif unit is not None and unit.running:
        return
    else:
        note, title = bench.blocked, "the fabric manager does not run (CUDA error 802)"
        reason = f"{FABRIC_MANAGER}: {f'{unit.load}, {unit.active}' if unit else 'not-found'}"
    note(
        title,
        (f"{gpus.nvswitches} NVSwitches on the bus", reason),
        f"Install nvidia-fabricmanager of exactly version {gpus.driver}, then systemctl enable --now "
        "nvidia-fabricmanager.",
        label="fabricmanager-not-running",
    )


def _in_use(bench: Bench, gpus: Gpus) -> None:
    processes = () if isinstance(gpus.processes, Unknown) else gpus.processes
    used = {process.gpu for process in processes}
    if processes:
        bench.report(
            f"{counted(len(used), 'GPU')} in use",
            (f"pid {p.pid}: {p.memory} MiB of {p.gpu}" for p in processes),
            "If it is a left-over and no job of yours, end it by its pid; first check its owner: ps -fp PID",
            label="stale-process",
        )
    if isinstance(gpus.devices, Unknown):
        return
    busy = bench.settings.busy_mib
    full = [g for g in gpus.devices if g.uuid not in used and (g.memory_used or 0) > busy]
    if full:
        bench.report(
            f"memory of {counted(len(full), 'GPU')} is in use by no process that is listed",
            (f"GPU {g.number}: {g.memory_used} MiB of {g.memory_total}" for g in full),
            "Look for who holds it: fuser -v /dev/nvidia*",
            label="stale-process",
        )


def _slow(bench: Bench, gpus: Gpus) -> None:
    devices = () if isinstance(gpus.devices, Unknown) else gpus.devices
    off = [str(gpu.number) for gpu in devices if gpu.persistence is False]
    if off:
        bench.report(
            f"persistence mode is off on {counted(len(off), 'GPU')}",
            f"GPUs {', '.join(off)}: persistence_mode Disabled",
            "Every start of a job waits for the driver: systemctl enable --now nvidia-persistenced.",
            label="peer-died-timeout",
        )
    identity = bench.host.identity
    if isinstance(identity, Unknown) or identity.virtualization not in ("", "none"):
        return
    switches = {} if isinstance(gpus.acs, Unknown) else gpus.acs
    on = {address: line for address, line in switches.items() if "SrcValid+" in line}
    if on:
        bench.report(
            f"access control (ACS) is on for {counted(len(on), 'PCIe device')}",
            (f"{address} {line}" for address, line in on.items()),
            "Direct transfers between GPUs then go through the processor, or hang: switch ACS off in the "
            "BIOS, or at each boot with setpci -s ADDRESS ECAP_ACS+0x6.w=0000",
            label="p2p-acs-iommu",
        )


def _containers(bench: Bench, gpus: Gpus) -> None:
    host, containers = bench.host, bench.host.containers
    if not gpus.driver or isinstance(containers, Unknown) or isinstance(host.session, Unknown):
        return
    docker = containers.docker
    tools = [name for name in ("nvidia-ctk", "nvidia-container-runtime") if host.session.has(name)]
    if isinstance(docker, Docker) and "nvidia" not in docker.runtimes and not tools:
        bench.report(
            "Docker has no GPU runtime",
            f"its runtimes: {', '.join(docker.runtimes)}",
            "Install nvidia-container-toolkit, then nvidia-ctk runtime configure --runtime=docker and restart "
            "docker when no job runs.",
            label="container-gpu-runtime",
        )
