"""Sizes of shared memory: how they are read, written and derived; any host converges."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys._sizes import ADVISED, GIB, MIB, derived, least, parse_size, short
from remedy.deploys.dev_shm import DevShmSpec
from remedy.deploys.docker_shm import DAEMON, PODMAN, DockerShmSpec
from remedy.errors import SpecError
from remedy.plan import FindingKind, inverse, make_plan, promised, section_models
from remedy.probe import File
from remedy.spec import load_spec
from tests.unit.build import WHEN, fleet, with_section
from tests.unit.deploys.memory_bench import FSTAB, memory_host


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
    with pytest.raises(SpecError, match=rf"{section}\.size(:| is) .*32g|64m"):
        load_spec(path, section_models())


@pytest.mark.parametrize(
    "size", ["32g", "1.5 GiB", "64M", "67108864", "8 gb", "32 elephants", "g", "-1g"]
)
def test_the_schema_that_editors_read_allows_the_sizes_that_are_read(size: str) -> None:
    schema = DevShmSpec.model_json_schema(mode="validation")["properties"]["size"]
    text, number = schema["anyOf"][0]["anyOf"]
    assert bool(re.search(text["pattern"], size)) == (parse_size(size) is not None)
    assert number["type"] == "integer"


@pytest.mark.parametrize(
    ("memory", "gpus", "size"),
    [
        (1024 * GIB, 8, ADVISED), (64 * GIB, 8, ADVISED), (64 * GIB - 2, 8, 32 * GIB - MIB), (0, 8, ADVISED),
        (GIB, 0, GIB), (GIB, 8, GIB + 512 * MIB), (10 * GIB + 3, 1, 5 * GIB),
    ],
)  # fmt: skip
def test_shared_memory_is_half_of_a_small_machine_and_never_less_than_jobs_need(
    memory: int, gpus: int, size: int
) -> None:
    state = memory_host(memory=memory, gpus=gpus)
    found, why = derived(state)
    assert found == size
    assert why
    assert least(state) == GIB + gpus * 64 * MIB


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (GIB, "1g"),
        (1536 * MIB, "1536m"),
        (1025 * 1024, "1025k"),
        (1, "1"),
        (1025, "1025"),
        (0, "0g"),
    ],
)
def test_a_size_is_written_in_the_largest_unit_without_loss(size: int, text: str) -> None:
    assert short(size) == text


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
    host = memory_host(
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
