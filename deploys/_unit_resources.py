"""What systemd lets the processes of jobs take: memory, processes, CPU, devices, time. Not a remedy.

``unit_network`` reads the files of units and says what is found here.

Sources: systemd.resource-control(5), systemd.exec(5), systemd.scope(5).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from remedy.deploys import _interfaces as nic
from remedy.deploys import _units
from remedy.deploys._units import UnitLine
from remedy.probe import HostState, Kernel
from remedy.text import amount, is_number

LABEL = "session-limit"
MOST_CPUS = 8192
"""That a kernel is built for (CONFIG_NR_CPUS)."""
FEWEST_TASKS = 1024
FEWEST_PERCENT = 5
"""Of what the kernel allows at all; systemd's own is 33 for a user."""
_SIZE = re.compile(r"(\d+)([KMGT]?)\Z", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_ENDLESS = ("infinity", "")


def too_little(
    host: HostState, who: str, lines: Mapping[str, Sequence[UnitLine]]
) -> Iterator[tuple[str, UnitLine]]:
    """Yield what leaves jobs too little, in words, and the line that says so.

    Args:
        host: the host.
        who: the jobs, in words.
        lines: of the unit that they run in, and of each slice that it is in.
    """
    for known in lines.values():
        for key, judge in _JUDGES.items():
            for line in _units.values_of(known, key)[-1:]:
                words = judge(host, line.value.strip())
                if words:
                    yield f"systemd lets {who} {words}", line


def _memory(host: HostState, value: str) -> str:
    """Return that jobs may have less than half of the memory; "" where they have more."""
    whole = host.kernel.memory if isinstance(host.kernel, Kernel) else 0
    match = _SIZE.match(value)
    if match is not None:
        size = int(match[1]) * _UNITS[match[2].upper()]
        return f"have {amount(size)} of memory together" if size < whole // 2 else ""
    return f"have {value} of the memory together" if _percent(value) < 50 else ""


def _tasks(_: HostState, value: str) -> str:
    few = int(value) < FEWEST_TASKS if is_number(value) else _percent(value) < FEWEST_PERCENT
    return f"have {value} processes and threads together" if few else ""


def _cpu(_: HostState, value: str) -> str:
    return f"use {value} of a CPU together" if _percent(value) < 100 else ""


def _cpus(host: HostState, value: str) -> str:
    """Return that jobs may run on less than half of the CPUs; "" where on more, or that is not known."""
    whole = len(_numbers(host.kernel.cpus)) if isinstance(host.kernel, Kernel) else 0
    few = len(_numbers(value.replace(" ", ",")))
    return f"run on the CPUs {value} alone, of {whole}" if 0 < few * 2 < whole else ""


def _numbers(ranges: str) -> set[int]:
    """Return the numbers of ranges such as 0-3,8; none where it is something else."""
    numbers: set[int] = set()
    for part in filter(None, ranges.split(",")):
        low, _, high = part.partition("-")
        if not (low.isdecimal() and (high or low).isdecimal()):
            return set()
        numbers.update(range(int(low), min(int(high or low), MOST_CPUS) + 1))
    return numbers


def _devices(host: HostState, value: str) -> str:
    trains = nic.has_gpu(host) or bool(nic.active_ports(host))
    return (
        f"open listed devices alone ({value})" if trains and value in ("closed", "strict") else ""
    )


def _time(_: HostState, value: str) -> str:
    return "" if value in _ENDLESS else f"run for {value}, and ends them then"


def _percent(value: str) -> float:
    """Return a share in percent; of what is none, more than all."""
    number = value.removesuffix("%")
    return float(number) if number != value and is_number(number) else 1000.0


_JUDGES: Mapping[str, Callable[[HostState, str], str]] = {
    "MemoryMax": _memory,
    "MemoryHigh": _memory,
    "MemoryLimit": _memory,
    "TasksMax": _tasks,
    "CPUQuota": _cpu,
    "AllowedCPUs": _cpus,
    "CPUAffinity": _cpus,
    "DevicePolicy": _devices,
    "RuntimeMaxSec": _time,
}
