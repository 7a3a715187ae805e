"""What is said of networks, RDMA, launching, versions, clocks and Pythons."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys.fleet_versions import FleetVersionsSpec
from remedy.plan import Fleet
from remedy.probe import (
    Clock,
    Kernel,
    LoginSession,
    Mention,
    Package,
    Software,
    Sysctls,
    Unit,
)
from remedy.values import Unknown
from tests.unit.build import host_state, record, with_section
from tests.unit.deploys.links_bench import interface, network
from tests.unit.deploys.rdma_bench import port, rdma
from tests.unit.deploys.report_bench import gpus, hosts, software
from tests.unit.deploys.words_bench import Said, planned_for, said

HOST = "gpu01"


def report(title: str, evidence: tuple[str, ...], fix: str) -> list[Said]:
    return [Said("report", title, evidence, fix)]


def of_fleet(remedy: str, *facts: dict[str, Any]) -> list[Said]:
    return said(planned_for(remedy, hosts(*facts)), None)


def of_first(remedy: str, *facts: dict[str, Any]) -> list[Said]:
    return said(planned_for(remedy, hosts(*facts)), HOST)


# ---- networks


def test_what_is_said_of_networks() -> None:
    large, small = (
        network(interface("a", "10.0.0.1", mtu=9000)),
        network(interface("b", "10.0.0.2")),
    )
    middle = network(interface("a", "10.0.0.3", mtu=9000))
    assert of_fleet("network_health", large, small, middle) == report(
        "the MTU of the cluster interfaces differs",
        ("mtu 9000: gpu[01,03]", "mtu 1500: gpu02", "interface b: gpu02"),
        "Set one MTU on all of them and on the switch, in the network configuration too (netplan, "
        "NetworkManager, ifupdown). `remedy verify` proves it, and by hand, from each host: "
        "ping -M do -s 8972 PEER",
    )
    fast = network(interface("a", "10.0.0.1", speed=400_000))
    slow = network(interface("a", "10.0.0.2", speed=1000))
    (found,) = of_fleet("network_health", fast, slow)
    assert (found.title, found.fix) == (
        "the cluster interfaces differ in speed",
        (
            "Check that it is the right interface (cluster.subnet in remedy.yaml). If so, check the cable and "
            "the port of the switch: ethtool INTERFACE"
        ),
    )


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"all": "1"}, ["eno1", "eno2"]), ({"eno1": "1"}, ["eno1"]), ({"eno2": "1"}, ["eno2"]), ({"all": "2"},
         []),
        ({"all": "1", "eno1": "2"}, ["eno2"]), ({"all": "x"}, []), ({}, []),
    ],
)  # fmt: skip
def test_strict_filters(values: dict[str, str], names: list[str]) -> None:
    two = network(interface("eno1", "10.0.0.1"), interface("eno2", "10.0.0.9", prefix=32))
    live = {f"net.ipv4.conf.{name}.rp_filter": value for name, value in values.items()}
    expected = report(
        "strict reverse path filtering, and two interfaces have addresses of the cluster's network",
        tuple(f"{name}: rp_filter 1 (the larger of it and all)" for name in names),
        "Set net.ipv4.conf.all.rp_filter = 2 (loose) in /etc/sysctl.d. Or, if the interface is in the "
        "cluster's network, give its address the same prefix: the remedy rails then acts.",
    )
    facts = {**two, "sysctls": record(Sysctls, live=live)}
    assert of_first("network_health", facts) == expected * bool(names)


# ---- RDMA


def test_what_is_said_of_ports() -> None:
    down = rdma(port("mlx5_0", "INIT"), port("mlx5_1", "DOWN"))
    assert of_first("rdma_health", down) == report(
        "2 RDMA ports not active", ("mlx5_0 port 1: INIT, LinkUp", "mlx5_1 port 1: DOWN, LinkUp"),
        "Check the cable and the switch: ibstat, mlxlink -d DEVICE; INIT without a subnet manager stays INIT.",
    )  # fmt: skip
    names = "Name the devices of one kind in NCCL_IB_HCA on every host, exactly: NCCL_IB_HCA==mlx5_0,mlx5_1"
    ethernet = port("mlx5_1", layer="Ethernet")
    assert of_fleet("rdma_health", rdma(port("mlx5_0"), ethernet)) == report(
        "InfiniBand and Ethernet (RoCE) ports are mixed", ("Ethernet and InfiniBand: every host",), names,
    )  # fmt: skip
    apart = of_fleet("rdma_health", rdma(port("mlx5_0")), rdma(ethernet))
    assert apart == report(
        "InfiniBand and Ethernet (RoCE) ports are mixed", ("Ethernet: gpu02", "InfiniBand: gpu01"), names,
    )  # fmt: skip
    assert of_fleet("rdma_health", rdma(port("mlx5_0")), rdma(port("mlx5_0", rate=25.0))) == report(
        "mlx5_0 port 1 differs in rate between the hosts",
        ("mlx5_0 port 1 25 Gb/s: gpu02", "mlx5_0 port 1 400 Gb/s: gpu01"),
        "A port that came up slower has a bad cable or a switch port set so: mlxlink -d DEVICE",
    )


@pytest.mark.parametrize("module", ["", "nvidia_peermem", "nv_peer_mem"])
def test_what_gives_rdma_the_memory_of_gpus(module: str) -> None:
    kernel = {"kernel": record(Kernel, modules=frozenset({module}))}
    facts = {**gpus(open_kernel=False), **rdma(port("mlx5_0")), **kernel}
    expected = report(
        "nvidia_peermem is not loaded, so RDMA cannot reach the memory of the GPUs",
        ("1 active RDMA port, driver 580.65.06 without open kernel modules",),
        "Run modprobe nvidia_peermem, and put that name into a file of /etc/modules-load.d. With the open "
        "kernel modules DMA-BUF does the same.",
    )
    assert of_first("rdma_health", facts) == expected * (not module)


# ---- launching

SSHD = "/etc/ssh/sshd_config"


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("MaxStartups 9:30:100", 9), ("MaxStartups 10:30:100", None), (" maxstartups=4", 4), ("MaxStartups x",
         None),
        ("#MaxStartups 4", None),
    ],
)  # fmt: skip
def test_how_many_may_log_in_at_once(text: str, start: int | None) -> None:
    facts = {"mentions": (Mention(path=SSHD, line=7, text=text),)}
    expected = report(
        f"sshd drops connections at random once {start} are logging in, and 10 may at once",
        (f"{SSHD} line 7: {text.strip()}",),
        f"Set MaxStartups 20:30:100 in {SSHD}, then systemctl reload ssh.",
    )
    assert of_first("launching", facts) == expected * (start is not None)


def test_the_default_of_sshd_is_enough_for_ten() -> None:
    for fan_out, number in ((10, 0), (11, 1)):
        made = hosts({"mentions": ()})
        models = type(made.spec.sections["launching"])
        spec = with_section("launching", models(fan_out=fan_out))  # type: ignore[call-arg]
        found = said(planned_for("launching", Fleet(made.inventory, made.states, spec)), HOST)
        assert found == number * report(
            "sshd drops connections at random once 10 are logging in, and 11 may at once",
            ("default 10:30:100",), f"Set MaxStartups 22:30:110 in {SSHD}, then systemctl reload ssh.",
        )  # fmt: skip


def test_a_proxy_between_peers() -> None:
    proxy = {"environment": {"http_proxy": "http://p", "no_proxy": "10.0.0.1"}, "mentions": ()}
    assert of_first("launching", proxy, {}) == report(
        "connections to 1 host of the cluster would go through an HTTP proxy",
        ("http_proxy=http://p", "no_proxy=10.0.0.1", "not excepted by address: gpu02"),
        "Put the cluster's addresses and names into no_proxy (and NO_PROXY) wherever the proxy is set: "
        "/etc/environment, ~/.bashrc, the job script.",
    )


# ---- versions

REFUSES = "NCCL refuses ranks of a different version: "


@pytest.mark.parametrize(
    ("first", "second", "title", "evidence", "fix"),
    [
        (gpus(driver="1"), gpus(driver="2"), "the NVIDIA driver differs between the hosts", ("1: gpu01",
         "2: gpu02"),
         "Install one driver version on all of them, reboot, and hold its package."),
        (gpus(1), gpus(2), "the GPUs differ between the hosts", ("1 x H100: gpu01", "2 x H100: gpu02"),
         "Start as many ranks on each host as it has GPUs, or keep the hosts that differ out of the job."),
        *((software(**{name: "1"}), software(**{name: "2"}), f"{name} differs between the hosts",
           ("1: gpu01", "2: gpu02"), f"Install one version of {name} on all of them.")
          for name in ("torch", "torch_npu", "paddlepaddle", "paddlepaddle_gpu", "mindspore")),
        ({"software": record(Software, cuda=(("x", "12.4"),))}, {"software": record(Software, cuda=(("x", ""),
        ))},
         "the CUDA version of torch differs between the hosts", ("12.4: gpu01", "no CUDA: gpu02"),
         "Install the same build of torch on all of them."),
        *((software(**{name: "2.20"}), software(**{name: "2.21"}),
           "the NCCL that comes with Python differs between the hosts", ("2.20: gpu01", "2.21: gpu02"),
           f"{REFUSES}install the same framework wheels on all of them.")
          for name in ("nvidia_nccl_cu11", "nvidia_nccl_cu12", "nvidia_nccl_cu13")),
        ({"software": record(Software, nccl=(("/usr/lib/libnccl.so", "2.20"),))}, software(),
         "the NCCL of the system differs between the hosts", ("2.20: gpu01", "none: gpu02"),
         f"{REFUSES}install one version of libnccl2 on all hosts and hold it."),
        *[({"software": record(Software, libmpi=(("x", "4.1"),)), "session": record(LoginSession)},
           {"software": record(Software), "session": record(LoginSession)},
            "Open MPI differs between the hosts",
           ("libmpi 4.1: gpu01", "none: gpu02"),
           "Install one version of Open MPI on all of them (Debian: openmpi-bin).")],
    ],
)  # fmt: skip
def test_versions_that_differ(
    first: dict[str, Any], second: dict[str, Any], title: str, evidence: tuple[str, ...], fix: str
) -> None:
    (found,) = of_fleet("fleet_versions", first, second)
    assert (found.title, sorted(found.evidence), found.fix) == (title, sorted(evidence), fix)
    assert of_fleet("fleet_versions", first, first) == []


@pytest.mark.parametrize(
    ("version", "is_old"), [("2.7.9", True), ("2.8", False), ("2.8.1", False), ("2.10", False)]
)
def test_an_old_nccl(version: str, is_old: bool) -> None:
    facts = software(nvidia_nccl_cu12=version)
    site = "/opt/venv/lib/python3.11/site-packages"
    expected = report(
        "NCCL is older than 2.8", (f"gpu01: {site}: nvidia_nccl_cu12 {version}",),
        "Install a newer NCCL, the same on every host.",
    )  # fmt: skip
    assert of_fleet("fleet_versions", facts) == expected * is_old
    for text in ("2.x", "", "2.", "1.2.3.4.5"):
        with pytest.raises(ValueError, match="nccl_minimum"):
            FleetVersionsSpec(nccl_minimum=text)


# ---- clocks and Pythons


@pytest.mark.parametrize(
    ("seconds", "relation"), [(9, "ahead of"), (-9, "behind"), (5, ""), (-5, ""), (6, "ahead of")]
)
def test_a_clock_that_is_away(seconds: int, relation: str) -> None:
    def at(ahead: int) -> dict[str, Any]:
        now = 1_000 * 10**9
        clock = Clock(epoch_ns=now + ahead * 10**9, uptime=1.0, asked_at=now, heard_at=now)
        units = {
            "chronyd.service": Unit(
                name="chronyd.service", load="loaded", active="active", enabled="enabled"
            )
        }
        return {"clock": clock, "units": units}

    expected = report(
        f"the clock is at least {abs(seconds)} s {relation} that of most hosts",
        (
            f"`date` was {seconds:+.1f} to {seconds:+.1f} s from the controller's clock",
            "time service: chronyd",
        ),
        "Run chrony on every host, step the clock once (chronyc makestep), and write it to the hardware "
        "clock (hwclock --systohc).",
    )
    assert of_first("clock", at(seconds), at(0), at(0)) == expected * bool(relation)


@pytest.mark.parametrize(
    ("units", "words"),
    [
        ({}, "none runs"), (Unknown(reason="no systemctl"), "unknown: no systemctl"),
        *(({f"{name}.service": Unit(name=f"{name}.service", load="loaded", active="active", enabled="enabled")},
         name)
          for name in ("chrony", "chronyd", "systemd-timesyncd", "ntp")),
    ],
)  # fmt: skip
def test_who_keeps_the_clock(units: Any, words: str) -> None:
    from remedy.deploys.clock import time_service

    state = host_state("a", "10.0.0.1").model_copy(update={"units": units})
    assert time_service(state) == words


def test_several_pythons() -> None:
    packages = (
        Package("torch", "2.1", "/a"), Package("torch", "2.2", "/b"), Package("nvidia_nccl_cu11", "2.18", "/a"),
        Package("nvidia_nccl_cu12", "2.20", "/a"), Package("nvidia_nccl_cu13", "2.27", "/b"),
    )  # fmt: skip
    known = record(
        Software, packages=packages,
        interpreters=("/usr/bin/python3", "/opt/bin/torchrun", "/x/python", "/opt/bin/python3"),
    )  # fmt: skip
    facts = {"software": known, "session": record(LoginSession, path="/usr/bin:/opt/bin")}
    assert of_first("pythons", facts) == [
        *report(
            "python3, torchrun on the PATH belong to different installations",
            ("python3: /usr/bin/python3", "torchrun: /opt/bin/torchrun"),
            "Start jobs by the absolute path of the interpreter, such as /opt/venv/bin/python -m "
            "torch.distributed.run, on every host.",
        ),
        *report(
            "torch is installed in 2 versions", ("/a: torch 2.1", "/b: torch 2.2"),
            "Remove all but one, or start jobs by the absolute path of the right interpreter.",
        ),
        *report(
            "NCCL wheels of two CUDA versions overwrite each other in one environment",
            ("/a: nvidia_nccl_cu11 2.18, nvidia_nccl_cu12 2.20",),
            "Make a new environment with one framework in it: both wheels write nvidia/nccl/lib.",
        ),
    ]  # fmt: skip
