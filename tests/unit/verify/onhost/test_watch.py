"""What the agent sees of ranks that do not move."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from remedy.verify.onhost import procs
from remedy.verify.onhost.watch import RunWatch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc: Linux only")


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes with the program of a rank, below one that also names it and is no rank."""
    program = tmp_path / "worker.py"
    program.write_text("import time; print(flush=True); time.sleep(600)\n", encoding="ascii")
    command = [sys.executable, str(program), str(tmp_path)]
    launcher = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", *command])
    processes = [launcher, *(subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2))]
    for process in processes[1:]:  # one that still starts is now in one state, now in another
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        wait_for(process, "S")
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def wait_for(process: subprocess.Popen[bytes], state: str) -> None:
    procs.wait_until(lambda: procs.parent_and_state(process.pid)[1] == state, 10)


def stop(process: subprocess.Popen[bytes]) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    wait_for(process, "T")


def test_a_rank_that_stopped_before_it_left_a_word_is_seen(
    ranks: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    launcher, first, second = ranks
    stop(second)
    word = json.dumps({"pid": first.pid, "phase": "started"})
    (tmp_path / "phase.0.json").write_text(word, encoding="ascii")
    watch = RunWatch(str(tmp_path))
    watch.note_states(launcher.pid, 2)
    assert watch.states == {0: "S", 1: "T"}


def test_a_launcher_that_has_stopped_is_no_rank(
    ranks: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    launcher, first, second = ranks
    stop(launcher)
    first.kill()
    second.kill()
    procs.wait_until(lambda: not set(procs.descendants(os.getpid())) & {first.pid, second.pid}, 10)
    watch = RunWatch(str(tmp_path))
    watch.note_states(launcher.pid, 2)
    assert watch.states == {}
