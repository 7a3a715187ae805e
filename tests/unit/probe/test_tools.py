"""Firewalls, containers, GPUs and RDMA: what the tools of the host print."""

from __future__ import annotations

import json
from typing import TypeVar

import pytest

from remedy.probe import Containers, Firewalls, Gpus, HostState
from remedy.values import Fact, Unknown
from tests.unit.probe_data import parse, recorded, replaced, state

T = TypeVar("T")

GPU_ROW = (
    "0, GPU-5c1d, 00000000:18:00.0, NVIDIA H200, 570.133.20, Enabled, Default, 143771, 1024, 3\n"
)
H200 = "/sys/bus/pci/devices/0000:18:00.0/modalias:pci:v000010DEd00002335sv000010DEsd000018BEbc03sc02i00\n"
NVSWITCH = "/sys/bus/pci/devices/0000:05:00.0/modalias:pci:v000010DEd000022A3sv000010DEsd00001796bc06sc80i00\n"
DRIVER = "/proc/driver/nvidia/version:NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.133.20  Sun Mar 30\n"


def known(fact: Fact[T]) -> T:
    assert not isinstance(fact, Unknown), fact
    return fact


def answer(**sections: str) -> HostState:
    body = recorded("lab-idle")
    for name, content in sections.items():
        body = replaced(body, name.replace("_", "-"), content)
    return parse(body)


def with_kernel(lines: str, **sections: tuple[str, str]) -> HostState:
    body = recorded("lab-idle")
    at = body.index(b"/proc/meminfo:")
    body = body[:at] + lines.encode() + body[at:]
    for name, (content, status) in sections.items():
        body = replaced(body, name.replace("_", "-"), content, status, "detail")
    return parse(body)


def test_the_firewalls_of_a_busy_host() -> None:
    firewalls: Firewalls = known(state("lab-busy").firewalls)
    nft = known(firewalls.nft)
    hooks = {(c.family, c.table, c.name): c.policy for c in nft.chains if c.hook == "input"}
    assert hooks == {
        ("ip", "filter", "INPUT"): "drop",
        ("ip6", "filter", "INPUT"): "drop",
        ("inet", "mine", "in"): "accept",
    }
    (rule,) = next(c for c in nft.chains if c.table == "mine").rules
    assert rule.comment == "from {{ 7*7 }} $(id)"
    assert json.loads(rule.expression)[-1] == {"drop": None}
    (peers,) = [one for one in nft.sets if one.table == "mine"]
    assert json.loads(peers.definition)["elem"] == ["10.0.0.1"]
    assert ":INPUT DROP\n" in known(firewalls.iptables)
    assert "-A ufw-user-input -p tcp -m tcp --dport 22 -j ACCEPT\n" in known(firewalls.iptables)
    assert "-A INPUT -p tcp -m tcp --dport 9999 -j DROP\n" in known(firewalls.iptables_legacy)
    assert firewalls.ufw is True
    assert firewalls.firewalld is None


def test_the_firewalls_of_an_idle_host() -> None:
    firewalls = known(state("lab-idle").firewalls)
    assert known(firewalls.nft).tables == ()
    assert firewalls.ufw is False
    assert (firewalls.iptables, firewalls.iptables_legacy) == ("", "")


def test_firewalld() -> None:
    firewalls = known(state("lab-firewalld").firewalls)
    zones = known(firewalls.firewalld)
    assert zones is not None
    assert "public (active)\n" in zones
    assert 'rule family="ipv4" source address="10.0.0.9" accept' in zones
    assert ("inet", "firewalld") in known(firewalls.nft).tables


def test_rules_that_may_not_be_read_are_unknown() -> None:
    body = replaced(
        recorded("lab-idle"), "nft", "", "failed:1", "Operation not permitted (you must be root)"
    )
    nft = known(parse(body).firewalls).nft
    assert isinstance(nft, Unknown)
    assert "root" in nft.reason


def test_docker() -> None:
    info = {
        "ServerVersion": "27.5.1",
        "LiveRestoreEnabled": True,
        "DefaultRuntime": "nvidia",
        "Runtimes": {"runc": {}, "nvidia": {}},
        "DockerRootDir": "/var/lib/docker",
        "CgroupDriver": "systemd",
    }
    container = {
        "id": "ab", "name": "/train", "image": "x{{y}}", "shm_bytes": 67108864, "ipc_mode": "private",
        "pid": 77,
    }  # fmt: skip
    found = answer(
        docker=json.dumps(info) + "\n\n0", docker_containers=json.dumps(container) + "\n\n0"
    )
    containers: Containers = known(found.containers)
    docker = known(containers.docker)
    assert docker is not None
    assert (docker.version, docker.default_runtime) == ("27.5.1", "nvidia")
    assert docker.runtimes == ("nvidia", "runc")
    assert known(containers.docker_containers) == (
        ("ab", "train", "x{{y}}", 67108864, "private", 77),
    )
    assert known(containers.podman_containers) == ()


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock\n\n1",
            "Cannot connect",
        ),
        ('{"ServerErrors":["permission denied"]}\n\n0', "permission denied"),
        ("\n137", "in time"),
        ("", "exit status"),
    ],
)
def test_a_docker_that_does_not_answer_is_unknown(output: str, reason: str) -> None:
    docker = known(answer(docker=output).containers).docker
    assert isinstance(docker, Unknown)
    assert reason in docker.reason


# As nvidia-smi's manual and its users show it; not taken from a machine of ours.
NVLINK = """\
GPU 0: NVIDIA H200 (UUID: GPU-5c1d)
\t Link 0: 26.562 GB/s
\t Link 1: 26.562 GB/s
GPU 10: NVIDIA H200 (UUID: GPU-6c1d)
\t Link 0: 26.562 GB/s
\t Link 1: <inactive>
GPU 2: NVIDIA H200 (UUID: GPU-7c1d)"""


def test_nvlinks_that_are_not_told_are_unknown() -> None:
    asked = with_kernel(H200, nvidia_links=("Invalid combination of input arguments.\n\n1", "ok"))
    links = known(asked.gpus).links
    assert isinstance(links, Unknown)
    assert "Invalid combination" in links.reason


def test_gpus() -> None:
    found = with_kernel(
        H200 + NVSWITCH + DRIVER,
        nvidia_gpus=(GPU_ROW + "\n0", "ok"),
        nvidia_processes=("4711, GPU-5c1d, 1000\n815, GPU-5c1d, [N/A]\n\n0", "ok"),
        nvidia_links=(NVLINK + "\n\n0", "ok"),
        acs=("18:00.0 3D controller\n\t\tACSCtl:\tSrcValid+ TransBlk-\n\n0", "ok"),
    )
    gpus: Gpus = known(found.gpus)
    (gpu,) = known(gpus.devices)
    assert (gpu.number, gpu.name, gpu.driver, gpu.persistence) == (
        0,
        "NVIDIA H200",
        "570.133.20",
        True,
    )
    assert (gpu.memory_total, gpu.memory_used, gpu.utilization) == (143771, 1024, 3)
    assert known(gpus.processes) == ((4711, "GPU-5c1d", 1000), (815, "GPU-5c1d", None))
    assert (gpus.driver, gpus.nvswitches) == ("570.133.20", 1)
    assert [device.address for device in gpus.pci if device.is_gpu] == ["0000:18:00.0"]
    assert "SrcValid+" in known(gpus.acs)["18:00.0"]
    assert known(gpus.links) == {0: 53.124, 10: 26.562, 2: 0.0}


def test_a_gpu_without_its_tool_is_not_no_gpu() -> None:
    gpus = known(with_kernel(H200).gpus)
    assert isinstance(gpus.devices, Unknown)
    assert "nvidia-smi is not installed" in gpus.devices.reason
    assert known(known(state("lab-idle").gpus).devices) == ()


@pytest.mark.parametrize(
    ("output", "status", "reason"),
    [
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n\n9",
            "ok",
            "has failed",
        ),
        (
            "Failed to initialize NVML: Driver/library version mismatch\n\n18",
            "ok",
            "version mismatch",
        ),
        ("\n137", "timeout", "detail"),
        ("0, GPU", "timeout", "detail"),
    ],
)
def test_a_broken_nvidia_smi_is_unknown(output: str, status: str, reason: str) -> None:
    devices = known(with_kernel(H200, nvidia_gpus=(output, status)).gpus).devices
    assert isinstance(devices, Unknown)
    assert reason in devices.reason


def test_rdma_ports() -> None:
    start = "/sys/class/infiniband/mlx5_0"
    lines = (
        f"{start}/fw_ver:28.39.1002\n{start}/ports/1/state:4: ACTIVE\n{start}/ports/1/phys_state:5: LinkUp\n"
        f"{start}/ports/1/rate:400 Gb/sec (4X NDR)\n{start}/ports/1/link_layer:InfiniBand\n"
        f"{start}/ports/1/counters/link_downed:3\n{start}/ports/1/hw_counters/out_of_sequence:9\n\n2"
    )
    body = recorded("lab-idle").replace(
        b"\npresent /run/systemd/system\n",
        f"\npresent {start}/device/net/ibs1\npresent /run/systemd/system\n".encode(),
    )
    (port,) = known(parse(replaced(body, "rdma", lines)).rdma)
    assert (port.device, port.port, port.state, port.physical_state) == (
        "mlx5_0",
        1,
        "ACTIVE",
        "LinkUp",
    )
    assert (port.rate, port.link_layer, port.firmware) == (400.0, "InfiniBand", "28.39.1002")
    assert port.interfaces == ("ibs1",)
    assert port.counters == {"link_downed": 3, "out_of_sequence": 9}


def test_physical_interface() -> None:
    common = {"mtu": 9000, "link_type": "ether"}
    address = {"local": "10.0.0.1", "prefixlen": 24, "scope": "global"}
    link = common | {
        "ifindex": 5,
        "ifname": "ens1",
        "flags": ["UP"],
        "operstate": "UP",
        "master": "bond0",
    }
    bond = common | {
        "ifindex": 6,
        "ifname": "bond0",
        "linkinfo": {"info_kind": "bond"},
        "addr_info": [address],
    }
    links = (
        "/sys/class/net/ens1/speed:200000\n/sys/class/net/ens1/device/uevent:DRIVER=mlx5_core\n"
        "/sys/class/net/bond0/speed:-1\n"
    )
    found = answer(ip=f"{json.dumps([link, bond])}\n[]\n[]\n", links=links)
    ens1, master = known(found.network).interfaces
    assert (ens1.kind, ens1.speed, ens1.driver, ens1.master) == (
        "physical",
        200000,
        "mlx5_core",
        "bond0",
    )
    assert (master.kind, master.speed, master.ipv4) == ("bond", None, ("10.0.0.1",))
