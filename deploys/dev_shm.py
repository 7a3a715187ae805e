"""The host's own /dev/shm: large enough for training, now and after a reboot.

Cures: "failed to extend /dev/shm/nccl-... to N bytes", "No space left on device", a bus error in a data loader,
on hosts whose /dev/shm was made small (templates of virtual machines and LXC ship 64 MB), also in
containers that use it (``--ipc=host``).

It is mounted again with the larger size, which running programs do not notice, and the size is put into
/etc/fstab. Without a spec it acts only where there are GPUs and /dev/shm has less than they need at the
very least. A size is a limit, no reservation: memory is taken only as files are written.
"""

from __future__ import annotations

from remedy.deploys._leftovers import shared_with
from remedy.deploys._sizes import Size, derived, gpu_number, least, parse_size, short
from remedy.deploys._systemd import runs_systemd
from remedy.edit.fstab import mount_option, set_mount_option
from remedy.plan import Change, CommandAction, Workbench, command, remedy
from remedy.probe import File, HostState, Identity, Kernel, SharedMemory
from remedy.spec import SpecSection
from remedy.text import amount, is_number

POINT = "/dev/shm"  # noqa: S108 - the mount point, no file in it
FSTAB = "/etc/fstab"
OBSERVE = f"set -- $(stat -f -c '%S %b' {POINT}); echo $(($1 * $2))"
# What systemd-detect-virt calls what boots a kernel of its own.
_MACHINES = frozenset(
    (
        "none",
        "kvm",
        "qemu",
        "amazon",
        "vmware",
        "microsoft",
        "xen",
        "oracle",
        "parallels",
        "google",
        "apple",
    )
)
PAGE = 65536
"""Bytes by which a tmpfs may differ from what it was mounted with: the largest page of Linux."""


class DevShmSpec(SpecSection):
    """``size``: of /dev/shm on every host, such as 64g; without it, it only grows where GPUs need it."""

    size: Size | None = None


def target_size(host: HostState, settings: DevShmSpec) -> tuple[int, str]:
    """Return how large /dev/shm is to be, in whole pages, and why."""
    size, why = (settings.size, "dev_shm.size of the spec") if settings.size else derived(host)
    return -(-size // PAGE) * PAGE, why


@remedy("Size of /dev/shm", DevShmSpec, cures=("shm-too-small",), order=60)
def dev_shm(bench: Workbench[DevShmSpec]) -> None:
    """Decide whether /dev/shm of one host has to be larger."""
    host, settings = bench.host, bench.settings
    if settings.size is None and not gpu_number(host):
        return
    current = bench.need(host.shared_memory, f"the size of {POINT}").size
    size, why = target_size(host, settings)
    stored, line = _stored(host)
    live_wrong = _is_wrong(current, size, host, settings)
    if stored is None and not live_wrong:
        stored, line = _built_in(host)
    boot_wrong = live_wrong if stored is None else _is_wrong(stored, size, host, settings)
    if not (live_wrong or boot_wrong):
        return
    fault = "is too small" if settings.size is None else "has not the size asked for"
    title = (
        f"{POINT} {fault}" if live_wrong else f"after the next boot, {POINT} {fault}, by {FSTAB}"
    )
    evidence = [f"size of {POINT}: {amount(current)}, needs {amount(size)}, {why}"]
    if boot_wrong and stored is not None:
        evidence.append(line)
    if reason := shared_with(host):
        fix = f"Start the container with --ipc=host, or with --shm-size={short(size)}."
        bench.blocked(f"{title}, and {reason}", evidence, fix)
        return
    content = bench.file(FSTAB).content
    finding = bench.drift(title, evidence)
    if live_wrong:
        bench.run(
            f"give {POINT} {amount(size)} instead of {amount(current)}",
            because=finding,
            observe=OBSERVE,
            before=str(current),
            after=str(size),
            do=_remount(size),
            undo=_remount(current),
        )
    if boot_wrong:
        new_line = f"tmpfs {POINT} tmpfs rw,nosuid,nodev,size={short(size)} 0 0"
        bench.write(
            FSTAB,
            set_mount_option(content, POINT, "size", short(size), new_line),
            f"write size={short(size)} for {POINT} into {FSTAB}",
            because=finding,
        )


def _is_wrong(current: int, size: int, host: HostState, settings: DevShmSpec) -> bool:
    """Return whether a size is not what is asked for, or not enough; 0 is no limit at all."""
    if not current:
        return False
    if settings.size is not None:
        return abs(current - size) > PAGE
    return current < least(host) and current < size


def _stored(host: HostState) -> tuple[int | None, str]:
    """Return the size that /etc/fstab says, and the line; None where it says none (tmpfs(5))."""
    fstab = host.file(FSTAB)
    line = mount_option(fstab.content, POINT, "size") if isinstance(fstab, File) else None
    if line is None:
        return None, ""
    number, text = line
    size = parse_size(text)
    if text.endswith("%") and is_number(text[:-1]) and isinstance(host.kernel, Kernel):
        size = host.kernel.memory * int(text[:-1]) // 100
    return size, f"{FSTAB}:{number}: size={text}"


def _built_in(host: HostState) -> tuple[int | None, str]:
    """Return the size that systemd gives it where no line says any, in words too; None where others mount it.

    systemd mounts it without a size, and the kernel takes half of the memory (systemd src/shared/mount-setup.c,
    tmpfs(5)); a unit dev-shm.mount is refused. In a container it is whoever starts that who decides.
    """
    if not isinstance(host.kernel, Kernel) or not isinstance(host.identity, Identity):
        return None, ""
    if host.identity.virtualization not in _MACHINES or not runs_systemd(host):
        return None, ""
    size = host.kernel.memory // 2
    return size, f"{FSTAB} has no size, so it will be half of the memory: {amount(size)}"


def _remount(size: int) -> str:
    return command(["mount", "-o", f"remount,size={size}", POINT])


@dev_shm.promises
def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after ``change``: the size is the new one."""
    if not isinstance(change.action, CommandAction):
        return state
    assert isinstance(state.shared_memory, SharedMemory)
    memory = state.shared_memory.model_copy(update={"size": int(change.action.after)})
    return state.model_copy(update={"shared_memory": memory})


@dev_shm.observes
def observation(state: HostState, _change: Change) -> str:
    """Return the size of /dev/shm in bytes."""
    assert isinstance(state.shared_memory, SharedMemory)
    return str(state.shared_memory.size)
