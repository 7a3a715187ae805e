"""Firewalls, containers, GPUs and RDMA: what the tools of the host print."""

from __future__ import annotations

import json
import re
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
    assert known(firewalls.firewalld) == "running"
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
    assert docker.default_runtime == "nvidia"
    assert docker.runtimes == ("nvidia", "runc")
    assert known(containers.docker_containers) == (
        ("ab", "train", "x{{y}}", 67108864, "private", 77),
    )
    assert known(containers.podman_containers) == ()


def processes(*rows: tuple[int, int, str, str]) -> dict[str, str]:
    """Return the sections of processes: pid, parent, name and arguments of each."""
    numbers = "0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0"
    return {
        "processes": "".join(
            f"/proc/{pid}/stat:{pid} ({name}) S {parent} 5 5 {numbers}\n"
            for pid, parent, name, _ in rows
        ),
        "process_details": "".join(f"0 /proc/{pid}\n" for pid, *_ in rows)
        + "".join(
            f"/proc/{pid}/cmdline:" + words.replace(" ", "\t") + "\t\n" for pid, _, _, words in rows
        ),
    }


@pytest.mark.parametrize(
    ("settings", "arguments", "default", "runtimes"),
    [
        (None, "", "runc", ()),
        ("{}", "", "runc", ()),
        (
            '{"default-runtime":"nvidia","runtimes":{"nvidia":{"path":"x"}}}',
            "",
            "nvidia",
            ("nvidia",),
        ),
        (
            None,
            " --add-runtime nvidia=/usr/bin/x --add-runtime=kata=y --default-runtime=kata",
            "kata",
            ("kata", "nvidia"),
        ),
    ],
)
def test_docker_by_its_files(
    settings: str | None, arguments: str, default: str, runtimes: tuple[str, ...]
) -> None:
    body = recorded("lab-idle")
    rows = processes((7, 1, "dockerd", f"/usr/bin/dockerd -H fd://{arguments}"))
    for name, content in {**rows, "docker": "files 7\n"}.items():
        body = replaced(body, name.replace("_", "-"), content)
    if settings is not None:
        path = "/etc/docker/daemon.json"
        stat = re.compile(rb"stat: [^\n]*daemon.json[^\n]*")
        assert stat.search(body)
        facts = f"81a4 0 0 {len(settings) + 1} 1 1 1700000000 {path}".encode()
        body = stat.sub(facts, body)
        body = body.replace(b"/etc/hostname:", f"{path}:{settings}\n/etc/hostname:".encode(), 1)
    docker = known(known(parse(body).containers).docker)
    assert docker is not None
    assert docker.default_runtime == default
    assert docker.runtimes == tuple(sorted(("io.containerd.runc.v2", "runc", *runtimes)))


def test_a_docker_whose_file_is_no_json_or_whose_arguments_are_not_known_is_unknown() -> None:
    body = replaced(recorded("lab-idle"), "docker", "files 7\n")
    docker = known(parse(body).containers).docker
    assert isinstance(docker, Unknown)
    assert "arguments of dockerd" in docker.reason


ID = "ab" * 32
FOLDER = f"/var/lib/docker/containers/{ID}"


def test_containers_by_dockers_files() -> None:
    lines = (
        f"container {ID} 77\n"
        f'{FOLDER}/config.v2.json:"Image":"busybox"\n'
        f'{FOLDER}/config.v2.json:"Image":"a label"\n'
        f'{FOLDER}/config.v2.json:"LogPath":"a label","Name":"/other"\n'
        f'{FOLDER}/config.v2.json:"Image":"sha256:00"\n'
        f'{FOLDER}/config.v2.json:"LogPath":"/x.log","Name":"/train"\n'
        f'{FOLDER}/hostconfig.json:"IpcMode":"private"\n'
        f'{FOLDER}/hostconfig.json:"ShmSize":67108864\n'
    )
    (container,) = known(known(answer(docker_containers=lines).containers).docker_containers)
    assert container == (ID, "train", "busybox", 67108864, "private", 77)
    unread = known(answer(docker_containers=f"container {ID} 77\n").containers).docker_containers
    assert isinstance(unread, Unknown)
    assert "say too little" in unread.reason


def test_containers_of_podman() -> None:
    other = "cd" * 32
    rows = processes(
        (50, 1, "conmon", f"/usr/bin/conmon -c {ID} -u {ID} -n old --exit-command /usr/bin/podman"),
        (51, 50, "sleep", "sleep 100"),
        (60, 1, "conmon", f"/usr/bin/conmon -c {other} -n shared --exit-command /usr/bin/podman"),
        (70, 1, "conmon", "/usr/bin/conmon -c ef -n k8s_pod -s"),
    )
    listed = [{"id": ID, "metadata": json.dumps({"image-name": "x/tiny:latest"})}]
    path = "/var/lib/containers/storage/overlay-containers/containers.json"
    body = recorded("lab-idle")
    for name, content in {
        **rows,
        "podman_containers": f"{path}:{json.dumps(listed)}\n",
    }.items():
        body = replaced(body, name.replace("_", "-"), content)
    mount = (
        "/proc/self/mountinfo:900 800 0:77 / /var/lib/containers/storage/overlay-containers/"
        f"{ID}/userdata/shm rw,nosuid - tmpfs shm rw,size=64000k\n"
    )
    at = body.index(b"/proc/meminfo:")
    body = body[:at] + mount.encode() + body[at:]
    containers = known(known(parse(body).containers).podman_containers)
    assert containers == (
        (ID, "old", "x/tiny:latest", 65536000, "private", 51),
        (other, "shared", "", 0, "host", 0),
    )


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


def test_a_table_that_is_dormant_has_no_hooks() -> None:
    table = {"family": "inet", "name": "mine", "handle": 1}
    chain = {
        "family": "inet", "table": "mine", "name": "in", "handle": 1, "type": "filter", "hook": "input",
        "prio": 0, "policy": "drop",
    }  # fmt: skip
    rules = json.dumps({"nftables": [{"table": table}, {"chain": chain}]})
    plain = (
        "table inet mine {\n\tflags dormant\n\tchain in {\n\t\ttype filter hook input priority 0;\n"
    )
    for text, hook in (
        (plain, ""),
        (plain.replace("\tflags dormant\n", ""), "input"),
        ("", "input"),
    ):
        nft = known(known(answer(nft=rules, nft_devices=text).firewalls).nft)
        assert [chain.hook for chain in nft.chains] == [hook]
    flagged = json.dumps(
        {"nftables": [{"table": {**table, "flags": ["dormant"]}}, {"chain": chain}]}
    )
    nft = known(known(answer(nft=flagged).firewalls).nft)
    assert [chain.hook for chain in nft.chains] == [""]
