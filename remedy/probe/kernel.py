"""The running kernel, and the machine as it sees it."""

from __future__ import annotations

from remedy.probe.frames import Sections, first_line
from remedy.values import Record


class Kernel(Record):
    """The running kernel and the machine; memory in bytes, CPUs and NUMA nodes as lists of ranges."""

    command_line: str
    modules: frozenset[str]
    memory: int
    cpus: str
    numa_nodes: str
    transparent_hugepages: str


def parse_kernel(sections: Sections) -> Kernel:
    """Read what the kernel says of itself and the machine."""
    lines = sections.lines("kernel")
    memory = next(
        (line for line in lines["/proc/meminfo"] if line.startswith("MemTotal:")), "MemTotal: 0 kB"
    )
    thp = first_line(lines, "/sys/kernel/mm/transparent_hugepage/enabled")
    return Kernel(
        command_line=first_line(lines, "/proc/cmdline"),
        modules=frozenset(line.partition(" ")[0] for line in lines.get("/proc/modules", ())),
        memory=int(memory.split()[1]) * 1024,
        cpus=first_line(lines, "/sys/devices/system/cpu/online"),
        numa_nodes=first_line(lines, "/sys/devices/system/node/online"),
        transparent_hugepages=thp.partition("[")[2].partition("]")[0],
    )
