"""Hosts with System V objects that dead processes left."""

from __future__ import annotations

from remedy.probe import (
    Clock,
    HostState,
    Identity,
    Process,
    Queue,
    Segment,
    Semaphores,
    SysvIpc,
)
from tests.unit.build import host_state, record

NOW, BOOTED = 1_000_000, 500_000
USER, LIVING = 1000, 77


def segment(**given: int | bool | None) -> Segment:
    """Return a segment that is as stale as can be, but for what is given."""
    values = {
        "id": 5, "key": 0, "mode": 0o600, "size": 4096, "creator": 10, "last": 11, "attached": 0,
        "uid": USER, "creator_uid": USER, "attached_at": 900_000, "detached_at": 900_001,
        "changed_at": 899_999, "marked": False, "creator_started_at": None, "last_started_at": None,
    }  # fmt: skip
    return Segment(**(values | given))  # type: ignore[arg-type]


def host(
    *segments: Segment, semaphores: tuple[Semaphores, ...] = (), queues: tuple[Queue, ...] = ()
) -> HostState:
    living = Process(LIVING, 1, LIVING, LIVING, False, "S", "python", 0, 600_000, uid=1001)
    return host_state("gpu01", "10.0.0.1").model_copy(
        update={
            "identity": record(
                Identity, static_name="gpu01", transient_name="gpu01", booted_at=BOOTED
            ),
            "clock": Clock(epoch_ns=NOW * 10**9, uptime=1.0),
            "processes": (living,),
            "ipc": SysvIpc(segments=segments, semaphores=semaphores, queues=queues),
        }
    )
