"""Why a setting of an interface, of ports or of a size cannot be right, in words."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys import _interfaces as nic
from remedy.deploys import _openmpi, _transports
from remedy.deploys._sizes import GIB, MIB, derived, parse_size, short
from remedy.deploys.dev_shm import DevShmSpec
from remedy.deploys.environment import EnvironmentSpec
from remedy.deploys.firewall import FirewallSpec
from remedy.probe import (
    File,
    HostState,
    Identity,
    Kernel,
    LoginSession,
    Network,
    NftChain,
    NftRuleset,
    RdmaPort,
    SharedMemory,
    Sysctls,
)
from remedy.probe.accelerators import Gpus, PciDevice
from remedy.values import Unknown
from tests.unit.build import NO_FIREWALL, host_state, record
from tests.unit.deploys.environment_bench import MCA, host, interface, whole
from tests.unit.deploys.words_bench import Said, planned, planned_for, run, said

ETH, IB = interface("eth0", "10.0.0.1"), interface("ib0", "10.1.0.1")
DOCKER, LO = interface("docker0", "172.17.0.1", "bridge"), interface("lo", "127.0.0.1", "loopback")
DOWN, BARE = interface("eth8", "10.8.0.1", up=False), interface("eth9", None)
NETWORK = record(Network, interfaces=(ETH, IB, DOCKER, LO, DOWN, BARE))


@pytest.mark.parametrize(
    ("value", "exact", "reason"),
    [
        ("eth0", True, None), ("ib0, eth0", True, None), ("=eth0", True,
         "'=' is NCCL's syntax; here it must be an exact name"),
        ("^lo", True, "'^' is NCCL's syntax; here it must be an exact name"),
        ("eth7", True, "there is no interface 'eth7' here"), ("eth8", True,
         "eth8 is down or has no IPv4 address"),
        ("eth9", True, "eth9 is down or has no IPv4 address"), ("docker0", True,
         "docker0 does not leave this host"),
        ("docker0,lo", True, "docker0, lo does not leave this host"), ("ib0", True,
         "the cluster address is on eth0"),
        ("eth", False, None), ("=eth", False, "no interface here that is up and has an address matches it"),
        ("docker", False, "docker0 does not leave this host"), ("ib", False, "the cluster address is on eth0"),
        ("^eth,ib", False, "docker0, lo does not leave this host"),
    ],
)  # fmt: skip
def test_why_an_interface_cannot_work(value: str, exact: bool, reason: str | None) -> None:
    assert nic.wrong_interfaces(value, NETWORK, ETH, exact=exact, strict=True) == reason
    is_choice = reason is not None and "cluster address" in reason
    loose = nic.wrong_interfaces(value, NETWORK, ETH, exact=exact, strict=False)
    assert loose == (None if is_choice else reason)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("eth0", None), ("10.0.0.0/16", None), ("10.1.0.0/24,eth0", None), ("eth7",
         "no interface here is eth7"),
        ("eth7, 10.9.0.0/24", "no interface here is eth7 or in 10.9.0.0/24"), ("",
         "no interface here is named"),
        ("10.0.0.999/24", "no interface here is 10.0.0.999/24"), ("lo,docker0",
         "docker0, lo does not leave this host"),
        ("ib0", "the cluster address is on eth0"), ("ib0,lo", "the cluster address is on eth0"),
    ],
)  # fmt: skip
def test_why_a_list_of_open_mpi_cannot_work(value: str, reason: str | None) -> None:
    assert _openmpi.wrong_include(value, NETWORK, ETH, strict=True) == reason
    is_choice = reason is not None and "cluster address" in reason
    loose = _openmpi.wrong_include(value, NETWORK, ETH, strict=False)
    assert loose == (None if is_choice else reason)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("all", None), ("", None), (" ", None), ("^eth0", None), ("mlx*", None), ("eth0", None), ("mlx5_0",
         None),
        ("mlx5_0:1", None), ("mlx5_0:2", "no device here is called mlx5_0:2"), ("y, x",
         "no device here is called x or y"),
        ("docker0", "docker0 does not leave this host"), ("docker0,lo", "docker0, lo does not leave this host"),
        ("ib0", None), ("ib0,docker0", None),
    ],
)  # fmt: skip
def test_why_a_device_of_ucx_cannot_work(value: str, reason: str | None) -> None:
    port = RdmaPort("mlx5_0", 1, "DOWN", "LinkUp", 400.0, "InfiniBand", "", (), {})
    state = host_state("a", "10.0.0.1").model_copy(update={"network": NETWORK, "rdma": (port,)})
    name = "UCX_NET_DEVICES"
    assert _transports.fault_of(name, value, state, ETH, strict=True) == reason
    for fact in ("rdma", "network"):
        blind = state.model_copy(update={fact: Unknown(reason="x")})
        assert _transports.fault_of(name, value, blind, ETH, strict=True) is None
    assert _transports.value_for(name, state, ETH) == "eth0"
    active = state.model_copy(update={"rdma": (port._replace(state="ACTIVE"),)})
    assert _transports.value_for(name, active, ETH) is None
    assert _transports.value_for("HCCL_SOCKET_IFNAME", active, ETH) == "=eth0"


# ---- repairs of the environment


def with_mpi(*, wall: bool, bridge: bool) -> HostState:
    state = host(1, {MCA: b"# site\n"}, extra=() if bridge else (interface("eth5", "10.5.0.1"),))
    assert isinstance(state.network, Network)
    kept = tuple(i for i in state.network.interfaces if bridge or i.name != "docker0")
    chain = NftChain("inet", "filter", "input", "input", 0, "accept", ())
    ruleset = NftRuleset(tables=(("inet", "filter"),), chains=(chain,) * wall, sets=())
    live = {"net.ipv4.ip_local_port_range": "32768 60999"}
    return state.model_copy(
        update={
            "network": state.network.model_copy(update={"interfaces": kept}),
            "session": record(
                LoginSession, homes=("/root",), programs={"mpirun": "/usr/bin/mpirun"}
            ),
            "firewalls": NO_FIREWALL.model_copy(update={"nft": ruleset}),
            "sysctls": Sysctls(live=live, persisted=(), unread=()),
        }
    )


ASTRAY = "Open MPI takes docker0 too, which does not leave the host"
FURTHER = "Open MPI takes eth5 too, and peers are let in by their cluster addresses only"
PORTS = "peers are let in on 32768-60999, and Open MPI listens from port 1024 upwards"


@pytest.mark.parametrize(
    ("wall", "bridge", "reasons"),
    [
        (False, True, {ASTRAY}), (True, True, {ASTRAY, PORTS}), (True, False, {FURTHER, PORTS}), (False, False,
         set()),
    ],
)  # fmt: skip
def test_why_open_mpi_is_kept_off(wall: bool, bridge: bool, reasons: set[str]) -> None:
    plan = planned_for("environment", whole(with_mpi(wall=wall, bridge=bridge), host(2)))
    lines = [line for found in said(plan, "gpu01") for line in found.evidence if "OMPI" in line]
    assert {line.partition(": ")[2] for line in lines} == reasons


def test_why_nccl_gets_an_interface_unasked() -> None:
    first = interface("docker1", "172.18.0.1", "bridge")
    state = host(gpu=True, first=(first,))
    spec = EnvironmentSpec()
    found = said(planned_for("environment", whole(state, host(2), spec=spec)), "gpu01")
    lines = [line for f in found for line in f.evidence]
    assert lines == []  # by itself it takes eno2: bridges of containers come last
    lost = interface("aaa0", "172.18.0.1", "bridge")
    state = host(gpu=True, first=(lost,))
    found = said(planned_for("environment", whole(state, host(2), spec=spec)), "gpu01")
    lines = [line for f in found for line in f.evidence]
    assert lines == [
        "NCCL_SOCKET_IFNAME==eno2: NCCL by itself takes aaa0, eno2; aaa0 does not leave the host"
    ]
    alone = said(planned_for("environment", whole(state, spec=spec)), "gpu01")
    assert alone == []


# ---- sizes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1), ("1b", 1), ("2k", 2048), ("2 K", 2048), ("2kb", 2048), ("2KiB", 2048), ("1.5m", 1_572_864),
         ("1g", GIB),
        ("1t", 1 << 40), ("1p", 1 << 50), ("1x", None), ("", None), ("m", None), ("1.m", None), ("-1", None),
    ],
)  # fmt: skip
def test_sizes_as_docker_reads_them(text: str, size: int | None) -> None:
    assert parse_size(text) == size
    assert parse_size("3g", 1000) == 3 * 10**9


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (GIB, "1g"),
        (3 * MIB, "3m"),
        (1025 * 1024, "1025k"),
        (1025, "1025"),
        (1024 * MIB + 1024, "1048577k"),
    ],
)
def test_sizes_as_all_read_them(size: int, text: str) -> None:
    assert short(size) == text


def test_sizes_that_are_refused() -> None:
    for value in ("1x", True, 1.5, None):
        if value is None:
            continue
        with pytest.raises(ValueError, match="size"):
            DevShmSpec(size=value)
    for size, is_right in ((MIB, True), (MIB - 1, False), (1 << 50, True), ((1 << 50) + 1, False)):
        if is_right:
            assert DevShmSpec(size=size).size == size
        else:
            with pytest.raises(ValueError, match="size"):
                DevShmSpec(size=size)


GPU = PciDevice("0000:01:00.0", "10de", "2330", "0302")


@pytest.mark.parametrize(
    ("memory", "size", "why"),
    [
        (64 * GIB, 32 * GIB, "as PaddlePaddle's guide advises; it takes memory only as it is used"),
        (0, 32 * GIB, "as PaddlePaddle's guide advises; it takes memory only as it is used"),
        (62 * GIB, 31 * GIB, "half of the 62.0 GiB of memory, less than the 32g advised"),
        (GIB, GIB + 128 * MIB, "half of the 1.0 GiB of memory, less than the 32g advised"),
        (10 * GIB + 3, 5 * GIB, "half of the 10.0 GiB of memory, less than the 32g advised"),
    ],
)  # fmt: skip
def test_the_size_that_shared_memory_needs(memory: int, size: int, why: str) -> None:
    state = host_state("a", "10.0.0.1").model_copy(
        update={"kernel": record(Kernel, memory=memory), "gpus": record(Gpus, pci=(GPU, GPU))}
    )
    assert derived(state) == (size, why)


def test_half_of_the_memory_is_said_of_a_host_where_no_file_has_a_size() -> None:
    update: dict[str, Any] = {
        "shared_memory": SharedMemory(size=4 * GIB, used=0, files=(), holders={}),
        "kernel": record(Kernel, memory=2 * GIB),
        "gpus": record(Gpus, pci=(GPU,)),
        "identity": record(Identity, virtualization="none"),
        "session": record(LoginSession, present=frozenset({"/run/systemd/system"})),
    }
    state = host_state("a", "10.0.0.1").model_copy(update=update)
    fstab = File(path="/etc/fstab", real_path="/etc/fstab", exists=True, content=b"")
    state = state.model_copy(update={"files": {**state.files, fstab.path: fstab}})
    plan = planned("dev_shm", state)
    assert said(plan) == [
        Said(
            "drift", "after the next boot, /dev/shm is too small, by /etc/fstab",
            (
                ("size of /dev/shm: 4.0 GiB, needs 1.1 GiB, half of the 2.0 GiB of memory, less than the 32g "
                "advised"),
                "/etc/fstab has no size, so it will be half of the memory: 1.0 GiB",
            ), "",
        )
    ]  # fmt: skip
    assert run(plan) == []


def test_when_open_mpi_may_listen_where_it_likes() -> None:
    state = with_mpi(wall=True, bridge=False)
    unread = state.model_copy(update={"sysctls": Unknown(reason="no /proc")})
    for first, mode in ((state, "leave"), (state, "off"), (unread, "open")):
        made = whole(first, host(2))
        made.spec.sections["firewall"] = FirewallSpec.model_validate({"mode": mode})
        evidence = [
            line for f in said(planned_for("environment", made), "gpu01") for line in f.evidence
        ]
        assert not [line for line in evidence if PORTS in line]
