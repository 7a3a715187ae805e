"""Findings that remedy only reports: what the probe may have found, and exactly what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys.clock import ClockSpec, Offset, common
from remedy.deploys.fleet_versions import FleetVersionsSpec
from remedy.deploys.launching import LaunchingSpec, through_proxy
from remedy.deploys.network_health import NetworkHealthSpec
from remedy.errors import SpecError
from remedy.plan import Finding, FindingKind, Fleet, make_plan, section_models
from remedy.probe import (
    Address,
    Clock,
    Containers,
    Docker,
    Gpu,
    GpuProcess,
    Gpus,
    HostState,
    Identity,
    Interface,
    Kernel,
    LoginSession,
    Mention,
    Names,
    Network,
    Package,
    PciDevice,
    RdmaPort,
    Software,
    Sysctls,
    Unit,
)
from remedy.spec import SpecSection, load_spec
from remedy.values import Unknown
from tests.unit.build import fleet, host_state, record, with_section
from tests.unit.plans import WHEN
from tests.unit.probe_data import REQUEST, parse, recorded

SECOND = 10**9
START = 1_800_000_000 * SECOND
SITE = "/opt/venv/lib/python3.11/site-packages"


def hosts(*facts: Mapping[str, Any]) -> Fleet:
    """Return a fleet of hosts that differ in these facts."""
    return fleet(
        *(
            host_state(f"gpu{n:02d}", f"10.0.0.{n}").model_copy(update=dict(own))
            for n, own in enumerate(facts, 1)
        )
    )


def told(remedy: str, these: Fleet, spec: SpecSection | None = None) -> list[Finding]:
    """Return what one remedy finds; it never has changes."""
    if spec is not None:
        these = Fleet(these.inventory, these.states, with_section(remedy, spec), these.missing)
    plan = make_plan(these, WHEN, only=remedy)
    assert plan.changes == ()
    return list(plan.findings)


def one(findings: list[Finding]) -> Finding:
    (finding,) = findings
    return finding


# -- clocks ----


def clock(ahead: float, *, took: float = 1.0, asked: float = 0.0) -> dict[str, Clock]:
    """Return a clock that is so many seconds ahead, read somewhere in the time that the answer took."""
    begin = START + int(asked * SECOND)
    read = begin + int(took / 2 * SECOND)
    return {
        "clock": Clock(
            epoch_ns=read + int(ahead * SECOND),
            uptime=1.0,
            asked_at=begin,
            heard_at=begin + int(took * SECOND),
        )
    }


def test_a_clock_that_is_behind_is_told_with_what_is_certain() -> None:
    finding = one(told("clock", hosts(clock(0), clock(-60), clock(0.2))))
    assert (finding.host, finding.label, finding.kind) == (
        "gpu02",
        "clock-skew",
        FindingKind.REPORT,
    )
    assert finding.title == "the clock is at least 59 s behind that of most hosts"
    assert "-60.5 to -59.5 s" in finding.evidence[0]


def test_a_slow_answer_is_no_wrong_clock() -> None:
    assert told("clock", hosts(clock(0), clock(0, took=40), clock(3))) == []


def test_hosts_asked_at_other_times_are_compared_by_the_controllers_clock() -> None:
    assert told("clock", hosts(clock(0), clock(0, asked=300))) == []
    assert len(told("clock", hosts(clock(0), clock(8, asked=300), clock(0)))) == 1


def test_without_the_controllers_time_nothing_is_said_of_clocks() -> None:
    lone = {"clock": Clock(epoch_ns=START, uptime=1.0)}
    assert told("clock", hosts(lone, {"clock": Clock(epoch_ns=0, uptime=1.0)}, {})) == []


def test_of_two_clocks_the_one_like_the_controllers_is_right() -> None:
    assert one(told("clock", hosts(clock(-90), clock(0)))).host == "gpu01"
    assert one(told("clock", hosts(clock(0), clock(90)))).host == "gpu02"


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=9), st.floats(0, 3))
def test_clocks_within_the_tolerance_are_never_named(aheads: list[float], took: float) -> None:
    near = [ahead / 100 for ahead in aheads]
    assert told("clock", hosts(*(clock(a, took=took) for a in near)), ClockSpec()) == []
    middle = common([Offset(a - took, a + took) for a in near])
    assert min(near) - took <= middle.low <= middle.high <= max(near) + took


# -- versions ----


def software(**versions: str) -> dict[str, Software]:
    packages = tuple(Package(name, version, SITE) for name, version in versions.items())
    return {"software": record(Software, packages=packages)}


def gpus(count: int = 2, *, driver: str = "580.65.06", **given: Any) -> dict[str, Gpus]:
    pci = tuple(PciDevice(f"0000:0{n}:00.0", "10de", "2330", "0302") for n in range(count))
    listed = tuple(
        Gpu(n, f"GPU-{n}", f"0000:0{n}:00.0", "H100", driver, True, "Default", 81559, 4, 0)
        for n in range(count)
    )
    facts: dict[str, Any] = {
        "pci": pci,
        "driver": driver,
        "devices": listed,
        "processes": (),
        "acs": {},
        "links": {},
    }
    facts |= given
    return {"gpus": Gpus(**facts)}


def test_versions_that_differ_are_told_with_their_hosts() -> None:
    a = software(torch="2.9.0", nvidia_nccl_cu12="2.27.5")
    b = software(torch="2.8.0", nvidia_nccl_cu12="2.27.3")
    torch, nccl = told("fleet_versions", hosts(a, a, b, a))
    assert torch.title == "torch differs between the hosts"
    assert torch.evidence == ("2.9.0: gpu[01-02,04]", "2.8.0: gpu03")
    assert (nccl.label, nccl.evidence[1]) == ("nccl-version-mismatch", "2.27.3: gpu03")
    assert told("fleet_versions", hosts(a, b), FleetVersionsSpec(compare=False)) == []


def test_a_host_without_torch_among_hosts_with_it_is_told_and_an_unknown_one_is_not_compared() -> (
    None
):
    a, none, unknown = software(torch="2.9.0"), software(), {"software": Unknown(reason="late")}
    assert one(told("fleet_versions", hosts(a, none))).evidence == ("2.9.0: gpu01", "none: gpu02")
    assert told("fleet_versions", hosts(a, unknown, a)) == []
    assert told("fleet_versions", hosts(none, none, unknown)) == []


def test_drivers_and_gpus_are_compared_where_there_are_gpus() -> None:
    old = gpus(driver="550.54.15")
    assert one(told("fleet_versions", hosts(gpus(), old, {}))).label == "driver-mismatch"
    fewer = one(told("fleet_versions", hosts(gpus(2), gpus(1), gpus(0, driver=""))))
    assert fewer.title == "the GPUs differ between the hosts"
    assert fewer.evidence == ("1 x H100: gpu02", "2 x H100: gpu01")


@pytest.mark.parametrize(
    ("version", "is_old"), [("2.7.8", True), ("2.8.4", False), ("2.10.3", False)]
)
def test_an_old_nccl_is_told(version: str, is_old: bool) -> None:
    found = told("fleet_versions", hosts(software(nvidia_nccl_cu12=version)))
    assert bool(found) is is_old


def test_a_minimum_that_is_no_version_is_refused(tmp_path: Any) -> None:
    (tmp_path / "remedy.yaml").write_text("fleet_versions:\n  nccl_minimum: newest\n")
    with pytest.raises(SpecError, match=r"fleet_versions\.nccl_minimum: .*such as '2.8'"):
        load_spec(tmp_path / "remedy.yaml", section_models())


# -- several Pythons ----


def pythons(interpreters: tuple[str, ...], *packages: Package) -> dict[str, Any]:
    return {
        "session": record(LoginSession, path="/opt/venv/bin:/usr/local/bin:/usr/bin"),
        "software": record(Software, interpreters=interpreters, packages=packages),
    }


def test_python_and_torchrun_of_two_installations() -> None:
    these = hosts(pythons(("/opt/venv/bin/torchrun", "/usr/bin/python3", "/elsewhere/bin/python")))
    finding = one(told("pythons", these))
    assert finding.evidence == ("python3: /usr/bin/python3", "torchrun: /opt/venv/bin/torchrun")
    whole = (
        "/opt/venv/bin/python3",
        "/opt/venv/bin/python",
        "/opt/venv/bin/torchrun",
        "/usr/bin/python3",
    )
    assert told("pythons", hosts(pythons(whole))) == []


def test_torch_twice_and_nccl_wheels_that_overwrite_each_other() -> None:
    other = "/usr/local/lib/python3.10/dist-packages"
    twice = pythons((), Package("torch", "2.9.0", SITE), Package("torch", "2.1.0", other))
    assert one(told("pythons", hosts(twice))).title == "torch is installed in 2 versions"
    same = pythons((), Package("torch", "2.9.0", SITE), Package("torch", "2.9.0", other))
    assert told("pythons", hosts(same)) == []
    wheels = pythons(
        (), Package("nvidia_nccl_cu12", "2.27.5", SITE), Package("nvidia_nccl_cu13", "2.28.3", SITE)
    )
    assert one(told("pythons", hosts(wheels))).label == "multi-python"


# -- GPUs ----


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


LATE = Unknown(reason="it did not answer in time")
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
    finding = one(told("gpu_health", hosts(facts)))
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
    assert told("gpu_health", hosts(facts)) == []


def test_access_control_inside_a_virtual_machine_is_the_hosts_affair() -> None:
    machine = record(Identity, static_name="gpu01", transient_name="gpu01", virtualization="kvm")
    facts = {**gpus(acs={"01:00.0": "ACSCtl: SrcValid+"}), "identity": machine}
    assert told("gpu_health", hosts(facts)) == []


# -- networks ----


def interface(
    name: str, address: str, *, mtu: int = 1500, speed: int | None = None, prefix: int = 24
) -> Interface:
    own = Address(address=address, prefix=prefix, scope="global")
    found: Interface = record(Interface, name=name, mtu=mtu, speed=speed, addresses=(own,))
    return found


def network(*interfaces: Interface) -> dict[str, Any]:
    return {"network": record(Network, interfaces=interfaces)}


def test_an_mtu_that_differs_is_told_with_interface_and_proof() -> None:
    these = hosts(
        network(interface("eno2", "10.0.0.1", mtu=9000)),
        network(interface("eno2", "10.0.0.2", mtu=9000), interface("x", "10.9.0.2", mtu=1500)),
        network(interface("ens1", "10.0.0.3", mtu=1500)),
    )
    finding = one(told("network_health", these))
    assert finding.label == "mtu-mismatch"
    assert finding.evidence == ("mtu 9000: gpu[01-02]", "mtu 1500: gpu03", "interface ens1: gpu03")
    assert "ping -M do -s 8972 PEER" in finding.fix
    assert told("network_health", these, NetworkHealthSpec(compare=False)) == []


def test_a_slow_link_is_told_and_an_unknown_speed_is_not_compared() -> None:
    fast = network(interface("a", "10.0.0.1", speed=100_000))
    slow = network(interface("b", "10.0.0.2", speed=1000))
    none = network(interface("c", "10.0.0.3"))
    finding = one(told("network_health", hosts(fast, slow, none)))
    assert finding.evidence[:2] == ("1000 Mb/s: gpu02", "100000 Mb/s: gpu01")
    assert told("network_health", hosts(fast, none)) == []


def strict(**values: str) -> dict[str, Any]:
    live = {f"net.ipv4.conf.{name}.rp_filter": value for name, value in values.items()}
    return {"sysctls": record(Sysctls, live=live)}


TWO = network(interface("eno1", "10.0.0.1"), interface("eno2", "10.0.0.101", prefix=32))
RAILS = network(interface("eno1", "10.0.0.1"), interface("eno2", "10.0.0.101"))


@pytest.mark.parametrize(
    ("facts", "evidence"),
    [
        ({**TWO, **strict(all="1", eno1="0", eno2="0")}, ("eno1", "eno2")),
        ({**TWO, **strict(all="0", eno1="0", eno2="1")}, ("eno2",)),
        ({**TWO, **strict(all="2", eno1="1", eno2="1")}, ()),
        ({**TWO, **strict(all="0", eno1="2", eno2="0")}, ()),
        ({**network(interface("eno1", "10.0.0.1")), **strict(all="1", eno1="1")}, ()),
        ({**TWO, "sysctls": LATE}, ()),
        # The remedy `rails` judges these.
        ({**RAILS, **strict(all="1", eno1="0", eno2="0")}, ()),
    ],
)
def test_strict_filtering_counts_with_two_ways_in(
    facts: dict[str, Any], evidence: tuple[str, ...]
) -> None:
    found = told("network_health", hosts(facts))
    assert tuple(line.split(":")[0] for f in found for line in f.evidence) == evidence


# -- RDMA ----


def port(
    device: str, state: str = "ACTIVE", layer: str = "InfiniBand", rate: float = 400.0
) -> RdmaPort:
    return RdmaPort(device, 1, state, "LinkUp", rate, layer, "", (), {})


def rdma(*ports: RdmaPort) -> dict[str, Any]:
    return {"rdma": ports}


def test_a_port_that_peers_use_is_told_and_one_that_nobody_uses_is_not() -> None:
    whole = rdma(port("mlx5_0"), port("mlx5_1", "DOWN"))
    broken = rdma(port("mlx5_0", "INIT"), port("mlx5_1", "DOWN"))
    assert told("rdma_health", hosts(whole, whole)) == []
    (finding,) = told("rdma_health", hosts(whole, rdma(port("mlx5_0"), port("mlx5_1")), whole))[:1]
    assert finding.host == "gpu01"
    told_of = one(told("rdma_health", hosts(whole, broken)))
    assert (told_of.host, told_of.label) == ("gpu02", "ib-link-fault")
    assert told_of.evidence[0] == "mlx5_0 port 1: INIT, LinkUp"


def test_mixed_fabrics_and_rates() -> None:
    ib, roce = rdma(port("mlx5_0")), rdma(port("mlx5_0", layer="Ethernet"))
    assert one(told("rdma_health", hosts(ib, roce))).label == "ib-roce-mixed"
    both = rdma(port("mlx5_0"), port("mlx5_1", layer="Ethernet"))
    assert one(told("rdma_health", hosts(both, both))).label == "ib-roce-mixed"
    slow = rdma(port("mlx5_0", rate=200.0))
    assert one(told("rdma_health", hosts(ib, slow))).evidence == (
        "mlx5_0 port 1 200 Gb/s: gpu02",
        "mlx5_0 port 1 400 Gb/s: gpu01",
    )
    assert told("rdma_health", hosts(ib, ib, {"rdma": LATE}, {"rdma": ()})) == []


@pytest.mark.parametrize(
    ("modules", "open_kernel", "missing"),
    [((), False, True), (("nvidia_peermem",), False, False), ((), True, False)],
)
def test_peermem_is_missed_where_nothing_else_does_its_work(
    modules: tuple[str, ...], open_kernel: bool, missing: bool
) -> None:
    kernel = {"kernel": record(Kernel, modules=frozenset(modules))}
    facts = {**gpus(open_kernel=open_kernel), **rdma(port("mlx5_0")), **kernel}
    assert bool(told("rdma_health", hosts(facts))) is missing


# -- names, sshd, proxies ----


@pytest.mark.parametrize(
    ("order", "wrong"),
    [
        ("files dns", False),
        ("dns files", True),
        ("dns", True),
        ("mymachines resolve [!UNAVAIL=return] files myhostname dns", False),
        ("myhostname [NOTFOUND=return] dns files", True),
        ("", False),
        ("files", False),
    ],
)
def test_the_order_of_the_resolver(order: str, wrong: bool) -> None:
    names = record(Names, order=tuple(order.split()))
    assert bool(told("resolver", hosts({"names": names}))) is wrong


def test_a_dead_name_server_is_told_by_the_time_it_took() -> None:
    names = record(Names, servers=("192.0.2.53",), peers={"gpu01": ("10.0.0.1",)})
    slow = {"names": names, "costs": {"names": 9.5}}
    finding = one(told("resolver", hosts(slow, {"names": names, "costs": {"names": 0.4}})))
    assert finding.host == "gpu01"
    assert finding.evidence[0] == "2 names took 9.5 s, 1 of them were not asked in time"


def mentions(*lines: tuple[str, int, str]) -> dict[str, Any]:
    return {"mentions": tuple(Mention(path=p, line=n, text=t) for p, n, t in lines)}


SSHD = "/etc/ssh/sshd_config"
INCLUDE = (SSHD, 12, "Include /etc/ssh/sshd_config.d/*.conf")


@pytest.mark.parametrize(
    ("lines", "fan_out", "start"),
    [
        ((), 10, None),
        ((), 64, "default 10:30:100"),
        ((INCLUDE, (SSHD, 40, "MaxStartups 3:50:10")), 10, f"{SSHD} line 40: MaxStartups 3:50:10"),
        (
            (INCLUDE, (f"{SSHD}.d/a.conf", 1, "maxstartups 100"), (SSHD, 40, "MaxStartups 3")),
            64,
            None,
        ),
        (
            ((SSHD, 2, "MaxStartups=4"), INCLUDE, (f"{SSHD}.d/a.conf", 1, "MaxStartups 100")),
            10,
            f"{SSHD} line 2: MaxStartups=4",
        ),
    ],
)
def test_sshd_takes_as_many_sessions_as_the_launcher_opens(
    lines: tuple[tuple[str, int, str], ...], fan_out: int, start: str | None
) -> None:
    found = told("launching", hosts(mentions(*lines)), LaunchingSpec(fan_out=fan_out))
    assert [line for f in found for line in f.evidence] == ([start] if start else [])


@pytest.mark.parametrize(
    ("no_proxy", "proxied"),
    [
        ("", ("a", "b")),
        ("localhost,10.0.0.1", ("b",)),
        ("10.0.0.0/24", ()),
        (" * ", ()),
        (".example.org", ("a", "b")),
    ],
)
def test_which_hosts_are_behind_the_proxy(no_proxy: str, proxied: tuple[str, ...]) -> None:
    assert through_proxy(no_proxy, {"a": "10.0.0.1", "b": "10.0.0.2", "c": None}) == proxied


def test_a_proxy_without_exceptions_is_told() -> None:
    finding = one(told("launching", hosts({"environment": {"HTTP_PROXY": "http://proxy:3128"}})))
    assert finding.evidence[:2] == ("HTTP_PROXY=http://proxy:3128", "no_proxy=")
    assert told("launching", hosts({"environment": {"HTTP_PROXY": "", "no_proxy": ""}})) == []


def test_unknown_facts_make_no_noise() -> None:
    state = hosts({}).states["gpu01"]
    groups = [
        name
        for name in HostState.model_fields
        if name not in ("host", "root", "files", "complete", "costs")
    ]
    blind = state.model_copy(update={name: Unknown(reason="late") for name in groups})
    for remedy in (
        "clock",
        "fleet_versions",
        "pythons",
        "gpu_health",
        "network_health",
        "rdma_health",
        "resolver",
        "launching",
    ):
        assert told(remedy, fleet_of(blind)) == []


def fleet_of(state: HostState) -> Fleet:
    healthy = hosts({}, {})
    return Fleet(healthy.inventory, {**healthy.states, state.host: state}, healthy.spec)


def test_the_probe_notes_when_it_was_asked_by_the_controllers_clock() -> None:
    asked = 1_700_000_000 * SECOND
    request = REQUEST.model_copy(update={"asked_at": asked})
    found = parse(recorded("lab-idle"), request, heard_at=asked + 2 * SECOND).clock
    assert isinstance(found, Clock)
    assert found.asked_at == asked
    assert asked - 10 * SECOND < found.heard_at <= asked + 2 * SECOND
    unasked = parse(recorded("lab-idle")).clock
    assert isinstance(unasked, Clock)
    assert (unasked.asked_at, unasked.heard_at) == (0, 0)


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
