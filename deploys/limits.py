"""Resource limits of jobs: locked memory for RDMA, open files for many connections; for ssh and services.

Cures: "ibv_reg_mr failed", "ibv_create_qp failed: Cannot allocate memory" where memlock is small; "Too many
open files" where nofile is. A limit has two ways to a job: PAM gives a session over ssh its own (limits.d;
``*`` does not cover root), systemd gives services theirs (slurmd's jobs inherit slurmd's). Both are drop-in
files.

Without a spec it acts only where there are GPUs or RDMA: memlock counts where an RDMA port is, nofile where
even the hard limit is below 65,536, which NCCL cannot raise by itself. Any other host is left as it is. New
logins have the new limits at once, services after the next boot: systemd is not made to reload, because that
can take the GPUs from running containers. Containers have limits of their own: docker run --ulimit memlock=-1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, Field

from remedy.deploys import _interfaces as nic
from remedy.deploys._systemd import deciding, runs_systemd
from remedy.edit.limits import UNLIMITED, Entry, at_least, decides, parse_limits_file
from remedy.plan import (
    Assessment,
    Change,
    FileAction,
    Finder,
    Finding,
    FindingKind,
    Fleet,
    sha256,
)
from remedy.plan.files import blocker
from remedy.plan.legacy import old_remedy
from remedy.probe import File, HostState, Limit
from remedy.spec import SpecSection
from remedy.templating import render
from remedy.values import Unknown

NAME = "limits"
_finding = Finder(NAME)
PAM_MAIN = "/etc/security/limits.conf"
PAM_DIR = "/etc/security/limits.d"
PAM = f"{PAM_DIR}/99-remedy.conf"
SYSTEMD = "/etc/systemd/system.conf.d/99-remedy.conf"
LABELS = {"memlock": "memlock-limit", "nofile": "nofile-limit"}
NOFILE = 131072
"""NCCL's own advice (troubleshooting/runtime_and_mpi_issues.rst)."""
NOFILE_TOO_LOW = 65536
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)i?b?\Z", re.IGNORECASE)


def _size(value: object) -> object:
    if isinstance(value, str):
        if value.lower() in ("unlimited", "infinity"):
            return UNLIMITED
        match = _SIZE.match(value)
        if match is None:
            raise ValueError(f"{value!r} is neither a size such as 64g nor unlimited")
        value = int(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " ")
    if isinstance(value, int) and value != UNLIMITED and value < 1024:
        raise ValueError("less than a KiB can be locked by nobody; give bytes, a size or unlimited")
    return value


class LimitsSpec(SpecSection):
    """``memlock``: a size (bytes, 64g) or unlimited. ``nofile``: how many files a process may open."""

    memlock: Annotated[int, BeforeValidator(_size)] | None = None
    nofile: int | None = Field(default=None, ge=1024, le=2**30)


@dataclass(frozen=True)
class _Host:
    """One host: what its files give to sessions, with and without remedy's own file."""

    state: HostState
    entries: tuple[Entry, ...]

    @property
    def foreign(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.path != PAM)

    def session(self, item: str) -> Limit | None:
        """Return the limit of the probe's own session."""
        limits = self.state.limits
        return None if isinstance(limits, Unknown) else limits.get(item)


def assess(_fleet: Fleet, host: HostState, spec: LimitsSpec) -> Assessment:
    """Decide what the two drop-in files shall hold."""
    look = _Host(host, _entries(host))
    wanted = dict(_wanted(look, spec))
    findings: list[Finding] = [*_too_high(host, wanted)]
    if findings:
        return Assessment(tuple(findings))
    changes: list[Change] = []
    blobs: dict[str, bytes] = {}
    for path, content, lacking in (
        (PAM, *_pam(look, wanted)),
        (SYSTEMD, *_systemd(host, wanted)),
    ):
        file = host.file(path)
        if isinstance(file, Unknown):
            if wanted:
                title = f"{path} could not be read"
                findings.append(
                    _finding(
                        host, FindingKind.UNKNOWN, title, (file.reason,), label=LABELS["memlock"]
                    )
                )
            continue
        if content == file.content:
            continue
        label = LABELS[next(iter(wanted), "memlock")]
        title = (
            f"{path} does not give {', '.join(wanted)}"
            if content
            else f"{path} holds what nothing asks for any more"
        )
        findings.append(_finding(host, FindingKind.DRIFT, title, lacking, label=label))
        if blocked := blocker(file, NAME):
            findings.append(blocked.on(host.host, label))
            continue
        changes.append(_change(file, content, findings[-1], wanted))
        blobs |= {sha256(data): data for data in (file.content, content)}
    findings += _beaten(look, wanted)
    findings += _session(look, wanted) if not changes else ()
    return Assessment(tuple(findings), tuple(changes), blobs)


def _entries(host: HostState) -> tuple[Entry, ...]:
    """Return the entries of all files in the order of pam_limits(8)."""
    files = [host.file(PAM_MAIN), *host.files_in(PAM_DIR)]
    return tuple(
        entry
        for file in files
        if isinstance(file, File) and file.exists
        for entry in parse_limits_file(file.path, file.content)
    )


def _wanted(look: _Host, spec: LimitsSpec) -> Iterator[tuple[str, int]]:
    """Yield what shall be: asked for, or needed by the hardware and too low, or once so decided."""
    host = look.state
    rdma = bool(nic.active_ports(host))
    kept = {entry.item for entry in look.entries if entry.path == PAM}
    if spec.memlock is not None:
        yield "memlock", spec.memlock
    elif rdma and ("memlock" in kept or _too_low(look, "memlock", UNLIMITED)):
        yield "memlock", UNLIMITED
    if spec.nofile is not None:
        yield "nofile", spec.nofile
    elif (rdma or nic.has_gpu(host)) and (
        "nofile" in kept or _too_low(look, "nofile", NOFILE_TOO_LOW)
    ):
        yield "nofile", NOFILE


def _too_low(look: _Host, item: str, enough: int) -> bool:
    """Return whether the session of the probe has a hard limit that is too low; unknown is not."""
    limit = look.session(item)
    return limit is not None and not at_least(limit.hard, enough)


def _pam(look: _Host, wanted: Mapping[str, int]) -> tuple[bytes, tuple[str, ...]]:
    """Return the content for sessions, and what there is now instead; b"" where others' files do it."""
    lacking = []
    for item, value in wanted.items():
        for domain in ("*", "root"):
            for kind in ("soft", "hard"):
                entry = decides(look.foreign, domain, item, kind)
                if entry is None or not at_least(entry.value, value):
                    said = f"{entry.path}:{entry.line}" if entry else "no file"
                    have = _shown(item, entry.value) if entry else "what login starts with"
                    lacking.append(f"{domain} {kind} {item}: {have} ({said})")
    if not lacking:
        return b"", ()
    items = [(item, _pam_value(item, value)) for item, value in wanted.items()]
    return render("limits_pam.j2", items=items).encode(), tuple(lacking)


def _systemd(host: HostState, wanted: Mapping[str, int]) -> tuple[bytes, tuple[str, ...]]:
    """Return the content for services; b"" where systemd does not run or others' files do it."""
    if not runs_systemd(host):
        return b"", ()
    items, lacking = [], []
    for item, value in wanted.items():
        key = f"DefaultLimit{item.upper()}"
        text = "infinity" if value == UNLIMITED else str(value)
        line = deciding(host, "system.conf", key, without=SYSTEMD)
        if line is None or line.value != text:
            items.append((key, text))
            lacking.append(
                f"{key}: {f'{line.value} ({line.shown})' if line else 'as systemd is built'}"
            )
    return (render("limits_systemd.j2", items=items).encode() if items else b""), tuple(lacking)


def _pam_value(item: str, value: int) -> str:
    if value == UNLIMITED:
        # No process has more files than fs.nr_open, so "unlimited" is not a value for nofile.
        return "unlimited"
    return str(-(-value // 1024) if item == "memlock" else value)


def _shown(item: str, value: int) -> str:
    if value == UNLIMITED:
        return "unlimited"
    return f"{value >> 10} KiB" if item == "memlock" else str(value)


def _too_high(host: HostState, wanted: Mapping[str, int]) -> Iterator[Finding]:
    """Yield a nofile above fs.nr_open: no session could have it, and some PAMs let nobody in then."""
    if isinstance(host.sysctls, Unknown) or "nofile" not in wanted:
        return
    most = host.sysctls.live.get("fs.nr_open", "")
    if most.isdigit() and int(most) < wanted["nofile"]:
        yield _finding(
            host,
            FindingKind.BLOCKED,
            f"nofile {wanted['nofile']} is more than fs.nr_open allows",
            (f"fs.nr_open = {most}",),
            "Raise fs.nr_open first (sysctl.d), or ask for less in limits.nofile.",
            label=LABELS["nofile"],
        )


def _change(file: File, content: bytes, why: Finding, wanted: Mapping[str, int]) -> Change:
    assert why.host is not None
    when = (
        "new logins have it; what runs keeps its limits"
        if file.path == PAM
        else "services have it after the next boot; systemd is not reloaded"
    )
    what = ", ".join(f"{item} {_shown(item, value)}" for item, value in wanted.items())
    return Change(
        id="",
        host=why.host,
        remedy=NAME,
        title=f"write {file.path}: {what}" if content else f"remove {file.path}",
        reason=why.title,
        label=why.label,
        disrupts=when,
        # A limit that PAM cannot set may keep a session from starting: a new login must prove it.
        guarded=file.path == PAM,
        action=FileAction(
            path=file.path,
            real_path=file.real_path,
            before=sha256(file.content) if file.exists else None,
            after=sha256(content) if content else None,
        ),
    )


def _beaten(look: _Host, wanted: Mapping[str, int]) -> Iterator[Finding]:
    """Yield lines that give less and count before remedy's: later files, and lines for a user or group."""
    for entry in look.foreign:
        value = wanted.get(entry.item)
        if value is None or at_least(entry.value, value):
            continue
        later = entry.path > PAM and entry.path.startswith(PAM_DIR)
        if (entry.domain in ("*", "root") and not later) or entry.domain.startswith("%"):
            continue
        yield _finding(
            look.state,
            FindingKind.BLOCKED,
            f"{entry.path} gives {entry.domain} only {_shown(entry.item, entry.value)} of {entry.item}",
            (f"{entry.path}:{entry.line}",),
            f"Correct or remove line {entry.line}: it counts before {PAM}.",
            label=LABELS[entry.item],
        )


def _session(look: _Host, wanted: Mapping[str, int]) -> Iterator[Finding]:
    """Yield limits that the files give and a session does not have: advice, since no file can cure it."""
    for item, value in wanted.items():
        limit = look.session(item)
        if limit is not None and not at_least(limit.hard, value):
            yield _finding(
                look.state,
                FindingKind.REPORT,
                f"a new session over ssh has {item} {_shown(item, limit.hard)}, though the files give more",
                fix="In a container the kernel refuses to raise it: start the container with the limit. Else: "
                "does sshd use PAM (UsePAM yes), and /etc/pam.d/sshd pam_limits?",
                label=LABELS[item],
            )
    units = {} if isinstance(look.state.units, Unknown) else look.state.units
    for unit in units.values():
        if "memlock" in wanted and unit.memlock not in (None, UNLIMITED):
            yield _finding(
                look.state,
                FindingKind.REPORT,
                f"{unit.name} runs with memlock {_shown('memlock', unit.memlock or 0)}, which its jobs inherit",
                fix="It has the new limit after the next boot, unless its own unit says LimitMEMLOCK.",
                label=LABELS["memlock"],
            )


old_remedy(
    name=NAME,
    title="Resource limits",
    text=__doc__,
    cures=tuple(LABELS.values()),
    spec=LimitsSpec,
    assess=assess,
    order=61,
    reads=(PAM, SYSTEMD),
)
