"""The environment of daemons that start jobs: what they were started with, and hand on."""

from __future__ import annotations

import re
from typing import NamedTuple

from remedy.probe.frames import NoAnswerError, Sections, as_text
from remedy.probe.processes import Process
from remedy.values import Fact, Unknown

MOST_BYTES = 1_000_000
"""Of all these environments together; ``host/places.sh`` knows the same number."""

_LINE = re.compile(r"/proc/(\d+)/(environ|manager):([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
MANAGER = 1
"""The pid of systemd itself: what ``systemctl set-environment`` and DefaultEnvironment= give to services."""


class ServiceVariable(NamedTuple):
    """A variable that a running daemon hands on to what it starts; ``process`` is its name in /proc."""

    process: str
    pid: int
    name: str
    value: str


def parse_service_environments(
    sections: Sections, processes: Fact[tuple[Process, ...]]
) -> tuple[ServiceVariable, ...]:
    """Read section ``service-environments``: NUL or newline after each variable.

    Args:
        sections: of the probe.
        processes: of the host, for their names.
    """
    known = () if isinstance(processes, Unknown) else processes
    names = {process.pid: process.name for process in known}
    if sections.absent("service-environments"):
        return ()
    body = sections.body("service-environments")
    if len(body) >= MOST_BYTES:
        raise NoAnswerError("the environments of daemons are longer than is read")
    text = as_text(body).replace("\0", "\n")
    environments = []
    for line in text.split("\n"):
        if match := _LINE.fullmatch(line):
            pid = int(match[1])
            name = "systemd" if match[2] == "manager" else names.get(pid, "")
            environments.append(ServiceVariable(name, pid, match[3], match[4]))
    return tuple(dict.fromkeys(environments))
