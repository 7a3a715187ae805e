"""A user of a host who says much costs the part of a probe that is about it, and no other part."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from remedy.probe import HostState, ProbeRequest, parse_probe, render_probe
from remedy.values import Unknown

USER = 65534
# What comes after processes and shared memory in an answer, which is 12 MiB at most.
AFTER = ("names", "network", "routing", "units", "rdma", "gpus")
ENOUGH = 8


@contextmanager
def processes(words: list[str], environment: dict[str, str]) -> Iterator[None]:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="floods-") as folder:
        Path(folder).chmod(0o755)
        program = Path(folder, "slurmd")
        program.symlink_to("/bin/sh")
        user = USER if os.geteuid() == 0 else None
        started = [
            subprocess.Popen(
                [program, "-c", "echo; sleep 60; :", "sh", *words],
                env=environment,
                cwd="/",
                start_new_session=True,
                stdout=subprocess.PIPE,
                user=user,
                group=user,
            )
            for _ in range(ENOUGH)
        ]
        try:
            for process in started:
                assert process.stdout is not None
                process.stdout.readline()
            yield
        finally:
            for process in started:
                os.killpg(process.pid, 9)
                process.communicate()


@contextmanager
def long_arguments() -> Iterator[None]:
    with processes(["x" * 100_000] * 19, {}):
        yield


@contextmanager
def long_environments() -> Iterator[None]:
    with processes([], {f"NCCL_{number}": "x" * 100_000 for number in range(19)}):
        yield


@contextmanager
def shared_files() -> Iterator[None]:
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="floods-") as folder:
        for number in range(50_000):
            os.close(os.open(f"{folder}/{number:0240}", os.O_CREAT | os.O_WRONLY))
        yield


def probe() -> HostState:
    request = ProbeRequest()
    done = subprocess.run(
        ["sh", "-s"],
        input=render_probe(request),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return parse_probe("here", done.stdout, request)


@pytest.mark.parametrize("flood", [long_arguments, long_environments, shared_files])
def test_what_comes_after_a_flood_is_known(
    flood: Callable[[], AbstractContextManager[None]],
) -> None:
    quiet = {group for group in AFTER if isinstance(getattr(probe(), group), Unknown)}
    with flood():
        state = probe()
    assert {group for group in AFTER if isinstance(getattr(state, group), Unknown)} == quiet
    assert not isinstance(state.processes, Unknown)
    if flood is long_environments:  # what is cut off there is not taken for nothing
        assert isinstance(state.service_environments, Unknown)
