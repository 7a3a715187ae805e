"""What is found in a host's environment that remedy names and does not change. Not a remedy itself."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from remedy.deploys import _interfaces as nic
from remedy.deploys import _openmpi
from remedy.deploys import _transports as transports
from remedy.deploys._launched import of_launcher
from remedy.deploys._settings import (
    MCA_PREFIX,
    NCCL,
    SESSION,
    Setting,
    Target,
    settings,
    switched_off,
    targets,
)
from remedy.edit.assignments import Assignment, Dialect, assignments, untrimmed
from remedy.plan import FleetBench, Workbench
from remedy.probe import Interface
from remedy.probe.services import MANAGER
from remedy.text import is_number
from remedy.values import Fact, Unknown

IFNAMES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
_OFF = ("", "0")
# What jobs are run with that nobody looks for a fault of.
_QUIET: Mapping[str, tuple[str, ...]] = {
    "NCCL_DEBUG": ("VERSION", "WARN"),
    "TORCH_CPP_LOG_LEVEL": ("WARNING", "ERROR", "FATAL"),
    "TORCH_DISTRIBUTED_DEBUG": ("OFF",),
}
HCCL_BUFFER, HCCL_BUFFER_USUAL = "HCCL_BUFFSIZE", 200
"""MB that each communicator takes twice from the memory of every device (CANN docs, HCCL_BUFFSIZE)."""
DEBUG: Mapping[str, tuple[str, str]] = {
    # name -> the cause that it hides, and what it does (NCCL docs/userguide/source/env.rst)
    "NCCL_P2P_DISABLE": ("p2p-acs-iommu", "no direct traffic between GPUs"),
    "NCCL_SHM_DISABLE": ("shm-too-small", "no shared memory between GPUs of a host"),
    "NCCL_IB_DISABLE": ("ib-misconfig", "sockets instead of RDMA"),
    "NCCL_NET_GDR_LEVEL": ("gdr-peermem", "a fixed limit for GPUDirect"),
    "NCCL_ALGO": ("env-not-propagated", "a fixed algorithm instead of the tuned choice"),
    "NCCL_PROTO": ("env-not-propagated", "a fixed protocol instead of the tuned choice"),
    "CUDA_LAUNCH_BLOCKING": ("env-not-propagated", "every kernel is waited for"),
    # NCCL docs/userguide/source/env.rst; torch docs/source/distributed.md, c10/util/Logging.cpp
    "NCCL_DEBUG": ("env-not-propagated", "each rank writes what NCCL does"),
    "TORCH_CPP_LOG_LEVEL": ("env-not-propagated", "each rank writes what torch does"),
    "TORCH_DISTRIBUTED_DEBUG": (
        "env-not-propagated",
        "ranks compare each collective before it runs",
    ),
}
"""Switches for finding faults: left behind they cost speed, or hide what is wrong."""
LIBRARIES: Mapping[str, str] = {
    # name -> what it does to each program (resolver(5), gethostbyname(3), host.conf(5), ld.so(8))
    "HOSTALIASES": "names of hosts stand for others",
    "LOCALDOMAIN": "names are looked for in another domain",
    "RES_OPTIONS": "names are asked for in another way",
    "RESOLV_HOST_CONF": "names are resolved by another file than /etc/host.conf",
    "LD_PRELOAD": "every program loads that library first",
    "LD_AUDIT": "that library sees what every program loads",
    # Files and folders of settings: NCCL src/misc/param.cc, Open MPI docs/mca.rst, UCX docs/source/faq.md
    "NCCL_CONF_FILE": "NCCL takes settings from there, and they are not read here",
    "OMPI_MCA_mca_base_param_files": "Open MPI takes settings from there, and they are not read here",
    "UCX_CONFIG_DIR": "UCX takes settings from there, and they are not read here",
}
CONTAINER_DAEMONS = ("dockerd", "containerd")  # no container gets what they have
_OWN = re.compile(r"IFNAME|NET_DEVICES|_IF_IP|TORCHELASTIC|_RANK")
_COMPARED = re.compile(
    r"((TORCH_)?NCCL|TORCH|GLOO|UCX|OMPI_MCA|HCCL)_\w+\Z|LD_(LIBRARY_PATH|PRELOAD)\Z|PYTHON(PATH|HOME)\Z"
)


@dataclass(frozen=True)
class Wish:
    """The value a variable is to have, why, and whether the spec asks for it (else it is a repair)."""

    value: str
    why: str
    from_spec: bool = True


@dataclass(frozen=True)
class Surroundings:
    """One host's environment: the files that can be changed, what is set where, the cluster's interface."""

    bench: Workbench[Any]
    targets: tuple[Target, ...]
    settings: tuple[Setting, ...]
    interface: Fact[Interface]

    @classmethod
    def of(cls, bench: Workbench[Any], *, user_files: bool) -> Surroundings:
        """Return the environment of the host on the bench; ``user_files``: the user's may be changed too."""
        files = targets(bench.host, user_files=user_files)
        interface = nic.cluster_interface(bench.fleet, bench.host)
        return cls(bench, files, settings(bench.host, files), interface)

    def fault(self, name: str, value: str) -> str | None:
        """Return why a setting of an interface cannot work here; None when it can, or that is not known."""
        network = self.bench.host.network
        if isinstance(network, Unknown) or isinstance(self.interface, Unknown):
            return None
        strict = nic.named_by_user(self.bench.fleet, self.bench.host)
        if name in _openmpi.IFNAMES:
            return _openmpi.wrong_include(value, network, self.interface, strict=strict)
        if name in transports.NAMES:
            host = self.bench.host
            return transports.fault_of(name, value, host, self.interface, strict=strict)
        if name in transports.WAYS:
            return transports.no_way(name, value, self.bench.host, self.interface)
        if name not in IFNAMES:
            return None
        exact = name != "NCCL_SOCKET_IFNAME"
        return nic.wrong_interfaces(value, network, self.interface, exact=exact, strict=strict)


def name_overruling(around: Surroundings, wishes: Mapping[str, Wish]) -> None:
    """Name the lines that remedy does not change and that count before those it does."""
    for setting in around.settings:
        wish = wishes.get(setting.name)
        if setting.target is not None and wish is not None:
            continue
        reason = around.fault(setting.name, setting.value)
        if wish is not None and wish.from_spec and setting.value != wish.value:
            reason = reason or f"{wish.why} requires {wish.value}"
        if not reason:
            continue
        line = f"line {setting.line} of {setting.path}"
        fix = f"Correct or remove {line}: it counts before what remedy writes."
        if setting.target is not None or setting.inert:
            fix = f"Correct or remove {line}."
        elif setting.path.endswith("/.nccl.conf"):
            fix += " Or set environment.user_files: true."
        note = around.bench.report if setting.inert else around.bench.blocked
        title = f"{setting.path} sets {setting.name}={setting.value}: {reason}"
        note(title, (setting.shown, *_reach_of(setting)), fix, label=label_of(setting.name))


def _reach_of(setting: Setting) -> tuple[str, ...]:
    """Return who gets what a line sets, as evidence; nothing for files that say so themselves."""
    if setting.inert:
        return (f"no job gets it: {setting.inert}",)
    return (f"who gets it: {setting.reach}",) if setting.reach else ()


def check_services(around: Surroundings) -> None:
    """Name what a daemon that starts jobs has, where no file that was read explains it."""
    running = around.bench.host.service_environments
    if isinstance(running, Unknown):
        return
    known = {(setting.name, setting.value) for setting in around.settings if not setting.inert}
    for variable in running:
        reason = around.fault(variable.name, variable.value)
        if not reason or (variable.name, variable.value) in known:
            continue
        shown = f"{variable.name}={variable.value}"
        if variable.pid == MANAGER:
            who, place = "systemd", "systemctl show-environment"
            fix = f"Run systemctl unset-environment {variable.name}, then restart what starts the jobs."
        else:
            who, place = f"{variable.process} (pid {variable.pid})", f"/proc/{variable.pid}/environ"
            fix = "Start it again without it; for a service: systemctl restart UNIT"
        note = (
            around.bench.report if variable.process in CONTAINER_DAEMONS else around.bench.blocked
        )
        note(
            f"{who} hands {shown} on to what it starts: {reason}",
            f"{place}: {shown}",
            fix,
            label=label_of(variable.name),
        )


def check_session(around: Surroundings, wishes: Mapping[str, Wish]) -> None:
    """Name what a session over ssh has and no file that was read explains."""
    environment = around.bench.host.environment
    if isinstance(environment, Unknown):
        return
    known = {(setting.name, setting.value) for setting in around.settings}
    known |= set(switched_off(around.bench.host, around.targets))
    for name in sorted(
        {*wishes, *IFNAMES, *_openmpi.IFNAMES, *transports.NAMES, *transports.WAYS}
        & environment.keys()
    ):
        value = environment[name]
        wish = wishes.get(name)
        if (name, value) in known or (wish is not None and value == wish.value):
            continue
        reason = around.fault(name, value)
        if wish is not None and wish.from_spec:
            reason = reason or f"{wish.why} requires {wish.value}"
        if reason:
            around.bench.blocked(
                f"sessions over ssh have {name}={value}: {reason}",
                "no file that the probe reads sets it",
                "Check the user's shell start-up files, PAM's own files and the site's modules.",
                label=label_of(name),
            )


def _note_of_libraries(around: Surroundings) -> None:
    """Report what changes how every program of a job resolves names, or what it loads."""
    for setting in around.settings:
        if setting.name in LIBRARIES and not setting.inert and setting.value:
            around.bench.report(
                f"{setting.path} sets {setting.name}={setting.value}: {LIBRARIES[setting.name]}",
                (setting.shown, *_reach_of(setting)),
                f"Remove line {setting.line} of {setting.path}, if nothing needs it.",
                label="env-not-propagated",
            )


def advise(around: Surroundings, sole_values: Mapping[str, str | None]) -> None:
    """Report debug switches, and lines that do not mean what they seem to."""
    _note_of_libraries(around)
    for setting in around.settings:
        fixed = setting.target is not None
        if is_debug(setting) and not (fixed and sole_values.get(setting.name, "") is None):
            label, effect = DEBUG[setting.name]
            way_out = ", or set environment.debug: remove." if fixed else "."
            around.bench.report(
                f"{setting.path} sets {setting.name}={setting.value}, a switch for finding faults: {effect}",
                setting.shown,
                f"Remove line {setting.line} of {setting.path}{way_out}",
                label=label,
            )
    for setting in around.settings:
        large = is_number(setting.value) and int(setting.value) > HCCL_BUFFER_USUAL
        if setting.name == HCCL_BUFFER and large and not setting.ours:
            around.bench.report(
                f"{setting.path} sets {HCCL_BUFFER}={setting.value}: each communicator takes twice as many MB "
                f"of device memory, usually 2 x {HCCL_BUFFER_USUAL}",
                setting.shown,
                "Where memory runs out as groups are made, lower it: ascend.buffer in remedy.yaml.",
                label="hccl-memory",
            )
    quoted = (line for line in _lines(around, SESSION, Dialect.PAM) if "$" in line.value)
    for path, lines, reason in (
        (NCCL, untrimmed(_lines(around, NCCL, Dialect.NCCL)), "NCCL neither trims nor unquotes"),
        (SESSION, quoted, "pam_env puts no variables in"),
    ):
        for line in lines:
            around.bench.report(
                f"{path} line {line.line} does not do what it seems to: {reason}",
                f"{line.name}={line.value}",
                "Write NAME=VALUE, without blanks, quotes and $.",
                label="env-not-propagated",
            )


def _lines(around: Surroundings, path: str, dialect: Dialect) -> tuple[Assignment, ...]:
    file = around.bench.host.file(path)
    return () if isinstance(file, Unknown) else assignments(file.content, dialect)


def is_debug(setting: Setting) -> bool:
    """Return whether a line switches something on that is for finding faults."""
    quiet = (*_OFF, *_QUIET.get(setting.name, ()))
    return setting.name in DEBUG and setting.value.upper() not in quiet


def label_of(name: str) -> str:
    """Return the cause that a wrong value of a variable is."""
    if name in IFNAMES or name == transports.HCCL_IFNAME:
        return "wrong-interface"
    if of_launcher(name):
        return "rank-mismatch"
    if name == HCCL_BUFFER:
        return "hccl-memory"
    if name.startswith("NCCL_IB_"):
        return "ib-roce-mixed"
    if name in (_openmpi.FIRST_PORT, _openmpi.PORT_COUNT):
        return "firewall-ports"
    return "mpi-nic-mismatch" if name.startswith((MCA_PREFIX, "UCX_")) else "env-not-propagated"


def report_differences(bench: FleetBench[Any]) -> None:
    """Report variables that sessions over ssh have on some hosts and not, or otherwise, on others."""
    environments = {
        name: state.environment
        for name, state in bench.fleet.states.items()
        if not isinstance(state.environment, Unknown)
    }
    names = {name for environment in environments.values() for name in environment}
    compared = {name for name in names if _COMPARED.match(name) and not _OWN.search(name)}
    for variable in sorted(compared - (DEBUG.keys() - _QUIET.keys())):
        values: dict[str | None, list[str]] = defaultdict(list)
        for host, environment in environments.items():
            values[environment.get(variable)].append(host)
        if len(values) > 1:
            bench.report(
                f"{variable} is not the same on all hosts",
                (
                    f"{'not set' if value is None else value}: {', '.join(hosts[:8])}"
                    f"{f' and {len(hosts) - 8} more' if len(hosts) > 8 else ''}"
                    for value, hosts in values.items()
                ),
                "Set it for all in environment.variables of remedy.yaml.",
                label="env-not-propagated",
            )
