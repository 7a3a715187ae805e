"""IPv6, ports, Ascend and Paddle: what findings say, what is refused, and the borders between cases."""

from __future__ import annotations

import json

import pytest

from remedy.deploys import ascend as ascend_module
from remedy.deploys.ascend import HCCN, TABLE, AscendSpec
from remedy.deploys.hosts_file import HostsFileSpec
from remedy.deploys.ipv6 import PATH, Ipv6Spec, key_of, target_now
from remedy.deploys.paddle import PATH as PADDLE
from remedy.deploys.paddle import PaddleSpec
from remedy.deploys.port_range import PATH as PORTS
from remedy.deploys.port_range import RESERVED_KEY, PortRangeSpec
from remedy.firewall.ports import RANGE_KEY
from remedy.plan import FindingKind, Plan, Risk, make_plan
from remedy.probe import Address, File, HostState, Interface, Kernel, Names, Network, Sysctls
from remedy.values import Unknown
from tests.unit.build import fleet, record, with_section
from tests.unit.deploys import test_ascend_paddle as ap
from tests.unit.deploys import test_ipv6 as v6
from tests.unit.deploys import test_port_range as pr
from tests.unit.plans import WHEN

# --- IPv6 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["veth1", "docker0", "br-1", "cni0", "cali1", "flannel.1", "lxcbr0", "podman0"]
)
def test_interfaces_of_containers_are_left_alone(name: str) -> None:
    live = dict.fromkeys([key_of(x) for x in ("eth0", name, "all", "default")], "0")
    target = target_now(live, Ipv6Spec(mode="disable"))
    assert list(target) == [key_of("all"), key_of("default"), key_of("eth0")]
    assert set(target.values()) == {"1"}
    named = target_now(live, Ipv6Spec(interfaces={name: "disable"}))
    assert named == {key_of(name): "1"}


def test_other_settings_of_ipv6_are_not_those_that_switch_it() -> None:
    live = {
        key_of("all"): "0",
        "net.ipv6.conf.eth0.accept_ra": "1",
        "net.ipv4.conf.eth0.disable_ipv6": "0",
    }
    assert list(target_now(live, Ipv6Spec(mode="disable"))) == [key_of("all"), key_of("default")]
    assert target_now(live, Ipv6Spec(interfaces={"eth9": "disable"})) == {}


def test_what_is_wrong_is_said_with_the_settings_and_whether_it_is_on_or_off() -> None:
    plan = v6.plan_of(v6.of(v6.state(), eth0="disable"))
    (finding,) = plan.findings
    assert "IPv6 is on" in finding.title
    assert finding.evidence == (f"{key_of('eth0')} = 0, needs 1",)
    assert "c10d" in finding.fix
    assert finding.label == "ipv6-issue"
    switch = plan.changes[1]
    assert switch.title == "switch IPv6 off on eth0"
    assert (switch.risk, switch.guarded, switch.disrupts) == (Risk.MEDIUM, True, "")
    off = dict.fromkeys(("all", "default", "eth0"), "1")
    on = v6.plan_of(v6.of(v6.state(off), eth0="enable"))
    assert "IPv6 is off" in on.findings[0].title
    assert on.findings[0].fix == ""


def test_what_will_be_wrong_after_a_reboot_is_said_as_that() -> None:
    off = dict.fromkeys(("all", "default", "eth0", "lo"), "1")
    plan = v6.plan_of(v6.of(v6.state(off), mode="disable"))
    (finding,) = plan.findings
    assert "reboot" in finding.title
    assert set(finding.evidence) == {f"at boot: needs {key_of(x)} = 1" for x in ("all", "default")}
    (change,) = plan.changes
    assert PATH in change.title
    assert change.guarded


def test_a_kernel_without_ipv6_is_said_with_its_command_line() -> None:
    kernel = record(Kernel, command_line="quiet ipv6.disable=1 root=/dev/sda", modules=frozenset())
    state = v6.state({}).model_copy(update={"kernel": kernel})
    for settings in ({"mode": "enable"}, {"eth0": "enable"}):
        (finding,) = v6.plan_of(v6.of(state, **settings)).blocked("a")  # type: ignore[arg-type]
        assert finding.evidence == ("ipv6.disable=1",)
        assert "ipv6.disable=1" in finding.fix
    assert v6.plan_of(v6.of(state, eth0="disable")).blocked("a") == ()


def ssh(connection: str, *, address: str = "", interface: str = "eth0") -> Plan:
    """Return the plan that switches eth0 off, where ssh came in so, and this interface has the address."""
    state = v6.state(environment={"SSH_CONNECTION": connection} if connection else {})
    assert isinstance(state.network, Network)
    own = record(
        Interface,
        name=interface,
        addresses=(Address(address=address, prefix=64, scope="global"),),
    )
    interfaces = (*state.network.interfaces, *((own,) if address else ()))
    network = state.network.model_copy(update={"interfaces": interfaces})
    return v6.plan_of(v6.of(state.model_copy(update={"network": network}), eth0="disable"))


def test_ssh_over_another_interface_is_no_reason_to_refuse() -> None:
    assert ssh("fd00::9 5000 fd00::1%eth0 22", address="fd00::1", interface="eth7").changes
    refused = ssh("fd00::9 5000 fd00::1 22", address="fd00::1", interface="eth0")
    (finding,) = refused.blocked("a")
    assert refused.changes == ()
    assert finding.kind is FindingKind.BLOCKED
    assert "SSH_CONNECTION=fd00::9 5000 fd00::1 22" in finding.evidence
    assert "IPv4" in finding.fix


def test_where_it_is_not_known_how_ssh_came_in_nothing_is_switched_off() -> None:
    found = v6.of(v6.state(environment={}), mode="disable")
    nodes = tuple(
        node.__class__(name=node.name, ssh_address="gpu.example.org")
        for node in found.inventory.nodes
    )
    unnamed = found.__class__(
        found.inventory.__class__(path=found.inventory.path, nodes=nodes), found.states, found.spec
    )
    plan = v6.plan_of(unnamed)
    (finding,) = plan.blocked("a")
    assert finding.kind is FindingKind.UNKNOWN
    assert plan.changes == ()
    assert finding.evidence
    assert "ssh_hostname" in finding.fix


def test_an_interface_that_no_host_has_is_said_with_those_there_are() -> None:
    (finding,) = v6.plan_of(v6.of(v6.state(), eth9="disable")).findings
    assert finding.evidence == ("there are: eth0",)
    assert "remedy.yaml" in finding.fix
    known = v6.of(v6.state(), eth9="disable")
    blind = v6.state().model_copy(update={"network": Unknown(reason="x")})
    unread = known.__class__(known.inventory, {"a": blind}, known.spec)
    assert [f for f in v6.plan_of(unread).findings if f.host is None] == []


# --- ports ---------------------------------------------------------------------------------------------------


def test_a_range_that_is_not_the_specs_is_said_with_both() -> None:
    plan = pr.plan_of(
        pr.of(
            pr.state(live="1024 65535"), spec=PortRangeSpec.model_validate({"range": "50000-60999"})
        )
    )
    finding = plan.findings[0]
    assert "1024-65535" in finding.title
    assert finding.evidence == (f"{RANGE_KEY} = 1024 65535",)
    assert finding.label == "firewall-ports"
    assert {change.action.kind for change in plan.changes} == {"file", "command"}


def test_ports_of_launchers_in_the_range_are_said_with_who_needs_them() -> None:
    plan = pr.plan_of(pr.of(pr.state(live="1024 65535", reserved="8080")))
    (finding,) = plan.findings
    assert finding.label == "master-port-in-use"
    evidence = "\n".join(finding.evidence)
    for fact in (
        f"{RANGE_KEY} = 1024 65535",
        f"{RESERVED_KEY} = 8080",
        "needed: 29500: ",
        "needed: 29400: ",
        "29500-29563",
    ):
        assert fact in evidence
    action = next(c.action for c in plan.changes if c.action.kind == "command")
    assert action.after == "8080,29400,29500-29563"
    none = pr.plan_of(pr.of(pr.state(live="1024 65535"))).findings[0]
    assert f"{RESERVED_KEY} = none" in none.evidence


def test_ports_that_only_the_spec_reserves_are_said_as_that() -> None:
    plan = pr.plan_of(
        pr.of(pr.state(), spec=PortRangeSpec.model_validate({"reserve": ["8000-8010"]}))
    )
    (finding,) = plan.findings
    assert "spec" in finding.title
    assert finding.label == "master-port-in-use"
    assert not [line for line in finding.evidence if line.startswith("needed")]


def test_what_is_right_now_and_wrong_at_boot_is_said_with_the_files() -> None:
    late = {"/etc/sysctl.d/10-a.conf": f"{RESERVED_KEY} = 1\n"}
    spec = PortRangeSpec.model_validate({"reserve": ["8000"], "range": "32768-60999"})
    plan = pr.plan_of(pr.of(pr.state(reserved="1,8000", files=late), spec=spec))
    (finding,) = plan.findings
    assert "reboot" in finding.title
    assert f"{RANGE_KEY}: no file sets it, needs 32768 60999" in finding.evidence
    assert f"/etc/sysctl.d/10-a.conf:1: {RESERVED_KEY} = 1, needs 1,8000" in finding.evidence
    (change,) = plan.changes
    assert PORTS in change.title


def test_a_setting_that_the_probe_does_not_show_is_unknown() -> None:
    state = pr.state().model_copy(update={"sysctls": Sysctls(live={}, persisted=(), unread=())})
    plan = pr.plan_of(pr.of(state, spec=PortRangeSpec.model_validate({"range": "50000-60999"})))
    (finding,) = plan.findings
    assert finding.kind is FindingKind.UNKNOWN
    assert RANGE_KEY in finding.title
    assert f"sysctl {RANGE_KEY}" in finding.fix
    blind = state.model_copy(update={"sysctls": Unknown(reason="no")})
    assert pr.plan_of(pr.of(blind)).findings == ()
    spec = PortRangeSpec.model_validate({"reserve": ["8000"]})
    assert [f.kind for f in pr.plan_of(pr.of(blind, spec=spec)).findings] == [FindingKind.UNKNOWN]


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("1024-1123", True),
        ("1024-1122", False),
        ("1023-2000", False),
        ("65436-65535", True),
        ("1024-65536", False),
    ],
)
def test_a_range_is_wide_enough_and_among_the_ports_for_everybody(text: str, fits: bool) -> None:
    if fits:
        low, high = text.split("-")
        assert PortRangeSpec.model_validate({"range": text}).range == (int(low), int(high))
    else:
        with pytest.raises(ValueError, match=text.split("-")[0]):
            PortRangeSpec.model_validate({"range": text})


# --- Ascend --------------------------------------------------------------------------------------------------


def asked(*states: HostState, **settings: object) -> Plan:
    spec = AscendSpec.model_validate({"rank_table": True, **settings})
    return ap.planned(ap.of(*states, ascend=spec))


def test_a_host_without_devices_is_blocked_only_where_a_table_is_asked_for() -> None:
    (finding,) = asked(ap.host(1), ap.host(2, ap.hccn(2))).blocked("gpu01")
    assert HCCN in finding.title
    assert "hccn_tool" in finding.fix
    assert ap.planned(ap.of(ap.host(1))).findings == ()


def test_what_is_wrong_with_one_host_is_said_there_and_keeps_the_others_waiting() -> None:
    bad = ap.host(1, b"address_0=192.168.0.300\naddress_1=127.0.0.1\n")
    plan = asked(bad, ap.host(2, ap.hccn(2)))
    assert plan.changes == ()
    (own,) = plan.blocked("gpu01")
    assert HCCN in own.title
    assert len(own.evidence) == 2
    assert "hccn_tool" in own.fix
    (waiting,) = plan.blocked("gpu02")
    assert waiting.evidence[0].startswith("gpu01: ")
    assert "192.168.0.300" in waiting.evidence[0]
    assert {own.label, waiting.label} == {"hccl-rank-table"}


def test_a_host_that_was_not_read_is_said_with_the_reason() -> None:
    spec = AscendSpec(rank_table=True)
    plan = ap.planned(ap.of(ap.host(1, ap.hccn(1)), absent=("gpu09",), ascend=spec))
    (finding,) = plan.blocked("gpu01")
    assert finding.evidence[0].startswith("gpu09: ")
    assert "down" in finding.evidence[0]


def test_an_address_on_two_hosts_is_said_on_both() -> None:
    plan = asked(ap.host(1, ap.hccn(1)), ap.host(2, ap.hccn(1)), ap.host(3, ap.hccn(3)))
    (first,) = plan.blocked("gpu01")
    (second,) = plan.blocked("gpu02")
    assert "192.168.0.1" in first.evidence[0]
    assert "gpu02" in first.evidence[0]
    assert "gpu01" in second.evidence[0]
    assert "gpu03" not in "".join((*first.evidence, *second.evidence))


def test_the_table_is_named_with_the_number_of_devices_and_hosts() -> None:
    plan = asked(*(ap.host(n, ap.hccn(n), reserved="60000-60031") for n in (1, 2)))
    for name in ("gpu01", "gpu02"):
        (change,) = plan.for_host(name)
        assert "4 devices on 2 hosts" in change.title
        assert TABLE in change.title
        assert change.disrupts
    assert all(TABLE in f.title for f in plan.findings)
    there = asked(ap.host(1, ap.hccn(1), table=b"{}", reserved="60000-60031"))
    assert json.loads(ap.written(there, "gpu01"))["server_count"] == "1"
    assert "not the table" in there.findings[0].title


@pytest.mark.parametrize(
    ("devices", "timeout"), [(8, None), (128, None), (129, "900"), (1024, "900"), (1025, "1800")]
)
def test_larger_clusters_wait_longer(devices: int, timeout: str | None) -> None:
    content = b"".join(f"address_{d}=10.{d // 250}.{d % 250}.9\n".encode() for d in range(devices))
    found = ap.of(ap.host(1, content), ascend=AscendSpec(rank_table=True))
    spec = AscendSpec(rank_table=True)
    values = ascend_module.variables(found, found.states["gpu01"], spec)
    assert values.get("MS_NODE_TIMEOUT") == timeout
    assert (values["HCCL_IF_IP"], values["RANK_TABLE_FILE"]) == ("10.0.0.1", TABLE)


def test_variables_of_the_spec_are_set_and_others_are_not() -> None:
    found = ap.of(ap.host(1, ap.hccn(1)))
    state = found.states["gpu01"]
    assert ascend_module.variables(found, state, AscendSpec()) == {}
    spec = AscendSpec(rank_table=True, base_port=50000, node_timeout=77, connect_timeout=600)
    values = ascend_module.variables(found, state, spec)
    assert values == {
        "HCCL_IF_IP": "10.0.0.1",
        "RANK_TABLE_FILE": TABLE,
        "MS_NODE_TIMEOUT": "77",
        "HCCL_IF_BASE_PORT": "50000",
        "HCCL_CONNECT_TIMEOUT": "600",
    }
    bad = ap.of(ap.host(1, b"address_0=127.0.0.1\n"))
    plain = AscendSpec(rank_table=True)
    assert ascend_module.variables(bad, bad.states["gpu01"], plain) == {"HCCL_IF_IP": "10.0.0.1"}
    none = ap.of(ap.host(1))
    assert ascend_module.variables(none, none.states["gpu01"], plain) == {}


@pytest.mark.parametrize(
    ("live", "reserved", "base", "named"),
    [
        ("32768 60999", "", 60000, True),
        ("32768 60999", "60000-60031", 60000, False),
        ("32768 60999", "60000-60030", 60000, True),
        ("32768 60999", "22,60000-60010,60011-60031", 60000, False),
        ("32768 59999", "", 60000, False),
        ("32768 60000", "", 60000, True),
        ("60032 65535", "", 60000, False),
        ("60031 65535", "", 60000, True),
        ("", "", 60000, False),
        ("32768 60999", "", 61000, False),
    ],
)
def test_ports_of_hccl_that_connections_may_take_are_reported(
    live: str, reserved: str, base: int, named: bool
) -> None:
    state = ap.host(1, ap.hccn(1))
    values = {RANGE_KEY: live, RESERVED_KEY: reserved}
    state = state.model_copy(update={"sysctls": Sysctls(live=values, persisted=(), unread=())})
    plan = ap.planned(
        ap.of(
            state,
            ap.host(2, ap.hccn(2), reserved=f"{base}-{base + 31}"),
            ascend=AscendSpec(base_port=base),
        )
    )
    found = [f for f in plan.findings if "HCCL" in f.title]
    assert bool(found) is named
    if named:
        assert f"{base}-{base + 31}" in found[0].title
        assert "gpu01" in found[0].evidence[0]
        assert "gpu02" not in found[0].evidence[0]
        assert "port_range" in found[0].fix
    blind = state.model_copy(update={"sysctls": Unknown(reason="x")})
    assert ap.planned(ap.of(blind)).findings == ()


def test_hosts_with_other_numbers_of_devices_are_reported() -> None:
    kept = "60000-60031"
    states = [
        ap.host(n, ap.hccn(n, devices), reserved=kept) for n, devices in ((1, 2), (2, 2), (3, 1))
    ]
    (finding,) = ap.planned(ap.of(*states)).findings
    assert finding.host is None
    assert finding.evidence == ("2 devices: gpu01, gpu02", "1 devices: gpu03")


# --- Paddle --------------------------------------------------------------------------------------------------


def paddle(*states: HostState, absent: tuple[str, ...] = (), **settings: object) -> Plan:
    spec = PaddleSpec.model_validate({"ports": "8000-8003", **settings})
    return ap.planned(ap.of(*states, absent=absent, paddle=spec), "paddle")


def test_each_device_has_the_next_port_and_each_host_its_first_trainer() -> None:
    plan = paddle(ap.host(1, gpus=2), ap.host(2, gpus=1), ap.host(3))
    text = ap.written(plan, "gpu02").decode()
    assert "10.0.0.1:8000,10.0.0.1:8001,10.0.0.2:8000,10.0.0.3:8000" in text
    for name in ("gpu01", "gpu02", "gpu03"):
        (change,) = plan.for_host(name)
        assert change.action.kind == "file"
        assert (change.action.path, change.action.mode) == (PADDLE, 0o755)
        assert PADDLE in change.title
    assert [f.title for f in plan.findings] == [f"there is no {PADDLE}"] * 3


def test_a_list_that_needs_a_host_is_refused_with_every_reason() -> None:
    plan = paddle(ap.host(1, gpus=5), ap.host(2), absent=("gpu09",))
    assert plan.changes == ()
    (finding,) = plan.blocked("gpu01")
    crowded, unread = finding.evidence
    for fact in ("gpu01", "5", "8000-8003", "4 ports"):
        assert fact in crowded
    assert unread.startswith("gpu09: ")
    assert finding.label == "firewall-ports"
    assert paddle(ap.host(1, gpus=4)).changes


def test_a_name_that_leads_elsewhere_blocks_where_nobody_cures_it() -> None:
    unmanaged = with_section("hosts_file", HostsFileSpec(manage=False))
    unmanaged.sections["paddle"] = PaddleSpec(ports="8000-8003")

    def plan(own: tuple[str, ...]) -> Plan:
        state = ap.host(1).model_copy(update={"names": record(Names, local=own)})
        return make_plan(fleet(state, spec=unmanaged), WHEN, only="paddle")

    (finding,) = plan(("127.0.1.1", "10.0.0.1")).blocked("gpu01")
    assert finding.label == "loopback-hostname"
    assert "127.0.1.1" in finding.evidence[0]
    assert "10.0.0.1" in finding.evidence[0]
    assert "hosts_file.manage" in finding.fix
    assert "no address" in plan(()).blocked("gpu01")[0].evidence[0]
    assert plan(("10.0.0.1",)).blocked("gpu01") == ()
    unknown = ap.host(1).model_copy(update={"names": record(Names, local=Unknown(reason="late"))})
    (late,) = make_plan(fleet(unknown, spec=unmanaged), WHEN, only="paddle").blocked("gpu01")
    assert (late.kind, late.label) == (FindingKind.UNKNOWN, "loopback-hostname")


def test_another_list_is_replaced_and_said_as_that() -> None:
    old = File(path=PADDLE, real_path=PADDLE, exists=True, content=b"#!/bin/sh\n")
    state = ap.host(1)
    state = state.model_copy(update={"files": {**state.files, PADDLE: old}})
    (finding,) = paddle(state).findings
    assert PADDLE in finding.title
    assert "there is no" not in finding.title


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("1024-1024", True),
        ("1023-1024", False),
        ("65535-65535", True),
        ("8000-65536", False),
        ("9000-8000", False),
        ("8000", False),
        ("8000-", False),
    ],
)
def test_ports_of_trainers_are_a_range(text: str, fits: bool) -> None:
    if fits:
        low, high = (int(word) for word in text.split("-"))
        assert PaddleSpec(ports=text).range == range(low, high + 1)
    else:
        with pytest.raises(ValueError, match="port"):
            PaddleSpec(ports=text)
