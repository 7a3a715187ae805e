"""RDMA ports: states and rates that differ, mixed fabrics, and the module that GPUs need."""

from __future__ import annotations

import pytest

from remedy.deploys.rdma_health import RdmaHealthSpec
from remedy.probe import Kernel
from tests.unit.build import record
from tests.unit.deploys.rdma_bench import port, rdma
from tests.unit.deploys.report_bench import LATE, finding_of, findings_of, gpus, hosts, says


def test_a_port_that_peers_use_is_told_and_one_that_nobody_uses_is_not() -> None:
    whole = rdma(port("mlx5_0"), port("mlx5_1", "DOWN"))
    broken = rdma(port("mlx5_0", "INIT"), port("mlx5_1", "DOWN"))
    assert findings_of("rdma_health", hosts(whole, whole)) == []
    (finding,) = findings_of(
        "rdma_health", hosts(whole, rdma(port("mlx5_0"), port("mlx5_1")), whole)
    )[:1]
    assert finding.host == "gpu01"
    down = finding_of("rdma_health", hosts(whole, broken))
    assert (down.host, down.label) == ("gpu02", "ib-link-fault")
    assert down.evidence[0] == "mlx5_0 port 1: INIT, LinkUp"


def test_mixed_fabrics_and_rates() -> None:
    ib, roce = rdma(port("mlx5_0")), rdma(port("mlx5_0", layer="Ethernet"))
    assert finding_of("rdma_health", hosts(ib, roce)).label == "ib-roce-mixed"
    both = rdma(port("mlx5_0"), port("mlx5_1", layer="Ethernet"))
    assert finding_of("rdma_health", hosts(both, both)).label == "ib-roce-mixed"
    slow = rdma(port("mlx5_0", rate=200.0))
    assert finding_of("rdma_health", hosts(ib, slow)).evidence == (
        "mlx5_0 port 1 200 Gb/s: gpu02",
        "mlx5_0 port 1 400 Gb/s: gpu01",
    )
    assert findings_of("rdma_health", hosts(ib, ib, {"rdma": LATE}, {"rdma": ()})) == []


@pytest.mark.parametrize(
    ("modules", "open_kernel", "missing"),
    [((), False, True), (("nvidia_peermem",), False, False), ((), True, False)],
)
def test_peermem_is_missed_where_nothing_else_does_its_work(
    modules: tuple[str, ...], open_kernel: bool, missing: bool
) -> None:
    kernel = {"kernel": record(Kernel, modules=frozenset(modules))}
    facts = {**gpus(open_kernel=open_kernel), **rdma(port("mlx5_0")), **kernel}
    assert bool(findings_of("rdma_health", hosts(facts))) is missing


def test_a_port_that_is_down_is_named_with_its_states() -> None:
    whole = rdma(port("mlx5_0"), port("mlx5_1"))
    broken = rdma(port("mlx5_0", "INIT"), port("mlx5_1", "DOWN"))
    finding = finding_of("rdma_health", hosts(whole, broken))
    says(
        finding,
        title=("2 RDMA ports",),
        evidence=("mlx5_0 port 1: INIT, LinkUp", "mlx5_1 port 1: DOWN"),
        fix=("mlxlink",),
    )
    assert findings_of("rdma_health", hosts(whole, broken), RdmaHealthSpec(compare=False)) == []
    dead = rdma(port("mlx5_0", "DOWN"))
    assert len(findings_of("rdma_health", hosts(dead))) == 1


def test_mixed_ports_and_rates_are_named_with_their_hosts() -> None:
    ib, roce = rdma(port("mlx5_0")), rdma(port("mlx5_0", layer="Ethernet"))
    mixed = finding_of("rdma_health", hosts(ib, roce, ib))
    assert mixed.label == "ib-roce-mixed"
    says(
        mixed,
        title=("InfiniBand", "RoCE"),
        evidence=("Ethernet: gpu02", "InfiniBand: gpu[01,03]"),
        fix=("NCCL_IB_HCA",),
    )
    both = rdma(port("mlx5_0"), port("mlx5_1", layer="Ethernet"))
    says(finding_of("rdma_health", hosts(both, both)), evidence=("Ethernet and InfiniBand",))
    slow = finding_of("rdma_health", hosts(ib, rdma(port("mlx5_0", rate=200.0))))
    assert slow.label == "ib-link-fault"
    says(slow, title=("mlx5_0 port 1", "rate"), fix=("mlxlink",))
    for spec in (RdmaHealthSpec(compare=False),):
        assert findings_of("rdma_health", hosts(ib, roce), spec) == []


def test_peermem_is_named_with_the_driver_and_the_ports() -> None:
    kernel = {"kernel": record(Kernel, modules=frozenset())}
    facts = {
        **gpus(open_kernel=False, driver="580.9"),
        **rdma(port("mlx5_0"), port("mlx5_1")),
        **kernel,
    }
    finding = finding_of("rdma_health", hosts(facts))
    assert finding.label == "gdr-peermem"
    says(
        finding,
        title=("nvidia_peermem",),
        evidence=("2 active RDMA ports", "580.9"),
        fix=("modprobe nvidia_peermem",),
    )
    for module in ("nvidia_peermem", "nv_peer_mem"):
        loaded = {"kernel": record(Kernel, modules=frozenset({module}))}
        assert findings_of("rdma_health", hosts({**facts, **loaded})) == []
    assert findings_of("rdma_health", hosts({**facts, **gpus(driver="", devices=())})) == []
