"""Files that dead jobs left in /dev/shm.

Cures: a /dev/shm filled by the remains of killed jobs, so that NCCL ("failed to extend
/dev/shm/nccl-...") or a data loader finds no room; a file of another user under the name that Open MPI
or PSM3 wants to make its own.

A file goes only when its name is one that NCCL, PyTorch, Open MPI, PSM3 or UCX gives (or matches
``also``), no process maps it or has it open (told by device and inode, so that a bind mount or a
container that shares it is seen), it has not changed for ``min_age_minutes``, and it belongs to no
service's account. The removing command looks at all of this again right before it removes. What is removed
cannot be brought back: such files can be gigabytes, so no copy is kept.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from remedy.deploys._leftovers import is_service, moment, now, shared_with, unknown, unread
from remedy.plan import (
    Assessment,
    Change,
    CommandAction,
    Finding,
    FindingKind,
    Fleet,
    Risk,
    command,
)
from remedy.plan.legacy import old_remedy
from remedy.probe import HostState, SharedMemory, ShmFile
from remedy.spec import SpecSection
from remedy.text import amount, counted
from remedy.values import Unknown

NAME = "shm_leftovers"
LABEL = "stale-shm"
NONE = "none"
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
            f"{text!r} is no pattern for names in /dev/shm: it has to begin with three plain characters, "
            "and to have no slash"
        )
    return text


class ShmLeftoversSpec(SpecSection):
    """Which leftovers go.

    ``remove``: whether they are removed; without it, they are only reported. ``min_age_minutes``: for how long
    nothing may have changed them. ``also``: further names, as shell patterns, such as ``psm_*``.
    """

    remove: bool = True
    min_age_minutes: int = Field(default=10, ge=0, le=525_600)
    also: tuple[Annotated[str, AfterValidator(_pattern)], ...] = ()


def maker(name: str, also: Sequence[str] = ()) -> str:
    """Return who makes files of this name, "" for nobody known."""
    if not _PLAIN.fullmatch(name):
        return ""
    for who, names in MAKERS:
        if names.fullmatch(name):
            return who
    matched = (pattern for pattern in also if fnmatch.fnmatchcase(name, pattern))
    return next((f"shm_leftovers.also {pattern}" for pattern in matched), "")


def candidates(
    memory: SharedMemory, time: int, spec: ShmLeftoversSpec
) -> Iterator[tuple[ShmFile, str]]:
    """Yield the files that are jobs' and old enough, held or not, and who makes such files."""
    for file in memory.files:
        name = file.path.removeprefix(FOLDER)
        old = time - max(file.modified_at, file.changed_at) >= spec.min_age_minutes * 60
        if old and not is_service(file.uid) and (who := maker(name, spec.also)):
            yield file, who


def assess(_fleet: Fleet, host: HostState, spec: ShmLeftoversSpec) -> Assessment:
    """Decide which files of one host's /dev/shm are to be removed."""
    memory, time = host.shared_memory, now(host)
    if isinstance(memory, Unknown) or time is None:
        if isinstance(memory, Unknown) and unread(memory):
            title = "the files of /dev/shm could not be looked at"
            return Assessment((unknown(host, NAME, title, memory.reason),))
        return Assessment()
    found = list(candidates(memory, time, spec))
    if not found:
        return Assessment()
    if isinstance(memory.holders, Unknown):
        title = (
            f"whether anybody uses {counted(len(found), 'file')} of jobs in /dev/shm is not known"
        )
        return Assessment((unknown(host, NAME, title, memory.holders.reason),))
    left = [(file, who) for file, who in found if file.inode not in memory.holders]
    if not left:
        return Assessment()
    shared = shared_with(host)
    removed = spec.remove and not shared
    finding = Finding(
        host=host.host,
        remedy=NAME,
        kind=FindingKind.DRIFT if removed else FindingKind.REPORT,
        label=LABEL,
        title=f"{counted(len(left), 'file')} left in /dev/shm by dead jobs, "
        f"{amount(sum(file.allocated for file, _ in left))}",
        evidence=tuple(_evidence(file, who) for file, who in left),
        fix=""
        if removed
        else f"{shared}."
        if shared
        else f"If nobody needs them: shm_leftovers.remove: true in remedy.yaml, or rm {left[0][0].path}",
    )
    files = [file for file, _ in left]
    return Assessment((finding,), (_change(host, files, finding.title),) if removed else ())


def _evidence(file: ShmFile, who: str) -> str:
    touched = moment(max(file.modified_at, file.changed_at))
    return (
        f"{file.path}: {amount(file.allocated)}, {who}, uid {file.uid}, inode {file.inode}, no process maps "
        f"it or has it open, unchanged since {touched}"
    )


def _change(host: HostState, files: Sequence[ShmFile], reason: str) -> Change:
    tests = [_test(file) for file in files]
    before = " ".join(["inodes", *(str(file.inode) for file in files)])
    some = " || ".join(tests)
    removals = [
        f"if {test}; then {command(['rm', '-f', '--', file.path])}; fi"
        for file, test in zip(files, tests, strict=True)
    ]
    return Change(
        id="",
        host=host.host,
        remedy=NAME,
        title=f"remove {counted(len(files), 'file')} of /dev/shm that nobody holds",
        reason=reason,
        label=LABEL,
        risk=Risk.MEDIUM,
        disrupts="what is in them is lost: no copy is kept, because they can be gigabytes",
        reversible=False,
        action=CommandAction(
            # Prints the inodes as long as any of them is still a leftover: one that is held by now is none.
            observe=f"{_LIBRARY}if {some}; then {command(['echo', before])}; else echo {NONE}; fi",
            before=before,
            after=NONE,
            do=_LIBRARY + "\n".join(removals),
            undo="",
        ),
    )


def _test(file: ShmFile) -> str:
    row = (file.device, file.inode, file.size, file.modified_at, file.changed_at)
    return command(["free", file.path, str(file.inode), " ".join(map(str, row))])


def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after ``change``: the files are gone, and their room is free."""
    memory = state.shared_memory
    if isinstance(memory, Unknown) or not isinstance(change.action, CommandAction):
        return state
    gone = set(change.action.before.split()[1:])
    kept = tuple(file for file in memory.files if str(file.inode) not in gone)
    freed = sum(file.allocated for file in memory.files if file not in kept)
    update = {"files": kept, "used": max(0, memory.used - freed)}
    return state.model_copy(update={"shared_memory": memory.model_copy(update=update)})


old_remedy(
    name=NAME,
    title="Leftovers in /dev/shm",
    text=__doc__,
    cures=(LABEL,),
    spec=ShmLeftoversSpec,
    assess=assess,
    order=74,
    promise=promise,
)
