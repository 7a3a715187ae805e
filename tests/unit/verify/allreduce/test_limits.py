"""What links can carry: the limit that a bandwidth is shown beside, and of which a share may be asked for."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.probe import Address, Gpus, Interface, Network, RdmaPort
from remedy.spec import VerifySpec
from remedy.values import Unknown
from remedy.verify.allreduce.limits import limits
from remedy.verify.allreduce.plan import RankHost, plan_ranks
from remedy.verify.facts import compare
from remedy.verify.hosts import Participant
from tests.unit.build import host_state, record

PORT = RdmaPort("mlx5_0", 1, "ACTIVE", "LinkUp", 400.0, "InfiniBand", "", (), {})
DOWN = PORT._replace(device="mlx5_9", state="DOWN")
WHOLE = dict.fromkeys(range(8), 478.1)
BROKEN = {**WHOLE, 3: 451.6}


def gpus(links: Any) -> Gpus:
    return Gpus(pci=(), driver="580.65.06", devices=(), processes=(), acs={}, links=links)


def card(speed: int | None, kind: str = "physical") -> Network:
    address = record(Address, address="10.0.0.1")
    interface = record(Interface, name="eth0", kind=kind, speed=speed, addresses=(address,))
    return record(Network, interfaces=(interface,))


def limit(backend: str, *, ranks: int = 8, hosts: int = 2, **facts: Any) -> float | None:
    """Of the first of some hosts that are all alike."""
    facts = {"rdma": (), "network": card(None), "gpus": gpus({}), **facts}
    names = [f"gpu{number:02}" for number in range(1, hosts + 1)]
    states = {name: host_state(name, "10.0.0.1").model_copy(update=facts) for name in names}
    plan = [RankHost(name=name, address="10.0.0.1", ranks=ranks) for name in names]
    return limits(states, plan, backend)["gpu01"]


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        ({"rdma": (PORT, PORT._replace(device="mlx5_1"))}, 100.0),
        ({"rdma": (PORT, DOWN)}, 50.0),
        ({"rdma": (PORT,), "network": card(10_000)}, 50.0),
        ({"network": card(25_000)}, 3.125),
        ({"network": card(25_000), "rdma": (DOWN,)}, 3.125),
        ({"network": card(10_000, kind="veth")}, None),
        ({"network": card(None)}, None),
        ({"network": Unknown(reason="no answer")}, None),
        # What joins the GPUs of a host is in the way of everything that leaves it.
        ({"rdma": (PORT,) * 16, "gpus": gpus(WHOLE)}, 478.1),
        ({"rdma": (PORT,), "gpus": gpus(WHOLE)}, 50.0),
        ({"gpus": gpus(WHOLE)}, None),
    ],
)
def test_between_hosts_it_is_what_leaves_them(facts: dict[str, Any], wanted: float | None) -> None:
    assert limit("nccl", **facts) == wanted


@pytest.mark.parametrize(
    ("links", "wanted"),
    [
        (WHOLE, 478.1),
        (BROKEN, 478.1),  # a broken link lowers no mark
        (dict.fromkeys(range(8), 0.0), None),
        ({}, None),
        (Unknown(reason="nvidia-smi did not answer"), None),
    ],
)
def test_inside_one_host_no_wire_counts(links: Any, wanted: float | None) -> None:
    fast: dict[str, Any] = {"rdma": (PORT,), "network": card(10_000), "gpus": gpus(links)}
    assert limit("nccl", hosts=1, **fast) == wanted
    assert limit("gloo", hosts=1, **fast) is None


def test_sockets_use_one_card_whatever_else_there_is() -> None:
    facts: dict[str, Any] = {
        "rdma": (PORT,),
        "network": card(10_000),
        "gpus": gpus(WHOLE),
    }
    assert limit("gloo", **facts) == limit("mccl", **facts) == limit("auto", **facts) == 1.25
    assert limit("mpi", ranks=1, **facts) == 50.0


def test_one_gpu_a_host_needs_no_nvlinks() -> None:
    slow = gpus(dict.fromkeys(range(2), 14.0))
    assert limit("nccl", ranks=1, rdma=(PORT,), gpus=slow) == 50.0
    assert limit("nccl", ranks=2, rdma=(PORT,), gpus=slow) == 14.0


@pytest.mark.parametrize(("links", "mark"), [(WHOLE, 286.86), (BROKEN, 286.86), ({}, None)])
def test_a_share_inside_one_host_is_of_its_nvlinks(links: Any, mark: float | None) -> None:
    """The card of 10 Gb/s would be reached by anything."""
    facts = {"network": card(10_000), "gpus": gpus(links), "rdma": ()}
    state = host_state("gpu01", "10.0.0.1").model_copy(update=facts)
    hosts = [Participant(name="gpu01", address="10.0.0.1", gpus=8)]
    seen = compare({"gpu01": state}, plan_ranks(hosts, VerifySpec(port=29500)))
    plan = plan_ranks(hosts, VerifySpec(min_busbw="60%"), seen.limit, seen.unknown)
    assert plan.min_busbw == (None if mark is None else pytest.approx(mark))
    assert bool(plan.unjudged) == (mark is None)
