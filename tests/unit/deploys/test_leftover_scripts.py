"""What runs on a host to remove leftovers: each is looked at once more, and only what nobody uses goes."""

from __future__ import annotations

import mmap
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from remedy.deploys.sysv_ipc import SysvIpcSpec
from remedy.plan import CommandAction, Fleet, make_plan, promised
from remedy.probe import (
    Clock,
    Identity,
    Process,
    Queue,
    Segment,
    Semaphores,
    SharedMemory,
    ShmFile,
    SysvIpc,
)
from remedy.values import Unknown
from tests.unit.build import WHEN, fleet, host_state, record, with_section

NOW, BOOTED, USER = 1_000_000, 500_000, 4711
SEGMENT = Segment(
    id=5, key=-2, mode=0o600, size=4096, creator=10, last=11, attached=0, uid=USER, creator_uid=USER,
    attached_at=900_000, detached_at=900_001, changed_at=899_999, marked=False, creator_started_at=None,
    last_started_at=None,
)  # fmt: skip
SEMAPHORES = Semaphores(3, 7, 2, USER, USER, 900_000, 899_000)
QUEUE = Queue(8, 9, 0, 0, 12, 13, USER, USER, None, None, 900_000, 900_001, 899_000)
TABLES = {
    "shm": "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap",
    "sem": "key semid perms nsems uid gid cuid cgid otime ctime",
    "msg": "key msqid perms cbytes qnum lspid lrpid uid gid cuid cgid stime rtime ctime",
}
"""Their first lines, proc_sysvipc(5)."""
ROWS = {
    "shm": f"-2 5 600 4096 10 11 0 {USER} {USER} {USER} {USER} 900000 900001 899999 0 0",
    "sem": f"7 3 600 2 {USER} {USER} {USER} {USER} 900000 899000",
    "msg": f"9 8 600 0 0 12 13 {USER} {USER} {USER} {USER} 900000 900001 899000",
}


class LeftoverHost:
    """A folder that plays /proc, and an ``ipcrm`` that only notes what it is to remove."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.proc = folder / "proc"
        self.removed = folder / "removed"
        (self.proc / "sysvipc").mkdir(parents=True)
        (self.proc / "stat").write_text(f"cpu  1 2 3\nbtime {BOOTED}\nprocesses 1\n")
        for name, head in TABLES.items():
            (self.proc / "sysvipc" / name).write_text(f"{head}\n{ROWS[name]}\n")
        self.process(77, 600_000, 1001)
        programs = folder / "bin"
        programs.mkdir()
        (programs / "ipcrm").write_text(f'#!/bin/sh\necho "$*" >>{self.removed}\n')
        (programs / "ipcrm").chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    def process(self, pid: int, started_at: int, uid: int) -> None:
        """Add a process; its name has what would mislead somebody who counts words."""
        (self.proc / str(pid)).mkdir(exist_ok=True)
        ticks = (started_at - BOOTED) * 100
        stat = f"{pid} (a ) b) S " + " ".join(["0"] * 18) + f" {ticks} 0 0\n"
        (self.proc / str(pid) / "stat").write_text(stat)
        (self.proc / str(pid) / "status").write_text(
            f"Name:\ta\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n"
        )

    def sh(self, text: str) -> str:
        text = text.replace("/proc/", f"{self.proc}/")
        done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return done.stdout.strip()

    def removals(self) -> list[str]:
        return self.removed.read_text().splitlines() if self.removed.exists() else []


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LeftoverHost:
    return LeftoverHost(tmp_path, monkeypatch)


def whole() -> Fleet:
    """Return a fleet of a host with a segment, a set of semaphores and a queue that nobody uses."""
    ipc = SysvIpc(segments=(SEGMENT,), semaphores=(SEMAPHORES,), queues=(QUEUE,))
    state = host_state("a", "10.0.0.1").model_copy(
        update={
            "identity": record(Identity, static_name="a", transient_name="a", booted_at=BOOTED),
            "clock": Clock(epoch_ns=NOW * 10**9, uptime=1.0),
            "processes": (Process(77, 1, 77, 77, False, "S", "python", 0, 600_000, uid=1001),),
            "ipc": ipc,
        }
    )
    spec = with_section("sysv_ipc", SysvIpcSpec(semaphores="remove", queues="remove"))
    return fleet(state, spec=spec)


def actions() -> dict[str, CommandAction]:
    """Return what is planned for them."""
    plan = make_plan(whole(), WHEN, only="sysv_ipc")
    found = [change.action for change in plan.changes]
    return {a.before.split()[0]: a for a in found if isinstance(a, CommandAction)}


REMOVAL = {"shm": "-m 5", "sem": "-s 3", "msg": "-q 8"}
KINDS = tuple(REMOVAL)


@pytest.mark.parametrize("kind", KINDS)
def test_what_nobody_uses_is_seen_and_removed(host: LeftoverHost, kind: str) -> None:
    action = actions()[kind]
    assert host.sh(action.observe) == action.before
    assert host.sh(action.do) == ""
    assert host.removals() == [REMOVAL[kind]]


def stays(host: LeftoverHost, kind: str) -> bool:
    action = actions()[kind]
    seen = host.sh(action.observe)
    host.sh(action.do)
    assert (seen == action.after) is (host.removals() == [])
    return seen == action.after


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("shm", ("key", "size", "cpid", "lpid", "nattch", "uid", "atime", "dtime", "ctime")),
        ("sem", ("key", "nsems", "uid", "otime", "ctime")),
        ("msg", ("key", "cbytes", "qnum", "lspid", "lrpid", "uid", "stime", "rtime", "ctime")),
    ],
)
def test_an_object_that_changed_since_the_plan_stays(
    host: LeftoverHost, kind: str, columns: tuple[str, ...]
) -> None:
    table, head = host.proc / "sysvipc" / kind, TABLES[kind].split()
    for column in columns:
        row = ROWS[kind].split()
        row[head.index(column)] = "123"
        table.write_text(f"{TABLES[kind]}\n{' '.join(row)}\n")
        assert stays(host, kind), column
    table.write_text(f"{TABLES[kind]}\n")
    assert stays(host, kind)


@pytest.mark.parametrize(("kind", "pid"), [("shm", 10), ("shm", 11), ("msg", 12), ("msg", 13)])
@pytest.mark.parametrize(
    ("started_at", "alive"), [(600_000, True), (900_000, True), (900_003, True), (900_005, False)]
)
def test_a_process_counts_as_dead_when_its_number_was_given_to_a_later_one(
    host: LeftoverHost, kind: str, pid: int, started_at: int, alive: bool
) -> None:
    if pid == 10:
        started_at -= 2  # the creator's last act was two seconds earlier
    host.process(pid, started_at, 1001)
    assert stays(host, kind) is alive


def test_a_clock_that_was_wrong_then_proves_no_death(host: LeftoverHost) -> None:
    host.process(10, 950_000, 1001)
    (host.proc / "stat").write_text("btime 899999\n")
    ticks = " ".join(["0"] * 18)
    (host.proc / "10" / "stat").write_text(f"10 (a) S {ticks} 9000000 0\n")
    assert not stays(host, "shm")
    host.removed.unlink()
    (host.proc / "stat").write_text("btime 900000\n")
    assert stays(host, "shm")


@pytest.mark.parametrize("kind", ["sem", "msg"])
@pytest.mark.parametrize(
    ("line", "present"),
    [
        (f"Uid:\t{USER}\t0\t0\t0", True),
        (f"Uid:\t0\t0\t0\t{USER}", True),
        (f"Uid:\t1{USER}\t{USER}1\t0\t0", False),
        (f"Gid:\t{USER}\t{USER}\t{USER}\t{USER}", False),
    ],
)
def test_objects_of_a_user_who_has_a_process_stay(
    host: LeftoverHost, kind: str, line: str, present: bool
) -> None:
    (host.proc / "77" / "status").write_text(f"Name:\tx\n{line}\n")
    assert stays(host, kind) is present


def test_what_was_removed_is_promised_to_be_gone_and_the_rest_to_stay() -> None:
    before = whole()
    ipc = before.states["a"].ipc
    assert isinstance(ipc, SysvIpc)
    busy = ipc.model_copy(
        update={
            "segments": (*ipc.segments, SEGMENT._replace(id=6, attached=1)),
            "semaphores": (*ipc.semaphores, SEMAPHORES._replace(id=4, uid=1001)),
            "queues": (*ipc.queues, QUEUE._replace(id=9, messages=1)),
        }
    )
    states = {"a": before.states["a"].model_copy(update={"ipc": busy})}
    found = Fleet(before.inventory, states, before.spec)
    after = promised(found, make_plan(found, WHEN, only="sysv_ipc")).states["a"].ipc
    assert isinstance(after, SysvIpc)
    left = (after.segments, after.semaphores, after.queues)
    assert [[item.id for item in items] for items in left] == [[6], [4], [9]]


# --- /dev/shm ------------------------------------------------------------------------------------------------


@pytest.fixture
def left() -> Iterator[Path]:
    """A file in /dev/shm with a name such as NCCL gives."""
    handle, name = tempfile.mkstemp(prefix="nccl-", dir="/dev/shm")
    path = Path(name).with_name(f"nccl-{os.urandom(3).hex()}")
    Path(name).rename(path)
    os.write(handle, b"x" * 100)
    os.close(handle)
    yield path
    path.unlink(missing_ok=True)


def removal(path: Path) -> CommandAction:
    """Return what is planned for a file of /dev/shm, as it is now."""
    stat = path.stat()
    file = ShmFile(
        path=str(path), device=stat.st_dev, inode=stat.st_ino, size=stat.st_size, allocated=4096,
        uid=USER, mode=0o600, links=1, modified_at=int(stat.st_mtime), changed_at=int(stat.st_ctime),
    )  # fmt: skip
    memory = record(SharedMemory, files=(file,), holders={}, used=4096)
    state = host_state("a", "10.0.0.1").model_copy(
        update={
            "shared_memory": memory,
            "clock": Clock(epoch_ns=(int(stat.st_ctime) + 3600) * 10**9, uptime=1.0),
            "processes": Unknown(reason="not looked at"),
        }
    )
    (change,) = make_plan(fleet(state), WHEN, only="shm_leftovers").changes
    assert isinstance(change.action, CommandAction)
    assert change.action.before == f"inodes {stat.st_ino}"
    return change.action


def test_files_that_are_removed_are_promised_to_free_their_room() -> None:
    row = ("/dev/shm/nccl-AbC123", 1, 2, 100, 4096, USER, 0o600, 300, 300, 1)
    gone, kept = ShmFile(*row), ShmFile("/dev/shm/other", *row[1:])._replace(inode=3)
    memory = record(SharedMemory, files=(gone, kept), holders={}, used=10_000)
    state = host_state("a", "10.0.0.1").model_copy(
        update={"shared_memory": memory, "clock": Clock(epoch_ns=NOW * 10**9, uptime=1.0)}
    )
    found = fleet(state)
    after = promised(found, make_plan(found, WHEN, only="shm_leftovers")).states["a"].shared_memory
    assert isinstance(after, SharedMemory)
    assert (after.files, after.used) == ((kept,), 10_000 - 4096)


def sh(text: str) -> str:
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def test_a_file_that_nobody_holds_is_removed(left: Path) -> None:
    action = removal(left)
    assert sh(action.observe) == action.before
    sh(action.do)
    assert not left.exists()
    assert sh(action.observe) == action.after


def test_a_file_that_a_process_has_open_or_maps_stays(left: Path) -> None:
    action = removal(left)
    with left.open("rb") as file:
        assert sh(action.observe) == action.after
        sh(action.do)
        assert left.exists()
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    assert sh(action.observe) == action.after
    sh(action.do)
    assert left.exists()
    mapped.close()
    assert sh(action.observe) == action.before


def test_a_file_that_changed_since_the_plan_stays(left: Path) -> None:
    action = removal(left)
    left.write_bytes(b"x" * 101)
    assert sh(action.observe) == action.after
    sh(action.do)
    assert left.exists()


def test_another_file_of_that_name_stays(left: Path) -> None:
    action = removal(left)
    other = left.with_name(f"{left.name}-new")
    other.write_bytes(b"x" * 100)
    other.rename(left)
    sh(action.do)
    assert left.exists()
