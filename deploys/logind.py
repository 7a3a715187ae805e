"""systemd-logind and shared memory: a user's last logout must not delete what the user's jobs still use.

Cures: RemoveIPC=yes, systemd's own default, with which logind removes all System V IPC and all files in
/dev/shm of an ordinary user when the last session of that user ends ("unlink shared memory /dev/shm/nccl-...
failed, No such file"). Jobs of that user that cron, a batch system or a service started lose theirs while they
run. root and system users are exempt.

Without a spec it acts only on hosts with GPUs or RDMA. The setting is a drop-in file; logind reads it at once,
by a signal, and no session notices.
"""

from __future__ import annotations

import base64
import shlex

from pyinfra.api.deploy import deploy

from remedy.apply.carry import carry_out
from remedy.deploys import _interfaces as nic
from remedy.deploys._systemd import FALSE, Line, deciding, runs_systemd
from remedy.plan import (
    Assessment,
    Change,
    CommandAction,
    Finder,
    FindingKind,
    Fleet,
    Remedy,
    command,
    sha256,
)
from remedy.plan.files import blocker
from remedy.probe import File, HostState
from remedy.spec import SpecSection
from remedy.values import Unknown

NAME = "logind"
LABEL = "stale-shm"
_finding = Finder(NAME, LABEL)
PATH = "/etc/systemd/logind.conf.d/99-remedy.conf"
TEXT = b"# Written by remedy: logging out removes no shared memory.\n[Login]\nRemoveIPC=no\n"
DEFAULT_NO = frozenset(("rhel", "centos", "rocky", "almalinux", "ol"))
"""Distributions that build systemd with RemoveIPC=no as the default (PostgreSQL wiki, Systemd)."""
_PROPERTY = command(
    [
        "busctl",
        "get-property",
        "org.freedesktop.login1",
        "/org/freedesktop/login1",
        "org.freedesktop.login1.Manager",
        "RemoveIPC",
    ]
)
# SIGHUP makes logind read its files again (seen with systemd 252); should one not, a restart keeps sessions.
_READ_AGAIN = f"""\
now() {{ {_PROPERTY} 2>/dev/null; }}
wait_for() {{ n=0; while [ "$(now)" != "$1" ]; do n=$((n + 1)); [ $n -lt 20 ] || return 1; sleep 0.1; done; }}
again() {{
    systemctl kill --signal=HUP systemd-logind.service
    wait_for "$1" || {{ systemctl restart systemd-logind.service; wait_for "$1"; }}
}}
"""


class LogindSpec(SpecSection):
    """``remove_ipc``: false keeps the shared memory of users who logged out; true leaves RemoveIPC as it is."""

    remove_ipc: bool | None = None


def removes(host: HostState, *, without: str = "") -> tuple[bool, Line | None]:
    """Return whether a user's last logout removes the user's IPC, and the line that says so."""
    line = deciding(host, "logind.conf", "RemoveIPC", without=without)
    if line is not None:
        return line.value.lower() not in FALSE, line
    known = None if isinstance(host.identity, Unknown) else host.identity.os_id
    return known not in DEFAULT_NO, None


def assess(_fleet: Fleet, host: HostState, spec: LogindSpec) -> Assessment:
    """Decide whether logind has to be told to leave shared memory alone."""
    ours = host.file(PATH)
    needed = spec.remove_ipc is False or (
        spec.remove_ipc is None and (nic.has_gpu(host) or bool(nic.active_ports(host)))
    )
    if not runs_systemd(host):
        return Assessment()
    if not needed:
        return Assessment()
    if isinstance(ours, Unknown):
        finding = _finding(host, FindingKind.UNKNOWN, f"{PATH} could not be read", (ours.reason,))
        return Assessment((finding,))
    on, line = removes(host)
    if not on:
        return Assessment()
    said = line.shown if line is not None else "systemd's default, no file says otherwise"
    if ours.exists and ours.content == TEXT:
        finding = _finding(
            host,
            FindingKind.BLOCKED,
            f"{said} sets RemoveIPC=yes after {PATH}",
            fix="Remove that line: of two drop-in files the later name wins.",
        )
        return Assessment((finding,))
    title = "the last logout of a user deletes the shared memory of the user's jobs (RemoveIPC)"
    found = _finding(host, FindingKind.DRIFT, title, (said,))
    if blocked := blocker(ours, NAME):
        return Assessment((found, blocked.on(host.host, LABEL)))
    return Assessment((found,), (_change(host, ours, title),))


def _change(host: HostState, ours: File, reason: str) -> Change:
    """Return the one step that writes the file and has logind read it.

    It is one, because to take it back the file must go first and logind look second, as on the way there.
    """
    was = base64.b64encode(ours.content).decode()
    write = "; ".join(
        (
            "umask 022",
            command(["mkdir", "-p", PATH.rpartition("/")[0]]),
            f"printf %s {base64.b64encode(TEXT).decode()} | base64 -d >{PATH}.new",
            f"mv -f {PATH}.new {PATH}",
        )
    )
    restore = (
        f"umask 022; printf %s {shlex.quote(was)} | base64 -d >{PATH}.new; mv -f {PATH}.new {PATH}"
        if ours.exists
        else f"rm -f {PATH}"
    )
    return Change(
        id="",
        host=host.host,
        remedy=NAME,
        title=f"write {PATH}: RemoveIPC=no, and have logind read it",
        reason=reason,
        label=LABEL,
        action=CommandAction(
            observe=f"if [ -e {PATH} ]; then sha256sum <{PATH} | cut -d' ' -f1; else echo absent; fi",
            before=sha256(ours.content) if ours.exists else "absent",
            after=sha256(TEXT),
            do=f"{_READ_AGAIN}{write}; again 'b false'",
            undo=f"{_READ_AGAIN}{restore}; again 'b true'",
        ),
    )


def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after the change: the file, as its digest tells it."""
    assert isinstance(change.action, CommandAction)
    exists = change.action.after != "absent"
    file = File(path=PATH, real_path=PATH, exists=exists, content=TEXT if exists else b"")
    if exists and change.action.after != sha256(TEXT):
        file = file.model_copy(update={"content": b"another content\n"})
    return state.model_copy(update={"files": {**state.files, PATH: file}})


REMEDY = Remedy(
    name=NAME,
    title="Shared memory after logout",
    text=__doc__,
    cures=(LABEL,),
    spec=LogindSpec,
    assess=assess,
    order=62,
    reads=(PATH,),
    promise=promise,
)


@deploy("Shared memory after logout")
def logind() -> None:
    """Have logind of the current host leave shared memory alone; for use under plain pyinfra."""
    carry_out(REMEDY.name)
