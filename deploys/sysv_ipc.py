"""Stale System V IPC: shared memory that dead processes left behind.

Cures: segments that stay when a job is killed (MindSpore's graph compiler, Open MPI), take memory, fill the
kernel's table of segments, and make the next job fail with "No space left on device" or at another
user's key.

A segment goes only when nobody is attached, its creator and its last user are dead (a pid that a later
process has now counts as dead, by its start time), nothing has touched it for ``min_age_minutes``, and
it belongs to no service's account. The removing command checks all of this again, for each segment,
right before it removes it. What is removed cannot be brought back. Segments of root are removed only
with ``root: true``. Semaphores and queues have no count of who uses them: they are reported, and removed
only where asked for. What is in containers' own IPC namespaces is not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic import Field

from remedy.deploys._leftovers import (
    Doomed,
    booted_at,
    ending,
    is_service,
    moment,
    now,
    numbers,
    shared_with,
    shown,
)
from remedy.plan import Change, CommandAction, Risk, Workbench, command, remedy
from remedy.probe import HostState, Process, Queue, Segment, Semaphores, SysvIpc
from remedy.spec import SpecSection
from remedy.text import amount, counted, listed
from remedy.values import Unknown

SLACK = 2
"""Seconds by which start times, which are computed from clock ticks, may be off."""


class SysvIpcSpec(SpecSection):
    """Which leftovers go.

    ``remove``: whether stale segments are removed; without it, they are only reported.
    ``min_age_minutes``: for how long nothing may have touched them. ``root``: also those of root.
    ``semaphores``: "remove" those whose owner has no process at all, or only "report" them. ``queues``: the
    same for message queues.
    """

    remove: bool = True
    min_age_minutes: int = Field(default=10, ge=0, le=525_600)
    root: bool = False
    semaphores: Literal["report", "remove"] = "report"
    queues: Literal["report", "remove"] = "report"


Bench: TypeAlias = Workbench[SysvIpcSpec]


@dataclass(frozen=True)
class Kind:
    """One of the three kinds of objects: their name, the setting that has them removed, ipcrm's option.

    ``columns`` are those of the table (proc_sysvipc(5)) that tell that nothing has changed, in awk's words.
    """

    word: str
    noun: str
    setting: str
    option: str
    columns: str

    @property
    def table(self) -> str:
        """The kernel's table of them."""
        return f"/proc/sysvipc/{self.word}"


SEGMENTS = Kind(
    "shm", "System V segment", "remove: true", "-m", "$1, $4, $5, $6, $7, $8, $12, $13, $14"
)
SEMAPHORES = Kind(
    "sem", "System V semaphore set", "semaphores: remove", "-s", "$1, $4, $5, $9, $10"
)
QUEUES = Kind(
    "msg", "System V message queue", "queues: remove", "-q", "$1, $4, $5, $6, $7, $8, $12, $13, $14"
)

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
        if (leftover := _segment(segment, booted)) is not None:
            yield leftover
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


def _segment(item: Segment, booted: int | None) -> Leftover | None:
    used = max(item.attached_at, item.detached_at)
    # Process id 0 is one of another PID namespace (ipc/shm.c): whether it lives cannot be told.
    if item.attached or item.marked or not item.creator or (used and not item.last):
        return None
    is_gone = _gone(item.creator_started_at, item.changed_at, booted) and (
        not item.last or _gone(item.last_started_at, used, booted)
    )
    if not is_gone:
        return None
    again = item.creator_started_at is not None or item.last_started_at is not None
    dead = f"and last user {item.last} dead" if item.last else "dead, never used"
    row = (
        item.key, item.size, item.creator, item.last, 0, item.uid,
        item.attached_at, item.detached_at, item.changed_at,
    )  # fmt: skip
    return _leftover(
        SEGMENTS,
        item,
        max(used, item.changed_at),
        f"{amount(item.size)}, key {_key(item.key)}, uid {item.uid}, nattch 0, creator {item.creator} "
        f"{dead}{' (the pid is another process now)' * again}",
        (_same(SEGMENTS, item.id, row), *_dead((item.creator, item.changed_at), (item.last, used))),
        size=item.size,
    )


def _semaphores(item: Semaphores) -> Leftover:
    row = (item.key, item.size, item.uid, item.operated_at, item.changed_at)
    return _leftover(
        SEMAPHORES,
        item,
        max(item.operated_at, item.changed_at),
        f"{item.size} semaphores, key {_key(item.key)}, uid {item.uid}, who has no process",
        (_same(SEMAPHORES, item.id, row), *_absent(item.uid, item.creator_uid)),
    )


def _idle(item: Queue, booted: int | None) -> bool:
    used = max(item.sent_at, item.received_at)
    return not item.messages and all(
        _gone(started_at, used, booted)
        for started_at in (item.sender_started_at, item.receiver_started_at)
    )


def _queue(item: Queue) -> Leftover:
    used = max(item.sent_at, item.received_at)
    row = (
        item.key, item.bytes, 0, item.last_sender, item.last_receiver, item.uid,
        item.sent_at, item.received_at, item.changed_at,
    )  # fmt: skip
    return _leftover(
        QUEUES,
        item,
        max(used, item.changed_at),
        f"empty, key {_key(item.key)}, uid {item.uid}, who has no process; sender {item.last_sender} "
        f"and receiver {item.last_receiver} dead",
        (
            _same(QUEUES, item.id, row),
            *_dead((item.last_sender, used), (item.last_receiver, used)),
            *_absent(item.uid, item.creator_uid),
        ),
    )


def _leftover(
    kind: Kind,
    item: Segment | Semaphores | Queue,
    touched: int,
    reason: str,
    check: tuple[str, ...],
    size: int = 0,
) -> Leftover:
    owner = _owner(item.uid, item.creator_uid)
    evidence = f"{kind.word}id {item.id}: {reason}, untouched since {moment(touched)}"
    return Leftover(kind, item.id, owner, touched, size, evidence, check)


def _same(kind: Kind, number: int, row: Sequence[int]) -> str:
    return command(["same", kind.table, str(number), kind.columns, " ".join(map(str, row))])


def _dead(*acts: tuple[int, int]) -> Iterator[str]:
    return (command(["dead", str(pid), str(at)]) for pid, at in acts if pid)


def _absent(*uids: int) -> Iterator[str]:
    return (command(["absent", str(uid)]) for uid in dict.fromkeys(uids))


def _key(key: int) -> str:
    """Return a key as ipcs shows it; the kernel's table has it signed."""
    return f"{key & 0xFFFFFFFF:#x}"


def _owner(uid: int, creator: int) -> int:
    """Return the user who decides what may be done with it: a service's account before root before others."""
    return min((uid, creator), key=lambda user: (not is_service(user), user != 0))


@remedy("Stale System V IPC", SysvIpcSpec, cures=("stale-shm",), order=72)
def sysv_ipc(bench: Bench) -> None:
    """Decide which System V objects of one host are to be removed."""
    host, settings = bench.host, bench.settings
    ipc, time = bench.need(host.ipc, "the System V objects"), now(host)
    if time is None:
        return
    newest = time - settings.min_age_minutes * 60
    booted = booted_at(host) or 0
    old = [
        item
        for item in leftovers(host, ipc)
        if max(item.touched, booted) <= newest and not is_service(item.owner)
    ]
    for kind, remove in (
        (SEGMENTS, settings.remove),
        (SEMAPHORES, settings.semaphores == "remove"),
        (QUEUES, settings.queues == "remove"),
    ):
        _judge(bench, [item for item in old if item.kind is kind], remove=remove)


def _judge(bench: Bench, items: Sequence[Leftover], *, remove: bool) -> None:
    """Remove or report what there is of one kind."""
    shared = shared_with(bench.host)
    going = [i for i in items if remove and not shared and (i.owner or bench.settings.root)]
    staying = [item for item in items if item not in going]
    if going:
        kind = going[0].kind
        finding = bench.drift(_title(going), (item.evidence for item in going))
        bench.run(
            f"remove {counted(len(going), kind.noun)} that nobody uses",
            because=finding,
            risk=Risk.MEDIUM,
            disrupts="what is in them is lost and cannot be brought back",
            **ending(
                kind.word,
                [_doomed(item) for item in going],
                _LIBRARY,
                f"ipcrm of id {listed([str(item.id) for item in going])}, each only if it is unchanged and "
                "nobody uses it at that moment",
            ),
        )
    if staying:
        fix = (
            f"Look from the machine itself: {shared}."
            if shared
            else f"If nobody needs them: {_ways_out(staying)}"
        )
        bench.report(_title(staying), (item.evidence for item in staying), fix)


def _doomed(item: Leftover) -> Doomed:
    end = command(["ipcrm", item.kind.option, str(item.id)])
    return Doomed(item.id, " && ".join(item.check), end)


def _of_root(items: Sequence[Leftover]) -> bool:
    return items[0].kind is SEGMENTS and not any(item.owner for item in items)


def _title(items: Sequence[Leftover]) -> str:
    size = sum(item.size for item in items)
    owner = " of root" if _of_root(items) else ""
    text = f"{counted(len(items), items[0].kind.noun)}{owner} left by dead processes"
    return f"{text}, {amount(size)}" if size else text


def _ways_out(items: Sequence[Leftover]) -> str:
    """Return what removes them: a setting, and by hand."""
    setting = f"sysv_ipc.{items[0].kind.setting}"
    if _of_root(items):
        setting = "sysv_ipc.root: true"
    return f"{setting} in remedy.yaml, or {_doomed(items[0]).end}"


@sysv_ipc.promises
def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after ``change``: the objects are gone."""
    assert isinstance(state.ipc, SysvIpc)
    field = _field(change)
    remaining = tuple(item for item in getattr(state.ipc, field) if item.id not in numbers(change))
    return state.model_copy(update={"ipc": state.ipc.model_copy(update={field: remaining})})


@sysv_ipc.observes
def observation(state: HostState, change: Change) -> str:
    """Return the numbers of the objects, or that none is there."""
    return shown(change, {item.id for item in getattr(state.ipc, _field(change))})


def _field(change: Change) -> str:
    assert isinstance(change.action, CommandAction)
    word = change.action.before.partition(" ")[0]
    return {"shm": "segments", "sem": "semaphores", "msg": "queues"}[word]
