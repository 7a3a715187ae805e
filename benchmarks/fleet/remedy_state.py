"""The rest of the state of state.json as a remedy of its own: sysctls, files and a service.

Host name and hosts block are remedies that come with the program. This one is loaded as any third party's is,
by an entry point (see harness/contenders.py), so that what is timed is the program as it is.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from remedy.plan import (
    Assessment,
    Change,
    CommandAction,
    FileAction,
    Finding,
    FindingKind,
    Fleet,
    Remedy,
    command,
    sha256,
)
from remedy.probe import File, HostState
from remedy.spec import SpecSection
from remedy.values import Unknown

NAME = "training_state"
WANTED: dict[str, Any] = json.loads(
    Path(__file__).with_name("state.json").read_text(encoding="utf-8")
)
SYSCTLS: dict[str, str] = WANTED["sysctls"]
SERVICE: str = WANTED["service"]
FILES: dict[str, bytes] = {
    WANTED["sysctl_file"]: "".join(f"{key} = {value}\n" for key, value in SYSCTLS.items()).encode(),
    **{path: text.encode() for path, text in WANTED["files"].items()},
}


class StateSpec(SpecSection):
    """Nothing to set: the state is in state.json."""


def assess(_fleet: Fleet, host: HostState, _spec: StateSpec) -> Assessment:
    """Decide what has to change on one host."""
    findings: list[Finding] = []
    changes: list[Change] = []
    blobs: dict[str, bytes] = {}
    for path, wanted in FILES.items():
        file = host.file(path)
        if isinstance(file, Unknown):
            findings.append(_unknown(host, file))
        elif file.content != wanted:
            changes.append(_change(host, f"write {path}", _write(file, wanted)))
            blobs |= {sha256(content): content for content in (file.content, wanted)}
    for step in (*_sysctls(host), *_service(host)):
        if isinstance(step, Unknown):
            findings.append(_unknown(host, step))
        else:
            changes.append(_change(host, step.do, step))
    return Assessment(tuple(findings), tuple(changes), blobs)


def _write(file: File, wanted: bytes) -> FileAction:
    before = sha256(file.content) if file.exists else None
    return FileAction(path=file.path, real_path=file.real_path, before=before, after=sha256(wanted))


def _sysctls(host: HostState) -> Iterator[CommandAction | Unknown]:
    if isinstance(host.sysctls, Unknown):
        yield host.sysctls
        return
    for key, wanted in SYSCTLS.items():
        now = host.sysctls.live.get(key, "")
        if now != wanted:
            yield CommandAction(
                observe=command(["sysctl", "-n", key]),
                before=now,
                after=wanted,
                do=command(["sysctl", "-q", "-w", f"{key}={wanted}"]),
                undo=command(["sysctl", "-q", "-w", f"{key}={now}"]),
            )


def _service(host: HostState) -> Iterator[CommandAction | Unknown]:
    if isinstance(host.units, Unknown):
        yield host.units
        return
    unit = host.units.get(SERVICE)
    if unit is None or (unit.enabled, unit.active) == ("enabled", "active"):
        return
    name = shlex.quote(SERVICE)
    yield CommandAction(
        observe=f"systemctl show --value -p ActiveState -p UnitFileState {name}",
        before=f"{unit.active}\n{unit.enabled}",
        after="active\nenabled",
        do=f"systemctl --quiet enable --now {name}",
        undo=f"systemctl --quiet disable --now {name}",
    )


def _change(host: HostState, title: str, action: FileAction | CommandAction) -> Change:
    return Change(
        id="",
        host=host.host,
        remedy=NAME,
        title=title,
        reason="the benchmark asks for it",
        label=NAME,
        action=action,
    )


def _unknown(host: HostState, fact: Unknown) -> Finding:
    return Finding(
        host=host.host, remedy=NAME, kind=FindingKind.UNKNOWN, label=NAME, title=fact.reason
    )


REMEDY = Remedy(
    name=NAME,
    title="Training state",
    text=__doc__,
    cures=(),
    spec=StateSpec,
    assess=assess,
    order=60,
    reads=tuple(sorted(FILES)),
)
