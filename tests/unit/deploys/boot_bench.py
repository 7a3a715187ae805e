"""Hosts with files that decide what the next boot makes of them."""

from __future__ import annotations

from remedy.plan import Finding, make_plan, section_models
from remedy.probe import (
    HostState,
    Kernel,
    LoginSession,
    Mention,
    Network,
    Sysctls,
    SysctlSetting,
    Unit,
)
from tests.unit.build import WHEN, fleet, host_state, record, with_section


def host(
    *lines: tuple[str, str],
    units: tuple[Unit, ...] = (),
    present: tuple[str, ...] = (),
    persisted: tuple[tuple[str, str], ...] = (),
    live: dict[str, str] | None = None,
    mtu: int = 9000,
) -> HostState:
    """Return a host with these lines of files: path and text."""
    state = host_state("a", "10.0.0.1")
    assert isinstance(state.network, Network)
    interface = state.network.interfaces[0].model_copy(update={"mtu": mtu})
    kernel = record(Kernel, command_line="root=UUID=1 quiet", modules=frozenset({"mlx5_core"}))
    sysctls = Sysctls(
        live=live or {},
        persisted=tuple(
            SysctlSetting(key=key, value=value, path="/etc/sysctl.d/9.conf", line=at)
            for at, (key, value) in enumerate(persisted, 1)
        ),
        unread=(),
    )
    return state.model_copy(
        update={
            "network": state.network.model_copy(update={"interfaces": (interface,)}),
            "units": {unit.name: unit for unit in units},
            "sshd": None,
            "session": record(LoginSession, present=frozenset(present)),
            "kernel": kernel,
            "sysctls": sysctls,
            "mentions": tuple(
                Mention(path=path, line=at, text=text) for at, (path, text) in enumerate(lines, 1)
            ),
        }
    )


def found(
    state: HostState, remedy: str = "next_boot", accept: tuple[str, ...] = ()
) -> list[Finding]:
    spec = with_section(remedy, section_models()[remedy](**({"accept": accept} if accept else {})))
    plan = make_plan(fleet(state, host_state("b", "10.0.0.2"), spec=spec), WHEN, only=remedy)
    assert plan.changes == ()
    return [finding for finding in plan.findings if finding.host == "a"]
