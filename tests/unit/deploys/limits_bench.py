"""Hosts with files of limits and of logind, sessions and hardware."""

from __future__ import annotations

from collections.abc import Mapping

from remedy.deploys.limits import PAM, SYSTEMD
from remedy.deploys.logind import PATH
from remedy.plan import FileAction, Plan, make_plan
from remedy.probe import (
    File,
    Gpus,
    HostState,
    Identity,
    Limit,
    LoginSession,
    PciDevice,
    RdmaPort,
    Sysctls,
    Unit,
)
from remedy.spec import SpecSection
from tests.unit.build import WHEN, fleet, host_state, record, with_section

MAIN = "/etc/security/limits.conf"
SITE = "/etc/security/limits.d/50-site.conf"
LATER = "/etc/security/limits.d/zz.conf"
LOGIND = "/etc/systemd/logind.conf"
GPU = PciDevice("0000:01:00.0", "10de", "2330", "0302")
PORT = RdmaPort("mlx5_0", 1, "ACTIVE", "LinkUp", 400.0, "InfiniBand", "", (), {})
GOOD = b"* - memlock unlimited\nroot - memlock unlimited\n"


def host(
    files: Mapping[str, bytes] | None = None,
    *,
    rdma: bool = False,
    gpu: bool = False,
    memlock: int = 8 << 20,
    nofile: int = 1048576,
    nr_open: int = 1048576,
    os_id: str = "debian",
    systemd: bool = True,
    units: Mapping[str, Unit] | None = None,
) -> HostState:
    known = {
        path: File(path=path, real_path=path, exists=False) for path in (PAM, SYSTEMD, PATH, MAIN)
    }
    known |= {
        path: File(path=path, real_path=path, exists=True, content=content)
        for path, content in (files or {}).items()
    }
    present = frozenset(("/run/systemd/system",)) if systemd else frozenset()
    return host_state("gpu01", "10.0.0.1", files=known).model_copy(
        update={
            "identity": record(Identity, os_id=os_id, static_name="gpu01", transient_name="gpu01"),
            "session": record(LoginSession, homes=(), programs={}, present=present),
            "gpus": record(Gpus, pci=(GPU,) if gpu else ()),
            "rdma": (PORT,) if rdma else (),
            "limits": {"memlock": Limit(memlock, memlock), "nofile": Limit(1024, nofile)},
            "sysctls": Sysctls(live={"fs.nr_open": str(nr_open)}, persisted=(), unread=()),
            "units": dict(units or {}),
        }
    )


def planned(state: HostState, spec: SpecSection, name: str = "limits") -> Plan:
    return make_plan(fleet(state, spec=with_section(name, spec)), WHEN, only=name)


def content(plan: Plan, path: str) -> bytes | None:
    for change in plan.changes:
        assert isinstance(change.action, FileAction)
        if change.action.path == path:
            return b"" if change.action.after is None else plan.contents[change.action.after]
    return None
