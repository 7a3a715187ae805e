"""Shared memory of the host and of containers: when sizes are changed, to what, and what stays alone."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys._sizes import ADVISED, GIB, MIB, parse_size, short
from remedy.deploys.dev_shm import DevShmSpec
from remedy.deploys.docker_shm import DAEMON, PODMAN, DockerShmSpec
from remedy.edit.containers_conf import container_setting
from remedy.errors import SpecError
from remedy.plan import (
    CommandAction,
    FileAction,
    FindingKind,
    Fleet,
    Plan,
    inverse,
    make_plan,
    promised,
    section_models,
)
from remedy.probe import (
    Container,
    Containers,
    Docker,
    File,
    HostState,
    Kernel,
    LoginSession,
    Process,
    SharedMemory,
)
from remedy.probe.accelerators import Gpus, PciDevice
from remedy.spec import load_spec
from remedy.values import Unknown
from tests.unit.build import fleet, host_state, record, with_section
from tests.unit.plans import WHEN

GPU = PciDevice("0000:01:00.0", "10de", "2330", "0302")
FSTAB = "/etc/fstab"
SMALL = Container("1", "train", "torch:2", 64 * MIB, "private", 100)


def state(
    *,
    gpus: int = 8,
    shm: int = 64 * MIB,
    files: Mapping[str, bytes | Unknown | None] | None = None,
    programs: tuple[str, ...] = ("docker", "dockerd"),
    runs: bool = True,
    memory: int = 1024 * GIB,
    containers: tuple[Container, ...] = (),
    arguments: tuple[str, ...] = ("/usr/sbin/dockerd", "-H", "fd://"),
) -> HostState:
    contents = {DAEMON: None, PODMAN: None, FSTAB: b"# nothing\n", **(files or {})}
    dockerd = Process(50, 1, 50, 50, False, "S", "dockerd", 0, 0, arguments=arguments)
    docker = record(Docker, version="20.10.24") if runs else None
    known = {
        path: content
        if isinstance(content, Unknown)
        else File(path=path, real_path=path, exists=content is not None, content=content or b"")
        for path, content in contents.items()
    }
    return host_state("gpu01", "10.0.0.1", files=known).model_copy(
        update={
            "gpus": record(Gpus, pci=(GPU,) * gpus, devices=(), processes=(), acs={}),
            "kernel": record(Kernel, memory=memory, modules=frozenset()),
            "shared_memory": SharedMemory(size=shm, used=0, files=(), holders={}),
            "session": record(
                LoginSession, programs=dict.fromkeys(programs, "/usr/bin/x"), present=frozenset()
            ),
            "processes": (dockerd,) if runs else (),
            "containers": Containers(
                docker=docker, docker_containers=containers, podman_containers=()
            ),
        }
    )


def plan_of(
    host: HostState, spec: DevShmSpec | DockerShmSpec | None = None, only: str | None = None
) -> tuple[Fleet, Plan]:
    name = only or ("dev_shm" if isinstance(spec, DevShmSpec) else "docker_shm")
    settled = fleet(host, spec=with_section(name, spec) if spec else None)
    return settled, make_plan(settled, WHEN, only=name)


def new_daemon_file(plan: Plan) -> bytes:
    (change,) = plan.changes
    assert isinstance(change.action, CommandAction)
    words = next(w for w in change.action.do.splitlines() if w.startswith("write "))
    return base64.b64decode(words.split()[3])


# --- sizes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64m", 64 * MIB), ("64M", 64 * MIB), ("1g", GIB), ("1 GiB", GIB), ("1.5gb", 3 * GIB // 2),
        ("65536k", 64 * MIB), ("67108864", 64 * MIB), ("1b", 1), ("", None), ("32 elephants", None),
        ("-1g", None), ("g", None), ("1gg", None), ("50%", None),
    ],
)  # fmt: skip
def test_sizes_are_read_as_docker_reads_them(text: str, size: int | None) -> None:
    assert parse_size(text) == size


@given(st.integers(0, 1 << 50))
def test_a_size_is_written_without_loss(size: int) -> None:
    assert parse_size(short(size)) == size


@pytest.mark.parametrize("section", ["dev_shm", "docker_shm"])
@pytest.mark.parametrize("size", ["32 elephants", "0", "1k", "[1]", "true", "9999999g"])
def test_a_wrong_size_is_refused_with_its_place(tmp_path: Path, section: str, size: str) -> None:
    path = tmp_path / "remedy.yaml"
    path.write_text(f"{section}: {{size: {size}}}\n")
    with pytest.raises(SpecError, match=rf"{section}\.size: "):
        load_spec(path, section_models())


# --- the host's own ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "spec", "size"),
    [
        ({"gpus": 0}, DevShmSpec(), None),  # nobody trains here, and nobody asked
        ({"gpus": 0}, DevShmSpec(size=4 * GIB), 4 * GIB),
        ({}, DevShmSpec(), ADVISED),
        ({"memory": 16 * GIB}, DevShmSpec(), 8 * GIB),
        ({"memory": 2 * GIB}, DevShmSpec(), GIB + 512 * MIB),  # what eight GPUs need at the least
        ({"shm": 2 * GIB}, DevShmSpec(), None),  # enough
        ({"shm": 2 * GIB}, DevShmSpec(size=GIB), GIB),  # asked for
        ({"shm": GIB + 4096}, DevShmSpec(size=GIB), None),  # rounded to pages
        ({"shm": 0}, DevShmSpec(), None),  # no limit
    ],
)
def test_dev_shm_is_changed_only_where_needed(
    given: dict[str, int], spec: DevShmSpec, size: int | None
) -> None:
    _, plan = plan_of(state(**given), spec)  # type: ignore[arg-type]
    if size is None:
        assert (plan.findings, plan.changes) == ((), ())
        return
    live, stored = plan.changes
    assert isinstance(live.action, CommandAction)
    assert live.action.after == str(size)
    assert isinstance(stored.action, FileAction)
    assert stored.action.after is not None
    line = f"tmpfs /dev/shm tmpfs rw,nosuid,nodev,size={short(size)} 0 0\n".encode()
    assert plan.contents[stored.action.after] == b"# nothing\n" + line


def test_a_file_that_makes_it_small_at_boot_is_corrected() -> None:
    fstab = b"tmpfs /dev/shm tmpfs size=64m 0 0\n"
    _, plan = plan_of(state(shm=4 * GIB, files={FSTAB: fstab}), DevShmSpec())
    (finding,) = plan.findings
    assert finding.title == "/dev/shm is too small after a reboot, by /etc/fstab"
    assert "/etc/fstab:1: size=64m" in finding.evidence
    assert [type(change.action) for change in plan.changes] == [FileAction]
    # Half of the memory is enough.
    kept = state(shm=4 * GIB, files={FSTAB: b"tmpfs /dev/shm tmpfs size=50% 0 0\n"})
    assert plan_of(kept, DevShmSpec())[1].findings == ()


def test_dev_shm_says_what_stands_in_the_way() -> None:
    inside = record(LoginSession, present=frozenset({"/.dockerenv"}))
    _, plan = plan_of(state().model_copy(update={"session": inside}), DevShmSpec())
    assert [f.kind for f in plan.findings] == [FindingKind.BLOCKED]
    assert "--shm-size=32g" in plan.findings[0].fix
    _, plan = plan_of(state(files={FSTAB: Unknown(reason="no answer")}), DevShmSpec())
    assert ([f.kind for f in plan.findings], plan.changes) == ([FindingKind.UNKNOWN], ())
    blind = state().model_copy(update={"shared_memory": Unknown(reason="there is no /dev/shm")})
    assert [f.kind for f in plan_of(blind, DevShmSpec())[1].findings] == [FindingKind.UNKNOWN]


# --- Docker ------------------------------------------------------------------------------------------


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
    _, plan = plan_of(state(files=files, **rest), spec)  # type: ignore[arg-type]
    if content is None:
        assert (plan.findings, plan.changes) == ((), ())
    else:
        assert [f.kind for f in plan.findings] == [FindingKind.DRIFT]
        assert new_daemon_file(plan) == content


def test_a_docker_that_does_not_run_only_gets_the_file() -> None:
    _, plan = plan_of(state(runs=False), DockerShmSpec())
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
    _, plan = plan_of(state(**given), DockerShmSpec())  # type: ignore[arg-type]
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
    host = state(files={DAEMON: b'{"default-shm-size": "32g"}'}, containers=(SMALL, *others))
    (finding,) = plan_of(host, DockerShmSpec())[1].findings
    assert finding.kind is FindingKind.REPORT
    assert finding.evidence == ("train (torch:2): 64.0 MiB",)


# --- Podman ------------------------------------------------------------------------------------------


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
    _, plan = plan_of(state(programs=("podman",), runs=False, files=files), DockerShmSpec())
    assert [f.kind for f in plan.findings] == kinds
    assert bool(plan.changes) is (kinds == [FindingKind.DRIFT])
    for change in plan.changes:
        assert isinstance(change.action, FileAction)
        assert change.action.after is not None
        assert container_setting(plan.contents[change.action.after], "shm_size") == str(32 << 30)


# --- any host ----------------------------------------------------------------------------------------

daemon_files = st.sampled_from(
    [None, b"", b"{}", b'{"a": [1], "b": {}}\n', b'{\n "default-shm-size": "64m",\n "a": 1 }', b"{,}",
     b'{"default-shm-size": "4g"}', b'{"default-shm-size": "nonsense"}']
)  # fmt: skip
podman_files = st.sampled_from([None, b'[containers]\nshm_size = "64m"\n', b"other\n"])
fstabs = st.sampled_from(
    [b"", b"x", b"tmpfs /dev/shm tmpfs size=64m 0 0\n", b"tmpfs /dev/shm tmpfs rw 0 0\n",
     b"tmpfs /dev/shm tmpfs size=50%,nosuid 0 0"]
)  # fmt: skip
sizes = st.sampled_from([None, MIB, GIB, GIB + 1, 3 * GIB])


@given(
    daemon_files, podman_files, fstabs, sizes, sizes,
    st.integers(0, 8), st.sampled_from([0, 64 * MIB, GIB, 5 * GIB]), st.booleans(),
)  # fmt: skip
def test_any_host_converges_and_undoes(
    daemon: bytes | None, podman: bytes | None, fstab: bytes, host_size: int | None,
    size: int | None, gpus: int, shm: int, runs: bool,
) -> None:  # fmt: skip
    host = state(
        gpus=gpus, shm=shm, runs=runs, programs=("dockerd", "podman"),
        files={DAEMON: daemon, PODMAN: podman, FSTAB: fstab},
    )  # fmt: skip
    spec = with_section("dev_shm", DevShmSpec(size=host_size))
    spec.sections["docker_shm"] = DockerShmSpec(size=size)
    for only in ("dev_shm", "docker_shm"):
        before = fleet(host, spec=spec)
        plan = make_plan(before, WHEN, only=only)
        drift = [f for f in plan.findings if f.kind is FindingKind.DRIFT]
        assert bool(plan.changes) is bool(drift)
        after = promised(before, plan)
        again = make_plan(after, WHEN, only=only)
        assert again.changes == ()
        undo = plan.model_copy(update={"changes": inverse(plan.changes)})
        back = promised(after, undo).states["gpu01"]
        assert back.shared_memory == host.shared_memory
        for path in (DAEMON, PODMAN, FSTAB):
            was, now = host.files[path], back.files[path]
            assert isinstance(was, File)
            assert isinstance(now, File)
            assert (was.exists, was.content) == (now.exists, now.content)
