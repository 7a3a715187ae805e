"""Resource limits of jobs: locked memory for RDMA, open files for many connections; for ssh and services.

Cures: "ibv_reg_mr failed", "ibv_create_qp failed: Cannot allocate memory" where memlock is small; "Too many
open files" where nofile is. A limit has two ways to a job: PAM gives a session over ssh its own (limits.d;
``*`` does not cover root), systemd gives services theirs (slurmd's jobs inherit slurmd's). Both are drop-in
files.

Finds: limits that end jobs on any host: CPU time, the size of files, memory that can be mapped, few processes,
open files or logins, each with file and line.

Without a spec it acts only where there are GPUs or RDMA: memlock counts where an RDMA port is, nofile where
even the hard limit is below 65,536, which NCCL cannot raise by itself. Any other host is left as it is. New
logins have the new limits at once, services after the next boot: systemd is not made to reload, because that
can take the GPUs from running containers. Containers have limits of their own: docker run --ulimit memlock=-1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from remedy.deploys import _interfaces as nic
from remedy.deploys._session_limits import LABEL, note_of_shells, note_small
from remedy.deploys._systemd import deciding, runs_systemd
from remedy.edit.limits import UNLIMITED, LimitLine, at_least, decides, parse_limits_file
from remedy.plan import Workbench, remedy
from remedy.probe import File, HostState
from remedy.spec import SpecSection
from remedy.templating import render
from remedy.text import is_number
from remedy.values import Unknown

PAM_MAIN = "/etc/security/limits.conf"
PAM_DIR = "/etc/security/limits.d"
PAM = f"{PAM_DIR}/99-remedy.conf"
SYSTEMD = "/etc/systemd/system.conf.d/99-remedy.conf"
LABELS = {"memlock": "memlock-limit", "nofile": "nofile-limit"}
MOST_FILES = "fs.nr_open"
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
            raise ValueError
        value = int(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " ")
    if isinstance(value, int) and value != UNLIMITED and value < 1024:
        raise ValueError
    return value


Memlock: TypeAlias = Annotated[
    int,
    BeforeValidator(_size),
    WithJsonSchema(
        {
            "description": "bytes from 1024, a size such as 64g, or unlimited",
            "anyOf": [
                {"type": "integer", "minimum": 1024},
                {"const": UNLIMITED},
                {
                    "type": "string",
                    "pattern": r"^(\d+\s*[kmgtKMGT]?[iI]?[bB]?|[uU]nlimited|[iI]nfinity)$",
                },
            ],
        },
        mode="validation",
    ),
]


class LimitsSpec(SpecSection):
    """``memlock``: a size (bytes, 64g) or unlimited. ``nofile``: how many files a process may open."""

    memlock: Memlock | None = None
    nofile: int | None = Field(default=None, ge=1024, le=2**30)


Bench: TypeAlias = Workbench[LimitsSpec]


@remedy(
    "Resource limits",
    LimitsSpec,
    cures=tuple(LABELS.values()),
    finds=(LABEL,),
    order=61,
    reads=(PAM, SYSTEMD),
)
def limits(bench: Bench) -> None:
    """Decide what the two drop-in files have to hold."""
    entries = _entries(bench.host)
    note_small(bench, entries)
    note_of_shells(bench)
    target = dict(_target(bench, current={entry.item for entry in entries if entry.path == PAM}))
    if _is_too_high(bench, target):
        return
    foreign = tuple(entry for entry in entries if entry.path != PAM)
    # A limit that PAM cannot set may keep a session from starting: a new login must prove it.
    text, lacking = _pam(foreign, target)
    effect = "new logins have it; what runs keeps its limits"
    _keep(bench, PAM, text, lacking, target, effect, guarded=True)
    text, lacking = _systemd(bench.host, target)
    effect = "services have it after the next boot; systemd is not reloaded"
    _keep(bench, SYSTEMD, text, lacking, target, effect)
    _note_overruled(bench, foreign, target)
    if not bench.changes:
        _note_session(bench, target)


def _keep(
    bench: Bench,
    path: str,
    content: bytes,
    lacking: Sequence[str],
    target: Mapping[str, int],
    effect: str,
    *,
    guarded: bool = False,
) -> None:
    """Give a drop-in file its content, or remove it where that is empty; ``effect`` says when it counts."""
    file = bench.host.file(path)
    label = LABELS[next(iter(target), "memlock")]
    if isinstance(file, Unknown):
        if target:
            bench.unknown(f"could not read {path}", file.reason, label=label)
    elif content and content != file.content:
        finding = bench.drift(f"{path} does not give {', '.join(target)}", lacking, label=label)
        text = ", ".join(f"{item} {_shown(item, value)}" for item, value in target.items())
        title = f"write {path}: {text}"
        bench.write(path, content, title, because=finding, guarded=guarded, disrupts=effect)
    elif content != file.content:
        finding = bench.drift(f"{path} holds what nothing asks for any more", label=label)
        bench.remove(path, f"remove {path}", because=finding, guarded=guarded, disrupts=effect)


def _entries(host: HostState) -> tuple[LimitLine, ...]:
    """Return the entries of all files in the order of pam_limits(8)."""
    files = [host.file(PAM_MAIN), *host.files_in(PAM_DIR)]
    return tuple(
        entry
        for file in files
        if isinstance(file, File) and file.exists
        for entry in parse_limits_file(file.path, file.content)
    )


def _target(bench: Bench, current: Set[str]) -> Iterator[tuple[str, int]]:
    """Yield the limits to have: asked for, or needed by the hardware and too low, or once so decided.

    Args:
        bench: the host.
        current: what remedy's own file gives already.
    """
    host, settings = bench.host, bench.settings
    rdma = bool(nic.active_ports(host))
    if settings.memlock is not None:
        yield "memlock", settings.memlock
    elif rdma and ("memlock" in current or _too_low(host, "memlock", UNLIMITED)):
        yield "memlock", UNLIMITED
    if settings.nofile is not None:
        yield "nofile", settings.nofile
    elif (rdma or nic.has_gpu(host)) and (
        "nofile" in current or _too_low(host, "nofile", NOFILE_TOO_LOW)
    ):
        yield "nofile", NOFILE


def _hard(host: HostState, item: str) -> int | None:
    """Return the hard limit of the probe's own session; None where it is not known."""
    limit = None if isinstance(host.limits, Unknown) else host.limits.get(item)
    return None if limit is None else limit.hard


def _too_low(host: HostState, item: str, enough: int) -> bool:
    """Return whether the session of the probe has a hard limit that is too low; unknown is not."""
    limit = _hard(host, item)
    return limit is not None and not at_least(limit, enough)


def _pam(foreign: Sequence[LimitLine], target: Mapping[str, int]) -> tuple[bytes, Sequence[str]]:
    """Return the content for sessions, and what there is now instead; b"" where others' files do it."""
    lacking = []
    for item, value in target.items():
        for domain in ("*", "root"):
            for kind in ("soft", "hard"):
                entry = decides(foreign, domain, item, kind)
                if entry is None or not at_least(entry.value, value):
                    place = f"{entry.path}:{entry.line}" if entry else "no file"
                    current = _shown(item, entry.value) if entry else "what login starts with"
                    lacking.append(f"{domain} {kind} {item}: {current} ({place})")
    if not lacking:
        return b"", ()
    items = [(item, _pam_value(item, value)) for item, value in target.items()]
    return render("limits_pam.j2", items=items).encode(), lacking


def _systemd(host: HostState, target: Mapping[str, int]) -> tuple[bytes, Sequence[str]]:
    """Return the content for services; b"" where systemd does not run or others' files do it."""
    if not runs_systemd(host):
        return b"", ()
    items, lacking = [], []
    for item, value in target.items():
        key = f"DefaultLimit{item.upper()}"
        text = "infinity" if value == UNLIMITED else str(value)
        line = deciding(host, "system.conf", key, without=SYSTEMD, at_boot=True)
        if line is None or line.value != text:
            items.append((key, text))
            lacking.append(
                f"{key}: {f'{line.value} ({line.shown})' if line else 'as systemd is built'}"
            )
    return (render("limits_systemd.j2", items=items).encode() if items else b""), lacking


def _pam_value(item: str, value: int) -> str:
    if value == UNLIMITED:
        # No process has more files than fs.nr_open, so "unlimited" is not a value for nofile.
        return "unlimited"
    return str(-(-value // 1024) if item == "memlock" else value)


def _shown(item: str, value: int) -> str:
    if value == UNLIMITED:
        return "unlimited"
    return f"{value >> 10} KiB" if item == "memlock" else str(value)


def _is_too_high(bench: Bench, target: Mapping[str, int]) -> bool:
    """Return whether nofile is above fs.nr_open, now or at the next boot, or that is not known.

    No session could have it, and some PAMs let nobody in then.
    """
    nofile = target.get("nofile", 0)
    if not nofile:
        return False
    sysctls = bench.host.sysctls
    if isinstance(sysctls, Unknown) or not is_number(sysctls.live.get(MOST_FILES, "")):
        reason = sysctls.reason if isinstance(sysctls, Unknown) else "it was not read"
        bench.unknown(
            f"whether {MOST_FILES} allows nofile {nofile} is not known, so no limit is written",
            reason,
            f"See that the probe can read it: sysctl {MOST_FILES}",
            label=LABELS["nofile"],
        )
        return True
    line = sysctls.winner(MOST_FILES)
    place = f"{line.path}:{line.line}: {MOST_FILES} = {line.value}" if line else ""
    for when, most, evidence in (
        ("", sysctls.live[MOST_FILES], f"{MOST_FILES} = {sysctls.live[MOST_FILES]}"),
        ("after the next boot, ", line.value if line else "", place),
    ):
        if is_number(most) and int(most) < nofile:
            bench.blocked(
                f"{when}nofile {nofile} is more than {MOST_FILES} allows",
                evidence,
                f"Raise {MOST_FILES} first (sysctl.d), or ask for less in limits.nofile.",
                label=LABELS["nofile"],
            )
            return True
    return False


def _note_overruled(bench: Bench, foreign: Sequence[LimitLine], target: Mapping[str, int]) -> None:
    """Name lines that give less and count before remedy's: later files, and lines for a user or group."""
    for entry in foreign:
        value = target.get(entry.item)
        if value is None or at_least(entry.value, value):
            continue
        later = entry.path > PAM and entry.path.startswith(PAM_DIR)
        if (entry.domain in ("*", "root") and not later) or entry.domain.startswith("%"):
            continue
        current = f"{_shown(entry.item, entry.value)} of {entry.item}"
        bench.blocked(
            f"{entry.path} gives {entry.domain} only {current}",
            f"{entry.path}:{entry.line}",
            f"Correct or remove line {entry.line}: it counts before {PAM}.",
            label=LABELS[entry.item],
        )


def _note_session(bench: Bench, target: Mapping[str, int]) -> None:
    """Report limits that the files give and a session does not have: advice, since no file can cure it."""
    for item, value in target.items():
        limit = _hard(bench.host, item)
        if limit is not None and not at_least(limit, value):
            bench.report(
                f"a new session over ssh has {item} {_shown(item, limit)}, though the files give more",
                fix="In a container the kernel refuses to raise it: start the container with the limit. Else "
                "see that sshd uses PAM (UsePAM yes), and /etc/pam.d/sshd pam_limits.",
                label=LABELS[item],
            )
    units = {} if isinstance(bench.host.units, Unknown) else bench.host.units
    for unit in units.values():
        if "memlock" in target and unit.memlock not in (None, UNLIMITED):
            limit = unit.memlock or 0
            bench.report(
                f"{unit.name} runs with memlock {_shown('memlock', limit)}, which its jobs inherit",
                fix="It has the new limit after the next boot, unless its own unit says LimitMEMLOCK.",
                label=LABELS["memlock"],
            )
