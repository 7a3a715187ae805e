"""Reports: the numbers, names and places that a finding gives, and what it tells the user to do."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys.clock import ClockSpec, Offset, common, offset
from remedy.deploys.fleet_versions import FleetVersionsSpec
from remedy.deploys.gpu_health import GpuHealthSpec
from remedy.deploys.launching import LaunchingSpec, through_proxy
from remedy.deploys.rdma_health import RdmaHealthSpec
from remedy.deploys.resolver import ResolverSpec
from remedy.plan import Finding, FindingKind, Fleet
from remedy.probe import (
    Clock,
    Gpu,
    GpuProcess,
    Kernel,
    LoginSession,
    Names,
    Package,
    PciDevice,
    Software,
    Sysctls,
    Unit,
)
from remedy.spec import SpecSection
from remedy.values import Unknown
from tests.unit.build import record
from tests.unit.deploys.test_reports import (
    LATE,
    SITE,
    clock,
    docker,
    gpus,
    hosts,
    interface,
    mentions,
    network,
    port,
    pythons,
    rdma,
    software,
    switched,
    told,
    unit,
)


def says(
    finding: Finding,
    *,
    title: tuple[str, ...] = (),
    evidence: tuple[str, ...] = (),
    fix: tuple[str, ...] = (),
) -> None:
    """Check that a finding names these facts, each where it belongs."""
    for facts, text in (
        (title, finding.title),
        (evidence, "\n".join(finding.evidence)),
        (fix, finding.fix),
    ):
        for fact in facts:
            assert fact in text, (fact, text)


def one(remedy: str, fleet: Fleet, spec: SpecSection | None = None) -> Finding:
    (finding,) = told(remedy, fleet, spec)
    return finding


# -- clocks ----


@pytest.mark.parametrize(("ahead", "words"), [(60.0, "ahead of"), (-60.0, "behind")])
def test_a_clock_is_said_to_be_ahead_or_behind(ahead: float, words: str) -> None:
    finding = one("clock", hosts(clock(0), clock(0), clock(ahead)))
    says(finding, title=(words, "59 s"), fix=("chrony", "hwclock --systohc"))
    assert ("ahead of" in finding.title) is (words == "ahead of")


@pytest.mark.parametrize(
    ("units", "words"),
    [
        ({"chrony.service": "active"}, "chrony"),
        ({"chronyd.service": "inactive", "ntp.service": "active"}, "ntp"),
        (
            {"systemd-timesyncd.service": "active", "chronyd.service": "active"},
            "chronyd, systemd-timesyncd",
        ),
        ({"chrony.service": "inactive", "sshd.service": "active"}, "none runs"),
    ],
)
def test_the_service_that_keeps_the_clock_is_named(units: dict[str, str], words: str) -> None:
    known = {
        name: Unit(name=name, load="loaded", active=active, enabled="")
        for name, active in units.items()
    }
    finding = one("clock", hosts(clock(0), clock(0), {**clock(60), "units": known}))
    assert finding.evidence[1] == f"time service: {words}"


def test_a_service_that_is_not_known_is_said_with_the_reason() -> None:
    finding = one("clock", hosts(clock(0), clock(0), {**clock(60), "units": LATE}))
    says(finding, evidence=(LATE.reason,))


def test_the_offset_of_a_clock_lies_between_question_and_answer() -> None:
    second = 10**9
    asked = Clock(epoch_ns=100 * second, uptime=1.0, asked_at=90 * second, heard_at=97 * second)
    assert offset(asked) == Offset(3.0, 10.0)
    assert offset(Clock(epoch_ns=1, uptime=1.0)) is None
    assert common([Offset(-90, -89), Offset(0, 1)]) == Offset(0, 1)
    assert common([Offset(0, 1), Offset(89, 90)]) == Offset(0, 1)
    assert common([Offset(5, 9), Offset(1, 2), Offset(3, 4)]) == Offset(3, 4)


@pytest.mark.parametrize(("tolerance", "named"), [(9.0, True), (9.6, False)])
def test_only_more_than_the_tolerance_counts(tolerance: float, named: bool) -> None:
    found = told(
        "clock", hosts(clock(0), clock(0), clock(10.5)), ClockSpec(tolerance_seconds=tolerance)
    )
    assert bool(found) is named


def test_a_lone_clock_has_nothing_to_differ_from() -> None:
    assert told("clock", hosts(clock(100), {"clock": LATE})) == []


# -- versions ----


@pytest.mark.parametrize(
    ("first", "second", "label", "words"),
    [
        (gpus(driver="1.0"), gpus(driver="2.0"), "driver-mismatch", ("driver", "differs")),
        (gpus(2), gpus(1), "rank-mismatch", ("GPUs", "differ ")),
        (software(torch="1"), software(torch="2"), "multi-python", ("torch", "differs")),
        (software(torch_npu="1"), software(torch_npu="2"), "multi-python", ("torch_npu",)),
        (software(paddlepaddle="1"), software(paddlepaddle="2"), "multi-python", ("paddlepaddle",)),
        (
            software(paddlepaddle_gpu="1"),
            software(paddlepaddle_gpu="2"),
            "multi-python",
            ("paddlepaddle_gpu",),
        ),
        (software(mindspore="1"), software(mindspore="2"), "multi-python", ("mindspore",)),
        *(
            (
                software(**{name: "3.1"}),
                software(**{name: "3.2"}),
                "nccl-version-mismatch",
                ("NCCL", "Python"),
            )
            for name in ("nvidia_nccl_cu11", "nvidia_nccl_cu12", "nvidia_nccl_cu13")
        ),
        (
            {"software": record(Software, nccl=(("/a", "2.9.1"),))},
            {"software": record(Software, nccl=(("/a", "2.10.1"),))},
            "nccl-version-mismatch",
            ("NCCL", "system"),
        ),
        (
            {"software": record(Software, cuda=(("/a", "12.1"),))},
            {"software": record(Software, cuda=(("/a", ""),))},
            "driver-mismatch",
            ("CUDA", "torch"),
        ),
    ],
)
def test_each_version_that_differs_is_a_finding_of_its_own_cause(
    first: dict[str, Any], second: dict[str, Any], label: str, words: tuple[str, ...]
) -> None:
    found = told("fleet_versions", hosts(first, second, first))
    (finding,) = [
        f for f in found if f.label == label and words[0] in f.title and words[-1] in f.title
    ]
    says(finding, title=words, evidence=("gpu02", "gpu[01,03]"))
    assert finding.host is None
    assert finding.fix
    assert told("fleet_versions", hosts(first, first), FleetVersionsSpec()) == []
    assert told("fleet_versions", hosts(first, second), FleetVersionsSpec(compare=False)) == []


def test_versions_are_shown_as_they_are() -> None:
    several = software(torch="2.1")
    mixed = {
        "software": record(
            Software, packages=(Package("torch", "2.2", SITE), Package("torch", "2.1", "/x"))
        )
    }
    finding = one("fleet_versions", hosts(several, mixed, software()))
    says(finding, evidence=("2.1 and 2.2: gpu02", "2.1: gpu01", "none: gpu03"))
    kinds = one("fleet_versions", hosts(gpus(2), gpus(1)))
    says(kinds, evidence=("2 x ", "1 x "))
    cuda = {"software": record(Software, cuda=(("/a", ""), ("/b", "12.1")))}
    plain = {"software": record(Software, cuda=(("/a", "12.1"),))}
    says(one("fleet_versions", hosts(cuda, plain)), evidence=("12.1 and no CUDA: gpu01",))


@pytest.mark.parametrize(
    ("version", "is_old"), [("2.7.99", True), ("2.8", False), ("2.8.0", False), ("2.10", False)]
)
def test_an_nccl_that_is_too_old_is_named_with_its_place(version: str, is_old: bool) -> None:
    wheel = {"software": record(Software, packages=(Package("nvidia_nccl_cu11", version, SITE),))}
    system = {"software": record(Software, nccl=((f"/usr/lib/libnccl.so.{version}", version),))}
    for facts, place in (
        (wheel, f"{SITE}: nvidia_nccl_cu11 {version}"),
        (system, f"/usr/lib/libnccl.so.{version}"),
    ):
        found = told("fleet_versions", hosts(facts, facts))
        assert bool(found) is is_old
        if is_old:
            says(found[0], title=("NCCL", "2.8"), evidence=(f"gpu[01-02]: {place}",))
            assert found[0].label == "nccl-version-mismatch"


# -- GPUs ----


def test_what_nvidia_smi_does_not_answer_is_said_with_what_is_on_the_bus() -> None:
    says(
        one("gpu_health", hosts(gpus(3, devices=LATE, driver="580.1"))),
        title=("nvidia-smi",), evidence=(LATE.reason, "3", "580.1"), fix=("dmesg",),
    )  # fmt: skip
    says(
        one("gpu_health", hosts(gpus(1, devices=LATE, driver=""))),
        evidence=("loaded driver: none",),
    )
    says(
        one("gpu_health", hosts(gpus(3, driver="", devices=()))),
        title=("3 NVIDIA GPUs", "no driver"),
    )


def test_gpus_that_nvidia_smi_does_not_list_are_counted_and_named() -> None:
    finding = one("gpu_health", hosts(gpus(3, devices=gpus(1)["gpus"].devices)))
    says(finding, title=("1 of the 3",), evidence=("0000:00:00.0", "0000:02:00.0"), fix=("xid",))
    assert len(finding.evidence) == 3


def test_other_devices_and_those_passed_through_are_no_gpus_of_the_host() -> None:
    amd = PciDevice("0000:09:00.0", "1002", "740f", "0302")
    facts = gpus(1)
    facts["gpus"] = facts["gpus"].model_copy(update={"pci": (*facts["gpus"].pci, amd)})
    assert told("gpu_health", hosts(facts)) == []
    passed = record(LoginSession, present=frozenset({"/sys/bus/pci/drivers/vfio-pci/0000:01:00.0"}))
    two = gpus(2, devices=gpus(1)["gpus"].devices)
    assert told("gpu_health", hosts({**two, "session": passed})) == []


def test_the_fabric_manager_is_named_with_its_state_and_its_version() -> None:
    finding = one("gpu_health", hosts({**switched(driver="580.7"), **unit("failed")}))
    says(
        finding,
        title=("fabric manager", "802"),
        evidence=("1 NVSwitch", "nvidia-fabricmanager.service: loaded, failed"),
        fix=("580.7", "systemctl enable --now nvidia-fabricmanager"),
    )
    says(one("gpu_health", hosts({**switched(), "units": {}})), evidence=("not-found",))
    unknown = one("gpu_health", hosts({**switched(), "units": LATE}))
    says(unknown, title=("fabric manager",), evidence=(LATE.reason,))
    assert unknown.kind is FindingKind.UNKNOWN
    assert [f.label for f in told("gpu_health", hosts({**switched(driver=""), "units": {}}))] == [
        "driver-mismatch"
    ]


def test_processes_and_memory_of_gpus_are_named_with_their_numbers() -> None:
    processes = (
        GpuProcess(77, "GPU-0", 900),
        GpuProcess(78, "GPU-0", 5),
        GpuProcess(79, "GPU-1", 6),
    )
    finding = one("gpu_health", hosts(gpus(processes=processes)))
    says(
        finding,
        title=("2 GPUs in use",),
        evidence=("pid 77: 900 MiB of GPU-0", "pid 79: 6 MiB of GPU-1"),
        fix=("ps -fp",),
    )
    assert len(finding.evidence) == 3


def gpu(number: int = 0, *, used: int | None = 4, persistence: bool | None = True) -> Gpu:
    return Gpu(
        number,
        f"GPU-{number}",
        f"0000:0{number}:00.0",
        "H100",
        "",
        persistence,
        "Default",
        81559,
        used,
        0,
    )


@pytest.mark.parametrize(
    ("used", "busy", "named"),
    [(1024, 1024, False), (1025, 1024, True), (5, 4, True), (None, 0, False)],
)
def test_memory_that_nobody_is_listed_for_counts_above_the_setting(
    used: int | None, busy: int, named: bool
) -> None:
    found = told(
        "gpu_health", hosts(gpus(1, devices=(gpu(used=used),))), GpuHealthSpec(busy_mib=busy)
    )
    assert bool(found) is named
    if named:
        says(found[0], title=("1 GPU ",), evidence=(f"GPU 0: {used} MiB of 81559",), fix=("fuser",))


def test_memory_of_a_gpu_with_a_listed_process_is_no_riddle() -> None:
    facts = gpus(1, devices=(gpu(used=9000),), processes=(GpuProcess(77, "GPU-0", 9000),))
    assert [f.title for f in told("gpu_health", hosts(facts)) if "no process" in f.title] == []


def test_gpus_without_persistence_and_devices_with_access_control_are_named() -> None:
    off = tuple(gpu(n, persistence=n == 1) for n in range(3))
    finding = one("gpu_health", hosts(gpus(3, devices=off)))
    says(finding, title=("2 GPUs",), evidence=("GPUs 0, 2:",), fix=("nvidia-persistenced",))
    assert told("gpu_health", hosts(gpus(1, devices=(gpu(persistence=None),)))) == []
    acs = {"01:00.0": "ACSCtl: SrcValid+ TransBlk-", "02:00.0": "ACSCtl: SrcValid-"}
    bare = {"identity": hosts({}).states["gpu01"].identity}
    says(
        one("gpu_health", hosts({**gpus(acs=acs), **bare})),
        title=("1 PCIe device",), evidence=("01:00.0 ACSCtl: SrcValid+",), fix=("setpci",),
    )  # fmt: skip


def test_docker_without_a_runtime_is_said_with_those_it_has() -> None:
    finding = one("gpu_health", hosts({**gpus(), **docker("runc", "crun")}))
    says(finding, evidence=("runc, crun",), fix=("nvidia-ctk",))
    for tool in ("nvidia-ctk", "nvidia-container-runtime"):
        assert told("gpu_health", hosts({**gpus(), **docker("runc", programs=(tool,))})) == []


# -- networks and RDMA ----


def test_a_slow_interface_is_named_with_its_hosts() -> None:
    fast = network(interface("a", "10.0.0.1", speed=100_000))
    also = network(interface("a", "10.0.0.2", speed=100_000))
    slow = network(interface("b", "10.0.0.3", speed=1000))
    finding = one("network_health", hosts(fast, also, slow))
    assert finding.label == "wrong-interface"
    says(
        finding,
        title=("speed",),
        evidence=("1000 Mb/s: gpu03", "interface b: gpu03"),
        fix=("cluster.subnet", "ethtool"),
    )
    assert "interface a" not in "\n".join(finding.evidence)


def test_an_mtu_is_compared_on_the_cluster_interface_alone() -> None:
    finding = one(
        "network_health",
        hosts(
            network(interface("a", "10.0.0.1", mtu=9000)),
            network(interface("a", "10.0.0.2", mtu=1500)),
        ),
    )
    says(
        finding,
        title=("MTU",),
        evidence=("mtu 9000: gpu01", "mtu 1500: gpu02"),
        fix=("8972", "remedy verify"),
    )


def test_strict_filtering_is_named_with_its_cause_and_cure() -> None:
    live = {"net.ipv4.conf.all.rp_filter": "1", "net.ipv4.conf.eno1/7.rp_filter": "0"}
    two = network(
        interface("eno1.7", "10.0.0.1"),
        interface("eno2", "10.0.0.101", prefix=32),
        interface("x", "10.9.0.1"),
    )
    finding = one("network_health", hosts({**two, "sysctls": record(Sysctls, live=live)}))
    assert finding.label == "network-unreachable"
    says(
        finding,
        title=("reverse path",),
        evidence=("eno1.7: rp_filter 1", "eno2: rp_filter 1"),
        fix=("rp_filter = 2",),
    )
    assert len(finding.evidence) == 2


def test_a_port_that_is_down_is_named_with_its_states() -> None:
    whole = rdma(port("mlx5_0"), port("mlx5_1"))
    broken = rdma(port("mlx5_0", "INIT"), port("mlx5_1", "DOWN"))
    finding = one("rdma_health", hosts(whole, broken))
    says(
        finding,
        title=("2 RDMA ports",),
        evidence=("mlx5_0 port 1: INIT, LinkUp", "mlx5_1 port 1: DOWN"),
        fix=("mlxlink",),
    )
    assert told("rdma_health", hosts(whole, broken), RdmaHealthSpec(compare=False)) == []
    dead = rdma(port("mlx5_0", "DOWN"))
    assert len(told("rdma_health", hosts(dead))) == 1


def test_mixed_ports_and_rates_are_named_with_their_hosts() -> None:
    ib, roce = rdma(port("mlx5_0")), rdma(port("mlx5_0", layer="Ethernet"))
    mixed = one("rdma_health", hosts(ib, roce, ib))
    assert mixed.label == "ib-roce-mixed"
    says(
        mixed,
        title=("InfiniBand", "RoCE"),
        evidence=("Ethernet: gpu02", "InfiniBand: gpu[01,03]"),
        fix=("NCCL_IB_HCA",),
    )
    both = rdma(port("mlx5_0"), port("mlx5_1", layer="Ethernet"))
    says(one("rdma_health", hosts(both, both)), evidence=("Ethernet and InfiniBand",))
    slow = one("rdma_health", hosts(ib, rdma(port("mlx5_0", rate=200.0))))
    assert slow.label == "ib-link-fault"
    says(slow, title=("mlx5_0 port 1", "rate"), fix=("mlxlink",))
    for spec in (RdmaHealthSpec(compare=False),):
        assert told("rdma_health", hosts(ib, roce), spec) == []


def test_peermem_is_named_with_the_driver_and_the_ports() -> None:
    kernel = {"kernel": record(Kernel, modules=frozenset())}
    facts = {
        **gpus(open_kernel=False, driver="580.9"),
        **rdma(port("mlx5_0"), port("mlx5_1")),
        **kernel,
    }
    finding = one("rdma_health", hosts(facts))
    assert finding.label == "gdr-peermem"
    says(
        finding,
        title=("nvidia_peermem",),
        evidence=("2 active RDMA ports", "580.9"),
        fix=("modprobe nvidia_peermem",),
    )
    for module in ("nvidia_peermem", "nv_peer_mem"):
        loaded = {"kernel": record(Kernel, modules=frozenset({module}))}
        assert told("rdma_health", hosts({**facts, **loaded})) == []
    assert told("rdma_health", hosts({**facts, **gpus(driver="", devices=())})) == []


# -- names, sshd, proxies, Pythons ----


def test_the_order_of_services_is_shown() -> None:
    names = record(Names, order=("dns", "[!UNAVAIL=return]", "files"))
    finding = one("resolver", hosts({"names": names}))
    says(
        finding,
        title=("DNS",),
        evidence=("/etc/nsswitch.conf: hosts: dns [!UNAVAIL=return] files",),
        fix=("files", "dns"),
    )
    assert finding.label == "hostname-unresolvable"
    for service in ("files", "resolve", "db"):
        assert told("resolver", hosts({"names": record(Names, order=(service, "dns"))})) == []
    bracketed = record(Names, order=("[files]", "dns"))
    assert told("resolver", hosts({"names": bracketed}))


@pytest.mark.parametrize(("seconds", "named"), [(2.0, True), (1.9, False)])
def test_a_slow_resolver_is_named_with_its_servers(seconds: float, named: bool) -> None:
    names = record(Names, servers=("192.0.2.53", "192.0.2.54"), peers={"gpu01": ("10.0.0.1",)})
    found = told(
        "resolver",
        hosts({"names": names, "costs": {"names": seconds}}),
        ResolverSpec(slow_seconds=2.0),
    )
    assert bool(found) is named
    if named:
        says(
            found[0],
            evidence=("1 name took 2.0 s", "nameserver 192.0.2.53, nameserver 192.0.2.54"),
            fix=("getent",),
        )
    without = record(Names, servers=())
    assert told("resolver", hosts({"names": without, "costs": {"names": 9.0}})) == []


SSHD = "/etc/ssh/sshd_config"


def test_an_sshd_that_drops_connections_is_named_with_the_numbers() -> None:
    finding = one(
        "launching", hosts(mentions((SSHD, 7, " MaxStartups 3:50:10 "))), LaunchingSpec(fan_out=9)
    )
    assert finding.label == "ssh-launch-failure"
    says(
        finding,
        title=("once 3 are", "and 9 may"), evidence=(f"{SSHD} line 7: MaxStartups 3:50:10",),
        fix=("MaxStartups 18:30:90", SSHD),
    )  # fmt: skip
    assert told("launching", hosts({"mentions": LATE}), LaunchingSpec(fan_out=64)) == []


@pytest.mark.parametrize(
    ("lines", "start"),
    [
        (((SSHD, 2, "MaxStartups none"), (SSHD, 3, "MaxStartups 4")), 4),
        (((SSHD, 3, "MaxStartups 4"), (SSHD, 2, "MaxStartups 5")), 5),
        (((SSHD, 1, f"include {SSHD}.d/*.conf"), (f"{SSHD}.d/b.conf", 1, "MaxStartups 6"),
          (f"{SSHD}.d/a.conf", 9, "MaxStartups 7")), 7),
        (((SSHD, 1, "Include /elsewhere/*.conf"), (f"{SSHD}.d/b.conf", 1, "MaxStartups 6")), None),
        (((SSHD, 1, 'MaxStartups "8"'),), 8),
        ((("/etc/other", 1, "MaxStartups 2"),), None),
        (((SSHD, 1, "Port 22"), (SSHD, 2, "maxstartups=9:1:1")), 9),
    ],
)  # fmt: skip
def test_the_first_line_that_says_a_number_decides(
    lines: tuple[tuple[str, int, str], ...], start: int | None
) -> None:
    found = told("launching", hosts(mentions(*lines)), LaunchingSpec(fan_out=10))
    assert [f"once {start} are" in finding.title for finding in found] == (
        [] if start is None else [True]
    )


def test_a_proxy_is_named_with_the_hosts_behind_it() -> None:
    proxy = {
        "environment": {"https_proxy": "http://p:1", "GRPC_PROXY": "q", "No_Proxy": "10.0.0.2,name"}
    }
    finding = one("launching", hosts(proxy, {}, {}))
    assert (finding.label, finding.host) == ("env-not-propagated", "gpu01")
    says(
        finding,
        title=("2 hosts",),
        evidence=("https_proxy=http://p:1", "GRPC_PROXY=q", "No_Proxy=10.0.0.2,name", "gpu[01,03]"),
        fix=("no_proxy",),
    )
    for name in ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy"):
        assert told("launching", hosts({"environment": {name: "x"}}))
    assert told("launching", hosts({"environment": {"ftp_proxy": "x"}})) == []
    assert through_proxy("10.0.0.0/31, ,x", {"a": "10.0.0.1", "b": "10.0.0.2"}) == ("b",)


def test_several_pythons_are_named_with_their_paths() -> None:
    finding = one("pythons", hosts(pythons(("/opt/venv/bin/torchrun", "/usr/bin/python3"))))
    assert finding.label == "multi-python"
    says(finding, title=("python3, torchrun",), fix=("absolute path",))
    twice = one(
        "pythons",
        hosts(pythons((), Package("mindspore", "1", SITE), Package("mindspore", "2", "/x"))),
    )
    says(
        twice,
        title=("mindspore", "2 versions"),
        evidence=(f"{SITE}: mindspore 1", "/x: mindspore 2"),
    )
    for name in ("torch", "paddlepaddle", "paddlepaddle_gpu", "mindspore"):
        assert told(
            "pythons", hosts(pythons((), Package(name, "1", SITE), Package(name, "2", "/x")))
        )
    wheels = one(
        "pythons",
        hosts(
            pythons(
                (), Package("nvidia_nccl_cu11", "1", SITE), Package("nvidia_nccl_cu13", "2", SITE)
            )
        ),
    )
    says(
        wheels,
        title=("NCCL",),
        evidence=(f"{SITE}: nvidia_nccl_cu11 1, nvidia_nccl_cu13 2",),
        fix=("environment",),
    )
    apart = pythons(
        (), Package("nvidia_nccl_cu11", "1", SITE), Package("nvidia_nccl_cu13", "2", "/x")
    )
    assert told("pythons", hosts(apart)) == []


def test_nothing_is_said_of_a_host_that_was_not_looked_at() -> None:
    blind = {
        "gpus": Unknown(reason="x"),
        "rdma": Unknown(reason="x"),
        "software": Unknown(reason="x"),
    }
    for remedy in ("gpu_health", "rdma_health", "pythons", "fleet_versions"):
        assert told(remedy, hosts(blind, blind)) == []
