"""Files that dead jobs left in /dev/shm.

Cures: a /dev/shm filled by the remains of killed jobs, so that NCCL ("failed to extend
/dev/shm/nccl-...") or a data loader finds no room; a file of another user under the name that Open MPI
or PSM3 wants to make its own.

A file goes only when its name is one that NCCL, PyTorch, Open MPI, PSM3 or UCX gives (or matches
``also``), no process maps it or has it open (by device and inode, so that a bind mount or a
container that shares it is seen), it has not changed for ``min_age_minutes``, and it belongs to no
service's account. The removing command checks all of this again right before it removes. What is removed
cannot be brought back: such files can be gigabytes, so no copy is kept.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from remedy.deploys._leftovers import (
    Doomed,
    ending,
    is_service,
    moment,
    now,
    numbers,
    shared_with,
    shown,
)
from remedy.plan import Change, Risk, Workbench, command, remedy
from remedy.probe import HostState, SharedMemory, ShmFile
from remedy.spec import SpecSection
from remedy.text import amount, counted, listed

FOLDER = "/dev/shm/"  # noqa: S108 - what is in it is looked at, nothing is made there

MAKERS = (
    ("NCCL", re.compile(r"nccl-[A-Za-z0-9]{6}")),  # mkstemp, src/os/linux.cc
    ("PyTorch", re.compile(r"torch_\d+_\d+(_\d+)?")),  # NewProcessWideShmHandle()
    ("Open MPI", re.compile(r"(vader|sm)_segment\.[\w.+-]+|open_mpi\.[\w.+-]+")),
    ("PSM3", re.compile(r"psm3_shm\.[\w.+-]+|(sem\.)?psm3_nic_affinity[\w.+-]*")),
    ("UCX", re.compile(r"ucx_shm_posix_[0-9a-f]+")),  # src/uct/sm/mm/posix/mm_posix.c
)
"""Who gives which names to files that no other program is to use."""
_PLAIN = re.compile(r"[A-Za-z0-9._+@=~-]+", re.ASCII)

_LIBRARY = """\
held=
look() { # the inodes in /dev/shm that a process maps or has open; fails where it does not see itself
    device=$(stat -c %d /dev/shm) && own=$(stat -c %i /dev/shm) || return 1
    hex=$(printf '%02x:%02x' $(((device >> 8) & 4095)) $(((device & 255) | ((device >> 12) & ~255))))
    exec 8</dev/shm || return 1
    held=" $({
        grep -hs " $hex " /proc/[0-9]*/maps | awk -v device="$hex" '$4 == device { print $5 }'
        find /proc/[0-9]*/fd -maxdepth 1 -type l -exec stat -L -c '%d %i' {} + 2>/dev/null |
            awk -v device="$device" '$1 == device { print $2 }'
    } | sort -u | tr '\\n' ' ')"
    exec 8<&-
    case $held in *" $own "*) ;; *) return 1 ;; esac
}
free() { # path inode row: the file is there, as it was when the plan was made, and nobody holds it
    [ "$(stat -c '%d %i %s %Y %Z' "$1" 2>/dev/null)" = "$3" ] || return 1
    case $held in *" $2 "*) return 1 ;; esac
}
look || { echo "who holds files of /dev/shm cannot be seen"; exit 1; }
"""


def _pattern(text: str) -> str:
    if "/" in text or not re.match(r"[A-Za-z0-9._-]{3}", text):
        raise ValueError(
            "a pattern for names in /dev/shm begins with three plain characters and has no slash, as psm_*"
        )
    return text


class ShmLeftoversSpec(SpecSection):
    """Which leftovers go.

    ``remove``: whether they are removed; without it, they are only reported. ``min_age_minutes``: for how long
    nothing may have changed them. ``also``: further names, as shell patterns, such as ``psm_*``.
    """

    remove: bool = True
    min_age_minutes: int = Field(default=10, ge=0, le=525_600)
    also: tuple[Annotated[str, AfterValidator(_pattern)], ...] = Field((), examples=[("psm_*",)])


def maker(name: str, also: Sequence[str] = ()) -> str:
    """Return who makes files of this name, "" for nobody known."""
    if not _PLAIN.fullmatch(name):
        return ""
    for program, names in MAKERS:
        if names.fullmatch(name):
            return program
    matches = (pattern for pattern in also if fnmatch.fnmatchcase(name, pattern))
    return next((f"shm_leftovers.also {pattern}" for pattern in matches), "")


def candidates(
    memory: SharedMemory, time: int, settings: ShmLeftoversSpec
) -> Iterator[tuple[ShmFile, str]]:
    """Yield the files of jobs that are old enough, held or not, and who makes such files."""
    for file in memory.files:
        name = file.path.removeprefix(FOLDER)
        old = time - max(file.modified_at, file.changed_at) >= settings.min_age_minutes * 60
        if old and not is_service(file.uid) and (program := maker(name, settings.also)):
            yield file, program


@remedy("Leftovers in /dev/shm", ShmLeftoversSpec, cures=("stale-shm",), order=74)
def shm_leftovers(bench: Workbench[ShmLeftoversSpec]) -> None:
    """Decide which files of one host's /dev/shm are to be removed."""
    host, settings = bench.host, bench.settings
    memory, time = bench.need(host.shared_memory, "the files of /dev/shm"), now(host)
    suspects = list(candidates(memory, time, settings)) if time is not None else []
    if not suspects:
        return
    holders = bench.need(
        memory.holders, f"who uses {counted(len(suspects), 'file')} of jobs in /dev/shm"
    )
    free = [(file, name) for file, name in suspects if file.inode not in holders]
    if not free:
        return
    size = amount(sum(file.allocated for file, _ in free))
    title = f"{counted(len(free), 'file')} left in /dev/shm by dead jobs, {size}"
    evidence = [_evidence(file, name) for file, name in free]
    if reason := shared_with(host):
        bench.report(title, evidence, f"Look from the machine itself: {reason}.")
    elif not settings.remove:
        fix = f"shm_leftovers.remove: true in remedy.yaml, or rm {free[0][0].path}"
        bench.report(title, evidence, f"If nobody needs them: {fix}")
    else:
        bench.run(
            f"remove {counted(len(free), 'file')} of /dev/shm that nobody holds",
            because=bench.drift(title, evidence),
            risk=Risk.MEDIUM,
            disrupts="what is in them is lost: no copy is kept, because they can be gigabytes",
            **ending(
                "inodes",
                [_doomed(file) for file, _ in free],
                _LIBRARY,
                f"removes {listed([file.path for file, _ in free], 3)}, each only if it is the same file, "
                "unchanged, and no process has it open or mapped at that moment",
            ),
        )


def _evidence(file: ShmFile, program: str) -> str:
    touched = moment(max(file.modified_at, file.changed_at))
    return (
        f"{file.path}: {amount(file.allocated)}, {program}, uid {file.uid}, inode {file.inode}, no process "
        f"maps it or has it open, unchanged since {touched}"
    )


def _doomed(file: ShmFile) -> Doomed:
    row = (file.device, file.inode, file.size, file.modified_at, file.changed_at)
    test = command(["free", file.path, str(file.inode), " ".join(map(str, row))])
    return Doomed(file.inode, test, command(["rm", "-f", "--", file.path]))


@shm_leftovers.promises
def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after ``change``: the files are gone, and their room is free."""
    memory = state.shared_memory
    assert isinstance(memory, SharedMemory)
    remaining = tuple(file for file in memory.files if file.inode not in numbers(change))
    freed = sum(file.allocated for file in memory.files if file not in remaining)
    update = {"files": remaining, "used": max(0, memory.used - freed)}
    return state.model_copy(update={"shared_memory": memory.model_copy(update=update)})


@shm_leftovers.observes
def observation(state: HostState, change: Change) -> str:
    """Return the inodes of the files, or that none is there."""
    assert isinstance(state.shared_memory, SharedMemory)
    return shown(change, {file.inode for file in state.shared_memory.files})
