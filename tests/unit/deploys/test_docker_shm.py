"""Shared memory of containers: what Docker and Podman give, and where that is said."""

from __future__ import annotations

import base64

import pytest

from remedy.deploys._sizes import GIB, MIB
from remedy.deploys.docker_shm import DAEMON, PODMAN, DockerShmSpec
from remedy.edit.containers_conf import container_setting
from remedy.plan import CommandAction, FileAction, FindingKind, Plan
from tests.unit.deploys.memory_bench import SMALL, memory_host, plan_of


def new_daemon_file(plan: Plan) -> bytes:
    (change,) = plan.changes
    assert isinstance(change.action, CommandAction)
    words = next(w for w in change.action.do.splitlines() if w.startswith("write "))
    return base64.b64decode(words.split()[4])


# --- Docker ---


@pytest.mark.parametrize(
    ("given", "spec", "content"),
    [
        ({"gpus": 0}, DockerShmSpec(), None),
        ({"programs": (), "runs": False}, DockerShmSpec(size=GIB), None),  # no Docker
        ({}, DockerShmSpec(), b'{\n    "default-shm-size": "32g"\n}\n'),
        ({"gpus": 0}, DockerShmSpec(size=GIB), b'{\n    "default-shm-size": "1g"\n}\n'),
        ({"daemon": b'{"default-shm-size": "1g"}'}, DockerShmSpec(), None),  # somebody chose it
        ({"daemon": b'{"default-shm-size": "1g"}'}, DockerShmSpec(size=GIB), None),
        ({"daemon": b'{"default-shm-size": "1024m"}'}, DockerShmSpec(size=GIB), None),
        (
            {"daemon": b'{"default-shm-size": "8g"}'},
            DockerShmSpec(size=GIB),
            b'{"default-shm-size": "1g"}',
        ),
        ({"daemon": b'{"default-shm-size":"64M"}'}, DockerShmSpec(), b'{"default-shm-size":"32g"}'),
        (
            {"daemon": b'{"default-shm-size":67108864}'},
            DockerShmSpec(),
            b'{"default-shm-size":"32g"}',
        ),
        ({"arguments": ("dockerd", "--default-shm-size=2g")}, DockerShmSpec(), None),
    ],
)
def test_docker_is_told_only_where_needed(
    given: dict[str, object], spec: DockerShmSpec, content: bytes | None
) -> None:
    files = {DAEMON: given["daemon"]} if "daemon" in given else {}
    rest = {name: value for name, value in given.items() if name != "daemon"}
    _, plan = plan_of(memory_host(files=files, **rest), spec)  # type: ignore[arg-type]
    if content is None:
        assert (plan.findings, plan.changes) == ((), ())
    else:
        assert [f.kind for f in plan.findings] == [FindingKind.DRIFT]
        assert new_daemon_file(plan) == content


def test_a_docker_that_does_not_run_only_gets_the_file() -> None:
    _, plan = plan_of(memory_host(runs=False), DockerShmSpec())
    assert [type(change.action) for change in plan.changes] == [FileAction]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"files": {DAEMON: b'{"a": 1,}'}}, "is not JSON that dockerd reads"),
        ({"files": {DAEMON: b"\xff"}}, "is not JSON that dockerd reads"),
        ({"arguments": ("dockerd", "--default-shm-size", "64m")}, "by an argument of dockerd"),
        ({"arguments": ("dockerd", "--config-file=/x.json")}, "reads another file"),
        (
            {"files": {"/etc/default/docker": b'DOCKER_OPTS="--default-shm-size=64m"\n'}},
            "by an argument",
        ),
        (
            {
                "files": {
                    "/etc/systemd/system/docker.service.d/a.conf": b"ExecStart=dockerd --config-file /x\n"
                }
            },
            "reads another file",
        ),
    ],
)
def test_what_keeps_docker_from_being_told_is_said(given: dict[str, object], words: str) -> None:
    _, plan = plan_of(memory_host(**given), DockerShmSpec())  # type: ignore[arg-type]
    (finding,) = plan.findings
    assert (finding.kind, plan.changes) == (FindingKind.BLOCKED, ())
    assert words in finding.title
    assert finding.fix


def test_containers_that_keep_their_size_are_listed() -> None:
    others = [
        SMALL._replace(name="shares", ipc_mode="host"),
        SMALL._replace(name="joins", ipc_mode="container:1"),
        SMALL._replace(name="large", shm=GIB),
    ]
    host = memory_host(files={DAEMON: b'{"default-shm-size": "32g"}'}, containers=(SMALL, *others))
    (finding,) = plan_of(host, DockerShmSpec())[1].findings
    assert finding.kind is FindingKind.REPORT
    assert finding.evidence == ("train (torch:2): 64.0 MiB",)


def test_docker_is_said_with_what_it_gives_and_what_is_needed() -> None:
    _, plan = plan_of(memory_host(files={DAEMON: b'{"default-shm-size": "32m"}'}), DockerShmSpec())
    (finding,) = plan.findings
    assert "32.0 MiB" in finding.title
    for fact in ("32.0 GiB", DAEMON, "'32m'"):
        assert fact in finding.evidence[0]
    (change,) = plan.changes
    assert "32g" in change.title
    assert DAEMON in change.title
    assert change.disrupts
    assert isinstance(change.action, CommandAction)
    assert f"reload {32 * GIB}" in change.action.do
    assert f"reload {32 * MIB}" in change.action.undo
    _, plain = plan_of(memory_host(), DockerShmSpec())
    assert "64 MB" in plain.findings[0].evidence[0]


def test_an_argument_of_dockerd_is_said_with_its_place() -> None:
    _, plan = plan_of(memory_host(arguments=("dockerd", "--default-shm-size=32m")), DockerShmSpec())
    (finding,) = plan.findings
    assert "32m" in finding.title
    assert "pid 50" in finding.evidence[0]
    assert "--default-shm-size=32g" in finding.fix
    _, other = plan_of(memory_host(arguments=("dockerd", "--config-file=/x.json")), DockerShmSpec())
    assert DAEMON in other.findings[0].title
    assert "/x.json" in other.findings[0].evidence[0]
    assert "--config-file" in other.findings[0].fix
    same = memory_host(arguments=("dockerd", f"--config-file={DAEMON}"))
    assert plan_of(same, DockerShmSpec())[1].changes
    comment = memory_host(files={"/etc/default/docker": b'#X="--default-shm-size=1m"\n'})
    assert plan_of(comment, DockerShmSpec())[1].changes
    last = memory_host(arguments=("dockerd", "--default-shm-size"))
    assert plan_of(last, DockerShmSpec())[1].changes


def test_small_containers_are_counted_with_their_engine() -> None:
    state = memory_host(
        files={DAEMON: b'{"default-shm-size": "32g"}'},
        containers=(SMALL, SMALL._replace(name="b")),
    )
    (finding,) = plan_of(state, DockerShmSpec())[1].findings
    assert "2 running containers of Docker" in finding.title
    assert finding.evidence == ("train (torch:2): 64.0 MiB", "b (torch:2): 64.0 MiB")
    assert finding.kind is FindingKind.REPORT
    none = SMALL._replace(ipc_mode="none")
    large = SMALL._replace(shm=64 * MIB + 1)
    quiet = memory_host(files={DAEMON: b'{"default-shm-size": "32g"}'}, containers=(none, large))
    assert plan_of(quiet, DockerShmSpec())[1].findings == ()


# --- Podman ---


@pytest.mark.parametrize(
    ("files", "kinds"),
    [
        ({}, [FindingKind.DRIFT]),
        ({"/etc/containers/containers.conf": b'[containers]\nshm_size = "4g"\n'}, []),
        ({"/etc/containers/containers.conf": b'[engine]\nshm_size = "4g"\n'}, [FindingKind.DRIFT]),
        (
            {"/etc/containers/containers.conf": b'[containers]\nshm_size = "65536k"\n'},
            [FindingKind.DRIFT],
        ),
        (
            {"/etc/containers/containers.conf.d/99-x.conf": b'[containers]\nshm_size="64m"\n'},
            [FindingKind.BLOCKED],
        ),
    ],
)
def test_podman_gets_a_file_of_its_own(files: dict[str, bytes], kinds: list[FindingKind]) -> None:
    _, plan = plan_of(memory_host(programs=("podman",), runs=False, files=files), DockerShmSpec())
    assert [f.kind for f in plan.findings] == kinds
    assert bool(plan.changes) is (kinds == [FindingKind.DRIFT])
    for change in plan.changes:
        assert isinstance(change.action, FileAction)
        assert change.action.after is not None
        assert container_setting(plan.contents[change.action.after], "shm_size") == str(32 << 30)


def test_podman_is_said_with_the_file_that_decides() -> None:
    later = "/etc/containers/containers.conf.d/99-x.conf"
    files = {later: b'[containers]\nshm_size = "32m"\n'}
    _, plan = plan_of(memory_host(programs=("podman",), runs=False, files=files), DockerShmSpec())
    (finding,) = plan.blocked("gpu01")
    assert "30.5 MiB" in finding.title
    assert later in finding.evidence[0]
    assert "'32m'" in finding.evidence[0]
    assert later in finding.fix
    main = "/etc/containers/containers.conf"
    _, plan = plan_of(
        memory_host(programs=("podman",), runs=False, files={main: files[later]}), DockerShmSpec()
    )
    (drift,) = plan.findings
    assert any(main in line for line in drift.evidence)
    assert any("32.0 GiB" in line for line in drift.evidence)
    (change,) = plan.changes
    assert PODMAN in change.title
    assert "32g" in change.title
    _, plain = plan_of(memory_host(programs=("podman",), runs=False), DockerShmSpec())
    assert any("64 MB" in line for line in plain.findings[0].evidence)
