"""Scratch space: every user can write to /tmp, /dev/shm and /dev/null, and there is room.

Finds: a /tmp or /dev/shm that is open to root alone, mounted read-only, missing, or full, of bytes or of files;
a /tmp that is too small, or mounted noexec; a root file system without room; /dev/null, zero, random or urandom
that is no device, or open to root alone.
Launchers put their sessions, Python and Triton what they compile, NCCL and data loaders what ranks share, and
shells what nobody reads into these, so that a job ends before it begins, with a text about something else.

How it is measured: kind and mode of each directory and device, the mounts, and what stat says of the file
systems. What fills /dev/shm `shm_leftovers` looks after, how large it is `dev_shm`; nothing is changed here.

Sources: hier(7), tmpfs(5), shm_overview(7); stat(2), statfs(2).
"""

from __future__ import annotations

from collections.abc import Mapping

from remedy.plan import Workbench, remedy
from remedy.probe import File, HostState, Mount, Space
from remedy.probe.sources import DEVICES
from remedy.probe.space import mount_of
from remedy.spec import SpecSection
from remedy.text import amount, counted
from remedy.values import Unknown

TMP, SHM = "/tmp", "/dev/shm"  # noqa: S108 - directories, no files in them
SHARED = (TMP, SHM)
ROOMS = (*SHARED, "/")
FOR_ALL = 0o003
"""What lets others make files in a directory."""
NUMBERS = dict(zip(DEVICES, ("1 3", "1 5", "1 8", "1 9"), strict=True))
"""Major and minor number of each device (Linux, Documentation/admin-guide/devices.txt)."""
FOR_USE = 0o006
"""What lets others read and write a device."""
LEAST = 16 << 20
"""Bytes without which a launcher does not start."""
FILES = 200
"""Files that a launcher, what it starts, and a test by `remedy verify` make before they end."""


class ScratchSpec(SpecSection):
    """``least_free``: bytes that have to be free in /tmp, /dev/shm and the root file system."""

    least_free: int = LEAST


@remedy("Scratch space", ScratchSpec, finds=("disk-full", "storage-fault"), order=90)
def scratch(bench: Workbench[ScratchSpec]) -> None:
    """Look for directories that jobs cannot write to."""
    host = bench.host
    mounts = () if isinstance(host.mounts, Unknown) else host.mounts
    by_point = {mount.point: mount for mount in mounts}
    for path in SHARED:
        _note_directory(bench, path, by_point)
    for path in DEVICES:
        _note_device(bench, path)
    with bench.part():
        _note_room(bench, bench.known(host.space))


def _note_directory(bench: Workbench[ScratchSpec], path: str, mounts: Mapping[str, Mount]) -> None:
    """Name a directory in which not everybody can make files."""
    directory = bench.host.file(path)
    if isinstance(directory, Unknown):
        return
    mount = mount_of(path, mounts)
    if not directory.exists:
        title, shown = f"there is no {path}, where jobs put files", f"stat: {path} is not there"
        fix = f"Make it: mkdir -m 1777 {path}"
    elif directory.mode & FOR_ALL != FOR_ALL:
        title = f"{path} is not open to all users: those who are not root cannot make files there"
        shown = f"stat: {path} has mode {directory.mode:04o}"
        fix = f"Open it: chmod 1777 {path}"
    elif mount is not None and mount.read_only:
        title = f"{path} is mounted read-only, so that jobs cannot make files there"
        shown = f"{mount.point}: {mount.kind} {mount.options}"
        fix = f"See why (dmesg), and mount it again: mount -o remount,rw {mount.point}"
    elif path == TMP and mount is not None and "noexec" in mount.options.split(","):
        bench.report(
            f"{path} is mounted noexec: libraries that programs compile there cannot be loaded",
            f"{mount.point}: {mount.kind} {mount.options}",
            "Give what compiles another folder (TMPDIR, TORCHINDUCTOR_CACHE_DIR), or mount it again: "
            f"mount -o remount,exec {mount.point}",
            label="storage-fault",
        )
        return
    else:
        return
    bench.blocked(title, shown, fix, label="storage-fault")


def _note_device(bench: Workbench[ScratchSpec], path: str) -> None:
    """Name a device that is another file, missing, or not for everybody."""
    device = bench.host.file(path)
    if isinstance(device, Unknown):
        return
    make = f"mknod -m 666 {path} c {NUMBERS[path]}"
    if not device.exists:
        title, shown, fix = f"there is no {path}", f"stat: {path} is not there", f"Make it: {make}"
    elif device.kind:
        title = f"{path} is {device.kind}, and not the device that programs expect"
        shown, fix = f"stat: {path} is {device.kind}", f"Make it again: rm {path} && {make}"
    elif device.mode & FOR_USE != FOR_USE:
        title = f"{path} is not open to all users: programs of those who are not root fail"
        shown, fix = f"stat: {path} has mode {device.mode:04o}", f"Open it: chmod 666 {path}"
    else:
        return
    bench.blocked(title, shown, fix, label="storage-fault")


def _note_room(bench: Workbench[ScratchSpec], spaces: Mapping[str, Space]) -> None:
    """Name file systems that are full, each once."""
    noted = set()
    for path in ROOMS:
        space = spaces.get(path)
        if space is None or not space.size:
            continue
        # How large /dev/shm is to be is the concern of dev_shm.
        least = bench.settings.least_free
        small = path != SHM and space.size < least
        what = _lacking(space, least if small else min(least, space.size))
        same = (space.size, space.used, space.inodes_free)
        if what and same not in noted:
            noted.add(same)
            bench.blocked(
                f"{path} is {'too small' if small else 'full'}: {what}",
                f"stat -f: {amount(space.used)} of {amount(space.size)} used, room for "
                f"{space.inodes_free} of {counted(space.inodes, 'file')}",
                f"Make it larger: findmnt -T {path} shows how it is mounted."
                if small
                else f"See what takes it: du -xah {path} | sort -h | tail; df -i {path}",
                label="disk-full",
            )


def _lacking(space: Space, least: int) -> str:
    """Return what a file system has no more of; "" where it has enough."""
    if space.available < least:
        return f"{amount(space.available)} are free"
    if space.inodes and space.inodes_free < FILES:
        return f"it can hold {counted(space.inodes_free, 'more file') if space.inodes_free else 'no file more'}"
    return ""


@scratch.breaks
def nobody_can_write(state: HostState) -> HostState:
    """Have a /dev/shm that is open to root alone, and little room in /tmp."""
    if isinstance(state.space, Unknown):
        return state
    path, full = SHM, TMP
    directory = File(path=path, real_path=path, exists=True, mode=0o755)
    room = Space(
        path=full,
        kind="ext2/ext3",
        size=1 << 30,
        used=1 << 30,
        available=LEAST // 2,
        inodes=9,
        inodes_free=1,
    )
    more = {"files": {**state.files, path: directory}, "space": {**state.space, full: room}}
    return state.model_copy(update=more)
