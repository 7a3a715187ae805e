"""Hosts with shared memory and engines of containers, as the remedies for their sizes see them."""

from __future__ import annotations

from collections.abc import Mapping

from remedy.deploys._sizes import GIB, MIB
from remedy.deploys.dev_shm import DevShmSpec
from remedy.deploys.docker_shm import DAEMON, PODMAN, DockerShmSpec
from remedy.plan import Fleet, Plan, make_plan
from remedy.probe import (
    Container,
    Containers,
    Docker,
    File,
    HostState,
    Kernel,
    LoginSession,
    Process,
    SharedMemory,
)
from remedy.probe.accelerators import Gpus, PciDevice
from remedy.values import Unknown
from tests.unit.build import WHEN, fleet, host_state, record, with_section

GPU = PciDevice("0000:01:00.0", "10de", "2330", "0302")
FSTAB = "/etc/fstab"
SMALL = Container("1", "train", "torch:2", 64 * MIB, "private", 100)


def memory_host(
    *,
    gpus: int = 8,
    shm: int = 64 * MIB,
    files: Mapping[str, bytes | Unknown | None] | None = None,
    programs: tuple[str, ...] = ("docker", "dockerd"),
    runs: bool = True,
    memory: int = 1024 * GIB,
    containers: tuple[Container, ...] = (),
    arguments: tuple[str, ...] = ("/usr/sbin/dockerd", "-H", "fd://"),
) -> HostState:
    contents = {DAEMON: None, PODMAN: None, FSTAB: b"# nothing\n", **(files or {})}
    dockerd = Process(50, 1, 50, 50, False, "S", "dockerd", 0, 0, arguments=arguments)
    docker = record(Docker) if runs else None
    known = {
        path: content
        if isinstance(content, Unknown)
        else File(path=path, real_path=path, exists=content is not None, content=content or b"")
        for path, content in contents.items()
    }
    return host_state("gpu01", "10.0.0.1", files=known).model_copy(
        update={
            "gpus": record(Gpus, pci=(GPU,) * gpus, devices=(), processes=(), acs={}),
            "kernel": record(Kernel, memory=memory, modules=frozenset()),
            "shared_memory": SharedMemory(size=shm, used=0, files=(), holders={}),
            "session": record(
                LoginSession, programs=dict.fromkeys(programs, "/usr/bin/x"), present=frozenset()
            ),
            "processes": (dockerd,) if runs else (),
            "containers": Containers(
                docker=docker, docker_containers=containers, podman_containers=()
            ),
        }
    )


def plan_of(
    host: HostState, spec: DevShmSpec | DockerShmSpec | None = None, only: str | None = None
) -> tuple[Fleet, Plan]:
    name = only or ("dev_shm" if isinstance(spec, DevShmSpec) else "docker_shm")
    settled = fleet(host, spec=with_section(name, spec) if spec else None)
    return settled, make_plan(settled, WHEN, only=name)
