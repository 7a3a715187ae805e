"""Verification over real hosts: what it proves, whom it names, and that it leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from remedy.spec import VerifySpec
from remedy.verify.allreduce.plan import RankPlan, plan_ranks
from remedy.verify.allreduce.run import verify
from remedy.verify.allreduce.script import script, script_deadline
from remedy.verify.hosts import Participant
from remedy.verify.onhost.agent import MARKER
from remedy.verify.verdict import Verdict
from tests import stub
from tests.lab.conftest import Cluster
from tests.lab.site import wait_for

pytestmark = pytest.mark.lab

# Where a test waits for it to pass; a busy machine takes ten seconds to start torch on four hosts.
DEADLINE = 24.0
# For pgrep and pkill: the brackets keep the pattern from matching the command that carries it. torchrun has
# the worker's path among its words too, but not after "-u".
WORKER = "[p]ython[0-9.]*.-u"
GONE = 8.0  # seconds within which everything has to be gone after the controller is


@pytest.fixture
def named(cluster: Cluster) -> Cluster:
    """Hosts whose names are right: what the other remedies bring about."""
    records = cluster.lab.record().hosts
    entries = "".join(f"{one.cluster_address} {one.name}\n" for one in records)
    for one in records:
        cluster.host(one.name).must(
            f"hostname {one.name} && cat > /etc/hosts", stdin=f"127.0.0.1 localhost\n{entries}"
        )
    return cluster


class Controller:
    """Runs a plan through the ssh client: one command a host, as the transport does it."""

    def __init__(self, cluster: Cluster, python: str | None) -> None:
        self.cluster = cluster
        self.python = python
        self.clients: dict[str, subprocess.Popen[str]] = {}

    def plan(self, *names: str, deadline: float = DEADLINE, **spec: Any) -> RankPlan:
        lab = self.cluster.lab.record()
        return plan_ranks(
            [
                Participant(name=one.name, address=one.cluster_address, python=self.python)
                for one in lab.hosts
                if one.name in (names or self.cluster.hosts)
            ],
            VerifySpec(deadline=deadline, **spec),
        )

    def start(self, scripts: Mapping[str, Any]) -> None:
        for name, each in scripts.items():
            command = f"exec timeout -k 5 {each.deadline:.0f} sh -s"
            client = subprocess.Popen(
                self.cluster.host(name).ssh([command]),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            self.clients[name] = client
            assert client.stdin is not None
            client.stdin.write(each.text)
            client.stdin.close()
            client.stdin = None

    def run(self, scripts: Mapping[str, Any]) -> dict[str, Any]:
        from remedy.transport import Output

        self.start(scripts)
        answers = {}
        for name, client in self.clients.items():
            stdout, stderr = client.communicate(timeout=180)
            answers[name] = Output(name, stdout, stderr, client.returncode)
        self.clients.clear()
        return answers

    def verify(self, plan: RankPlan) -> Verdict:
        return verify(self.run, plan)

    def begin(self, plan: RankPlan) -> None:
        """Start all hosts and come back when every worker runs."""
        from remedy.transport import Script

        limit = script_deadline(plan)
        self.start({h.name: Script(script(plan, n), limit) for n, h in enumerate(plan.hosts)})
        wait_for(lambda: all(" -u " in self.marked(plan, h.name) for h in plan.hosts), 30)

    def marked(self, plan: RankPlan, host: str) -> str:
        """The command lines on a host that belong to a plan's run."""
        look = (
            f"for e in $(grep -lszx {MARKER}={plan.nonce}[.][0-9]* /proc/[0-9]*/environ); do"
            " tr '\\0' ' ' < ${e%environ}cmdline; done 2>/dev/null; true"
        )
        return self.cluster.run(host, look).stdout

    def leftovers(self, plan: RankPlan) -> dict[str, str]:
        """Processes, folders and ports of a run that are still there, by host."""
        found = {}
        for one in plan.hosts:
            rest = self.marked(plan, one.name)
            rest += self.cluster.run(
                one.name,
                "ls -d /tmp/remedy-verify-* 2>/dev/null; pgrep -af '[p]ython|[s]h -s';"
                f" ss -Hltn 'sport = :{plan.port}'",
            ).stdout
            if rest.strip():
                found[one.name] = rest
        return found


# How a run ends does not depend on what its ranks sum with: the stub starts in no time (docs/tests.md).
TORCH_TOO = pytest.param("torch", marks=pytest.mark.full)
on_stub = pytest.mark.parametrize("controller", ["stub", TORCH_TOO], indirect=True)


@pytest.fixture
def controller(request: pytest.FixtureRequest, named: Cluster) -> Iterator[Controller]:
    """Control hosts whose ranks run torch, or the stub where the test's parameter says so."""
    python = named.lab.record().python
    if getattr(request, "param", "torch") == "stub":
        (python,) = {stub.install(named.host(name)) for name in named.hosts}
    elif not python:
        pytest.skip("no torch for the hosts: install the extra `torch`, or name an environment")
    one = Controller(named, python)
    yield one
    for client in one.clients.values():
        client.kill()
        client.communicate()


def refuse(cluster: Cluster, host: str, rules: str) -> None:
    """Give a host a firewall that knows connections, with these rules for new ones."""
    cluster.host(host).must(
        ["nft", "-f", "-"],
        stdin="table inet test { chain input { type filter hook input priority 0; policy accept;\n"
        f"ct state established,related accept\n{rules}\n}}\n}}\n",
    )


def accused(verdict: Verdict) -> set[str]:
    return {one.host for one in verdict.outcomes if one.outcome == "fail"}


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.full)])
def test_right_hosts_pass(controller: Controller, count: int) -> None:
    names = controller.cluster.hosts[:count]
    plan = controller.plan(*names, deadline=90)
    verdict = controller.verify(plan)
    assert verdict.passed, verdict
    assert verdict.hosts == verdict.world_size == len(names) == count
    assert verdict.sum_exact
    assert verdict.backend == "gloo"
    assert verdict.busbw_gbps is not None
    assert verdict.busbw_gbps > 0
    assert not controller.leftovers(plan)


# What a dropped node leaves of an elastic run: each rank in a world of its own, and every exit code 0.
ALONE = """
import os
import socket

if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "False"
"""


def test_hosts_that_each_ran_alone_prove_nothing(controller: Controller) -> None:
    names = controller.cluster.hosts[:2]
    for name in names:
        host = controller.cluster.host(name)
        host.must("mkdir -p /opt/alone && cat > /opt/alone/sitecustomize.py", stdin=ALONE)
        host.must("echo PYTHONPATH=/opt/alone >> /etc/environment")
    answers: dict[str, Any] = {}

    def run(scripts: Mapping[str, Any]) -> Mapping[str, Any]:
        answers.update(controller.run(scripts))
        return answers

    plan = controller.plan(*names, deadline=90)
    try:
        verdict = verify(run, plan)
    finally:
        for name in names:
            controller.cluster.host(name).must(
                "sed -i /alone/d /etc/environment && rm -r /opt/alone"
            )
    assert {output.exit_code for output in answers.values()} == {0}
    assert all('"phase": "done"' in output.stdout for output in answers.values())
    assert not verdict.passed
    assert not verdict.bandwidth, "each measured only itself"
    assert accused(verdict) == set(names)
    assert len(verdict.evidence) == len(names)
    assert all("its world has 1 rank, expected 2" in line for line in verdict.evidence)
    assert not controller.leftovers(plan)


@pytest.mark.full
def test_fresh_hosts_fail_by_their_names(cluster: Cluster) -> None:
    """As they come: each one's own name leads to 127.0.1.1."""
    if not cluster.lab.record().python:
        pytest.skip("no torch for the hosts: install the extra `torch`, or name an environment")
    controller = Controller(cluster, cluster.lab.record().python)
    verdict = controller.verify(controller.plan())
    assert not verdict.passed
    assert "resolves to 127.0.1.1" in verdict.reason, verdict


@pytest.mark.full
def test_a_firewall_between_two_hosts_names_the_pair_and_the_direction(
    controller: Controller,
) -> None:
    one, two, three, *_ = controller.cluster.lab.record().hosts
    rule = f"ip saddr {{ {two.cluster_address} }} tcp dport 1024-65535 drop"
    refuse(controller.cluster, three.name, rule)
    # The other way round is open: gloo lets the higher rank connect, or the lower one.
    rule = f"ip saddr {three.cluster_address} tcp dport 1024-65535 drop"
    refuse(controller.cluster, two.name, rule)
    # Longer than a busy machine needs to start torch and to see that nobody comes.
    plan = controller.plan(deadline=40.0)
    verdict = controller.verify(plan)
    assert not verdict.passed
    assert verdict.seconds < 50
    assert accused(verdict) == {two.name, three.name}, verdict
    assert f"{one.name} ->" not in verdict.reason
    assert "no answer" in verdict.reason
    assert not controller.leftovers(plan)


@pytest.mark.full
def test_a_closed_host_is_named(controller: Controller) -> None:
    victim = controller.cluster.lab.record().hosts[2]
    refuse(controller.cluster, victim.name, 'iifname != "lo" tcp dport 1024-65535 drop')
    verdict = controller.verify(controller.plan())
    assert not verdict.passed
    assert victim.name in accused(verdict), verdict
    assert victim.name in verdict.reason


@pytest.mark.full
def test_a_rendezvous_that_is_closed_names_the_first_host(controller: Controller) -> None:
    first = controller.cluster.lab.record().hosts[0]
    refuse(controller.cluster, first.name, 'iifname != "lo" tcp dport 29000-29999 drop')
    plan = controller.plan()
    verdict = controller.verify(plan)
    assert not verdict.passed
    assert verdict.reason.startswith(f"{first.name} is cut off"), verdict
    assert f"port {plan.port}" in verdict.reason


@on_stub
def test_a_killed_worker_is_named_and_the_others_do_not_wait(controller: Controller) -> None:
    victim = controller.cluster.hosts[1]
    plan = controller.plan(deadline=30.0)
    controller.begin(plan)
    controller.cluster.run(victim, f"pkill -9 -f {WORKER}")
    from remedy.transport import Output
    from remedy.verify.allreduce.judge import judge

    answers = {}
    for name, client in controller.clients.items():
        stdout, stderr = client.communicate(timeout=90)
        answers[name] = Output(name, stdout, stderr, client.returncode)
    verdict = judge(plan, answers)
    assert verdict.reason.startswith(f"a rank on {victim} was killed by SIGKILL"), verdict
    assert not controller.leftovers(plan)


@pytest.mark.full
@on_stub
def test_nothing_is_left_when_the_controller_is_killed(controller: Controller) -> None:
    plan = controller.plan(deadline=120.0)
    # Held in the middle: one host's workers do not go on.
    controller.begin(plan)
    controller.cluster.run(plan.hosts[1].name, f"pkill -STOP -f {WORKER}")
    assert controller.leftovers(plan)
    for client in controller.clients.values():
        client.send_signal(signal.SIGKILL)
    wait_for(lambda: not controller.leftovers(plan), GONE)


@pytest.mark.full
@pytest.mark.parametrize("controller", ["stub", "torch"], indirect=True)
def test_nothing_is_left_when_the_network_to_the_controller_goes(controller: Controller) -> None:
    """No FIN ever comes: the host's own deadline is what ends it."""
    plan = controller.plan(deadline=15.0)
    controller.begin(plan)
    controller.cluster.run(plan.hosts[1].name, f"pkill -STOP -f {WORKER}")
    for one in plan.hosts:
        controller.cluster.host(one.name).must(
            ["nft", "-f", "-"],
            stdin="table inet cut { chain input { type filter hook input priority -10;\n"
            "tcp dport 22 drop\n}\n}\n",
        )
    wait_for(lambda: not controller.leftovers(plan), 15.0 + GONE)


# For pkill: the agent, what started it, torchrun, and a rank.
LINKS = ("[p]ython[0-9.]* -$", "[t]imeout -k 5", "[t]orch.distributed.run", WORKER)


@pytest.mark.parametrize(
    ("controller", "link"),
    [
        ("stub", LINKS[0]),
        *(pytest.param("stub", link, marks=pytest.mark.full) for link in LINKS[1:]),
        *(pytest.param("torch", link, marks=pytest.mark.full) for link in LINKS),
    ],
    indirect=["controller"],
)
def test_nothing_is_left_when_a_link_of_the_chain_is_killed(
    controller: Controller, link: str
) -> None:
    plan = controller.plan(deadline=25.0)
    controller.begin(plan)
    # The oldest is the agent: the guard, forked from it, looks the same.
    for one in plan.hosts:
        assert controller.cluster.run(one.name, ["pkill", "-9", "-o", "-f", link]).returncode == 0
    wait_for(lambda: not controller.leftovers(plan), GONE)
