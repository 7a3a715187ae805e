"""Reachability for real, between addresses of this machine's loopback interface."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from remedy.transport import Script
from remedy.verify.reach.answers import judge_links
from remedy.verify.reach.plan import ReachHost, ReachPlan, draw_ports, plan_reach, script
from remedy.verify.reach.result import Reach
from remedy.verify.reach.run import try_links

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is Linux's")


def make_plan(hosts: int, seconds: float = 4.0) -> ReachPlan:
    random = Random(os.getpid())  # noqa: S311
    doors = [
        ReachHost(
            name=f"h{n}",
            address=f"127.0.0.{n + 2}",
            ports=draw_ports((42000, 48000), {0}, 29563, random),
            python=sys.executable,
        )
        for n in range(hosts)
    ]
    return plan_reach(doors, 29563).model_copy(update={"seconds": seconds})


def start(plan: ReachPlan, *left_out: str) -> dict[str, subprocess.Popen[str]]:
    return {
        host.name: launch(script(plan, me))
        for me, host in enumerate(plan.hosts)
        if host.name not in left_out
    }


def launch(text: str) -> subprocess.Popen[str]:
    """Start a script as sshd does."""
    client = subprocess.Popen(
        ["sh", "-s"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert client.stdin is not None
    client.stdin.write(text)
    client.stdin.close()
    client.stdin = None
    return client


def finish(clients: Mapping[str, subprocess.Popen[str]]) -> dict[str, Any]:
    outputs = {}
    for name, client in clients.items():
        stdout, stderr = client.communicate(timeout=60)
        outputs[name] = SimpleNamespace(stdout=stdout, stderr=stderr, error=None)
    return outputs


def wait_until_it_listens(host: ReachHost) -> None:
    address = "".join(f"{int(part):02X}" for part in reversed(host.address.split(".")))
    listener = f"{address}:{host.ports[-1]:04X} 00000000:0000 0A"
    end = time.monotonic() + 20
    while listener not in Path("/proc/net/tcp").read_text(encoding="ascii"):
        assert time.monotonic() < end
        time.sleep(0.02)


def reach(plan: ReachPlan, *left_out: str) -> Reach:
    return judge_links(plan, finish(start(plan, *left_out)))


def test_all_reach_all_and_it_ends_before_its_time() -> None:
    found = reach(make_plan(5, seconds=30.0))
    assert found.passed, found.dead
    assert found.attempts == 5 * 4 * 3
    assert found.waited == ()


def test_a_host_without_a_program_has_no_listener() -> None:
    found = reach(make_plan(3), "h1")
    outcomes = {(d.source, d.target): d.outcome for d in found.dead}
    assert outcomes["h0", "h1"] == "no listener"
    assert outcomes["h1", "h0"] == "not tested"
    assert ("h0", "h2") not in outcomes
    # Those that are there wait for the one that is not, and no longer than they may.
    assert found.waited == ("h0", "h2")


def test_a_port_that_something_else_holds_still_shows_the_way() -> None:
    plan = make_plan(2)
    port = plan.hosts[1].ports[0]
    with socket.create_server((plan.hosts[1].address, port)):
        assert reach(plan).passed


def test_a_port_that_is_an_end_of_another_connection_is_tried_by_one_beside_it() -> None:
    plan = make_plan(2)
    runs: list[int] = []

    def run(scripts: Mapping[str, Script]) -> dict[str, Any]:
        runs.append(len(scripts))
        return finish({name: launch(script.text) for name, script in scripts.items()})

    with socket.create_server(("127.0.0.9", 0)) as server, socket.socket() as client:
        client.bind((plan.hosts[1].address, plan.hosts[1].ports[0]))
        client.connect(server.getsockname())
        (found,) = try_links([plan], run)
    assert found.passed, found.dead
    assert (runs, found.late) == ([2, 2], ())


@pytest.mark.parametrize("dead", [False, True])
def test_a_host_that_answers_late_is_slow_and_one_that_never_answers_is_dead(dead: bool) -> None:
    """One host's program stands still while all call each other; where it is dead, also when tried again."""
    plan = make_plan(4, seconds=9.0)
    runs: list[float] = []

    def run(scripts: Mapping[str, Script]) -> dict[str, Any]:
        runs.append(time.monotonic())
        late = {"h1": launch(scripts["h1"].text)}
        stops = dead or len(runs) == 1
        if stops:
            # Its kernel takes connections and what is sent over them; the program answers none.
            wait_until_it_listens(plan.hosts[1])
            late["h1"].send_signal(signal.SIGSTOP)
        outputs = finish({n: launch(script.text) for n, script in scripts.items() if n != "h1"})
        if stops:
            # Whoever calls has given up by now, however busy this machine is.
            late["h1"].send_signal(signal.SIGCONT if len(runs) == 1 else signal.SIGKILL)
        return outputs | finish(late)

    began = time.monotonic()
    (found,) = try_links([plan], run)
    ends = {(end.kind, end.host, tuple(e.outcome for e in end.endings)) for end in found.dead_ends}
    if dead:
        assert ("in", "h1", ("mute",)) in ends
        assert {host for _, host, _ in ends} == {"h1"}
        assert len(runs) == 2
    else:
        assert not ends
        assert {link.source for link in found.late} | {link.target for link in found.late} >= {"h1"}
        assert "slow, not dead" in found.rung.message
        assert len(runs) <= 3
    assert time.monotonic() - began < 60


def test_it_ends_when_nobody_listens_to_it() -> None:
    plan = make_plan(2, seconds=60.0)
    (client,) = start(plan, "h1").values()
    time.sleep(1.0)
    assert client.stdout is not None
    client.stdout.close()
    assert client.wait(10) != 0


def test_nothing_is_left_when_it_is_killed() -> None:
    plan = make_plan(2, seconds=60.0)
    (client,) = start(plan, "h1").values()
    time.sleep(1.0)
    client.send_signal(signal.SIGKILL)
    client.wait(10)
    with socket.create_server((plan.hosts[0].address, plan.hosts[0].ports[0])):
        pass


def test_the_report_is_one_line_of_json() -> None:
    plan = make_plan(2)
    outputs = finish(start(plan))
    assert len(outputs) == 2
    for output in outputs.values():
        (line,) = output.stdout.splitlines()
        assert json.loads(line.split(" ", 2)[2])["bad"] == []
