"""Stale System V IPC: shared memory that dead processes left behind.

Cures: segments that stay when a job is killed (MindSpore's graph compiler, Open MPI), take memory, fill the
kernel's table of segments, and make the next job fail with "No space left on device" or at another
user's key.

A segment goes only when nobody is attached, its creator and its last user are dead (a pid that a later
process has now counts as dead, told by start times), nothing has touched it for ``min_age_minutes``, and
it belongs to no service's account. The removing command looks at all of this again, for each segment,
right before it removes it. What is removed cannot be brought back. Segments of root are removed only
with ``root: true``. Semaphores and queues have no count of who uses them: they are reported, and removed
only where asked for. What is in containers' own IPC namespaces is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from remedy.deploys._leftovers import (
    booted_at,
    is_service,
    moment,
    now,
    shared_with,
    unknown,
    unread,
)
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
from remedy.probe import HostState, Process, Queue, Segment, Semaphores, SysvIpc
from remedy.spec import SpecSection
from remedy.text import amount, counted
from remedy.values import Unknown

NAME = "sysv_ipc"
LABEL = "stale-shm"
NONE = "none"

SLACK = 2
"""Seconds by which start times, which are computed from clock ticks, may be off."""


class SysvIpcSpec(SpecSection):
    """Which leftovers go.

    ``remove``: whether stale segments are removed; without it, they are only reported.
    ``min_age_minutes``: for how long nothing may have touched them. ``root``: also those of root.
    ``semaphores`` and ``queues``: "remove" those whose owner has no process at all, or only "report" them.
    """

    remove: bool = True
    min_age_minutes: int = Field(default=10, ge=0, le=525_600)
    root: bool = False
    semaphores: Literal["report", "remove"] = "report"
    queues: Literal["report", "remove"] = "report"


@dataclass(frozen=True)
class Kind:
    """One of the three kinds of objects: their name, ipcrm's option, the kernel's table and what is compared.

    ``columns`` are those of the table (proc_sysvipc(5)) that tell that nothing has changed, in awk's words.
    """

    word: str
    noun: str
    option: str
    columns: str

    @property
    def table(self) -> str:
        """The kernel's table of them."""
        return f"/proc/sysvipc/{self.word}"


SEGMENTS = Kind("shm", "System V segment", "-m", "$1, $4, $5, $6, $7, $8, $12, $13, $14")
SEMAPHORES = Kind("sem", "System V semaphore set", "-s", "$1, $4, $5, $9, $10")
QUEUES = Kind("msg", "System V message queue", "-q", "$1, $4, $5, $6, $7, $8, $12, $13, $14")

_LIBRARY = f"""\
booted=$(awk '$1 == "btime" {{ print $2 }}' /proc/stat)
same() {{ # table id columns row: the object is there, and as it was when the plan was made
    [ "$(awk "\\$2 == $2 {{ print $3 }}" "$1")" = "$4" ]
}}
dead() {{ # pid, when it was last at work: there is no process of that pid, or only one started later
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
    set -- "$2" ${{stat##*) }}
    [ "$1" -ge "$booted" ] && [ $((booted + ${{21}} / 100)) -gt $(($1 + {SLACK})) ]
}}
absent() {{ # uid: nobody has it
    ! grep -qsE "^Uid:(.*[[:blank:]])$1([[:blank:]]|\\$)" /proc/[0-9]*/status
}}
"""


@dataclass(frozen=True)
class Leftover:
    """An object that nobody uses any more.

    Args:
        kind: what it is.
        id: the kernel's number of it.
        owner: its user id.
        touched: epoch second in which somebody last did anything with it.
        size: bytes; 0 where there is no such number.
        evidence: why it is a leftover, in words.
        check: sh words that succeed as long as it still is.
    """

    kind: Kind
    id: int
    owner: int
    touched: int
    size: int
    evidence: str
    check: tuple[str, ...]


def leftovers(host: HostState, ipc: SysvIpc) -> Iterator[Leftover]:
    """Yield what nobody uses any more, whatever its age and whoever owns it."""
    booted = booted_at(host)
    for segment in ipc.segments:
        if (found := _segment(segment, booted)) is not None:
            yield found
    processes = host.processes
    if isinstance(processes, Unknown):
        return
    owners = _owners(processes)
    for semaphores in ipc.semaphores:
        if not {semaphores.uid, semaphores.creator_uid} & owners:
            yield _semaphores(semaphores)
    for queue in ipc.queues:
        if not {queue.uid, queue.creator_uid} & owners and _idle(queue, booted):
            yield _queue(queue)


def _owners(processes: Sequence[Process]) -> frozenset[int]:
    """Return the users that have processes; root always has."""
    return frozenset((0, *(process.uid for process in processes if process.uid is not None)))


def _gone(started_at: int | None, last_act: int, booted: int | None) -> bool:
    """Return whether a process that acted at ``last_act`` is dead; ``started_at``: who has its pid now.

    An act before the boot means that the clock was wrong then, so that times tell nothing.
    """
    if started_at is None:
        return True
    return booted is not None and last_act >= booted and started_at > last_act + SLACK


def _segment(one: Segment, booted: int | None) -> Leftover | None:
    used = max(one.attached_at, one.detached_at)
    # Process id 0 is one of another PID namespace (ipc/shm.c): whether it lives cannot be told.
    if one.attached or one.marked or not one.creator or (used and not one.last):
        return None
    gone = _gone(one.creator_started_at, one.changed_at, booted) and (
        not one.last or _gone(one.last_started_at, used, booted)
    )
    if not gone:
        return None
    touched = max(used, one.changed_at)
    again = one.creator_started_at is not None or one.last_started_at is not None
    user = f"last user {one.last}" if one.last else "never used"
    row = (
        one.key, one.size, one.creator, one.last, 0, one.uid,
        one.attached_at, one.detached_at, one.changed_at,
    )  # fmt: skip
    return Leftover(
        kind=SEGMENTS,
        id=one.id,
        owner=_owner(one.uid, one.creator_uid),
        touched=touched,
        size=one.size,
        evidence=f"shmid {one.id}: {amount(one.size)}, key {_key(one.key)}, uid {one.uid}, nattch 0, creator "
        f"{one.creator} and {user} dead{' (the pid is another process now)' * again}, "
        f"untouched since {moment(touched)}",
        check=(
            _same(SEGMENTS, one.id, row),
            command(["dead", str(one.creator), str(one.changed_at)]),
            *([command(["dead", str(one.last), str(used)])] if one.last else []),
        ),
    )


def _semaphores(one: Semaphores) -> Leftover:
    touched = max(one.operated_at, one.changed_at)
    row = (one.key, one.size, one.uid, one.operated_at, one.changed_at)
    return Leftover(
        kind=SEMAPHORES,
        id=one.id,
        owner=_owner(one.uid, one.creator_uid),
        touched=touched,
        size=0,
        evidence=f"semid {one.id}: {one.size} semaphores, key {_key(one.key)}, uid {one.uid}, who has no "
        f"process; untouched since {moment(touched)}",
        check=(_same(SEMAPHORES, one.id, row), *_absent(one.uid, one.creator_uid)),
    )


def _idle(one: Queue, booted: int | None) -> bool:
    used = max(one.sent_at, one.received_at)
    return not one.messages and all(
        _gone(started_at, used, booted)
        for started_at in (one.sender_started_at, one.receiver_started_at)
    )


def _queue(one: Queue) -> Leftover:
    used = max(one.sent_at, one.received_at)
    touched = max(used, one.changed_at)
    row = (
        one.key, one.bytes, 0, one.last_sender, one.last_receiver, one.uid,
        one.sent_at, one.received_at, one.changed_at,
    )  # fmt: skip
    return Leftover(
        kind=QUEUES,
        id=one.id,
        owner=_owner(one.uid, one.creator_uid),
        touched=touched,
        size=0,
        evidence=f"msqid {one.id}: empty, key {_key(one.key)}, uid {one.uid}, who has no process; sender "
        f"{one.last_sender} and receiver {one.last_receiver} dead, untouched since {moment(touched)}",
        check=(
            _same(QUEUES, one.id, row),
            *(
                command(["dead", str(pid), str(used)])
                for pid in (one.last_sender, one.last_receiver)
                if pid
            ),
            *_absent(one.uid, one.creator_uid),
        ),
    )


def _same(kind: Kind, number: int, row: Sequence[int]) -> str:
    return command(["same", kind.table, str(number), kind.columns, " ".join(map(str, row))])


def _absent(*uids: int) -> Iterator[str]:
    return (command(["absent", str(uid)]) for uid in dict.fromkeys(uids))


def _key(key: int) -> str:
    """Return a key as ipcs shows it; the kernel's table has it signed."""
    return f"{key & 0xFFFFFFFF:#x}"


def _owner(uid: int, creator: int) -> int:
    """Return the user who decides what may be done with it: a service's account before root before others."""
    return min((uid, creator), key=lambda one: (not is_service(one), one != 0))


def assess(_fleet: Fleet, host: HostState, spec: SysvIpcSpec) -> Assessment:
    """Decide which System V objects of one host are to be removed."""
    if isinstance(host.ipc, Unknown):
        if not unread(host.ipc):
            return Assessment()
        title = "the System V objects could not be looked at"
        return Assessment((unknown(host, NAME, title, host.ipc.reason),))
    time = now(host)
    booted = booted_at(host) or 0
    found = list(leftovers(host, host.ipc))
    old = [
        one
        for one in found
        if time is not None
        and time - max(one.touched, booted) >= spec.min_age_minutes * 60
        and not is_service(one.owner)
    ]
    findings: list[Finding] = []
    changes: list[Change] = []
    asked = {
        SEGMENTS: spec.remove,
        SEMAPHORES: spec.semaphores == "remove",
        QUEUES: spec.queues == "remove",
    }
    shared = shared_with(host)
    for kind, remove in asked.items():
        of_kind = [one for one in old if one.kind is kind]
        going = [one for one in of_kind if remove and not shared and (one.owner or spec.root)]
        staying = [one for one in of_kind if one not in going]
        if going:
            findings.append(_finding(host, FindingKind.DRIFT, going))
            changes.append(_change(host, kind, going, findings[-1].title))
        if staying:
            findings.append(_finding(host, FindingKind.REPORT, staying, shared))
    return Assessment(tuple(findings), tuple(changes))


def _finding(
    host: HostState, kind: FindingKind, found: Sequence[Leftover], shared: str = ""
) -> Finding:
    what = found[0].kind
    size = sum(one.size for one in found)
    whose = " of root" * (what is SEGMENTS and not any(one.owner for one in found))
    fix = ""
    if kind is FindingKind.REPORT:
        told = {
            SEGMENTS: "sysv_ipc.root: true" if whose else "sysv_ipc.remove: true",
            SEMAPHORES: "sysv_ipc.semaphores: remove",
            QUEUES: "sysv_ipc.queues: remove",
        }[what]
        first = command(["ipcrm", what.option, str(found[0].id)])
        fix = f"{shared}." if shared else f"If nobody needs them: {told} in remedy.yaml, or {first}"
    return Finding(
        host=host.host,
        remedy=NAME,
        kind=kind,
        label=LABEL,
        title=f"{counted(len(found), what.noun)}{whose} left by dead processes"
        + (f", {amount(size)}" if size else ""),
        evidence=tuple(one.evidence for one in found),
        fix=fix,
    )


def _change(host: HostState, kind: Kind, going: Sequence[Leftover], reason: str) -> Change:
    tests = [" && ".join(one.check) for one in going]
    before = " ".join([kind.word, *(str(one.id) for one in going)])
    some = " || ".join(f"{{ {test}; }}" for test in tests)
    removals = [
        f"if {test}; then {command(['ipcrm', kind.option, str(one.id)])}; fi"
        for one, test in zip(going, tests, strict=True)
    ]
    return Change(
        id="",
        host=host.host,
        remedy=NAME,
        title=f"remove {counted(len(going), kind.noun)} that nobody uses",
        reason=reason,
        label=LABEL,
        risk=Risk.MEDIUM,
        disrupts="what is in them is lost and cannot be brought back",
        reversible=False,
        action=CommandAction(
            # Prints the ids as long as any of them is still a leftover: one that somebody uses by now is none.
            observe=f"{_LIBRARY}if {some}; then {command(['echo', before])}; else echo {NONE}; fi",
            before=before,
            after=NONE,
            do=_LIBRARY + "\n".join(removals),
            undo="",
        ),
    )


def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after ``change``: the objects are gone."""
    if isinstance(state.ipc, Unknown) or not isinstance(change.action, CommandAction):
        return state
    word, *ids = change.action.before.split()
    field = {"shm": "segments", "sem": "semaphores", "msg": "queues"}[word]
    kept = tuple(one for one in getattr(state.ipc, field) if str(one.id) not in ids)
    return state.model_copy(update={"ipc": state.ipc.model_copy(update={field: kept})})


old_remedy(
    name=NAME,
    title="Stale System V IPC",
    text=__doc__,
    cures=(LABEL,),
    spec=SysvIpcSpec,
    assess=assess,
    order=72,
    promise=promise,
)
