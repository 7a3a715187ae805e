"""Sizes of shared memory: how people and Docker write them, and how much training needs. Not a remedy."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from remedy.probe import HostState, Kernel
from remedy.text import amount
from remedy.values import Unknown

MIB, GIB = 1 << 20, 1 << 30
ADVISED = 32 * GIB
"""What PaddlePaddle's guide asks for; a tmpfs takes memory only as it is filled."""

# As Docker reads them (go-units, RAMInBytes): units are powers of 1024 in whatever spelling.
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgtp]?)i?b?", re.IGNORECASE)
_UNITS = "kmgtp"


def parse_size(text: str, base: int = 1024) -> int | None:
    """Return the bytes that a size stands for; None where it is none.

    Args:
        text: such as 32g or 512m.
        base: what a k is.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    power = _UNITS.index(match[2].lower()) + 1 if match[2] else 0
    return int(float(match[1]) * base**power)


def short(size: int) -> str:
    """Return a size as Docker, Podman and mount(8) all read it, without loss."""
    for unit, factor in (("g", GIB), ("m", MIB), ("k", 1024)):
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def _size(value: object) -> object:
    size = parse_size(value) if isinstance(value, str) else value
    if not isinstance(size, int) or isinstance(size, bool):
        raise ValueError
    return size


_SCHEMA = {
    "description": "a size from 1m to 1024t, such as 64m or 8g, or as many bytes",
    "anyOf": [
        {"type": "string", "pattern": r"^\d+(\.\d+)? ?[kmgtpKMGTP]?i?[bB]?$"},
        {"type": "integer", "minimum": MIB, "maximum": 1 << 50},
    ],
    "examples": ["64m", "8g"],
}
Size = Annotated[
    int,
    BeforeValidator(_size),
    Field(ge=MIB, le=1 << 50),
    WithJsonSchema(_SCHEMA, mode="validation"),
]
"""A size in the spec, from one MiB to one PiB."""


def gpu_number(host: HostState) -> int:
    """Return how many GPUs are on the host's bus."""
    if isinstance(host.gpus, Unknown):
        return 0
    return sum(device.is_gpu for device in host.gpus.pci)


def least(host: HostState) -> int:
    """Return how much the jobs of one host need at the very least: 1 GiB, and 64 MiB for each GPU.

    NCCL's guide says 1 GiB; its proxies take 32 MiB a process (issue 1408 of ai-dynamo/dynamo), the rest is
    for data loaders.
    """
    return GIB + 64 * MIB * gpu_number(host)


def derived(host: HostState) -> tuple[int, str]:
    """Return the size that shared memory is to have where no setting names one, and why."""
    memory = host.kernel.memory if isinstance(host.kernel, Kernel) else 0
    if memory and memory // 2 < ADVISED:
        size = max(memory // 2 // MIB * MIB, least(host))
        return (
            size,
            f"half of the {amount(memory)} of memory, less than the {short(ADVISED)} advised",
        )
    return ADVISED, "as PaddlePaddle's guide advises; it takes memory only as it is used"
