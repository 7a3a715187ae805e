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
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from remedy.verify.reach.answers import judge_links
from remedy.verify.reach.plan import ReachHost, ReachPlan, draw_ports, plan_reach, script
from remedy.verify.reach.result import Reach

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
    clients = {}
    for me, host in enumerate(plan.hosts):
        if host.name in left_out:
            continue
        client = subprocess.Popen(
            ["sh", "-s"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert client.stdin is not None
        client.stdin.write(script(plan, me))
        client.stdin.close()
        client.stdin = None
        clients[host.name] = client
    return clients


def finish(clients: Mapping[str, subprocess.Popen[str]]) -> dict[str, Any]:
    outputs = {}
    for name, client in clients.items():
        stdout, stderr = client.communicate(timeout=60)
        outputs[name] = SimpleNamespace(stdout=stdout, stderr=stderr, error=None)
    return outputs


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
