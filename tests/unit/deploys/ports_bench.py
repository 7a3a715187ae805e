"""Hosts with ports for new sockets."""

from __future__ import annotations

from remedy.deploys.port_range import PATH
from remedy.firewall.ports import RANGE_KEY, RESERVED_KEY
from remedy.probe import File, HostState, Sysctls
from remedy.probe.sysctl import parse_persisted
from tests.unit.build import host_state

USUAL = "32768 60999"


def settings_host(
    name: str = "a",
    number: int = 1,
    *,
    live: str = USUAL,
    reserved: str = "",
    files: dict[str, str] | None = None,
) -> HostState:
    found = {
        path: File(path=path, real_path=path, exists=True, content=text.encode())
        for path, text in (files or {}).items()
    }
    found.setdefault(PATH, File(path=PATH, real_path=PATH, exists=False))
    persisted, unread, _ = parse_persisted(found, ufw=False)
    settings = Sysctls(
        live={RANGE_KEY: live, RESERVED_KEY: reserved}, persisted=persisted, unread=unread
    )
    host = host_state(name, f"10.0.0.{number}", files=found)
    return host.model_copy(update={"sysctls": settings})
