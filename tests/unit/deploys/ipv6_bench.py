"""Hosts with settings of IPv6."""

from __future__ import annotations

from remedy.deploys.ipv6 import PATH
from remedy.probe import File, HostState, Sysctls
from remedy.probe.sysctl import parse_persisted
from tests.unit.build import host_state

OVER_4 = {"SSH_CONNECTION": "10.0.0.9 5000 10.0.0.1 22"}


OVER_6 = {"SSH_CONNECTION": "fd00::9 5000 fd00::1 22"}


def keys(values: dict[str, str]) -> dict[str, str]:
    return {f"net.ipv6.conf.{name}.disable_ipv6": value for name, value in values.items()}


def settings_host(
    values: dict[str, str] | None = None,
    *,
    files: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
    name: str = "a",
    number: int = 1,
) -> HostState:
    found = {
        path: File(path=path, real_path=path, exists=True, content=text.encode())
        for path, text in (files or {}).items()
    }
    found.setdefault(PATH, File(path=PATH, real_path=PATH, exists=False))
    persisted, unread, _ = parse_persisted(found, ufw=False)
    live = keys(
        values if values is not None else dict.fromkeys(("all", "default", "eth0", "lo"), "0")
    )
    host = host_state(name, f"10.0.0.{number}", files=found)
    return host.model_copy(
        update={
            "sysctls": Sysctls(live=live, persisted=persisted, unread=unread),
            "environment": OVER_4 if environment is None else environment,
        }
    )
