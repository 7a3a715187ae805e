"""What is found in a host's environment that remedy names and does not change. Not a remedy itself."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from remedy.deploys import _interfaces as nic
from remedy.deploys._settings import (
    MCA_PREFIX,
    NCCL,
    SESSION,
    Setting,
    Target,
    settings,
    switched_off,
)
from remedy.edit.assignments import Assignment, Dialect, assignments, untrimmed
from remedy.plan import Finding, FindingKind, Fleet
from remedy.probe import HostState
from remedy.values import Unknown

IFNAMES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
_OFF = ("", "0")
DEBUG: Mapping[str, tuple[str, str]] = {
    # name -> the cause that it hides, and what it does (NCCL docs/userguide/source/env.rst)
    "NCCL_P2P_DISABLE": ("p2p-acs-iommu", "no direct traffic between GPUs"),
    "NCCL_SHM_DISABLE": ("shm-too-small", "no shared memory between GPUs of a host"),
    "NCCL_IB_DISABLE": ("ib-misconfig", "sockets instead of RDMA"),
    "NCCL_NET_GDR_LEVEL": ("gdr-peermem", "a fixed limit for GPUDirect"),
    "NCCL_ALGO": ("env-not-propagated", "a fixed algorithm instead of the tuned choice"),
    "NCCL_PROTO": ("env-not-propagated", "a fixed protocol instead of the tuned choice"),
    "CUDA_LAUNCH_BLOCKING": ("env-not-propagated", "every kernel is waited for"),
}
"""Switches for finding faults: left behind they cost speed, or hide what is wrong."""
_OWN = re.compile(r"IFNAME|_IF_IP|TORCHELASTIC|_RANK")
_COMPARED = re.compile(
    r"((TORCH_)?NCCL|TORCH|GLOO|UCX|OMPI_MCA|HCCL)_\w+\Z|LD_LIBRARY_PATH\Z|PYTHONPATH\Z"
)


@dataclass(frozen=True)
class Wish:
    """The value a variable shall have, why, and whether the spec asks for it (else it is a repair)."""

    value: str
    why: str
    asked: bool = True


class Look:
    """One host, looked at once: where what is set, and what is wrong with it."""

    def __init__(
        self, fleet: Fleet, host: HostState, remedy: str, targets: tuple[Target, ...]
    ) -> None:
        self.fleet, self.host, self.remedy, self.targets = fleet, host, remedy, targets
        self.settings = settings(host, targets)
        self.interface = nic.cluster_interface(fleet, host)
        self.findings: list[Finding] = []
        self.reasons: dict[str, Finding] = {}

    def find(
        self,
        kind: FindingKind,
        label: str,
        title: str,
        evidence: tuple[str, ...] = (),
        fix: str = "",
    ) -> None:
        """Note a finding."""
        self.findings.append(
            Finding(
                host=self.host.host,
                remedy=self.remedy,
                kind=kind,
                label=label,
                title=title,
                evidence=evidence,
                fix=fix,
            )
        )

    def wrong(self, name: str, value: str) -> str | None:
        """Return why a setting of an interface cannot work here; None when it can, or nobody can tell."""
        if (
            name not in IFNAMES
            or isinstance(self.host.network, Unknown)
            or isinstance(self.interface, Unknown)
        ):
            return None
        strict = nic.named_by_user(self.fleet, self.host)
        exact = name != "NCCL_SOCKET_IFNAME"
        return nic.wrong_interfaces(
            value, self.host.network, self.interface, exact=exact, strict=strict
        )


def beaten(look: Look, wishes: Mapping[str, Wish]) -> None:
    """Name the lines that remedy does not change and that count before those it does."""
    for one in look.settings:
        if one.target is not None:
            continue
        why = look.wrong(one.name, one.value)
        wish = wishes.get(one.name)
        if wish is not None and wish.asked and one.value != wish.value:
            why = why or f"{wish.why} wants {wish.value}"
        if why:
            look.find(
                FindingKind.BLOCKED,
                label_of(one.name),
                f"{one.path} sets {one.name}={one.value}: {why}",
                (one.shown,),
                f"Correct or remove line {one.line} of {one.path}: it counts before what remedy writes."
                + (
                    " Or set environment.user_files: true."
                    if one.path.endswith("/.nccl.conf")
                    else ""
                ),
            )


def session(look: Look, wishes: Mapping[str, Wish]) -> None:
    """Name what a session over ssh has and no file that was read explains, and what it has not."""
    if isinstance(look.host.environment, Unknown):
        return
    known = {(one.name, one.value) for one in look.settings}
    known |= set(switched_off(look.host, look.targets))
    for name in sorted({*wishes, *IFNAMES} & look.host.environment.keys()):
        value = look.host.environment[name]
        wish = wishes.get(name)
        if (name, value) in known or (wish is not None and value == wish.value):
            continue
        why = look.wrong(name, value)
        if wish is not None and wish.asked:
            why = why or f"{wish.why} wants {wish.value}"
        if why:
            look.find(
                FindingKind.BLOCKED,
                label_of(name),
                f"sessions over ssh have {name}={value}: {why}",
                ("no file that the probe reads sets it",),
                "Look at the user's shell start-up files, PAM's own files and the site's modules.",
            )


def advice(look: Look, gone: Mapping[str, str | None]) -> None:
    """Report debug switches, and lines that do not mean what they seem to."""
    for one in look.settings:
        if is_debug(one) and not (one.target is not None and gone.get(one.name, "") is None):
            label, does = DEBUG[one.name]
            look.find(
                FindingKind.REPORT,
                label,
                f"{one.path} sets {one.name}={one.value}, a switch for finding faults: {does}",
                (one.shown,),
                f"Remove line {one.line} of {one.path}"
                + (", or set environment.debug: remove." if one.target is not None else "."),
            )
    for path, strange, why in (
        (NCCL, untrimmed(_lines(look, NCCL, Dialect.NCCL)), "NCCL neither trims nor unquotes"),
        (
            SESSION,
            (one for one in _lines(look, SESSION, Dialect.PAM) if "$" in one.value),
            "pam_env puts no variables in",
        ),
    ):
        for line in strange:
            look.find(
                FindingKind.REPORT,
                "env-not-propagated",
                f"{path} line {line.line} does not do what it seems to: {why}",
                (f"{line.name}={line.value}",),
                "Write NAME=VALUE, without blanks, quotes and $.",
            )


def _lines(look: Look, path: str, dialect: Dialect) -> tuple[Assignment, ...]:
    file = look.host.file(path)
    return () if isinstance(file, Unknown) else assignments(file.content, dialect)


def is_debug(one: Setting) -> bool:
    return one.name in DEBUG and one.value not in _OFF


def label_of(name: str) -> str:
    if name in IFNAMES:
        return "wrong-interface"
    if name.startswith("NCCL_IB_"):
        return "ib-roce-mixed"
    return "mpi-nic-mismatch" if name.startswith((MCA_PREFIX, "UCX_")) else "env-not-propagated"


def differences(fleet: Fleet, remedy: str) -> Iterator[Finding]:
    """Yield variables that sessions over ssh have on some hosts and not, or otherwise, on others."""
    read = {
        name: state.environment
        for name, state in fleet.states.items()
        if not isinstance(state.environment, Unknown)
    }
    names = {
        v for env in read.values() for v in env if _COMPARED.match(v) and not _OWN.search(v)
    } - DEBUG.keys()
    for variable in sorted(names - DEBUG.keys()):
        values: dict[str | None, list[str]] = defaultdict(list)
        for host, env in read.items():
            values[env.get(variable)].append(host)
        if len(values) > 1:
            yield Finding(
                host=None,
                remedy=remedy,
                kind=FindingKind.REPORT,
                label="env-not-propagated",
                title=f"{variable} is not the same on all hosts",
                evidence=tuple(
                    f"{'not set' if value is None else value}: {', '.join(hosts[:8])}"
                    f"{f' and {len(hosts) - 8} more' if len(hosts) > 8 else ''}"
                    for value, hosts in values.items()
                ),
                fix="Set it for all in environment.variables of remedy.yaml.",
            )
