"""Signals and readers who leave, for the commands that read: diagnose, history, explain, show."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from remedy.audit import Journal
from remedy.cli import interrupt
from tests.unit.cli.signals_bench import CODES, COMMAND, LONG, SIGNALS

LOG = Path(__file__).parents[2] / "diagnose" / "corpus" / "memory-tensor.log"
RUN = "20260101T000000Z-00000000"

# Each stands for what a command is at when the signal comes: reading, judging, writing.
AT_WORK = """
import importlib, os, sys
from remedy.cli.main import main
place, number, *words = sys.argv[1:]
module, _, name = place.rpartition(".")
module = importlib.import_module(module)
kept = getattr(module, name)
def interrupted(*args, **options):
    os.kill(os.getpid(), int(number))
    return kept(*args, **options)
setattr(module, name, interrupted)
main(words)
"""
PLACES = [
    ("diagnose", "remedy.diagnose.scanner.reader.sources"),
    ("diagnose", "remedy.report.diagnosis.render_diagnosis"),
    ("history", "remedy.audit.story.read_stories"),
    ("history", "remedy.report.audit.run_line"),
    ("explain", "remedy.report.explain.explain"),
    ("show", "remedy.audit.story.read_stories"),
    ("show", "remedy.report.audit.render_run"),
]


def words_of(command: str, folder: Path) -> list[str]:
    inventory = folder / "inventory.py"
    inventory.write_text("hosts = []\n")
    if not (folder / ".remedy").exists():
        Journal(folder / ".remedy", run=RUN, mode="apply").write("planned", by="ann@ops")
    return {
        "diagnose": ["diagnose", str(LOG)],
        "history": ["history", str(inventory)],
        "explain": ["explain", "hostname"],
        "show": ["show", RUN, "--home", str(folder / ".remedy")],
    }[command]


def ended_at(place: str, number: int, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", AT_WORK, place, str(number), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
    )


@SIGNALS
@pytest.mark.parametrize(("command", "place"), PLACES)
def test_a_command_that_reads_ends_in_a_line(
    tmp_path: Path, command: str, place: str, number: signal.Signals
) -> None:
    done = ended_at(place, number, words_of(command, tmp_path))
    assert (done.returncode, done.stderr) == (
        CODES[number],
        f"interrupted: {interrupt.NAMES[number]}\n",
    )


@pytest.mark.full
@SIGNALS
@pytest.mark.parametrize("command", ["diagnose", "show"])
def test_while_standard_input_is_waited_for(command: str, number: signal.Signals) -> None:
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [str(COMMAND), command, "-"], stdin=reading, stderr=subprocess.PIPE, text=True
    )
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        # More than a pipe holds: once it is written, the command is at its reading.
        pipe.write(b"a line of a log\n" * (1 << 14))
        pipe.flush()
        process.send_signal(number)
        text = process.communicate(timeout=LONG)[1]
    assert (process.returncode, text) == (
        CODES[number],
        f"interrupted: {interrupt.NAMES[number]}\n",
    )


# The handler of a signal that comes just before a read runs once the read has ended. So it does where the
# kernel gives the signal to a thread that does not read, which can be arranged.
JUST_BEFORE = """
import signal, sys, threading, time
from remedy import files
from remedy.cli.main import main
number, *words = sys.argv[1:]
files.WAKES = 0.05
reader, task = threading.get_ident(), threading.get_native_id()
READERS = ("/reader.py", "/files.py", "/elsewhere/__init__.py")
def waits():
    with open(f"/proc/self/task/{task}/stat") as stat:
        asleep = stat.read().rpartition(")")[2].split()[0] == "S"
    return asleep and sys._current_frames()[reader].f_code.co_filename.endswith(READERS)
def interrupt():
    seen = 0
    while seen < 5:
        time.sleep(0.01)
        seen = seen + 1 if waits() else 0
    signal.pthread_kill(threading.get_ident(), int(number))
threading.Thread(target=interrupt, daemon=True).start()
main(words)
"""
HEADS = {
    "nothing": b"",
    "a line": b"a line of a log\n",
    "gzip": gzip.compress(b"a line\n" * 99)[:20],
}


@SIGNALS
@pytest.mark.parametrize(
    ("words", "head"),
    [
        (["diagnose", "-"], "nothing"),
        pytest.param(["diagnose", "-"], "a line", marks=pytest.mark.full),
        pytest.param(["diagnose", "-"], "gzip", marks=pytest.mark.full),
        pytest.param(["diagnose", "/dev/stdin"], "a line", marks=pytest.mark.full),
        (["diagnose", "PIPE"], "nothing"),
        (["init", "--from", "hostfile", "-"], "a line"),
        pytest.param(["show", "-"], "nothing", marks=pytest.mark.full),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0] + value[1].replace("/", "-"),
)
def test_a_signal_just_before_a_read_ends_the_wait_for_bytes(
    tmp_path: Path, words: Sequence[str], head: str, number: signal.Signals
) -> None:
    os.mkfifo(tmp_path / "PIPE")
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", JUST_BEFORE, str(number.value), *words],
        cwd=tmp_path,
        stdin=reading,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(HEADS[head])
        pipe.flush()
        try:
            out, text = process.communicate(timeout=LONG)
        finally:
            process.kill()
    assert (process.returncode, out, text) == (
        CODES[number],
        "",
        f"interrupted: {interrupt.NAMES[number]}\n",
    )


def pipe_without_a_reader() -> int:
    """Return the end to write to of a pipe that nobody reads.

    A process that another thread starts meanwhile holds the other end until it is a program of its own. So
    bytes are written until the kernel refuses them; poll(2) is no help where gevent, which pyinfra imports,
    replaces it.
    """
    reading, writing = os.pipe()
    os.close(reading)
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        try:
            os.write(writing, b"x")
        except BrokenPipeError:
            return writing
        time.sleep(0.01)
    raise AssertionError(f"somebody has read the pipe for {LONG} s")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("command", ["diagnose", "history", "explain", "show"])
def test_a_reader_who_has_left(tmp_path: Path, command: str, stream: str) -> None:
    writing = pipe_without_a_reader()
    process = subprocess.Popen(
        [str(COMMAND), *words_of(command, tmp_path)],
        stdout=writing if stream == "stdout" else subprocess.PIPE,
        stderr=writing if stream == "stderr" else subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    out, err = process.communicate(timeout=LONG)
    good = 3 if command == "diagnose" else 0  # a cause that no remedy cures
    assert (process.returncode, err or "") == (141 if stream == "stdout" else good, "")
    assert bool(out) is (stream == "stderr")
