"""Progress that nobody takes is dropped; what is printed outside of a stage comes whole."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from remedy.cli.terminal import HostStep, step_table
from tests.unit.report.first import lines, names_of

# In a process of its own, whose standard error is a pipe that nobody reads, or only after a while.
SCRIPT = """
import sys
from remedy.cli.terminal import Terminal, err
from remedy.transport import HostEvent
terminal = Terminal(verbose=True)
with terminal.stage("Reading many hosts"):
    for number in range(20_000):
        terminal.host(HostEvent(f"gpu{number}", "connecting"))
print("the stage is over", flush=True)
err.print("the end" * 20_000)
print("all is written", flush=True)
"""


def test_a_full_pipe_stops_no_stage_and_what_comes_after_it_waits_for_its_reader() -> None:
    read, write = os.pipe()
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=write)
    os.close(write)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"the stage is over\n"
        shown: list[bytes] = []
        reader = threading.Thread(target=_drain, args=(read, shown))
        reader.start()
        assert process.stdout.readline() == b"all is written\n"
        assert process.wait(60) == 0
        reader.join(60)
    finally:
        process.kill()
        os.close(read)
    text = b"".join(shown)
    assert text.startswith(b"Reading many hosts ...\ngpu0: connecting\n")
    assert b"gpu19999: connecting" not in text
    assert text.endswith(b"the end" * 20_000 + b"\n")


def test_a_pipe_that_is_read_gets_every_line() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("20_000", "50")],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stderr.count(b"connecting") == 50


def _drain(number: int, into: list[bytes]) -> None:
    while piece := os.read(number, 65536):
        into.append(piece)


def test_the_live_table_has_the_time_the_deadline_and_the_counts() -> None:
    steps = {name: HostStep("answered", 11.0) for name in names_of(60)}
    steps |= {"slow1": HostStep("running", 3.0, 50.0), "slow2": HostStep("running", 9.0, 50.0)}
    steps |= {"late": HostStep("connecting", 14.5)}
    text = lines(step_table(steps, now=15.0, elapsed=15.0, phase="reachability"))
    assert [" ".join(line.split()) for line in text] == [
        "15 s, after reachability 60 of 63 hosts",
        "answered 60 gpu[001-060]",
        "running 12 of 50 s 2 slow[1-2]",
        "connecting 0 s 1 late",
    ]


SIDE_BY_SIDE = """
import remedy.cli.main
from remedy.cli.terminal import Terminal
import remedy.transport.cooperative
import gevent
from remedy.transport import HostEvent
terminal = Terminal(verbose=True)
with terminal.stage("Reading"):
    events = [HostEvent(f"gpu{number:02}", "running") for number in range(20)]
    gevent.joinall([gevent.spawn(terminal.host, event) for event in events])
"""


def test_each_line_of_hosts_side_by_side_comes_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SIDE_BY_SIDE], capture_output=True, text=True, check=True, timeout=60
    )
    lines = done.stderr.splitlines()
    assert lines == ["Reading ...", *(f"gpu{number:02}: running" for number in range(20))]
