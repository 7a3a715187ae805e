"""GPUs: drivers that hang, GPUs that are missing or in use, what they need and do not have."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys.gpu_health import GpuHealthSpec
from remedy.plan import FindingKind
from remedy.probe import (
    Containers,
    Docker,
    Gpu,
    GpuProcess,
    Gpus,
    Identity,
    LoginSession,
    PciDevice,
    Software,
    Unit,
)
from tests.unit.build import record
from tests.unit.deploys.report_bench import LATE, finding_of, findings_of, gpus, hosts, says
from tests.unit.probe_data import parse, recorded


def unit(active: str) -> dict[str, Any]:
    name = "nvidia-fabricmanager.service"
    return {"units": {name: Unit(name=name, load="loaded", active=active, enabled="enabled")}}


def switched(**given: Any) -> dict[str, Any]:
    whole = gpus(2)["gpus"]
    switch = PciDevice("0000:07:00.0", "10de", "22a3", "0680")
    return {"gpus": whole.model_copy(update={"pci": (*whole.pci, switch), **given})}


def docker(*runtimes: str, programs: tuple[str, ...] = ()) -> dict[str, Any]:
    daemon = record(Docker, runtimes=runtimes)
    return {
        "containers": record(Containers, docker=daemon),
        "session": record(LoginSession, programs=dict.fromkeys(programs, "/usr/bin/x")),
    }


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


GPU_CASES: dict[str, tuple[dict[str, Any], str, FindingKind]] = {
    "a driver that hangs": (gpus(devices=LATE), "driver-mismatch", FindingKind.UNKNOWN),
    "a tool that hangs, no driver": (
        gpus(0, driver="", devices=LATE),
        "driver-mismatch",
        FindingKind.REPORT,
    ),
    "no driver": (gpus(driver="", devices=()), "driver-mismatch", FindingKind.REPORT),
    "one GPU fell off": (
        gpus(2, devices=gpus(1)["gpus"].devices),
        "gpu-hardware-xid",
        FindingKind.REPORT,
    ),
    "no fabric manager": (
        {**switched(), "units": {}},
        "fabricmanager-not-running",
        FindingKind.BLOCKED,
    ),
    "fabric manager stopped": (
        {**switched(), **unit("inactive")},
        "fabricmanager-not-running",
        FindingKind.BLOCKED,
    ),
    "fabric manager not known": (
        {**switched(), "units": LATE},
        "fabricmanager-not-running",
        FindingKind.UNKNOWN,
    ),
    "in use": (
        gpus(processes=(GpuProcess(77, "GPU-0", 900),)),
        "stale-process",
        FindingKind.REPORT,
    ),
    "memory of nobody": (
        gpus(1, devices=(Gpu(0, "GPU-0", "x", "H100", "", True, "Default", 81559, 9000, 0),)),
        "stale-process",
        FindingKind.REPORT,
    ),
    "persistence off": (
        gpus(1, devices=(Gpu(0, "GPU-0", "x", "H100", "", False, "Default", 81559, 4, 0),)),
        "peer-died-timeout",
        FindingKind.REPORT,
    ),
    "access control": (
        {
            **gpus(acs={"01:00.0": "ACSCtl: SrcValid+ TransBlk-"}),
            "identity": record(Identity, static_name="gpu01", transient_name="gpu01"),
        },
        "p2p-acs-iommu",
        FindingKind.REPORT,
    ),
    "docker without runtime": (
        {**gpus(), **docker("runc")},
        "container-gpu-runtime",
        FindingKind.REPORT,
    ),
}


@pytest.mark.parametrize("case", sorted(GPU_CASES))
def test_what_is_wrong_with_gpus(case: str) -> None:
    facts, label, kind = GPU_CASES[case]
    finding = finding_of("gpu_health", hosts(facts))
    assert (finding.label, finding.kind, finding.host) == (label, kind, "gpu01")
    assert finding.fix


@pytest.mark.parametrize(
    "facts",
    [
        gpus(),
        gpus(0, driver=""),
        {**switched(), **unit("active")},
        {**gpus(acs={"01:00.0": "ACSCtl: SrcValid- TransBlk-"})},
        {**gpus(acs=LATE)},
        {**gpus(), **docker("nvidia", "runc")},
        {**gpus(), **docker("runc", programs=("nvidia-ctk",))},
        {**gpus(0, driver=""), **docker("runc")},
        {
            **gpus(1, devices=()),
            "session": record(
                LoginSession, present=frozenset({"/sys/bus/pci/drivers/vfio-pci/0000:00:00.0"})
            ),
        },
    ],
)
def test_gpus_that_are_right_are_not_mentioned(facts: dict[str, Any]) -> None:
    assert findings_of("gpu_health", hosts(facts)) == []


def test_access_control_inside_a_virtual_machine_is_the_hosts_affair() -> None:
    machine = record(Identity, static_name="gpu01", transient_name="gpu01", virtualization="kvm")
    facts = {**gpus(acs={"01:00.0": "ACSCtl: SrcValid+"}), "identity": machine}
    assert findings_of("gpu_health", hosts(facts)) == []


def test_what_nvidia_smi_does_not_answer_is_said_with_what_is_on_the_bus() -> None:
    says(
        finding_of("gpu_health", hosts(gpus(3, devices=LATE, driver="580.1"))),
        title=("nvidia-smi",), evidence=(LATE.reason, "3", "580.1"), fix=("dmesg",),
    )  # fmt: skip
    says(
        finding_of("gpu_health", hosts(gpus(1, devices=LATE, driver=""))),
        evidence=("loaded driver: none",),
    )
    says(
        finding_of("gpu_health", hosts(gpus(3, driver="", devices=()))),
        title=("3 NVIDIA GPUs", "no driver"),
    )


def test_gpus_that_nvidia_smi_does_not_list_are_counted_and_named() -> None:
    finding = finding_of("gpu_health", hosts(gpus(3, devices=gpus(1)["gpus"].devices)))
    says(finding, title=("1 of 3 GPUs",), evidence=("0000:00:00.0", "0000:02:00.0"), fix=("xid",))
    assert len(finding.evidence) == 3


def test_other_devices_and_those_passed_through_are_no_gpus_of_the_host() -> None:
    amd = PciDevice("0000:09:00.0", "1002", "740f", "0302")
    facts = gpus(1)
    facts["gpus"] = facts["gpus"].model_copy(update={"pci": (*facts["gpus"].pci, amd)})
    assert findings_of("gpu_health", hosts(facts)) == []
    passed = record(LoginSession, present=frozenset({"/sys/bus/pci/drivers/vfio-pci/0000:01:00.0"}))
    two = gpus(2, devices=gpus(1)["gpus"].devices)
    assert findings_of("gpu_health", hosts({**two, "session": passed})) == []


def test_the_fabric_manager_is_named_with_its_state_and_its_version() -> None:
    finding = finding_of("gpu_health", hosts({**switched(driver="580.7"), **unit("failed")}))
    says(
        finding,
        title=("fabric manager", "802"),
        evidence=("1 NVSwitch", "nvidia-fabricmanager.service: loaded, failed"),
        fix=("580.7", "systemctl enable --now nvidia-fabricmanager"),
    )
    says(finding_of("gpu_health", hosts({**switched(), "units": {}})), evidence=("not-found",))
    unknown = finding_of("gpu_health", hosts({**switched(), "units": LATE}))
    says(unknown, title=("fabric manager",), evidence=(LATE.reason,))
    assert unknown.kind is FindingKind.UNKNOWN
    assert [
        f.label for f in findings_of("gpu_health", hosts({**switched(driver=""), "units": {}}))
    ] == ["driver-mismatch"]


def test_processes_and_memory_of_gpus_are_named_with_their_numbers() -> None:
    processes = (
        GpuProcess(77, "GPU-0", 900),
        GpuProcess(78, "GPU-0", 5),
        GpuProcess(79, "GPU-1", 6),
    )
    finding = finding_of("gpu_health", hosts(gpus(processes=processes)))
    says(
        finding,
        title=("2 GPUs in use",),
        evidence=("pid 77: 900 MiB of GPU-0", "pid 79: 6 MiB of GPU-1"),
        fix=("ps -fp",),
    )
    assert len(finding.evidence) == 3


@pytest.mark.parametrize(
    ("used", "busy", "named"),
    [(1024, 1024, False), (1025, 1024, True), (5, 4, True), (None, 0, False)],
)
def test_memory_that_nobody_is_listed_for_counts_above_the_setting(
    used: int | None, busy: int, named: bool
) -> None:
    found = findings_of(
        "gpu_health", hosts(gpus(1, devices=(gpu(used=used),))), GpuHealthSpec(busy_mib=busy)
    )
    assert bool(found) is named
    if named:
        says(found[0], title=("1 GPU ",), evidence=(f"GPU 0: {used} MiB of 81559",), fix=("fuser",))


def test_memory_of_a_gpu_with_a_listed_process_is_no_riddle() -> None:
    facts = gpus(1, devices=(gpu(used=9000),), processes=(GpuProcess(77, "GPU-0", 9000),))
    assert [
        f.title for f in findings_of("gpu_health", hosts(facts)) if "no process" in f.title
    ] == []


def test_gpus_without_persistence_and_devices_with_access_control_are_named() -> None:
    off = tuple(gpu(n, persistence=n == 1) for n in range(3))
    finding = finding_of("gpu_health", hosts(gpus(3, devices=off)))
    says(finding, title=("2 GPUs",), evidence=("GPUs 0, 2:",), fix=("nvidia-persistenced",))
    assert findings_of("gpu_health", hosts(gpus(1, devices=(gpu(persistence=None),)))) == []
    acs = {"01:00.0": "ACSCtl: SrcValid+ TransBlk-", "02:00.0": "ACSCtl: SrcValid-"}
    bare = {"identity": hosts({}).states["gpu01"].identity}
    says(
        finding_of("gpu_health", hosts({**gpus(acs=acs), **bare})),
        title=("1 PCIe device",), evidence=("01:00.0 ACSCtl: SrcValid+",), fix=("setpci",),
    )  # fmt: skip


def test_docker_without_a_runtime_is_said_with_those_it_has() -> None:
    finding = finding_of("gpu_health", hosts({**gpus(), **docker("runc", "crun")}))
    says(finding, evidence=("runc, crun",), fix=("nvidia-ctk",))
    for tool in ("nvidia-ctk", "nvidia-container-runtime"):
        assert (
            findings_of("gpu_health", hosts({**gpus(), **docker("runc", programs=(tool,))})) == []
        )


@pytest.mark.parametrize(
    ("words", "is_open"),
    [("UNIX Open Kernel Module for x86_64", True), ("UNIX x86_64 Kernel Module", False)],
)
def test_the_kind_of_driver(words: str, is_open: bool) -> None:
    body = recorded("lab-idle")
    at = body.index(b"/proc/meminfo:")
    line = f"/proc/driver/nvidia/version:NVRM version: NVIDIA {words}  580.65.06  Release Build\n"
    found = parse(body[:at] + line.encode() + body[at:]).gpus
    assert isinstance(found, Gpus)
    assert (found.driver, found.open_kernel) == ("580.65.06", is_open)


LIBCUDA = "/usr/lib/x86_64-linux-gnu/libcuda.so"


@pytest.mark.parametrize(
    ("versions", "title"),
    [
        ((), "no libcuda of the driver"),
        (("550.54.14",), "libcuda is not that of the loaded driver 580.65.06"),
        (("580.65.06", "550.54.14"), "libcuda is not that of the loaded driver 580.65.06"),
        (("580.65.06",), ""),
    ],
)
def test_what_makes_nvidia_smi_show_no_cuda_version(versions: tuple[str, ...], title: str) -> None:
    libraries = tuple((f"{LIBCUDA}.{version}", version) for version in versions)
    facts = {**gpus(), "software": record(Software, libcuda=libraries)}
    found = findings_of("gpu_health", hosts(facts))
    assert [f.title[: len(title)] for f in found] == ([title] if title else [])
    assert all(f.label == "driver-mismatch" for f in found)
    assert not findings_of("gpu_health", hosts({**facts, **gpus(0, driver="")}))


@pytest.mark.parametrize(
    "further",
    [
        ("/usr/local/cuda-12.8/compat/libcuda.so.590.44.01", "590.44.01"),
        ("/usr/lib/wsl/lib/libcuda.so.1", ""),
    ],
    ids=["newer on purpose", "without a version"],
)
def test_another_libcuda_that_contradicts_no_driver(further: tuple[str, str]) -> None:
    right = (f"{LIBCUDA}.580.65.06", "580.65.06")
    for libraries in ((right, further), (further,)):
        facts = {**gpus(), "software": record(Software, libcuda=libraries)}
        assert findings_of("gpu_health", hosts(facts)) == []


def test_stubs_in_the_path_of_libraries_are_named() -> None:
    right = (f"{LIBCUDA}.580.65.06", "580.65.06")
    facts = {
        **gpus(),
        "software": record(Software, libcuda=(right,)),
        "environment": {"LD_LIBRARY_PATH": "/opt/lib:/usr/local/cuda/lib64/stubs/:/usr/lib"},
    }
    found = finding_of("gpu_health", hosts(facts))
    says(found, title=("LD_LIBRARY_PATH", "stubs"), evidence=("/usr/local/cuda/lib64/stubs/",))
