"""The host's own /dev/shm: large enough for training, now and after a reboot.

Cures: "failed to extend /dev/shm/nccl-... to N bytes", "No space left on device", a bus error in a data loader,
on hosts whose /dev/shm was made small (templates of virtual machines and LXC ship 64 MB), also in
containers that use it (``--ipc=host``).

It is mounted again with the larger size, which running programs do not notice, and the size is put into
/etc/fstab. Without a spec it acts only where there are GPUs and /dev/shm has less than they need at the
very least. A size is a limit, no reservation: memory is taken only as files are written.
"""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from remedy.apply.carry import carry_out
from remedy.deploys._leftovers import shared_with, unread
from remedy.deploys._sizes import Size, derived, gpu_number, least, parse_size, short
from remedy.edit.fstab import mount_option, set_mount_option
from remedy.plan import (
    Assessment,
    Change,
    CommandAction,
    FileAction,
    Finder,
    FindingKind,
    Fleet,
    Remedy,
    command,
    sha256,
)
from remedy.plan.files import blocker
from remedy.probe import File, HostState, Kernel
from remedy.spec import SpecSection
from remedy.text import amount
from remedy.values import Unknown

NAME = "dev_shm"
LABEL = "shm-too-small"
_finding = Finder(NAME, LABEL)
POINT = "/dev/shm"  # noqa: S108 - the mount point, no file in it
FSTAB = "/etc/fstab"
OBSERVE = f"set -- $(stat -f -c '%S %b' {POINT}); echo $(($1 * $2))"
PAGE = 65536
"""Bytes by which a tmpfs may differ from what it was mounted with: the largest page of Linux."""


class DevShmSpec(SpecSection):
    """``size``: of /dev/shm on every host, such as 64g; without it, it only grows where GPUs need it."""

    size: Size | None = None


def wanted(host: HostState, spec: DevShmSpec) -> tuple[int, str]:
    """Return how large /dev/shm shall be, in whole pages, and why."""
    size, why = (spec.size, "dev_shm.size of the spec") if spec.size else derived(host)
    return -(-size // PAGE) * PAGE, why


def assess(_fleet: Fleet, host: HostState, spec: DevShmSpec) -> Assessment:
    """Decide whether /dev/shm of one host has to be larger."""
    if spec.size is None and not gpu_number(host):
        return Assessment()
    memory, fstab = host.shared_memory, host.file(FSTAB)
    if isinstance(memory, Unknown):
        if not unread(memory):
            return Assessment()
        return Assessment(
            (
                _finding(
                    host, FindingKind.UNKNOWN, "the size of /dev/shm is not known", (memory.reason,)
                ),
            )
        )
    size, why = wanted(host, spec)
    live = _wrong(memory.size, size, host, spec)
    content = fstab.content if isinstance(fstab, File) else b""
    persistent = mount_option(content, POINT, "size")
    stored = _stored(host, persistent[1]) if persistent else None
    kept = stored is not None and not _wrong(stored, size, host, spec)
    boot = (stored is not None and not kept) or (live and not kept)
    if not (live or boot):
        return Assessment()
    evidence = [f"size of {POINT}: {amount(memory.size)}; wanted: {amount(size)}, {why}"]
    if persistent and boot and stored is not None:
        evidence.append(f"{FSTAB}:{persistent[0]}: size={persistent[1]}")
    title = f"{POINT} {'is too small' if spec.size is None else 'has another size than asked for'}"
    if not live:
        title += f" after a reboot, by {FSTAB}"
    if reason := shared_with(host):
        fix = "Start the container with --ipc=host, or with --shm-size=" + short(size) + "."
        return Assessment(
            (_finding(host, FindingKind.BLOCKED, f"{title}, and {reason}", tuple(evidence), fix),)
        )
    if isinstance(fstab, Unknown):
        blind = _finding(host, FindingKind.UNKNOWN, f"{FSTAB} could not be read", (fstab.reason,))
        return Assessment((blind,))
    findings = [_finding(host, FindingKind.DRIFT, title, tuple(evidence))]
    changes: list[Change] = []
    blobs: dict[str, bytes] = {}
    if live:
        changes.append(_remount(host, memory.size, size, title))
    if boot:
        if blocked := blocker(fstab, NAME):
            findings.append(blocked.on(host.host, LABEL))
        else:
            line = f"tmpfs {POINT} tmpfs rw,nosuid,nodev,size={short(size)} 0 0"
            after = set_mount_option(content, POINT, "size", short(size), line)
            changes.append(_persist(host, fstab, after, size, title))
            blobs = {sha256(data): data for data in (content, after)}
    return Assessment(tuple(findings), tuple(changes), blobs)


def _wrong(present: int, size: int, host: HostState, spec: DevShmSpec) -> bool:
    """Return whether a size is not what is asked for, or not enough; 0 is no limit at all."""
    if not present:
        return False
    if spec.size is not None:
        return abs(present - size) > PAGE
    return present < least(host) and present < size


def _stored(host: HostState, text: str) -> int | None:
    """Return the size that an option of tmpfs(5) stands for; None where it is none."""
    if text.endswith("%") and text[:-1].isdigit() and isinstance(host.kernel, Kernel):
        return host.kernel.memory * int(text[:-1]) // 100
    return parse_size(text)


def _remount(host: HostState, before: int, after: int, reason: str) -> Change:
    return Change(
        id="",
        host=host.host,
        remedy=NAME,
        title=f"give /dev/shm {amount(after)} instead of {amount(before)}",
        reason=reason,
        label=LABEL,
        action=CommandAction(
            observe=OBSERVE,
            before=str(before),
            after=str(after),
            do=command(["mount", "-o", f"remount,size={after}", POINT]),
            undo=command(["mount", "-o", f"remount,size={before}", POINT]),
        ),
    )


def _persist(host: HostState, fstab: File, after: bytes, size: int, reason: str) -> Change:
    return Change(
        id="",
        host=host.host,
        remedy=NAME,
        title=f"write size={short(size)} for {POINT} into {FSTAB}",
        reason=reason,
        label=LABEL,
        action=FileAction(
            path=FSTAB,
            real_path=fstab.real_path,
            before=sha256(fstab.content) if fstab.exists else None,
            after=sha256(after),
        ),
    )


def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after ``change``: the size is the new one."""
    memory = state.shared_memory
    if isinstance(memory, Unknown) or not isinstance(change.action, CommandAction):
        return state
    size = int(change.action.after)
    return state.model_copy(update={"shared_memory": memory.model_copy(update={"size": size})})


REMEDY = Remedy(
    name=NAME,
    title="Size of /dev/shm",
    text=__doc__,
    cures=(LABEL,),
    spec=DevShmSpec,
    assess=assess,
    order=60,
    promise=promise,
)


@deploy("Size of /dev/shm")
def dev_shm() -> None:
    """Give the current host's /dev/shm its size; for use under plain pyinfra."""
    carry_out(REMEDY.name)
