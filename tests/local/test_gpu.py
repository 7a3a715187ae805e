"""NCCL for real on one GPU: ranks that are hosts to it, each behind a firewall of its own.

NCCL refuses two ranks on one GPU of one host. It takes for a host what has a name and a boot-id of its own, or
where NCCL_HOSTID is set, that alone (its src/misc/utils.cc); from 2.30 on it can be told to let ranks share a
GPU (NCCL_MULTI_RANK_GPU_ENABLE). The story of the firewall is also told with gloo, which needs no GPU.

What was measured goes into the report of ``pytest -m gpu --junitxml FILE``.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remedy.spec import VerifySpec
from remedy.verify.allreduce.plan import plan_ranks
from remedy.verify.hosts import Participant
from remedy.verify.verdict import Verdict
from tests.local.gpu import Record, kept_of, nccl, on_gpu
from tests.local.hosts import NEEDS, Hosts
from tests.local.rooms import EPHEMERAL, NETWORK, Rooms

pytestmark = NEEDS


RANKS = (2, 4, 8)
# Over gloo tests/lab has the same with hosts and ssh.
WORLDS = [
    pytest.param("gloo", 2, marks=pytest.mark.full),
    *(pytest.param("nccl", count, marks=on_gpu) for count in RANKS),
]


@pytest.fixture
def rooms() -> Iterator[Callable[[int], Rooms]]:
    if os.geteuid() != 0 or any(shutil.which(tool) is None for tool in ("ip", "nft", "nsenter")):
        pytest.skip("network namespaces with a firewall need root, iproute2 and nftables")
    made: list[Rooms] = []

    def build(count: int) -> Rooms:
        made.append(Rooms(count))
        made[-1].make()
        return made[-1]

    yield build
    for one in made:
        one.remove()


@pytest.fixture
def prove(tmp_path: Path) -> Iterator[Callable[..., Verdict]]:
    """Verify hosts of this machine, one rank on each."""
    started: list[Hosts] = []

    def run(
        names: list[str],
        addresses: list[str],
        *,
        backend: str,
        deadline: float,
        port: int,
        networks: dict[str, str] | None = None,
        own: bool = True,
        **environment: str,
    ) -> Verdict:
        candidates = [
            Participant(name=name, address=address, python=sys.executable)
            for name, address in zip(names, addresses, strict=True)
        ]
        spec = VerifySpec(
            backend=backend, deadline=deadline, ranks_per_host=1, port=port, sizes=(8, 2**20, 2**26)
        )
        hosts = Hosts(plan_ranks(candidates, spec), tmp_path, networks)
        started.append(hosts)
        hosts.start(*names, own_boot_id=own, **environment)
        verdict = hosts.verdict()
        hosts.assert_nothing_left()
        return verdict

    yield run
    for hosts in started:
        hosts.kill()


def kept(verdict: Verdict, record: Record) -> None:
    """Keep what was seen for the report."""
    kept_of(verdict.model_dump(), record)


@pytest.mark.parametrize(("backend", "count"), WORLDS)
def test_hosts_behind_closed_firewalls_prove_nothing_until_remedys_rule_is_there(
    rooms: Callable[[int], Rooms],
    prove: Callable[..., Verdict],
    backend: str,
    count: int,
    record_property: Record,
) -> None:
    place = rooms(count)
    names = list(place.names)
    addresses = [f"{NETWORK}.{number}" for number in range(1, count + 1)]
    port = 29400
    place.close(port)
    # Their names are in no hosts file: what is to stop them here is the firewall, and nothing else.
    interface = {"GLOO_SOCKET_IFNAME": "eth0", "NCCL_SOCKET_IFNAME": "eth0"}
    both = {"backend": backend, "port": port, "networks": place.names, **interface}
    closed = prove(names, addresses, deadline=25.0, **both)
    assert not closed.passed
    assert not closed.sum_exact
    # It is a port that the kernel drew which nobody answers.
    named = re.search(r"port (\d+)", closed.reason)
    assert named, closed.reason
    assert EPHEMERAL[0][0] <= int(named[1]) <= EPHEMERAL[0][1]
    place.open()
    opened = prove(names, addresses, deadline=150.0, **both)
    assert opened.passed, opened.model_dump_json(indent=1)
    assert (opened.backend, opened.world_size, opened.hosts) == (backend, count, count)
    assert opened.sum_exact
    kept(opened, record_property)


WAYS = {
    "a host id each": {"NCCL_HOSTID": "{host}"},
    "one GPU for several ranks": {"NCCL_MULTI_RANK_GPU_ENABLE": "1", "NCCL_MAX_CTAS": "4"},
}


@pytest.mark.parametrize(
    ("way", "count"), [pytest.param(way, n, marks=on_gpu) for way in WAYS for n in RANKS]
)
def test_ranks_of_one_machine_reduce_on_one_gpu(
    prove: Callable[..., Verdict], way: str, count: int, record_property: Record
) -> None:
    if way == "one GPU for several ranks" and nccl() < (2, 30):
        pytest.skip(f"NCCL {nccl()} has no such setting: it came with 2.30")
    names = [f"gpu{number:02d}" for number in range(1, count + 1)]
    verdict = prove(
        names,
        ["127.0.0.1"] * count,
        backend="nccl",
        deadline=150.0,
        port=29400,
        own=False,
        NCCL_SOCKET_IFNAME="lo",
        **WAYS[way],
    )
    assert (verdict.backend, verdict.nccl) == ("nccl", (".".join(map(str, nccl())),))
    assert (verdict.world_size, verdict.sum_exact) == (count, True), verdict
    # To the verdict they are one machine all the same: a host id proves no second one.
    assert not verdict.passed
    kept(verdict, record_property)
