"""Directories that every job writes to."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.probe import File, HostState, Mount, Space
from remedy.values import Unknown
from tests.unit.build import host_state
from tests.unit.deploys.words_bench import Said, planned, said

TMP, SHM = "/tmp", "/dev/shm"
GIB = 1 << 30


def room(path: str, available: int = GIB, inodes_free: int = 1000, size: int = 2 * GIB) -> Space:
    return Space(
        path=path, kind="tmpfs", size=size, used=size - available, available=available,
        inodes=2000, inodes_free=inodes_free,
    )  # fmt: skip


def host(
    *,
    modes: dict[str, int | None] | None = None,
    spaces: tuple[Space, ...] = (),
    read_only: str = "",
) -> HostState:
    known = {TMP: 0o1777, SHM: 0o1777, **(modes or {})}
    files = {
        path: File(path=path, real_path=path, exists=mode is not None, mode=mode or 0)
        for path, mode in known.items()
    }
    mounts = tuple(
        Mount(
            point=point, device="8:1", kind="tmpfs", source="tmpfs", read_only=point == read_only,
            options="ro,size=4k" if point == read_only else "rw",
        )
        for point in ("/", SHM)
    )  # fmt: skip
    rooms = {path: room(path) for path in ("/", TMP, SHM)} | {s.path: s for s in spaces}
    state = host_state("a", "10.0.0.1", files=files)
    return state.model_copy(update={"mounts": mounts, "space": rooms})


def of(state: HostState, **settings: Any) -> list[Said]:
    return said(planned("scratch", state, host_state("b", "10.0.0.2"), **settings))


def test_what_is_open_and_has_room_is_not_named() -> None:
    assert of(host()) == []


@pytest.mark.parametrize(
    ("state", "title", "evidence"),
    [
        (host(modes={SHM: 0o755}), "/dev/shm is not open to all users", "mode 0755"),
        (host(modes={TMP: 0o1700}), "/tmp is not open to all users", "mode 1700"),
        (host(modes={SHM: None}), "there is no /dev/shm", "is not there"),
        (host(modes={"/dev/null": None}), "there is no /dev/null", "is not there"),
        (host(modes={"/dev/urandom": 0o600}), "/dev/urandom is not open to all users", "mode 0600"),
        (host(read_only=SHM), "/dev/shm is mounted read-only", "/dev/shm: tmpfs ro,size=4k"),
        (host(spaces=(room(TMP, available=0),)), "/tmp is full: 0", "2.0 GiB of 2.0 GiB used"),
        (host(spaces=(room(SHM, inodes_free=0),)), "/dev/shm is full: it can hold no file more", "0 of 2000"),
        (host(spaces=(room(TMP, inodes_free=3),)), "/tmp is full: it can hold 3 more files", "3 of 2000"),
        (
            host(spaces=(room(TMP, size=1 << 16, available=1 << 16),)),
            "/tmp is too small: 64.0 KiB are free", "0 bytes of 64.0 KiB used",
        ),
    ],
)  # fmt: skip
def test_what_jobs_cannot_write_to_is_named(state: HostState, title: str, evidence: str) -> None:
    (found,) = of(state)
    assert found.kind == "blocked"
    assert found.title.startswith(title)
    assert evidence in found.evidence[0]
    assert found.fix


def test_a_device_that_is_a_file_is_named_with_what_makes_it_again() -> None:
    null = File(
        path="/dev/null", real_path="/dev/null", exists=True, mode=0o666, kind="a regular file"
    )
    state = host()
    (found,) = of(state.model_copy(update={"files": {**state.files, "/dev/null": null}}))
    assert found.title == "/dev/null is a regular file, and not the device that programs expect"
    assert found.fix == "Make it again: rm /dev/null && mknod -m 666 /dev/null c 1 3"


def test_one_file_system_is_named_once() -> None:
    full = [room(path, available=1 << 20) for path in ("/", TMP)]
    assert [f.title.split(" ")[0] for f in of(host(spaces=tuple(full)))] == [TMP]
    assert of(host(spaces=tuple(full)), least_free=1 << 10) == []


def test_a_small_file_system_that_is_empty_has_room() -> None:
    assert of(host(spaces=(room(SHM, size=1 << 20, available=1 << 20),))) == []


@pytest.mark.parametrize(("options", "named"), [("rw,nosuid,noexec", True), ("rw,nosuid", False)])
def test_a_tmp_from_which_nothing_is_loaded_is_reported(options: str, named: bool) -> None:
    mount = Mount(
        point=TMP, device="0:40", kind="tmpfs", source="tmpfs", read_only=False, options=options
    )
    state = host()
    assert not isinstance(state.mounts, Unknown)
    reported = of(state.model_copy(update={"mounts": (*state.mounts, mount)}))
    assert [(f.kind, "noexec" in f.title) for f in reported] == [("report", True)] * named
