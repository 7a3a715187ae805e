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

from remedy.deploys import _interfaces as nic
from remedy.deploys._files import file_digest
from remedy.deploys._systemd import FALSE, Line, deciding, runs_systemd
from remedy.plan import Change, CommandAction, Workbench, command, remedy, sha256
from remedy.probe import File, HostState
from remedy.spec import SpecSection
from remedy.values import Unknown

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
_READING = "sends logind SIGHUP, and restarts it only where it does not show that within 2 s; sessions stay"
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


def removes(
    host: HostState, *, without: str = "", at_boot: bool = False
) -> tuple[bool, Line | None]:
    """Return whether a user's last logout removes the user's IPC, and the line that says so."""
    line = deciding(host, "logind.conf", "RemoveIPC", without=without, at_boot=at_boot)
    if line is not None:
        return line.value.lower() not in FALSE, line
    known = None if isinstance(host.identity, Unknown) else host.identity.os_id
    return known not in DEFAULT_NO, None


@remedy("Shared memory after logout", LogindSpec, cures=("stale-shm",), order=62, reads=(PATH,))
def logind(bench: Workbench[LogindSpec]) -> None:
    """Decide whether logind has to be told to leave shared memory alone."""
    host, remove_ipc = bench.host, bench.settings.remove_ipc
    trains = nic.has_gpu(host) or bool(nic.active_ports(host))
    if remove_ipc is True or (remove_ipc is None and not trains) or not runs_systemd(host):
        return
    file = bench.file(PATH)
    now, line = removes(host)
    on, line = (now, line) if now else removes(host, at_boot=True)
    if not on:
        return
    place = line.shown if line is not None else "systemd's default, no file says otherwise"
    if file.exists and file.content == TEXT:
        bench.blocked(
            f"{place} sets RemoveIPC=yes after {PATH}",
            fix="Remove that line: of two drop-in files the later name wins.",
        )
        return
    title = "the last logout of a user deletes the shared memory of the user's jobs (RemoveIPC)"
    finding = bench.drift(title if now else f"after the next boot, {title}", place)
    if bench.can_write(PATH, because=finding):
        # One step: to take it back, too, the file must go first and logind read it second.
        bench.run(
            f"write {PATH}: RemoveIPC=no, and have logind read it",
            because=finding,
            observe=f"if [ -e {PATH} ]; then sha256sum <{PATH} | cut -d' ' -f1; else echo absent; fi",
            before=file_digest(file),
            after=sha256(TEXT),
            do=f"{_READ_AGAIN}{_put(TEXT)} && again 'b false'",
            undo=f"{_READ_AGAIN}{_back(file)} && again 'b true'",
            does=f"writes {PATH} ({TEXT.splitlines()[-1].decode()}), {_READING}",
            undoes=f"{'writes the former' if file.exists else 'removes'} {PATH}, {_READING}",
            restarts="systemd-logind, which reads its files again",
        )


def _put(content: bytes) -> str:
    """Return sh text that gives the file a content, at once; put and drop are of remedy/apply/host."""
    text = shlex.quote(base64.b64encode(content).decode())
    return (
        f'printf %s {text} | base64 -d >"$DIR/logind.conf" && '
        f'put {PATH} {PATH} 644 "$DIR/logind.conf" {sha256(content)}'
    )


def _back(file: File) -> str:
    return _put(file.content) if file.exists else f"drop {PATH} {PATH}"


@logind.promises
def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after the change: the file, as its digest tells it."""
    assert isinstance(change.action, CommandAction)
    exists = change.action.after != "absent"
    file = File(path=PATH, real_path=PATH, exists=exists, content=TEXT if exists else b"")
    if exists and change.action.after != sha256(TEXT):
        file = file.model_copy(update={"content": b"another content\n"})
    return state.model_copy(update={"files": {**state.files, PATH: file}})


@logind.observes
def observation(state: HostState, _change: Change) -> str:
    """Return the digest of the file."""
    file = state.file(PATH)
    assert isinstance(file, File)
    return file_digest(file)
