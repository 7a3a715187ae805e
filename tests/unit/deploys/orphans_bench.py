"""Hosts with processes that nobody owns."""

from __future__ import annotations

from remedy.probe import HostState, Listener, Process
from remedy.probe.accelerators import GpuProcess, Gpus
from remedy.probe.processes import NO_READER
from tests.unit.build import host_state, record

LOGIN = "/user.slice/user-0.slice/session-4444.scope"


CLOSED = (NO_READER, NO_READER)


def process(pid: int, parent: int, **given: object) -> Process:
    values = {"group": pid, "session": pid, "terminal": False, "state": "S", "name": "python"}
    values |= {"started_ticks": pid * 100, "started_at": 1_000_000, **given}
    return Process(pid=pid, parent=parent, **values)  # type: ignore[arg-type]


INIT = process(1, 0, name="systemd")


SSHD = process(41, 1, name="sshd")


ORPHAN = process(
    89,
    1,
    uid=0,
    cgroup=LOGIN,
    arguments=("torchrun", "train.py"),
    outputs=CLOSED,
    name="pt_elastic",
)


WORKER = process(90, 89, uid=0, cgroup=LOGIN)


def host(*processes: Process, port: int = 29500, gpu: int = 0, holder: int = 89) -> HostState:
    return host_state("gpu01", "10.0.0.1").model_copy(
        update={
            "processes": (INIT, SSHD, *processes),
            "listeners": (Listener("*", 22, (41,)), Listener("*", port, (holder,))),
            "gpus": record(
                Gpus, devices=(), processes=(GpuProcess(gpu, "GPU-1", 512),) if gpu else (), acs={}
            ),
        }
    )
