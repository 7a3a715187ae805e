"""GPUs, NPUs and RDMA ports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from remedy.probe.frames import NoAnswerError, Sections, fact
from remedy.text import is_number
from remedy.values import Fact, Record

NVIDIA, AMD, HUAWEI = "10de", "1002", "19e5"
_VENDORS = frozenset((NVIDIA, AMD, HUAWEI, "1da3"))

_MODALIAS = re.compile(
    r"/sys/bus/pci/devices/([^/]+)/modalias:pci:v0000(\w{4})d0000(\w{4})sv\w{8}sd\w{8}bc(\w\w)sc(\w\w)"
)
_LINKED = re.compile(r"GPU (\d+):")
_LINK = re.compile(r"\s+Link \d+: (\d+(?:\.\d+)?) GB/s")
_RDMA = re.compile(r"/sys/class/infiniband/([^/]+)/(?:ports/(\d+)/)?(.+)")


class PciDevice(NamedTuple):
    """A PCI device of a maker of accelerators: address, vendor, device and class as lower-case hexadecimal.

    Class 0300 and 0302 are GPUs, 1200 accelerators, 0680 NVIDIA's NVSwitch (pci.ids).
    """

    address: str
    vendor: str
    device: str
    kind: str

    @property
    def is_gpu(self) -> bool:
        """Return whether it computes."""
        return self.kind in ("0300", "0302", "0380", "1200")


class Gpu(NamedTuple):
    """A GPU as nvidia-smi tells it; memory in MiB and use in per cent, ``None`` where it gives no number."""

    number: int
    uuid: str
    pci_address: str
    name: str
    driver: str
    persistence: bool | None
    compute_mode: str
    memory_total: int | None
    memory_used: int | None
    utilization: int | None


class GpuProcess(NamedTuple):
    """A process that has a context on a GPU; memory in MiB. Pids are the host's only when asked on the host."""

    pid: int
    gpu: str
    memory: int | None


class Gpus(Record):
    """The GPUs of the host.

    ``pci`` are the devices on the bus, driver or not; ``driver`` is the loaded NVIDIA driver's version, "" for
    none, ``open_kernel`` whether it is the one with open kernel modules; ``devices`` and ``processes`` are
    unknown where there is an NVIDIA GPU and nvidia-smi is missing or broken; ``links`` is what all active
    NVLinks of a GPU carry in one direction, in GB/s, by its number; ``acs`` are lspci's ACSCtl lines by PCI
    address, read only where there is an NVIDIA driver.
    """

    pci: tuple[PciDevice, ...]
    driver: str
    devices: Fact[tuple[Gpu, ...]]
    processes: Fact[tuple[GpuProcess, ...]]
    acs: Fact[Mapping[str, str]]
    links: Fact[Mapping[int, float]]
    open_kernel: bool = False

    @property
    def nvswitches(self) -> int:
        """Return how many NVSwitches there are: with any, the fabric manager has to run."""
        return sum(device.vendor == NVIDIA and device.kind == "0680" for device in self.pci)


class RdmaPort(NamedTuple):
    """A port of an RDMA device (Documentation/ABI/stable/sysfs-class-infiniband).

    ``state`` and ``physical_state`` are words ("ACTIVE", "LinkUp"), ``rate`` is in Gb/s, ``link_layer`` is
    "InfiniBand" or "Ethernet" (RoCE). ``interfaces`` are the network interfaces of the device. ``counters`` are
    counts since it was reset.
    """

    device: str
    port: int
    state: str
    physical_state: str
    rate: float
    link_layer: str
    firmware: str
    interfaces: tuple[str, ...]
    counters: Mapping[str, int]


def parse_gpus(sections: Sections) -> Gpus:
    """Read the PCI bus, the driver and what nvidia-smi says."""
    pci = _pci(sections)
    has_gpu = any(device.vendor == NVIDIA and device.is_gpu for device in pci)
    version = sections.lines("kernel").get("/proc/driver/nvidia/version", [""])
    driver = re.search(r"\b(\d{3,}(?:\.\d+)+)\b", version[0])
    return Gpus(
        pci=pci,
        driver=driver[1] if driver else "",
        devices=fact(
            lambda: tuple(_gpu(row) for row in _table(sections, "nvidia-gpus", has_gpu=has_gpu))
        ),
        processes=fact(
            lambda: tuple(
                _gpu_process(row) for row in _table(sections, "nvidia-processes", has_gpu=has_gpu)
            )
        ),
        acs=fact(lambda: _acs(sections)),
        links=fact(lambda: _links(sections)),
        open_kernel="Open Kernel Module" in version[0],
    )


def parse_rdma(sections: Sections, present: frozenset[str]) -> tuple[RdmaPort, ...]:
    """Read section ``rdma``; ``present`` has the paths that tie a device to its network interfaces."""
    if sections.absent("rdma"):
        return ()
    text, _, status = sections.text("rdma").rpartition("\n")
    if status not in ("0", "1", "2"):  # grep: counters that a device does not have
        raise NoAnswerError("it did not answer in time")
    devices: dict[str, dict[str, str]] = {}
    ports: dict[tuple[str, int], dict[str, str]] = {}
    for line in text.splitlines():
        path, _, value = line.partition(":")
        if match := _RDMA.fullmatch(path):
            where = (
                ports.setdefault((match[1], int(match[2])), {})
                if match[2]
                else devices.setdefault(match[1], {})
            )
            where[match[3]] = value.strip()
    return tuple(
        RdmaPort(
            device=device,
            port=port,
            state=_word(facts.get("state", "")),
            physical_state=_word(facts.get("phys_state", "")),
            rate=float(facts.get("rate", "0").split()[0]),
            link_layer=facts.get("link_layer", ""),
            firmware=devices.get(device, {}).get("fw_ver", ""),
            interfaces=tuple(
                sorted(
                    p.rpartition("/")[2]
                    for p in present
                    if p.startswith(f"/sys/class/infiniband/{device}/device/net/")
                )
            ),
            counters={
                name.rpartition("/")[2]: int(value)
                for name, value in facts.items()
                if "counters/" in name
            },
        )
        for (device, port), facts in sorted(ports.items())
    )


def _pci(sections: Sections) -> tuple[PciDevice, ...]:
    devices = []
    for path, lines in sections.ending("kernel", "/modalias").items():
        if match := _MODALIAS.match(f"{path}:{lines[0]}"):
            vendor, kind = match[2].lower(), (match[4] + match[5]).lower()
            if vendor in _VENDORS or kind in ("1200",):
                devices.append(PciDevice(match[1], vendor, match[3].lower(), kind))
    return tuple(devices)


def _table(sections: Sections, name: str, *, has_gpu: bool) -> list[list[str]]:
    if sections.absent(name):
        if has_gpu:
            raise NoAnswerError(f"there is an NVIDIA GPU, but {sections.detail(name)}")
        return []
    return [
        [cell.strip() for cell in line.split(",")]
        for line in sections.tool(name).splitlines()
        if "," in line
    ]


def _gpu(row: list[str]) -> Gpu:
    index, uuid, address, name, driver, persistence, mode, total, used, busy = row
    return Gpu(
        number=int(index),
        uuid=uuid,
        pci_address=address.lower(),
        name=name,
        driver=driver,
        persistence={"Enabled": True, "Disabled": False}.get(persistence),
        compute_mode=mode,
        memory_total=_number(total),
        memory_used=_number(used),
        utilization=_number(busy),
    )


def _gpu_process(row: list[str]) -> GpuProcess:
    return GpuProcess(pid=int(row[0]), gpu=row[1], memory=_number(row[2]))


def _links(sections: Sections) -> Mapping[int, float]:
    """Read ``nvidia-smi nvlink --status``: a line a GPU, below it one a link, "<inactive>" where it is down."""
    if sections.absent("nvidia-links"):
        return {}
    speeds: dict[int, float] = {}
    for line in sections.tool("nvidia-links").splitlines():
        if gpu := _LINKED.match(line):
            number = int(gpu[1])
            speeds[number] = 0.0
        elif speeds and (link := _LINK.match(line)):
            speeds[number] += float(link[1])
    return speeds


def _number(text: str) -> int | None:
    return int(text) if is_number(text) else None


def _word(text: str) -> str:
    """Return "ACTIVE" of "4: ACTIVE"."""
    return text.rpartition(":")[2].strip()


def _acs(sections: Sections) -> Mapping[str, str]:
    if sections.absent("acs"):
        return {}
    controls, device = {}, ""
    for line in sections.tool("acs").splitlines():
        if "ACSCtl" in line:
            controls[device] = line.strip()
        else:
            device = line.partition(" ")[0]
    return controls
