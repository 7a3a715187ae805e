"""Which ports training needs open on a host, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from remedy.probe import Sysctls
from remedy.spec.verify import PORTS

RANGE_KEY = "net.ipv4.ip_local_port_range"

Framework = Literal["torch", "mpi", "paddle", "mindspore", "hccl"]


@dataclass(frozen=True)
class Need:
    """Ports that have to be open, and what for; ``fixed`` where a listener needs exactly these."""

    low: int
    high: int
    why: str
    fixed: bool = True

    def __str__(self) -> str:
        return (
            f"{self.low}: {self.why}"
            if self.low == self.high
            else f"{self.low}-{self.high}: {self.why}"
        )


# torch: run.py and c10d_rendezvous_backend.py; Paddle: launch/context/node.py and args_envs.py; MindSpore:
# msrun; HCCL: HCCL_IF_BASE_PORT, whose 16 ports became 32 with CANN 8.3.
FRAMEWORKS: Mapping[Framework, tuple[Need, ...]] = {
    "torch": (
        Need(29500, 29500, "torchrun's master port"),
        Need(29400, 29400, "torchrun's c10d rendezvous"),
    ),
    "mpi": (),  # all its ports are of the kernel's choice
    "paddle": (
        Need(35100, 64000, "Paddle's workers (PORT_RANGE)", fixed=False),
        Need(6070, 6070, "Paddle's --start_port"),
        Need(6767, 6767, "Paddle's gloo"),
    ),
    "mindspore": (Need(8118, 8118, "MindSpore's scheduler"),),
    "hccl": (Need(60000, 60031, "HCCL (HCCL_IF_BASE_PORT)"),),
}
VERIFICATION = Need(PORTS.start, PORTS.stop - 1, "remedy's verification")


def parse_ports(text: str) -> tuple[int, int]:
    """Return the first and last port of "8000" or "9000-9100".

    Raises:
        ValueError: it is neither, or not between 1 and 65535.
    """
    low, dash, high = text.partition("-")
    if not low.isdigit() or (dash and not high.isdigit()):
        raise ValueError(f"{text!r} is no port such as 8000 and no range such as 9000-9100")
    first, last = int(low), int(high or low)
    if not 1 <= first <= last <= 65535:
        raise ValueError(f"ports go from 1 to 65535, the lower one first: {text!r}")
    return first, last


def _checked(text: str) -> str:
    parse_ports(text)
    return text


Ports = Annotated[
    str, BeforeValidator(str), AfterValidator(_checked), Field(examples=["9000-9100"])
]
"""A port or a range of ports in the spec."""


def kernel_range(sysctls: Sysctls) -> tuple[int, int] | None:
    """Return the ports that the kernel gives to new sockets; None where that is not known."""
    words = sysctls.live.get(RANGE_KEY, "").split()
    return (int(words[0]), int(words[1])) if len(words) == 2 else None
