"""Paddle on fixed ports: the endpoints of all trainers, worked out once and the same on every host.

Cures: clusters in which only certain ports are open between the hosts, where Paddle's launcher cannot be used
and every process needs six variables by hand; trainers that connect to loopback, because Paddle takes the
address that the host's own name resolves to. For the latter `--host` is no cure, since Paddle's gloo does not
use it: the remedy ``hosts_file`` makes the name resolve rightly, and this one reports when that is off.

Without ``ports`` nothing is done. With them each host gets the command paddle-fixed-ports, which sets the
variables for one process and starts it: `paddle-fixed-ports 0 python train.py` for its first device.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from remedy.deploys.hosts_file import HostsFileSpec
from remedy.plan import Fleet, Workbench, once_a_fleet, remedy
from remedy.probe import HostState
from remedy.spec import SpecSection
from remedy.templating import render
from remedy.text import counted
from remedy.values import Unknown

PATH = "/usr/local/bin/paddle-fixed-ports"
LONGEST = 120_000
"""Characters of one variable: the kernel takes 128 KiB for each (execve(2), MAX_ARG_STRLEN)."""


_RANGE = {
    "type": "string",
    "description": "a range of ports from 1024, such as 8000-8999",
    "pattern": r"^\d{4,5}-\d{4,5}$",
}


def _ports(text: str) -> str:
    match = re.fullmatch(r"(\d{1,5})-(\d{1,5})", text)
    if match is None:
        raise ValueError
    first, last = int(match[1]), int(match[2])
    if not 1024 <= first <= last <= 65535:
        raise ValueError(
            "the first port must be 1024 or more, and no larger than the last, at most 65535"
        )
    return text


class PaddleSpec(SpecSection):
    """``ports``: the range that trainers may listen on, such as 8000-8999; each device takes the next one.

    ``devices``: trainers on each host; without it one for each GPU, and one where there is none.
    """

    ports: (
        Annotated[str, AfterValidator(_ports), WithJsonSchema(_RANGE, mode="validation")] | None
    ) = Field(None, examples=["8000-8999"])
    devices: int | None = Field(default=None, ge=1, le=128)

    @property
    def range(self) -> range:
        """Return the ports; empty when none are given."""
        if self.ports is None:
            return range(0)
        first, _, last = self.ports.partition("-")
        return range(int(first), int(last) + 1)


def _devices(host: HostState, spec: PaddleSpec) -> int:
    """Return how many trainers a host runs."""
    if spec.devices is not None:
        return spec.devices
    count = 0 if isinstance(host.gpus, Unknown) else sum(d.is_gpu for d in host.gpus.pci)
    return max(count, 1)


@once_a_fleet
def _endpoints(fleet: Fleet) -> tuple[str, dict[str, int], tuple[str, ...]]:
    """Return all endpoints, the number of each host's first trainer, and what is in the way of the list."""
    spec = fleet.spec.section("paddle", PaddleSpec)
    listed: list[str] = []
    first: dict[str, int] = {}
    obstacles = []
    for name in fleet.inventory.names:
        address, state = fleet.addresses[name].address, fleet.states.get(name)
        if state is None or address is None:
            reason = fleet.addresses[name].reason if state is not None else "it was not read"
            obstacles.append(f"{name}: {reason}")
            continue
        count = _devices(state, spec)
        if count > len(spec.range):
            obstacles.append(
                f"{name}: {counted(count, 'trainer')}, and {spec.ports} has {counted(len(spec.range), 'port')}"
            )
        first[name] = len(listed)
        listed += [f"{address}:{port}" for port in spec.range[:count]]
    text = ",".join(listed)
    if len(text) > LONGEST:
        obstacles.append(f"{len(listed)} endpoints are more than one variable can hold")
    return text, first, tuple(obstacles)


@remedy(
    "Paddle on fixed ports",
    PaddleSpec,
    cures=("firewall-ports", "loopback-hostname"),
    order=56,
    reads=(PATH,),
)
def paddle(bench: Workbench[PaddleSpec]) -> None:
    """Decide what the command for fixed ports has to set on one host."""
    fleet, host, settings = bench.fleet, bench.host, bench.settings
    if settings.ports is None:
        return
    _advise_on_names(bench)
    file = bench.file(PATH)
    endpoints, first, obstacles = _endpoints(fleet)
    if obstacles:
        title = "the endpoints of Paddle's trainers cannot be listed, because that needs every host"
        bench.blocked(title, obstacles[:8])
        return
    content = render(
        "paddle_fixed_ports.j2",
        endpoints=endpoints,
        total=endpoints.count(",") + 1,
        address=fleet.addresses[host.host].address,
        count=_devices(host, settings),
        first=first[host.host],
        port=settings.range.start,
    ).encode()
    if content != file.content:
        title = f"{PATH} does not list the trainers of this inventory"
        finding = bench.drift(title if file.exists else f"there is no {PATH}")
        bench.write(PATH, content, f"write {PATH}", because=finding, mode=0o755)


def _advise_on_names(bench: Workbench[PaddleSpec]) -> None:
    """Say that Paddle will take a wrong address, where the remedy that cures it was switched off."""
    names, address = bench.host.names, bench.fleet.addresses[bench.host.host].address
    managed = bench.fleet.spec.section("hosts_file", HostsFileSpec).manage
    if isinstance(names, Unknown) or managed or address is None:
        return
    addresses = bench.need(
        names.local, "the address of the host's own name", label="loopback-hostname"
    )
    if addresses[:1] == (address,):
        return
    bench.blocked(
        "Paddle takes the address of the host's own name, which is not its cluster address",
        f"its own name: {', '.join(addresses) or 'no address'}, expected {address}",
        "Set hosts_file.manage: true. The launcher's --host does not reach Paddle's gloo.",
        label="loopback-hostname",
    )
