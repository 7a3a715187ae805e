"""Which ports training needs open on a host, each with its reason.

What launchers listen on is in listeners.json: for each framework its ports with their source, and what was
measured over runs of the real launchers (``python -m benchmarks.clients``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from remedy.firewall import spans
from remedy.firewall.spans import Spans
from remedy.probe import Sysctls
from remedy.spec.verify import PORTS
from remedy.text import is_number

RANGE_KEY = "net.ipv4.ip_local_port_range"
RESERVED_KEY = "net.ipv4.ip_local_reserved_ports"
PORTS_FILE = "/etc/sysctl.d/90-remedy-ports.conf"
"""The file of remedy's own for it and for the ports that are reserved."""
LISTENERS = Path(__file__).with_name("listeners.json")

Framework = Literal["torch", "mpi", "paddle", "mindspore", "hccl"]


@dataclass(frozen=True)
class Need:
    """Ports that have to be open, and what for.

    Args:
        low: the first.
        high: the last.
        why: what listens there.
        fixed: whether a listener needs these, so that the kernel may give them to nobody else.
        meeting: whether it fails where another process has the port, instead of taking the next.
        standing: whether a service of the host listens there, such as sshd.
    """

    low: int
    high: int
    why: str
    fixed: bool = True
    meeting: bool = False
    standing: bool = False

    def __str__(self) -> str:
        return (
            f"{self.low}: {self.why}"
            if self.low == self.high
            else f"{self.low}-{self.high}: {self.why}"
        )


def _frameworks() -> Mapping[Framework, tuple[Need, ...]]:
    """Read what each framework's launchers listen on, without the ports that a setting confines."""
    document = json.loads(LISTENERS.read_text(encoding="utf-8"))
    return {
        framework: tuple(
            Need(
                row["low"],
                row["high"],
                row["why"],
                row["fixed"],
                row["meeting"],
                row.get("standing", False),
            )
            for row in rows
            if not row.get("confined_by")
        )
        for framework, rows in document["ports"].items()
    }


# The kernel's own choices are in none of them: its range is read on each host.
FRAMEWORKS: Mapping[Framework, tuple[Need, ...]] = _frameworks()
VERIFICATION = Need(PORTS.start, PORTS.stop - 1, "remedy's verification")


ENGINES: Mapping[str, Framework] = {
    "mpi": "mpi",
    "nccl-tests": "mpi",
    "paddle": "paddle",
    "mindspore": "mindspore",
}
"""The framework whose launcher an engine of the verification uses; torch's is told ``VERIFICATION``."""


MEETING_PORTS: tuple[int, ...] = tuple(
    dict.fromkeys(
        port
        for need in (*(need for needs in FRAMEWORKS.values() for need in needs), VERIFICATION)
        if need.meeting or need is VERIFICATION
        for port in range(need.low, need.high + 1)
    )
)
"""The ports on which some launcher, or the verification, fails where another process has them."""


def needs_of(frameworks: Iterable[Framework]) -> tuple[Need, ...]:
    """Return what the launchers of these frameworks listen on, beside ports of the kernel's choice.

    It is the same for each number of ranks: MindSpore's sixteen bands of ports are taken in turn.
    """
    return tuple(need for framework in frameworks for need in FRAMEWORKS[framework])


def parse_ports(text: str) -> tuple[int, int]:
    """Return the first and last port of "8000" or "9000-9100".

    Raises:
        ValueError: it is neither, or not between 1 and 65535.
    """
    low, dash, high = text.partition("-")
    if not is_number(low) or (dash and not is_number(high)):
        raise ValueError(f"{text!r} is no port such as 8000 and no range such as 9000-9100")
    first, last = int(low), int(high or low)
    if not 1 <= first <= last <= 65535:
        raise ValueError(f"ports go from 1 to 65535, the lower one first: {text!r}")
    return first, last


def _text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _checked(text: str) -> str:
    parse_ports(text)
    return text


def _network(text: str) -> str:
    try:
        network = IPv4Network(text, strict=False)
    except ValueError as error:
        raise ValueError(
            "give an address or a network of IPv4, such as 10.0.0.9 or 10.20.0.0/16"
        ) from error
    if network.prefixlen == 0:
        raise ValueError("0.0.0.0/0 is everybody; to switch the firewall off, write mode: off")
    return str(network)


_SENDER = {
    "type": "string",
    "description": "an address or a network of IPv4, such as 10.0.0.9 or 10.20.0.0/16",
    "pattern": r"^[0-9]+(\.[0-9]+){3}(/[0-9.]+)?$",
}
_PORTS = {
    "description": "a port such as 8000, or a range such as 9000-9100",
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": 65535},
        {"type": "string", "pattern": r"^[0-9]{1,5}(-[0-9]{1,5})?$"},
    ],
}
Sender = Annotated[str, AfterValidator(_network), WithJsonSchema(_SENDER, mode="validation")]
"""An address or a network that is let in besides the hosts; never everybody."""

Ports = Annotated[
    str,
    BeforeValidator(_text),
    AfterValidator(_checked),
    Field(examples=["9000-9100"]),
    WithJsonSchema({**_PORTS, "examples": ["9000-9100"]}, mode="validation"),
]
"""A port or a range of ports in the spec."""


def kernel_range(sysctls: Sysctls) -> tuple[int, int] | None:
    """Return the ports that the kernel gives to new sockets; None where that is not known."""
    return _bounds(*sysctls.live.get(RANGE_KEY, "").partition(" ")[::2])


def reserved(text: str) -> Spans:
    """Read a list of ports such as "8080,9000-9100"; what is none of that is passed over."""
    result = []
    for part in text.split(","):
        try:
            result.append(parse_ports(part.strip()))
        except ValueError:
            continue
    return spans.merge(result)


def boot_range(sysctls: Sysctls) -> tuple[int, int] | None:
    """Return the ports that a file of others gives to new sockets after the next boot; None where none does."""
    lines = [x for x in sysctls.persisted if x.key == RANGE_KEY and x.path != PORTS_FILE]
    low, _, high = lines[-1].value.partition(" ") if lines else ("", "", "")
    return _bounds(low, high)


def _bounds(low: str, high: str) -> tuple[int, int] | None:
    try:
        return parse_ports(f"{low}-{high}")
    except ValueError:
        return None
