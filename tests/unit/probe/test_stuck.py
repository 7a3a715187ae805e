"""A probe that cannot end: its watchdog names what it waits for, and what was read until then arrives."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from remedy.probe import (
    ProbeRequest,
    explain_stuck_probe,
    parse_probe,
    render_probe,
    stuck_processes,
)
from remedy.values import Unknown
from tests.unit.probe.script_bench import tool
from tests.unit.probe_data import SHELLS

NONCE = "0123456789abcdef" * 2
REAPED = 5.0  # seconds in which a busy machine takes the entry of a process that was killed away


def ends(pid: int) -> bool:
    """Return whether a process is gone, or soon is."""
    until = time.monotonic() + REAPED
    while (entry := Path(f"/proc/{pid}/stat")).exists() and time.monotonic() < until:
        time.sleep(0.05)
    return not entry.exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_probe_that_is_stopped_is_ended_and_named(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    stopping = '#!/bin/sh\nkill -STOP $PPID\nexec /usr/bin/readlink "$@"\n'
    request = ProbeRequest(deadline=3, tool_seconds=1)
    words = [shell, "sh", "-s"] if shell == "busybox" else [shell, "-s"]
    done = subprocess.run(
        words,
        input=render_probe(request),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PATH": tool(tmp_path / "bin", "readlink", stopping)},
    )
    stuck = stuck_processes(done.stderr, request.nonce)
    stopped = [process for process in stuck if process.state == "T"]
    assert stopped, done.stderr
    assert shell in stopped[0].command
    error = explain_stuck_probe("gpu01", stuck)
    assert f"its process {stopped[0].pid} is stopped: " in error.message
    assert shell == "bash" or ends(stopped[0].pid)
    state = parse_probe("gpu01", done.stdout, request)
    assert not isinstance(state.kernel, Unknown)  # was read before
    assert isinstance(state.processes, Unknown)


def test_a_probe_that_ends_names_nothing() -> None:
    request = ProbeRequest()
    done = subprocess.run(
        ["sh", "-s"], input=render_probe(request), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert stuck_processes(done.stderr, request.nonce) == ()


@pytest.mark.parametrize(
    ("lines", "words", "step"),
    [
        (
            ["812 S sh -s ", "813 D nvidia-smi -q "],
            "process 813 waits in the kernel, where no signal reaches it: nvidia-smi -q",
            "/proc/813/stack",
        ),
        (["812 T sh -s ", "813 D stat -f /mnt"], "process 813 waits in the kernel", "findmnt"),
        (["812 S sh -s ", "813 R gzip -4c"], "in its time; at work last: gzip -4c", "uptime"),
        (["812 Z "], "programs whose names are not known", "uptime"),
    ],
)
def test_what_is_said_of_it(lines: list[str], words: str, step: str) -> None:
    text = "".join(f"remedy-stuck {NONCE} {line}\n" for line in lines)
    error = explain_stuck_probe("gpu01", stuck_processes(f"warned\n{text}Killed\n", NONCE))
    assert error.message.startswith("gpu01: the probe did not end there")
    assert words in error.message
    assert step in error.next_step


def test_lines_of_others_are_none() -> None:
    assert stuck_processes(f"remedy-stuck {'f' * 32} 1 D init\n", NONCE) == ()
    assert len(stuck_processes(f"remedy-stuck {NONCE} 1 D init\n" * 5000, NONCE)) == 64
