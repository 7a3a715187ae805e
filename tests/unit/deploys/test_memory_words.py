"""What is said of shared memory, of containers' and of what dead jobs left there."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys._sizes import GIB, MIB
from remedy.probe import Clock, Container, HostState, LoginSession, SharedMemory, ShmFile
from remedy.values import Unknown
from tests.unit.build import host_state, record
from tests.unit.deploys.memory_bench import memory_host
from tests.unit.deploys.words_bench import Run, Said, planned, run, said, written

HOST = "gpu01"
DAEMON, PODMAN = "/etc/docker/daemon.json", "/etc/containers/containers.conf.d/90-remedy.conf"
NEEDS = "needs 32.0 GiB, docker_shm.size of the spec"
FSTAB = "/etc/fstab"


def docker(**settings: Any) -> tuple[list[Said], list[str]]:
    plan = planned("docker_shm", memory_host(**settings), size="32g")
    return said(plan, HOST), [change.title for change in plan.changes]


# ---- containers


@pytest.mark.parametrize(
    ("given", "title", "evidence"),
    [
        ({}, "64.0 MiB", f"{NEEDS}, Docker has 64 MB built in"),
        ({"files": {DAEMON: b'{"default-shm-size": "1g"}'}}, "1.0 GiB",
         f"{NEEDS}, {DAEMON}: default-shm-size is '1g'"),
        ({"files": {DAEMON: b'{"default-shm-size": 7}'}}, "0 bytes",
         f"{NEEDS}, {DAEMON}: default-shm-size is 7"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("runs", [True, False])
def test_what_docker_gives(given: dict[str, Any], title: str, evidence: str, runs: bool) -> None:
    plan = planned("docker_shm", memory_host(runs=runs, **given), size="32g")
    assert said(plan, HOST) == [
        Said("drift", f"Docker gives a container {title} of /dev/shm", (evidence,), "")
    ]
    write = "write default-shm-size 32g into /etc/docker/daemon.json"
    (change,) = plan.changes
    assert change.title == (f"{write} and reload dockerd" if runs else write)
    assert change.disrupts == runs * (
        "nothing: a reload stops no container, and those that are there keep what they have"
    )
    for step in run(plan, HOST):
        assert step.observe.endswith("seen /etc/docker/daemon.json /etc/docker/daemon.json")
        first = "write /etc/docker/daemon.json /etc/docker/daemon.json "
        assert first in step.do
        assert first in step.undo
        assert " && reload 34359738368 || { { write " in step.do
        assert step.do.endswith("; } >/dev/null 2>&1; exit 1; }")
        size = GIB if "1.0 GiB" in title else 64 * MIB
        assert f"&& reload {size}" in step.undo


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"files": {DAEMON: b"{"}},
         "/etc/docker/daemon.json is not JSON that dockerd reads, so it is left as it is"),
        ({"arguments": ("dockerd", "--config-file", "/root/d.json")},
         "dockerd reads another file than /etc/docker/daemon.json"),
        ({"arguments": ("dockerd", "--default-shm-size", "2g")},
         "containers get 2g of /dev/shm by an argument of dockerd"),
    ],
)  # fmt: skip
def test_what_keeps_docker_from_it(given: dict[str, Any], expected: str) -> None:
    (found,), changes = docker(**given)
    assert (found.kind, found.title, changes) == ("blocked", expected, [])
    if "arguments" in given:
        line = f"dockerd, pid 50: {' '.join(given['arguments'])}"
        assert found.evidence == (line,)
        assert found.fix == (
            "Put default-shm-size into that file, or take --config-file away from dockerd's arguments."
            if "--config-file" in line
            else "Set --default-shm-size=32g there, and restart docker when no container runs."
        )
    else:
        assert found.fix == f"Correct it: {found.evidence[0]}."


@pytest.mark.parametrize(
    ("path", "line", "is_read"),
    [
        ("/etc/default/docker", 'DOCKER_OPTS="--default-shm-size=2g"', True),
        ("/etc/sysconfig/docker", "OPTIONS='--default-shm-size 2g'", True),
        ("/etc/systemd/system/docker.service.d/x.conf", "ExecStart=dockerd --default-shm-size=2g", True),
        ("/etc/default/docker", ' # DOCKER_OPTS="--default-shm-size=2g"', False),
        ("/etc/default/other", "--default-shm-size=2g", False),
        ("/etc/default/docker", "--default-shm-size", False),
    ],
)  # fmt: skip
def test_where_dockerd_gets_arguments(path: str, line: str, is_read: bool) -> None:
    (found,), _ = docker(files={path: line.encode()})
    assert (found.kind == "blocked") is is_read
    assert found.evidence == (
        (f"{path}: {line}",) if is_read else (f"{NEEDS}, Docker has 64 MB built in",)
    )


MAIN = "/etc/containers/containers.conf"
LATER = "/etc/containers/containers.conf.d/95-x.conf"
SMALL = b'[containers]\nshm_size = "2g"\n'
PODMAN_NEEDS = "needs 32.0 GiB, docker_shm.size of the spec"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, Said("drift", "Podman gives a container 64.0 MiB of /dev/shm",
                  (PODMAN_NEEDS, "Podman has 64 MB built in"), "")),
        ({MAIN: SMALL}, Said("drift", "Podman gives a container 1.9 GiB of /dev/shm",
                             (PODMAN_NEEDS, f"{MAIN}: shm_size is '2g'"), "")),
        ({"/usr/share/containers/containers.conf": SMALL}, Said(
            "drift", "Podman gives a container 1.9 GiB of /dev/shm",
            (PODMAN_NEEDS, "/usr/share/containers/containers.conf: shm_size is '2g'"), "",
        )),
        ({LATER: SMALL}, Said(
            "blocked", "Podman gives a container 1.9 GiB of /dev/shm", (f"{LATER}: shm_size is '2g'",),
            f"Remove shm_size from {LATER}: of two files the later name wins.",
        )),
    ],
)  # fmt: skip
def test_what_podman_gives(files: dict[str, bytes], expected: Said) -> None:
    state = memory_host(programs=("podman",), runs=False, files=files)
    plan = planned("docker_shm", state, size="32g")
    assert said(plan, HOST) == [expected]
    for write in written(plan, HOST):
        assert write.title == f"write shm_size 32g into {PODMAN}"
        assert write.content == (
            b'# Written by remedy: /dev/shm of new containers.\n[containers]\nshm_size = "34359738368"\n'
        )
    assert len(plan.changes) == (expected.kind == "drift")


def box(name: str, shm: int, mode: str) -> Container:
    return Container("1", name, "torch:2", shm, mode, 100)


def test_running_containers_that_have_little() -> None:
    boxes = (
        box("train", 64 * MIB, "private"), box("eval", 1024, "shareable"), box("large", 64 * MIB + 1,
        "private"),
        box("host", 1, "host"), box("none", 1, "none"), box("other", 1, "container:7"),
    )  # fmt: skip
    set_to = {DAEMON: b'{"default-shm-size": "32g"}'}
    plan = planned("docker_shm", memory_host(containers=boxes, files=set_to), size="32g")
    assert said(plan, HOST) == [
        Said(
            "report", "64 MB of /dev/shm or less in 2 running containers of Docker",
            ("train (torch:2): 64.0 MiB", "eval (torch:2): 1.0 KiB"),
            "If one of them trains, create it again: its size is fixed when it is created.",
        )
    ]  # fmt: skip
    state = memory_host(files=set_to)
    known = state.containers
    assert not isinstance(known, Unknown)
    containers = known.model_copy(update={"podman_containers": boxes[:1]})
    (found,) = said(
        planned("docker_shm", state.model_copy(update={"containers": containers}), size="32g"), HOST
    )
    assert found.title == "64 MB of /dev/shm or less in 1 running container of Podman"


# ---- /dev/shm

INSIDE = "this is a container, and the processes of others that share its memory cannot be seen"


@pytest.mark.parametrize(
    ("given", "expected", "titles"),
    [
        ({}, Said("drift", "/dev/shm has not the size asked for",
                  ("size of /dev/shm: 64.0 MiB, needs 32.0 GiB, dev_shm.size of the spec",), ""),
         ["give /dev/shm 32.0 GiB instead of 64.0 MiB", f"write size=32g for /dev/shm into {FSTAB}"]),
        ({"files": {FSTAB: b"tmpfs /dev/shm tmpfs size=32g 0 0\n"}},
         Said("drift", "/dev/shm has not the size asked for",
              ("size of /dev/shm: 64.0 MiB, needs 32.0 GiB, dev_shm.size of the spec",), ""),
         ["give /dev/shm 32.0 GiB instead of 64.0 MiB"]),
        ({"shm": 32 * GIB, "files": {FSTAB: b"#\ntmpfs /dev/shm tmpfs size=1% 0 0\n"}, "memory": 100 * GIB},
         Said("drift", "after the next boot, /dev/shm has not the size asked for, by /etc/fstab",
              ("size of /dev/shm: 32.0 GiB, needs 32.0 GiB, dev_shm.size of the spec", f"{FSTAB}:2: size=1%"),
               ""),
         [f"write size=32g for /dev/shm into {FSTAB}"]),
    ],
)  # fmt: skip
def test_the_size_of_shared_memory(
    given: dict[str, Any], expected: Said, titles: list[str]
) -> None:
    plan = planned("dev_shm", memory_host(**given), size="32g")
    assert said(plan, HOST) == [expected]
    assert [change.title for change in plan.changes] == titles
    observe = "set -- $(stat -f -c '%S %b' /dev/shm); echo $(($1 * $2))"
    live = Run(
        titles[0], "low", False, "", observe, str(64 * MIB), str(32 * GIB),
        f"mount -o remount,size={32 * GIB} /dev/shm", f"mount -o remount,size={64 * MIB} /dev/shm",
    )  # fmt: skip
    assert run(plan, HOST) == [live] * titles[0].startswith("give")
    for write in written(plan, HOST):
        assert write.content is not None
        assert b"size=32g" in write.content


def test_a_line_is_added_where_there_is_none() -> None:
    (write,) = written(planned("dev_shm", memory_host(), size="32g"), HOST)
    assert write.content == b"# nothing\ntmpfs /dev/shm tmpfs rw,nosuid,nodev,size=32g 0 0\n"


def test_a_container_is_started_otherwise() -> None:
    session = record(LoginSession, present=frozenset({"/.dockerenv"}))
    state = memory_host().model_copy(update={"session": session})
    plan = planned("dev_shm", state, size="32g")
    assert said(plan, HOST) == [
        Said(
            "blocked", f"/dev/shm has not the size asked for, and {INSIDE}",
            ("size of /dev/shm: 64.0 MiB, needs 32.0 GiB, dev_shm.size of the spec",),
            "Start the container with --ipc=host, or with --shm-size=32g.",
        )
    ]  # fmt: skip
    assert plan.changes == ()


@pytest.mark.parametrize(
    ("current", "is_wrong"),
    [(GIB, False), (GIB + 65536, False), (GIB - 65536, False), (GIB + 65537, True), (GIB - 65537, True), (0,
     False)],
)  # fmt: skip
def test_a_size_may_differ_by_a_page(current: int, is_wrong: bool) -> None:
    fstab = {FSTAB: b"tmpfs /dev/shm tmpfs size=1g 0 0\n"}
    plan = planned("dev_shm", memory_host(shm=current, files=fstab), size="1g")
    assert bool(plan.findings) is is_wrong


# ---- files of dead jobs

NOW = 1_000_000


def leftover(name: str = "nccl-AbCd09", **given: Any) -> ShmFile:
    values = {
        "path": f"/dev/shm/{name}", "device": 7, "inode": 42, "uid": 1000, "size": 8192, "allocated": 4096,
        "mode": 0o600,
        "modified_at": 900_000, "changed_at": 900_001, "links": 1, **given,
    }  # fmt: skip
    return ShmFile(**values)


def holding(*files: ShmFile, holders: Any = None) -> HostState:
    memory = SharedMemory(
        size=GIB, used=8192, files=files, holders={} if holders is None else holders
    )
    return host_state("a", "10.0.0.1").model_copy(
        update={"shared_memory": memory, "clock": Clock(epoch_ns=NOW * 10**9, uptime=1.0)}
    )


LEFT = Said(
    "drift", "2 files left in /dev/shm by dead jobs, 8.0 KiB",
    tuple(
        f"/dev/shm/{name}: 4.0 KiB, {program}, uid 1000, inode {inode}, no process maps it or has it open, "
        "unchanged since 1970-01-11 10:00:01Z"
        for name, program, inode in (("nccl-AbCd09", "NCCL", 42), ("my_x", "shm_leftovers.also my_*", 43))
    ),
    "",
)  # fmt: skip
BOTH = (leftover(), leftover("my_x", inode=43))


def test_files_of_dead_jobs_are_removed() -> None:
    plan = planned("shm_leftovers", holding(*BOTH), also=("my_*",))
    assert said(plan) == [LEFT]
    (step,) = run(plan)
    assert step[:4] == (
        "remove 2 files of /dev/shm that nobody holds", "medium", False,
        "what is in them is lost: no copy is kept, because they can be gigabytes",
    )  # fmt: skip
    assert (step.before, step.after, step.undo) == ("inodes 42 43", "none", "")
    first = "free /dev/shm/nccl-AbCd09 42 '7 42 8192 900000 900001'"
    assert f"if {first}; then rm -f -- /dev/shm/nccl-AbCd09; fi" in step.do
    assert f"if {{ {first}; }} || {{ free /dev/shm/my_x 43 " in step.observe


def test_files_of_dead_jobs_are_reported() -> None:
    kept = planned("shm_leftovers", holding(*BOTH), also=("my_*",), remove=False)
    assert said(kept) == [
        LEFT._replace(
            kind="report",
            fix="If nobody needs them: shm_leftovers.remove: true in remedy.yaml, or rm /dev/shm/nccl-AbCd09",
        )
    ]
    assert kept.changes == ()
    session = record(LoginSession, present=frozenset({"/.dockerenv"}))
    inside = holding(*BOTH).model_copy(update={"session": session})
    assert said(planned("shm_leftovers", inside, also=("my_*",))) == [
        LEFT._replace(kind="report", fix=f"Look from the machine itself: {INSIDE}.")
    ]


@pytest.mark.parametrize(
    ("given", "is_named"),
    [
        ({"changed_at": NOW - 600, "modified_at": 0}, True), ({"changed_at": NOW - 599}, False),
        ({"modified_at": NOW - 599}, False), ({"uid": 33}, False), ({"uid": 0}, True),
    ],
)  # fmt: skip
def test_which_files_are_left_over(given: dict[str, Any], is_named: bool) -> None:
    assert bool(said(planned("shm_leftovers", holding(leftover(**given))))) is is_named
    held = holding(leftover(**given), holders={42: (9,)})
    assert said(planned("shm_leftovers", held)) == []
    blind = holding(leftover(**given), holders=Unknown(reason="no root"))
    assert [f.title for f in said(planned("shm_leftovers", blind))] == [
        "could not read who uses 1 file of jobs in /dev/shm"
    ] * is_named


@pytest.mark.parametrize("text", ["", "a", "ab*", "*x", "a/b", "abc/d"])
def test_patterns_that_are_too_wide_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a pattern for names in /dev/shm begins with three plain"):
        planned("shm_leftovers", holding(), also=(text,))
