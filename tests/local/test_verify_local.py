"""Verification for real, on this machine: agents, torchrun and workers over loopback.

Where root allows it each "host" has namespaces in which it sees a boot-id and a host name of its own, which is
all that makes it another machine to the verdict.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remedy.spec import VerifySpec
from remedy.verify.allreduce import answers as report
from remedy.verify.allreduce.judge import judge
from remedy.verify.allreduce.plan import plan_ranks
from remedy.verify.hosts import Participant
from remedy.verify.onhost.procs import ESTABLISHED, read, sockets
from tests import stub
from tests.local.hosts import HAS_TORCH, LINUX, NO_TORCH, Hosts, wait_for
from tests.unit.verify.ras_bench import document, lost

pytestmark = [LINUX]
NAMES = ("gpu01", "gpu02")
# How a run ends does not depend on what its ranks sum with: the stub starts in no time (docs/tests.md).
TORCH_TOO = pytest.param("torch", marks=pytest.mark.full)
on_stub = pytest.mark.parametrize("make", ["stub", TORCH_TOO], indirect=True)


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Hosts]]:
    """Make hosts whose ranks run torch, or the stub where the test's parameter says so."""
    made: list[Hosts] = []
    python, share = sys.executable, 1.0
    if getattr(request, "param", "torch") == "stub":
        # A deadline leaves room for torch to start, and is never below ten seconds.
        python, share = stub.interpreter(tmp_path), 0.5
    elif not HAS_TORCH:
        pytest.skip(NO_TORCH)

    def build(deadline: float = 60.0, **spec: object) -> Hosts:
        plan = plan_ranks(
            [Participant(name=name, address="127.0.0.1", python=python) for name in NAMES],
            VerifySpec(deadline=max(10.0, deadline * share), **spec),
        )
        made.append(Hosts(plan, tmp_path))
        return made[-1]

    yield build
    for hosts in made:
        hosts.kill()


@on_stub
def test_two_hosts_prove_the_sum_and_leave_nothing(make: Callable[..., Hosts]) -> None:
    hosts = make(sizes=(4096,))
    hosts.start(*NAMES)
    verdict = hosts.verdict()
    assert verdict.sum_exact
    assert verdict.world_size == 2
    assert verdict.backend == "gloo"
    assert verdict.busbw_gbps is not None
    assert verdict.busbw_gbps > 0
    assert verdict.passed is (os.geteuid() == 0), verdict  # one boot-id is one host
    hosts.assert_nothing_left()


@on_stub
def test_several_ranks_a_host(make: Callable[..., Hosts]) -> None:
    hosts = make(ranks_per_host=2, sizes=(4096,))
    hosts.start(*NAMES)
    verdict = hosts.verdict()
    assert verdict.sum_exact, verdict
    assert verdict.world_size == 4
    hosts.assert_nothing_left()


@pytest.mark.full
def test_gpus_that_torch_cannot_use_are_no_proof_and_each_host_says_why(
    make: Callable[..., Hosts],
) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU, which torch can use")
    hosts = make(backend="nccl", ranks_per_host=1, sizes=(8,))
    hosts.start(*NAMES)
    verdict = hosts.verdict()
    assert not verdict.passed
    assert (verdict.backend, verdict.sum_exact) == ("gloo", True)
    assert not verdict.bandwidth
    why = f"torch.cuda is not available (torch {torch.__version__}, built for no CUDA)"
    assert "NCCL could not be used" in verdict.reason
    assert all(f"{name}: {why}" in verdict.reason for name in NAMES)
    hosts.assert_nothing_left()


@on_stub
def test_two_names_for_one_machine_do_not_pass(make: Callable[..., Hosts]) -> None:
    hosts = make(sizes=(8,))
    hosts.start(*NAMES, own_boot_id=False)
    verdict = hosts.verdict()
    assert verdict.sum_exact
    assert not verdict.passed
    assert verdict.hosts == 1
    assert "one machine" in verdict.reason


@pytest.mark.parametrize(
    ("make", "victim"),
    [
        pytest.param("torch", "gpu01", marks=pytest.mark.full),
        ("stub", "gpu01"),
        pytest.param("stub", "gpu02", marks=pytest.mark.full),
        pytest.param("torch", "gpu02", marks=pytest.mark.full),
    ],
    indirect=["make"],
)
def test_a_killed_worker_is_named(make: Callable[..., Hosts], victim: str) -> None:
    hosts = make()
    hosts.start(*NAMES)
    os.kill(hosts.worker(victim), signal.SIGKILL)
    verdict = hosts.verdict()
    assert not verdict.passed
    assert verdict.reason.startswith(f"a rank on {victim} was killed by SIGKILL"), verdict
    assert {o.host: o.outcome for o in verdict.outcomes}[victim] == "fail"
    hosts.assert_nothing_left()


@on_stub
@pytest.mark.parametrize(
    "absent", [NAMES[0], *(pytest.param(name, marks=pytest.mark.full) for name in NAMES[1:])]
)
def test_a_worker_that_never_starts_is_named_at_the_deadline(
    make: Callable[..., Hosts], absent: str
) -> None:
    """The third host is there so that a group could have been made without the absent one."""
    hosts = make(deadline=14.0)
    (present,) = set(NAMES) - {absent}
    name, value = hosts.marker(absent).split("=")
    with subprocess.Popen(["sleep", "60"], env={**os.environ, name: value}) as of_absent:
        hosts.start(present)
        verdict = hosts.verdict()
        # It shares its processes with us, and who ends first ends its own alone.
        assert of_absent.poll() is None
        of_absent.kill()
    assert verdict.seconds < 14.0 + 6.0
    assert not verdict.passed
    assert present in verdict.reason  # two hosts are the least: only one reported
    hosts.assert_nothing_left()


@on_stub
def test_a_stopped_worker_is_ended_at_the_deadline(make: Callable[..., Hosts]) -> None:
    hosts = make(deadline=15.0)
    hosts.start(*NAMES)
    os.kill(hosts.worker("gpu02"), signal.SIGSTOP)
    verdict = hosts.verdict()
    assert verdict.seconds < 15.0 + 8.0
    assert not verdict.passed
    assert "gpu02" in verdict.reason, verdict
    hosts.assert_nothing_left()


def test_who_stops_amid_the_sweep_is_noted_by_those_who_wait(make: Callable[..., Hosts]) -> None:
    """The others call the roll before anything is killed."""
    hosts = make(deadline=30.0, sizes=(4_000, *(64_000_000 + 4 * n for n in range(50))))
    hosts.start(*NAMES)
    worker = hosts.worker("gpu02")

    def measuring() -> bool:
        phases = [read(str(path)) for path in hosts.tmp.glob("remedy-verify-*/phase.0.json")]
        return len(phases) == 2 and all(b'"paired"' in phase for phase in phases)

    wait_for(measuring, 30)
    os.kill(worker, signal.SIGSTOP)
    outputs = hosts.outputs()
    waiting = report.read_report("gpu01", hosts.plan.nonce, outputs["gpu01"])  # type: ignore[arg-type]
    assert [rank.missing for rank in waiting.ranks] == [(1,)]
    assert "gpu02" in judge(hosts.plan, outputs).reason  # type: ignore[arg-type]
    hosts.assert_nothing_left()


class Ras(socketserver.StreamRequestHandler):
    """Answers as NCCL's RAS service does of a job whose rank 1 has stopped."""

    asked = threading.Event()

    def handle(self) -> None:
        for raw in self.rfile:
            word = raw.decode().strip()
            if word == "STATUS":
                self.wfile.write(document([lost(1, True, False)], {0: 7}).encode())
                self.asked.set()
                return
            self.wfile.write(b"SERVER PROTOCOL 2\n" if word.startswith("CLIENT") else b"OK\n")


@on_stub
def test_nccl_is_asked_while_a_phase_does_not_end(
    make: Callable[..., Hosts], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without GPUs the ranks end up on gloo, and the service is ours: it is the asking that is tried."""
    Ras.asked.clear()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Ras) as service:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        monkeypatch.setenv("NCCL_RAS_ADDR", f"127.0.0.1:{service.server_address[1]}")
        hosts = make(deadline=60.0, backend="nccl", ranks_per_host=1, sizes=(8,))
        hosts.start(*NAMES)
        os.kill(worker := hosts.worker("gpu02"), signal.SIGSTOP)
        assert Ras.asked.wait(60)
        os.kill(worker, signal.SIGCONT)
        outputs = hosts.outputs()
        service.shutdown()
    said = report.read_report("gpu01", hosts.plan.nonce, outputs["gpu01"])  # type: ignore[arg-type]
    assert said.end is not None
    assert said.end.missed == ((1, "unresponsive"),)


LINKS = ("agent", "launcher of the agent", "torchrun", "reader")


def links(pid: int) -> list[int]:
    """A process and its ancestors up to, not with, this one."""
    chain = []
    while pid not in (0, 1, os.getpid()):
        chain.append(pid)
        pid = int(read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1])
    return chain


@pytest.mark.parametrize(
    ("make", "who"),
    [
        ("stub", "agent"),
        ("stub", "reader"),
        *(pytest.param("stub", link, marks=pytest.mark.full) for link in LINKS[1:-1]),
        *(pytest.param("torch", link, marks=pytest.mark.full) for link in LINKS),
    ],
    indirect=["make"],
)
def test_nothing_outlives_whoever_is_killed(make: Callable[..., Hosts], who: str) -> None:
    """SIGKILL on each link of timeout -> agent -> torchrun -> worker, and the loss of the reader."""
    hosts = make(deadline=60.0)
    hosts.start(*NAMES)
    worker, torchrun, agent, *above = links(hosts.worker("gpu01"))
    agent_of_other = links(hosts.worker("gpu02"))[2]
    assert above
    assert list(hosts.tmp.glob("remedy-verify-*"))
    if who == "reader":
        for process in hosts.running.values():
            assert process.stdout is not None
            process.stdout.close()
    else:
        victim = {"agent": agent, "launcher of the agent": above[0], "torchrun": torchrun}[who]
        os.kill(victim, signal.SIGKILL)
        # The other host ends by itself, or with its own reader.
        other = hosts.running["gpu02"]
        with contextlib.suppress(ProcessLookupError):
            os.kill(agent_of_other, signal.SIGTERM)
        other.communicate(timeout=30)
    wait_for(lambda: not Path(f"/proc/{worker}").exists(), 6)
    hosts.assert_nothing_left()


@on_stub
def test_a_port_in_use_is_told_with_its_holder(make: Callable[..., Hosts]) -> None:
    import socket

    hosts = make(deadline=10.0)
    with socket.create_server(("127.0.0.1", hosts.plan.port)):
        hosts.start(*NAMES)
        verdict = hosts.verdict()
    assert not verdict.passed
    assert f"port {hosts.plan.port} is held by process {os.getpid()}" in verdict.reason, verdict
    assert verdict.reason.startswith("gpu01")


def test_an_interpreter_that_is_not_there(make: Callable[..., Hosts]) -> None:
    hosts = make(deadline=12.0)
    gone = "/nonexistent/python3; touch pwned"
    plan = hosts.plan
    hosts.plan = plan.model_copy(
        update={"hosts": tuple(h.model_copy(update={"python": gone}) for h in plan.hosts)}
    )
    hosts.start(*NAMES)
    verdict = hosts.verdict()
    assert not verdict.passed
    assert not verdict.possible
    assert not Path("pwned").exists()


@on_stub
def test_an_address_of_another_host(make: Callable[..., Hosts]) -> None:
    hosts = make(deadline=10.0)
    first, second = hosts.plan.hosts
    wrong = second.model_copy(update={"address": "192.0.2.77"})
    hosts.plan = hosts.plan.model_copy(update={"hosts": (first, wrong)})
    hosts.start(*NAMES)
    verdict = hosts.verdict()
    assert not verdict.passed
    assert verdict.reason.startswith("gpu02 does not have its cluster address"), verdict


def test_established_is_known() -> None:
    """The socket table is read right: a connection that we make shows with both its ends."""
    import socket

    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        pairs = {(s.local, s.remote) for s in sockets() if s.state == ESTABLISHED}
        assert (client.getsockname(), server.getsockname()) in pairs


if shutil.which("unshare") is None:  # pragma: no cover
    pytestmark.append(pytest.mark.skip(reason="unshare (util-linux) is not installed"))
