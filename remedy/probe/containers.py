"""Container engines, and what the running containers have for shared memory."""

from __future__ import annotations

import json
from typing import NamedTuple

from remedy.probe.frames import Sections, fact
from remedy.values import Fact, Record


class Container(NamedTuple):
    """A running container; ``shm`` is its /dev/shm in bytes, which ``ipc_mode`` "host" makes meaningless."""

    id: str
    name: str
    image: str
    shm: int
    ipc_mode: str
    pid: int


class Docker(Record):
    """The Docker daemon (``docker info``); its default for shared memory is in daemon.json or its arguments."""

    version: str
    default_runtime: str
    runtimes: tuple[str, ...]


class Containers(Record):
    """Docker (``None`` when no daemon runs), and the containers that run, of Docker and of root's Podman."""

    docker: Fact[Docker | None]
    docker_containers: Fact[tuple[Container, ...]]
    podman_containers: Fact[tuple[Container, ...]]


def parse_containers(sections: Sections) -> Containers:
    """Read the sections of Docker and Podman."""
    return Containers(
        docker=fact(
            lambda: None if sections.absent("docker") else _docker(sections.tool("docker"))
        ),
        docker_containers=fact(lambda: _containers(sections, "docker-containers")),
        podman_containers=fact(lambda: _containers(sections, "podman-containers")),
    )


def _docker(text: str) -> Docker:
    info = json.loads(text)
    if "ServerVersion" not in info or info.get("ServerErrors"):
        raise ValueError("; ".join(info.get("ServerErrors") or ["the daemon did not answer"]))
    return Docker(
        version=info["ServerVersion"],
        default_runtime=info.get("DefaultRuntime", ""),
        runtimes=tuple(sorted(info.get("Runtimes") or ())),
    )


def _containers(sections: Sections, name: str) -> tuple[Container, ...]:
    if sections.absent(name):
        return ()
    return tuple(
        Container(
            id=entry["id"],
            name=entry["name"].lstrip("/"),
            image=entry["image"],
            shm=entry["shm_bytes"],
            ipc_mode=entry["ipc_mode"] or "",
            pid=entry["pid"],
        )
        for entry in sections.json_lines(sections.tool(name))
    )
