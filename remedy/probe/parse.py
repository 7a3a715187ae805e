"""From a probe's output to the ``HostState``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from remedy.probe import sources
from remedy.probe.accelerators import parse_gpus, parse_rdma
from remedy.probe.alike import alike
from remedy.probe.boot import parse_boot_mounts, parse_sshd
from remedy.probe.clock import parse_clock
from remedy.probe.containers import parse_containers
from remedy.probe.files import File, parse_files, parse_mentions, parse_unsearched
from remedy.probe.firewall import parse_firewalls, ufw_switched_on
from remedy.probe.frames import NoAnswerError, Sections, as_text, fact, read_sections
from remedy.probe.guards import parse_guards
from remedy.probe.identity import parse_identity
from remedy.probe.kernel import parse_kernel
from remedy.probe.memory import parse_shared_memory, parse_sysv
from remedy.probe.names import Names, parse_names
from remedy.probe.network import parse_network
from remedy.probe.processes import Process, parse_listeners, parse_processes
from remedy.probe.request import ProbeRequest
from remedy.probe.routing import parse_queueing, parse_routing
from remedy.probe.services import parse_service_environments
from remedy.probe.session import (
    LoginSession,
    effective_uid,
    parse_environment,
    parse_limits,
    parse_session,
)
from remedy.probe.software import parse_software
from remedy.probe.space import Mount, parse_mounts, parse_space
from remedy.probe.state import HostState
from remedy.probe.sysctl import parse_sysctls
from remedy.probe.units import parse_units
from remedy.values import Fact, Unknown


def parse_probe(host: str, stdout: str, request: ProbeRequest, heard_at: int = 0) -> HostState:
    """Read one host's answer.

    Args:
        host: the host's name in the inventory.
        stdout: what the rendered script printed there, all of it; what is around its marks is ignored.
        request: what was asked.
        heard_at: when the answer was whole, by the controller's clock (epoch nanoseconds); 0: not noted.

    Returns:
        The state, with ``Unknown`` for everything that is missing in this answer.

    Raises:
        ProbeError: the answer has not one complete section of this request.
    """
    sections = read_sections(host, stdout, request.nonce)
    root = fact(lambda: effective_uid(sections)) == 0
    clock = fact(lambda: parse_clock(sections, request.asked_at, heard_at))
    session = fact(lambda: parse_session(sections))
    mounts = alike("mounts", parse_mounts, sections)
    files = _files(sections, request, session, mounts, root=root)
    processes = fact(lambda: parse_processes(sections, clock))
    space = fact(lambda: parse_space(sections))
    ufw = fact(lambda: _ufw(session, files))
    unsearched = fact(lambda: parse_unsearched(sections))
    present = session.present if isinstance(session, LoginSession) else frozenset[str]()
    # Each part is of the type that is said: to look at them once more would copy what hosts share.
    return HostState.model_construct(
        host=host,
        root=root,
        complete=sections.complete,
        costs=_costs(sections),
        clock=clock,
        session=session,
        identity=fact(lambda: parse_identity(sections, _boot(processes), _identity_files(files))),
        names=fact(lambda: _names(sections, request, files)),
        files=files,
        listeners=fact(lambda: parse_listeners(sections, _names_by_pid(processes))),
        sysctls=fact(lambda: parse_sysctls(sections, files, ufw=ufw is True)),
        firewalls=alike("firewalls", lambda s: parse_firewalls(s, ufw), sections, ufw),
        containers=fact(lambda: parse_containers(sections, files, processes)),
        mounts=mounts,
        space=space,
        shared_memory=fact(lambda: parse_shared_memory(sections, space, root=root)),
        ipc=fact(lambda: parse_sysv(sections, processes)),
        processes=processes,
        rdma=alike("rdma", lambda s: parse_rdma(s, present), sections, present),
        service_environments=fact(lambda: parse_service_environments(sections, processes)),
        unsearched={} if isinstance(unsearched, Unknown) else unsearched,
        **_of_their_own_section(sections),
    )


def _of_their_own_section(sections: Sections) -> Mapping[str, Any]:
    """Return the facts that need no other fact to be read."""
    return {
        "guards": fact(lambda: parse_guards(sections)),
        "network": fact(lambda: parse_network(sections)),
        **{name: alike(name, read, sections) for name, read in _OF_AN_IMAGE.items()},
    }


# What hosts with one image print alike.
_OF_AN_IMAGE: Mapping[str, Callable[[Sections], Any]] = {
    "mentions": parse_mentions,
    "kernel": parse_kernel,
    "routing": parse_routing,
    "queueing": parse_queueing,
    "units": parse_units,
    "sshd": parse_sshd,
    "boot_mounts": parse_boot_mounts,
    "gpus": parse_gpus,
    "limits": parse_limits,
    "environment": parse_environment,
    "software": parse_software,
}


def _files(
    sections: Sections,
    request: ProbeRequest,
    session: Fact[LoginSession],
    mounts: Fact[tuple[Mount, ...]],
    *,
    root: bool,
) -> dict[str, Fact[File]]:
    homes = session.homes if isinstance(session, LoginSession) else ()
    return parse_files(
        sections,
        () if isinstance(mounts, Unknown) else mounts,
        request.all_files(),
        [f"{home}/{name}" for home in homes for name in sources.HOME_FILES],
        request.blocks,
        root=root,
    )


def _ufw(session: Fact[LoginSession], files: Mapping[str, Fact[File]]) -> bool | None:
    return ufw_switched_on(
        _has(session, "ufw"), fact(lambda: _known_text(files, "/etc/ufw/ufw.conf"))
    )


def _costs(sections: Sections) -> dict[str, float]:
    """Return the seconds of wall clock that each section took on the host."""
    return {
        sys.intern(name): round(section.ended - section.began, 2)
        for name, section in sections.by_name.items()
    }


def _boot(processes: Fact[tuple[Process, ...]]) -> int:
    """Return when PID 1 was started, 0 where that is not known."""
    if isinstance(processes, Unknown):
        return 0
    return next((process.started_at for process in processes if process.pid == 1), 0)


def _names_by_pid(processes: Fact[tuple[Process, ...]]) -> dict[int, str]:
    if isinstance(processes, Unknown):
        return {}
    return {process.pid: process.name for process in processes}


def _names(sections: Sections, request: ProbeRequest, files: Mapping[str, Fact[File]]) -> Names:
    nsswitch, resolv = _text(files, "/etc/nsswitch.conf"), _text(files, "/etc/resolv.conf")
    hosts = files.get("/etc/hosts")
    content = hosts.content if isinstance(hosts, File) else b""
    return parse_names(sections, request.names, content, nsswitch, resolv)


def _text(files: Mapping[str, Fact[File]], path: str) -> str:
    """Return a file's text, "" when there is none."""
    file = files.get(path)
    return as_text(file.content) if isinstance(file, File) else ""


def _known_text(files: Mapping[str, Fact[File]], path: str) -> str:
    """Return a file's text, "" when it is not there; raise ``NoAnswerError`` when that is not known."""
    file = files.get(path, Unknown(reason=f"the probe did not read {path}"))
    if isinstance(file, Unknown):
        raise NoAnswerError(file.reason)
    return as_text(file.content)


def _identity_files(files: Mapping[str, Fact[File]]) -> dict[str, str]:
    return {
        "/etc/hostname": _known_text(files, "/etc/hostname"),
        "/etc/machine-id": _text(files, "/etc/machine-id"),
        "/etc/os-release": _text(files, "/etc/os-release"),
    }


def _has(session: Fact[LoginSession], program: str) -> Fact[bool]:
    return session.has(program) if isinstance(session, LoginSession) else session
