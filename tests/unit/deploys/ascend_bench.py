"""Hosts with Ascend devices and with GPUs, as the remedies for rank tables and endpoints see them."""

from __future__ import annotations

from remedy.deploys.ascend import HCCN, TABLE, AscendSpec
from remedy.deploys.paddle import PATH
from remedy.plan import FileAction, Fleet, Plan, make_plan
from remedy.probe import File, Gpus, HostState, LoginSession, Names, PciDevice, Sysctls
from remedy.spec import SpecSection
from tests.unit.build import WHEN, fleet, host_state, record, with_section

GPU = PciDevice("0000:01:00.0", "10de", "2330", "0302")
ENV = "/etc/environment"


def hccn(number: int, devices: int = 2) -> bytes:
    return b"".join(f"address_{d}=192.168.{d}.{number}\n".encode() for d in range(devices))


def host(
    number: int, content: bytes | None = None, *, table: bytes | None = None, gpus: int = 0,
    reserved: str = "", own: str | None = None,
) -> HostState:  # fmt: skip
    given = {HCCN: content, TABLE: table, PATH: None, ENV: None, "/etc/nccl.conf": None}
    files = {
        path: File(path=path, real_path=path, exists=text is not None, content=text or b"")
        for path, text in given.items()
    }
    live = {
        "net.ipv4.ip_local_port_range": "32768 60999",
        "net.ipv4.ip_local_reserved_ports": reserved,
    }
    address = f"10.0.0.{number}"
    return host_state(f"gpu{number:02d}", address, files=files).model_copy(
        update={
            "sysctls": Sysctls(live=live, persisted=(), unread=()),
            "gpus": record(Gpus, pci=(GPU,) * gpus),
            "session": record(LoginSession, homes=(), programs={}, present=frozenset()),
            "names": record(Names, local=(own or address,)),
        }
    )


def fleet_of(*states: HostState, absent: tuple[str, ...] = (), **sections: SpecSection) -> Fleet:
    spec = with_section("ascend", AscendSpec())
    spec.sections.update(sections)
    return fleet(*states, spec=spec, absent=absent)


def planned(made: Fleet, only: str = "ascend") -> Plan:
    return make_plan(made, WHEN, only=only)


def written(plan: Plan, name: str) -> bytes:
    (change,) = plan.for_host(name)
    assert isinstance(change.action, FileAction)
    return plan.contents[change.action.after or ""]
