"""What is said of GPUs, Ascend devices and Paddle's ports."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys.ascend import AscendSpec
from remedy.deploys.hosts_file import HostsFileSpec
from remedy.deploys.paddle import PaddleSpec
from remedy.probe import Gpu, Identity, LoginSession, PciDevice, Software, Unit
from remedy.probe.accelerators import GpuProcess
from remedy.values import Unknown
from tests.unit.build import record
from tests.unit.deploys import ascend_bench
from tests.unit.deploys.ascend_bench import fleet_of, hccn
from tests.unit.deploys.report_bench import gpus, hosts
from tests.unit.deploys.words_bench import Said, planned, planned_for, run, said, written

LATE = Unknown(reason="it did not answer in time")
HOST = "gpu01"
FABRIC = (
    "Install nvidia-fabricmanager of exactly version 580.65.06, then systemctl enable --now "
    "nvidia-fabricmanager."
)
UNIT = "nvidia-fabricmanager.service"
KERNEL_LOG = (
    "Check `dmesg | grep -iE 'nvrm|xid'`. Reboot after an upgrade of the driver; one that hangs "
    "needs a reboot too."
)
NOBODY = "memory of 1 GPU is in use by no process that is listed"
FUSER = "Look for who holds it: fuser -v /dev/nvidia*"


def gpu(number: int, *, used: int = 4, persistence: bool = True) -> Gpu:
    return Gpu(number, f"GPU-{number}", "x", "H100", "", persistence, "Default", 81559, used, 0)


def libcuda(*known: tuple[str, str], **places: tuple[str, ...]) -> dict[str, Any]:
    return {"software": record(Software, libcuda=known, **places)}


SWITCHES = tuple(PciDevice(f"0000:0{n}:00.0", "10de", "22a3", "0680") for n in range(5, 9))


def fabric(**units: Any) -> dict[str, Any]:
    return {**gpus(pci=(*gpus()["gpus"].pci, *SWITCHES)), **units}


def service(active: str) -> dict[str, Any]:
    return {"units": {UNIT: Unit(name=UNIT, load="loaded", active=active, enabled="enabled")}}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (gpus(devices=LATE), Said(
            "unknown", "no answer from nvidia-smi on which GPUs there are",
            (LATE.reason, "on the bus: 2; loaded driver: 580.65.06"), KERNEL_LOG,
        )),
        (gpus(1, driver="", devices=LATE), Said(
            "report", "no answer from nvidia-smi on which GPUs there are",
            (LATE.reason, "on the bus: 1; loaded driver: none"), KERNEL_LOG,
        )),
        (gpus(1, driver="", devices=()), Said(
            "report", "1 NVIDIA GPU on the bus, and no driver is loaded", (),
            "Install the driver that the other hosts have, then reboot.",
        )),
        (gpus(2, devices=(gpu(0),)), Said(
            "report", "nvidia-smi lists 1 of 2 GPUs on the bus", ("0000:00:00.0", "0000:01:00.0"),
            "Check `dmesg | grep -i xid` (79: a GPU fell off the bus); take the host out of the job.",
        )),
        ({**gpus(), **libcuda(searched=("/a", "/lib"), aside=("/nfs/x",), dangling=("/a/b",))}, Said(
            "report", "no libcuda of the driver where programs look for it",
            (
                "loaded driver: 580.65.06; nvidia-smi then shows no CUDA version",
                "searched for libcuda.so.1: /a, /lib",
                "/a/b leads to a file that is not there",
                "not searched, since looking may mount it: /nfs/x",
            ),
            "Install libcuda of version 580.65.06 (Debian: libcuda1, Ubuntu: libnvidia-compute). Where the "
            "driver is mounted from elsewhere, name its folder in /etc/ld.so.conf.d and run ldconfig.",
        )),
        ({**gpus(), **libcuda(("/usr/lib/a", "580.65.06"), ("/usr/lib/b", "550.54"))}, Said(
            "report", "libcuda is not that of the loaded driver 580.65.06", ("/usr/lib/b",),
            "Reboot after an upgrade of the driver; else remove the other version.",
        )),
        ({**gpus(), **libcuda(("/usr/lib/a", "580.65.06")),
          "environment": {"LD_LIBRARY_PATH": "/a/stubs:/b:/c/stubs/:/stubsd"}}, Said(
            "report", "LD_LIBRARY_PATH of sessions names stubs, whose libcuda finds no device",
            ("/a/stubs", "/c/stubs/"), "Take them out of LD_LIBRARY_PATH: they are for linking only.",
        )),
        (fabric(units={}), Said(
            "blocked", "the fabric manager does not run (CUDA error 802)",
            ("4 NVSwitches on the bus", f"{UNIT}: not-found"), FABRIC,
        )),
        (fabric(**service("failed")), Said(
            "blocked", "the fabric manager does not run (CUDA error 802)",
            ("4 NVSwitches on the bus", f"{UNIT}: loaded, failed"), FABRIC,
        )),
        (fabric(units=LATE), Said(
            "unknown", "could not read whether the fabric manager runs",
            ("4 NVSwitches on the bus", LATE.reason), FABRIC,
        )),
        (fabric(**service("active")), None),
        (gpus(processes=(GpuProcess(7, "GPU-0", 900), GpuProcess(8, "GPU-0", 5))), Said(
            "report", "1 GPU in use", ("pid 7: 900 MiB of GPU-0", "pid 8: 5 MiB of GPU-0"),
            "If it is a left-over and no job of yours, end it by its pid; first check its owner: ps -fp PID",
        )),
        (gpus(1, devices=(gpu(0, used=1025),)), Said("report", NOBODY, ("GPU 0: 1025 MiB of 81559",), FUSER)),
        (gpus(1, devices=(gpu(0, used=1024),)), None),
        (gpus(2, devices=(gpu(0, persistence=False), gpu(1, persistence=False))), Said(
            "report", "persistence mode is off on 2 GPUs", ("GPUs 0, 1: persistence_mode Disabled",),
            "Every start of a job waits for the driver: systemctl enable --now nvidia-persistenced.",
        )),
    ],
)  # fmt: skip
def test_what_is_said_of_gpus(facts: dict[str, Any], expected: Said | None) -> None:
    assert said(planned_for("gpu_health", hosts(facts)), HOST) == ([expected] if expected else [])


@pytest.mark.parametrize(("kind", "is_named"), [("", True), ("none", True), ("kvm", False)])
def test_access_control(kind: str, is_named: bool) -> None:
    acs = {"01:00.0": "ACSCtl: SrcValid+ x", "02:00.0": "ACSCtl: SrcValid-"}
    facts = {**gpus(acs=acs), "identity": record(Identity, virtualization=kind)}
    assert said(planned_for("gpu_health", hosts(facts)), HOST) == [
        Said(
            "report", "access control (ACS) is on for 1 PCIe device", ("01:00.0 ACSCtl: SrcValid+ x",),
            "Direct transfers between GPUs then go through the processor, or hang: switch ACS off in the "
            "BIOS, or at each boot with setpci -s ADDRESS ECAP_ACS+0x6.w=0000",
        )
    ] * is_named  # fmt: skip


def test_gpus_that_belong_to_a_virtual_machine_are_not_counted() -> None:
    away = frozenset({"/sys/bus/pci/drivers/vfio-pci/0000:01:00.0"})
    facts = {**gpus(2, devices=(gpu(0),)), "session": record(LoginSession, present=away)}
    assert said(planned_for("gpu_health", hosts(facts)), HOST) == []
    other = PciDevice("0000:09:00.0", "1002", "1", "0302")
    sound = PciDevice("0000:09:00.1", "10de", "1", "0403")
    pci = (*gpus(1)["gpus"].pci, other, sound)
    assert said(planned_for("gpu_health", hosts(gpus(1, pci=pci))), HOST) == []


# ---- Ascend

TABLE, HCCN = "/etc/hccl_rank_table.json", "/etc/hccn.conf"
KEPT = "60000-60031"


def two(**given: Any) -> list[Any]:
    return [
        ascend_bench.host(1, hccn(1), reserved=KEPT, **given),
        ascend_bench.host(2, hccn(2), reserved=KEPT),
    ]


@pytest.mark.parametrize(
    ("states", "rank_table", "expected"),
    [
        (two(), True, Said("drift", f"there is no {TABLE}", (), "")),
        (two(table=b"{}"), None, Said("drift", f"{TABLE} is not the table of this inventory", (), "")),
        (two(table=b"{}"), False, None),
        (two(), None, None),
        ([ascend_bench.host(1), *two()[1:]], True, Said(
            "blocked", f"a rank table is asked for, and this host has no {HCCN}", (),
            "Set the addresses with hccn_tool, or leave the host out of the inventory.",
        )),
        ([ascend_bench.host(1, b"address_0=192.168.0.2\n", reserved=KEPT),
          ascend_bench.host(2, hccn(2, 1), reserved=KEPT)], None, Said(
            "blocked", f"{HCCN} cannot be right", ("the device address 192.168.0.2 is also on gpu02",),
            "Correct it with hccn_tool -i N -ip -s address ADDRESS netmask MASK.",
        )),
        ([two()[0], ascend_bench.host(2)], True, Said(
            "blocked", "the rank table cannot be made, because it needs every host",
            ("gpu02: it has no /etc/hccn.conf",), "",
        )),
    ],
)  # fmt: skip
def test_what_is_said_of_a_rank_table(
    states: list[Any], rank_table: bool | None, expected: Said | None
) -> None:
    plan = planned_for("ascend", fleet_of(*states, ascend=AscendSpec(rank_table=rank_table)))
    assert said(plan, HOST) == ([expected] if expected else [])
    writes = [write[:5] for write in written(plan, HOST)]
    assert writes == [
        (
            f"write {TABLE}: 4 devices on 2 hosts", "low", False,
            "running jobs keep the table they were started with", TABLE,
        )
    ] * (expected is not None and expected.kind == "drift")  # fmt: skip


def test_what_is_said_of_all_ascend_hosts() -> None:
    states = [
        ascend_bench.host(1, hccn(1)),
        ascend_bench.host(2, hccn(2, 1)),
        ascend_bench.host(3, hccn(3)),
    ]
    assert said(planned_for("ascend", fleet_of(*states)), None) == [
        Said(
            "report", "hosts have different numbers of Ascend devices",
            ("2 devices: gpu01, gpu03", "1 device: gpu02"), "",
        ),
        Said(
            "report", "outgoing connections may take HCCL's ports 60000-60031",
            ("not in net.ipv4.ip_local_reserved_ports: gpu01, gpu02, gpu03",),
            "Reserve them (section port_range of remedy.yaml), and open them to the peers.",
        ),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("base", "is_named"), [(60000, True), (60999, True), (61000, False), (32768, True), (32737, True), (32736,
     False)]
)  # fmt: skip
def test_ports_beside_those_of_outgoing_connections(base: int, is_named: bool) -> None:
    state = ascend_bench.host(1, hccn(1))
    found = said(planned_for("ascend", fleet_of(state, ascend=AscendSpec(base_port=base))), None)
    assert bool(found) is is_named


# ---- Paddle

PATH = "/usr/local/bin/paddle-fixed-ports"


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("1024-65535", True), ("1023-2000", False), ("2000-65536", False), ("2000-2000", True), ("2001-2000",
         False),
        ("2000", False), ("2000-", False), ("x2000-2001", False),
    ],
)  # fmt: skip
def test_ranges_of_ports(text: str, is_right: bool) -> None:
    if is_right:
        assert PaddleSpec(ports=text).range[0] == int(text.split("-")[0])
        return
    with pytest.raises(ValueError, match="ports"):
        PaddleSpec(ports=text)


@pytest.mark.parametrize(("number", "is_right"), [(0, False), (1, True), (128, True), (129, False)])
def test_numbers_of_devices(number: int, is_right: bool) -> None:
    if is_right:
        assert PaddleSpec(devices=number).devices == number
        return
    with pytest.raises(ValueError, match="devices"):
        PaddleSpec(devices=number)


def test_what_is_said_of_fixed_ports() -> None:
    spec = PaddleSpec(ports="8000-8001")
    made = fleet_of(ascend_bench.host(1), ascend_bench.host(2), paddle=spec)
    plan = planned_for("paddle", made)
    assert said(plan, HOST) == [Said("drift", f"there is no {PATH}", (), "")]
    (write,) = written(plan, HOST)
    assert write[:5] == (f"write {PATH}", "low", False, "", PATH)
    assert run(plan, HOST) == []
    title = "the endpoints of Paddle's trainers cannot be listed, because that needs every host"
    for states, absent, reason in (
        ([ascend_bench.host(1, gpus=3)], (), "gpu01: 3 trainers, and 8000-8001 has 2 ports"),
        ([ascend_bench.host(1)], ("gpu09",), "gpu09: it was not read"),
    ):
        plan = planned_for("paddle", fleet_of(*states, absent=absent, paddle=spec))
        assert said(plan, HOST) == [Said("blocked", title, (reason,), "")]
        assert plan.changes == ()


def test_a_name_that_leads_elsewhere() -> None:
    spec: dict[str, Any] = {
        "paddle": PaddleSpec(ports="8000-8001"), "hosts_file": HostsFileSpec(manage=False),
    }  # fmt: skip
    made = fleet_of(ascend_bench.host(1, own="127.0.1.1"), **spec)
    assert said(planned_for("paddle", made), HOST)[0] == Said(
        "blocked", "Paddle takes the address of the host's own name, which is not its cluster address",
        ("its own name: 127.0.1.1, expected 10.0.0.1",),
        "Set hosts_file.manage: true. The launcher's --host does not reach Paddle's gloo.",
    )  # fmt: skip
    right = fleet_of(ascend_bench.host(1), **spec)
    assert [f.kind for f in said(planned_for("paddle", right), HOST)] == ["drift"]
    assert planned("paddle", ascend_bench.host(1)).findings == ()
