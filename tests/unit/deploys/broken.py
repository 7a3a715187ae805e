"""Hosts that the program's own remedies cure, where settings and damaged files do not switch them on."""

from __future__ import annotations

from remedy.deploys.ascend import HCCN, ascend
from remedy.deploys.docker_shm import docker_shm
from remedy.deploys.orphans import orphans
from remedy.deploys.shm_leftovers import shm_leftovers
from remedy.deploys.sysv_ipc import sysv_ipc
from remedy.probe import (
    Clock,
    File,
    HostState,
    Listener,
    LoginSession,
    Process,
    Segment,
    SharedMemory,
    ShmFile,
    SysvIpc,
)
from remedy.probe.processes import NO_READER
from remedy.values import Unknown

LOGIN = "/user.slice/user-0.slice/session-4444.scope"
USER = 1000


def long_ago(state: HostState) -> int:
    """Return an epoch second an hour before the probe, of a host that has been up for longer."""
    assert isinstance(state.clock, Clock)
    return state.clock.epoch_ns // 10**9 - 3600


@orphans.breaks
def a_torchrun_without_anybody(state: HostState) -> HostState:
    """Have a launcher of a login that is over hold its port."""
    if isinstance(state.processes, Unknown) or isinstance(state.listeners, Unknown):
        return state
    orphan = Process(
        4089, 1, 4089, 4089, False, "S", "torchrun", 40890, 1_000_000, uid=0, cgroup=LOGIN,
        arguments=("torchrun", "train.py"), outputs=(NO_READER, NO_READER),
    )  # fmt: skip
    kept = tuple(process for process in state.processes if process.pid != orphan.pid)
    listener = Listener("*", 29500, 0, (orphan.pid,))
    return state.model_copy(
        update={"processes": (*kept, orphan), "listeners": (*state.listeners, listener)}
    )


@sysv_ipc.breaks
def a_segment_of_the_dead(state: HostState) -> HostState:
    """Have a segment whose creator and last user are dead."""
    if isinstance(state.ipc, Unknown):
        return state
    at = long_ago(state)
    segment = Segment(
        5005, 0, 0o600, 4096, 4010, 4011, 0, USER, USER, at, at, at, False, None, None
    )
    ipc: SysvIpc = state.ipc.model_copy(update={"segments": (*state.ipc.segments, segment)})
    return state.model_copy(update={"ipc": ipc})


@shm_leftovers.breaks
def a_file_of_the_dead(state: HostState) -> HostState:
    """Have a file of NCCL in /dev/shm that nobody has open."""
    if isinstance(state.shared_memory, Unknown):
        return state
    at, memory = long_ago(state), state.shared_memory
    file = ShmFile("/dev/shm/nccl-AbCd09", 25, 700_007, 4096, 4096, USER, 0o600, at, at, 1)
    holders = {} if isinstance(memory.holders, Unknown) else memory.holders
    found: SharedMemory = memory.model_copy(
        update={"files": (*memory.files, file), "used": memory.used + 4096, "holders": holders}
    )
    return state.model_copy(update={"shared_memory": found})


@docker_shm.breaks
def docker_is_installed(state: HostState) -> HostState:
    """Have both container engines; what they give is asked for by the settings."""
    if isinstance(state.session, Unknown):
        return state
    programs = {"dockerd": "/usr/bin/dockerd", "podman": "/usr/bin/podman"}
    both = {**state.session.programs, **programs}
    session: LoginSession = state.session.model_copy(update={"programs": both})
    return state.model_copy(update={"session": session})


@ascend.breaks
def has_ascend_devices(state: HostState) -> HostState:
    """Have Ascend devices, each host with addresses of its own."""
    number = state.host.removeprefix("gpu0")
    text = f"address_0=192.168.100.{number}\nnetmask_0=255.255.255.0\n"
    file = File(path=HCCN, real_path=HCCN, exists=True, content=text.encode())
    return state.model_copy(update={"files": {**state.files, HCCN: file}})
