"""What is measured of the verification, a function a part; each returns its figures and its goals."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from typing import Any

from benchmarks.harness.cluster import Cluster
from benchmarks.harness.figures import Goal, Spread, ratio
from benchmarks.harness.run import BenchmarkError, measured
from benchmarks.verifying import by_hand

REMEDY = str(Path(sys.executable).parent / "remedy")
EXIT_UNPROVED = 3


@dataclass
class Part:
    """What one part measured.

    Args:
        what: a sentence.
        rows: (what was measured, its figures), in the order of the table.
        goals: the figures that are compared, with their limits.
    """

    what: str
    rows: list[tuple[str, str]] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)


def _remedy(cluster: Cluster, *words: str, code: int = 0) -> tuple[float, dict[str, Any]]:
    """Run ``remedy``; returns the seconds of the whole command, and its document.

    Raises:
        BenchmarkError: another exit code.
    """
    command, *rest = words
    # A wrapper, because a verification that found what it should ends with its own exit code.
    script = (
        f'"$@" 2>/dev/null; code=$?; [ $code = {code} ] || {{ echo "exit code $code"; exit 9; }}'
    )
    line = (REMEDY, command, str(cluster.inventory), *rest, "--json")
    sample, printed = measured(("sh", "-c", script, "sh", *line), cluster.environment)
    return sample.seconds, json.loads(printed)


def _right(cluster: Cluster) -> None:
    """Give all hosts their names and entries."""
    _remedy(cluster, "apply", "--yes", "--no-verify")


def faults(cluster: Cluster, rounds: int) -> Part:
    """Three faults of three kinds, beside a healthy verification of the same hosts."""
    part = Part(
        f"{cluster.count} hosts: one with its port range closed, a drop in one direction between two others,"
        " and one whose name another resolves wrongly; `remedy verify` has to name all three."
    )
    if cluster.count < 6:
        raise BenchmarkError("its three faults take six hosts at least: --hosts 6")
    _right(cluster)
    healthy = [_remedy(cluster, "verify")[0] for _ in range(rounds)]
    names = [host.name for host in cluster.lab.hosts()]
    address = {host.name: host.record.cluster_address for host in cluster.lab.hosts()}
    closed, here, at, there, wrong = (names[len(names) * k // 16] for k in (1, 4, 6, 9, 12))
    _close(cluster, closed, 'iifname != "lo" tcp dport 32768-60999')
    _close(cluster, there, f"ip saddr {address[here]} tcp dport 1024-65535")
    cluster.lab.host(at).must(
        f"sed -i '/[[:space:]]{wrong}$/d' /etc/hosts && echo 10.9.9.9 {wrong} >> /etc/hosts"
    )
    expected = {closed, f"{here} -> {there}", f"{at} -> {wrong}"}
    broken: list[float] = []
    rungs: dict[str, list[float]] = {}
    for _ in range(rounds):
        seconds, document = _remedy(cluster, "verify", code=EXIT_UNPROVED)
        verdict = document["verdict"]
        named = {cause["name"] for cause in verdict["culprits"]}
        if named != expected:
            raise BenchmarkError(f"named {sorted(named)}, broken is {sorted(expected)}")
        broken.append(seconds)
        for rung in verdict["rungs"]:
            if rung["seconds"]:
                rungs.setdefault(rung["name"], []).append(rung["seconds"])
    part.rows = [
        ("healthy: the whole command, s", Spread.of(healthy).text(1)),
        ("broken: the whole command, s", Spread.of(broken).text(1)),
        *(
            (f"broken: the rung {name!r}, s", Spread.of(seconds).text(1))
            for name, seconds in rungs.items()
        ),
        ("named, and nothing else", ", ".join(sorted(expected))),
    ]
    part.goals = [
        Goal("three faults named, over one healthy verification", 3.0, "x", ratio(broken, healthy))
    ]
    return part


def _close(cluster: Cluster, host: str, rule: str) -> None:
    cluster.lab.host(host).must(
        ["nft", "-f", "-"],
        stdin="table inet bench { chain input { type filter hook input priority 0; policy accept;\n"
        f"ct state established,related accept\n{rule} drop\n}}\n}}\n",
    )


def reachability(cluster: Cluster, rounds: int) -> Part:
    """Every ordered pair on three ports, without the rest of the verification."""
    from remedy.transport.connections import Transport
    from remedy.transport.reader import load_inventory
    from remedy.verify.reach import plan as reach
    from remedy.verify.reach.answers import judge_links
    from remedy.verify.scripts import run_texts

    inventory = load_inventory(cluster.inventory)
    transport = Transport(inventory)
    random = SystemRandom()
    whole, inner = [], []
    tried = 0
    for _ in range(rounds + 1):
        hosts = [
            reach.ReachHost(
                name=node.name,
                address=str(node.cluster_address),
                ports=reach.draw_ports(reach.USUAL_RANGE, (), 29500, random),
            )
            for node in inventory.nodes
        ]
        plan = reach.plan_reach(hosts)
        limit = reach.script_deadline(plan)
        began = time.monotonic()
        outputs = run_texts(
            transport.run,
            {host.name: (reach.script(plan, me), limit) for me, host in enumerate(hosts)},
        )
        links = judge_links(plan, outputs)
        seconds = time.monotonic() - began
        if not links.passed:
            raise BenchmarkError(f"{len(links.dead)} dead links, such as {links.dead[0]}")
        whole.append(seconds)
        inner.append(
            max(json.loads(o.stdout.split(" ", 2)[2])["seconds"] for o in outputs.values())
        )
        tried = links.attempts
    pairs = len(inventory.nodes) * (len(inventory.nodes) - 1)
    part = Part(f"{len(inventory.nodes)} hosts: every ordered pair, on three ports each.")
    part.rows = [
        ("ordered pairs", f"{pairs:,}"),
        ("connections made and answered", f"{tried:,}"),
        ("with connecting by ssh, s", Spread.of(whole[:1]).text(1)),
        ("over connections that are open, s", Spread.of(whole[1:]).text(1)),
        ("of that, the longest on a host, s", Spread.of(inner[1:]).text(1)),
    ]
    part.goals = [
        Goal("reachability, over open connections", 10.0, "s", Spread.of(whole[1:]), 1),
        Goal("reachability, with connecting", None, "s", Spread.of(whole[:1]), 1),
    ]
    return part


def overhead(cluster: Cluster, rounds: int) -> Part:
    """The whole command beside torchrun by hand, turn by turn."""
    _right(cluster)
    by_hand.place(cluster)
    hand, command, climbed = [], [], []
    for _ in range(rounds):
        hand.append(by_hand.launch(cluster))
        seconds, document = _remedy(cluster, "verify")
        command.append(seconds)
        climbed.append(document["verdict"]["seconds"])
    part = Part(
        f"{cluster.count} hosts, one rank each: the same worker started by hand with ssh and torchrun, and by"
        " `remedy verify`, in turns. By hand nothing is probed and no pair of hosts is tried."
    )
    part.rows = [
        ("by hand, s", Spread.of(hand).text(1)),
        ("remedy: rungs 0 to 3, s", Spread.of(climbed).text(1)),
        ("remedy: the whole command with connecting and probing, s", Spread.of(command).text(1)),
    ]
    part.goals = [
        Goal("rungs 0 to 3 over the worker by hand", 1.5, "x", ratio(climbed, hand)),
        Goal("the whole command over the worker by hand", None, "x", ratio(command, hand)),
    ]
    return part


PARTS = {"faults": (faults, 16), "reach": (reachability, 64), "overhead": (overhead, 8)}
