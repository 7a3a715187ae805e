"""Paddle on fixed ports: the endpoints of all trainers, worked out once and the same on every host.

Cures: clusters in which only certain ports are open between the hosts, where Paddle's launcher cannot be used
and every process needs six variables by hand; trainers that connect to loopback, because Paddle takes the
address that the host's own name resolves to. For the latter `--host` is no cure, since Paddle's gloo does not
look at it: the remedy ``hosts_file`` makes the name resolve rightly, and this one tells when that is off.

Without ``ports`` nothing is done. With them each host gets the command paddle-fixed-ports, which sets the
variables for one process and starts it: `paddle-fixed-ports 0 python train.py` for its first device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field

from remedy.deploys._once import once_a_fleet
from remedy.deploys.hosts_file import HostsFileSpec
from remedy.plan import (
    Assessment,
    Change,
    FileAction,
    Finder,
    Finding,
    FindingKind,
    Fleet,
    sha256,
)
from remedy.plan.files import blocker
from remedy.plan.legacy import old_remedy
from remedy.probe import HostState
from remedy.spec import SpecSection
from remedy.templating import render
from remedy.values import Unknown

NAME = "paddle"
LABEL = "firewall-ports"
_finding = Finder(NAME, LABEL)
PATH = "/usr/local/bin/paddle-fixed-ports"
LONGEST = 120_000
"""Characters of one variable: the kernel takes 128 KiB for each (execve(2), MAX_ARG_STRLEN)."""


def _ports(text: str) -> str:
    match = re.fullmatch(r"(\d{1,5})-(\d{1,5})", text)
    if match is None:
        raise ValueError("expected a range of ports such as 8000-8999")
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

    ports: Annotated[str, AfterValidator(_ports)] | None = None
    devices: int | None = Field(default=None, ge=1, le=128)

    @property
    def range(self) -> range:
        """Return the ports; empty when none are given."""
        if self.ports is None:
            return range(0)
        first, _, last = self.ports.partition("-")
        return range(int(first), int(last) + 1)


def reserved_ports(fleet: Fleet) -> range:
    """Return the ports that trainers listen on, for remedies that reserve or open ports."""
    spec = fleet.spec.section(NAME, PaddleSpec)
    most = max((_devices(state, spec) for state in fleet.states.values()), default=0)
    return spec.range[:most]


def _devices(host: HostState, spec: PaddleSpec) -> int:
    """Return how many trainers a host runs."""
    if spec.devices is not None:
        return spec.devices
    count = 0 if isinstance(host.gpus, Unknown) else sum(d.is_gpu for d in host.gpus.pci)
    return max(count, 1)


@once_a_fleet
def _endpoints(fleet: Fleet) -> tuple[str, dict[str, int], tuple[str, ...]]:
    """Return all endpoints, the number of each host's first trainer, and what is in the way of the list."""
    spec = fleet.spec.section(NAME, PaddleSpec)
    listed: list[str] = []
    first: dict[str, int] = {}
    wrong = []
    for name in fleet.inventory.names:
        address, state = fleet.addresses[name].address, fleet.states.get(name)
        if state is None or address is None:
            reason = fleet.addresses[name].reason if state is not None else "it was not read"
            wrong.append(f"{name}: {reason}")
            continue
        count = _devices(state, spec)
        if count > len(spec.range):
            wrong.append(f"{name}: {count} trainers, and {spec.ports} has {len(spec.range)} ports")
        first[name] = len(listed)
        listed += [f"{address}:{port}" for port in spec.range[:count]]
    text = ",".join(listed)
    if len(text) > LONGEST:
        wrong.append(f"{len(listed)} endpoints are more than one variable can hold")
    return text, first, tuple(wrong)


def assess(fleet: Fleet, host: HostState, spec: PaddleSpec) -> Assessment:
    """Decide what the command for fixed ports shall set on one host."""
    file = host.file(PATH)
    if spec.ports is None:
        return Assessment()
    findings = list(_name_advice(fleet, host))
    if isinstance(file, Unknown):
        unread = _finding(host, FindingKind.UNKNOWN, f"{PATH} could not be read", (file.reason,))
        return Assessment((*findings, unread))
    endpoints, first, wrong = _endpoints(fleet)
    if wrong:
        title = "the endpoints of Paddle's trainers cannot be listed, because that needs every host"
        findings.append(_finding(host, FindingKind.BLOCKED, title, wrong[:8]))
        return Assessment(tuple(findings))
    content = render(
        "paddle_fixed_ports.j2",
        endpoints=endpoints,
        total=endpoints.count(",") + 1,
        address=fleet.addresses[host.host].address,
        count=_devices(host, spec),
        first=first[host.host],
        port=spec.range.start,
    ).encode()
    if content == file.content:
        return Assessment(tuple(findings))
    title = (
        f"{PATH} does not list the trainers of this inventory"
        if file.exists
        else f"there is no {PATH}"
    )
    findings.append(_finding(host, FindingKind.DRIFT, title))
    if blocked := blocker(file, NAME):
        return Assessment((*findings, blocked.on(host.host, LABEL)))
    change = Change(
        id="",
        host=host.host,
        remedy=NAME,
        title=f"write {PATH}",
        reason=title,
        label=LABEL,
        action=FileAction(
            path=PATH,
            real_path=file.real_path,
            before=sha256(file.content) if file.exists else None,
            after=sha256(content),
            mode=0o755,
        ),
    )
    blobs = {sha256(data): data for data in (file.content, content)}
    return Assessment(tuple(findings), (change,), blobs)


def _name_advice(fleet: Fleet, host: HostState) -> Iterator[Finding]:
    """Yield that Paddle will take a wrong address, where the remedy that cures it was switched off."""
    if isinstance(host.names, Unknown) or fleet.spec.section("hosts_file", HostsFileSpec).manage:
        return
    mine = fleet.addresses[host.host].address
    if mine is not None and host.names.own[:1] != (mine,):
        yield _finding(
            host,
            FindingKind.BLOCKED,
            "Paddle takes the address of the host's own name, which is not its cluster address",
            (f"its own name: {', '.join(host.names.own) or 'no answer'}, wanted {mine}",),
            "Set hosts_file.manage: true. The launcher's --host does not reach Paddle's gloo.",
            label="loopback-hostname",
        )


old_remedy(
    name=NAME,
    title="Paddle on fixed ports",
    text=__doc__,
    cures=(LABEL, "loopback-hostname"),
    spec=PaddleSpec,
    assess=assess,
    order=56,
    reads=(PATH,),
)
