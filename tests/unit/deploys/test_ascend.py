"""Rank tables of Ascend devices: made from the whole fleet, refused when any host's part is wrong."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys import ascend
from remedy.deploys import ascend as ascend_module
from remedy.deploys.ascend import HCCN, TABLE, AscendSpec
from remedy.edit.rank_table import Server, parse_hccn, rank_table
from remedy.firewall.ports import RANGE_KEY, RESERVED_KEY
from remedy.plan import FindingKind, Fleet, Plan
from remedy.probe import File, HostState, Sysctls
from remedy.values import Unknown
from tests.unit.deploys.ascend_bench import ENV, fleet_of, hccn, host, planned, written


def test_hosts_without_devices_are_left_alone() -> None:
    for only in ("ascend", "paddle"):
        plan = planned(fleet_of(host(1), host(2)), only)
        assert (plan.changes, plan.findings) == ((), ())


def test_right_addresses_are_only_looked_at_until_a_table_is_asked_for() -> None:
    states = [host(n, hccn(n), reserved="60000-60031") for n in (1, 2)]
    assert planned(fleet_of(*states)).findings == ()
    plan = planned(fleet_of(*states, ascend=AscendSpec(rank_table=True)))
    assert written(plan, "gpu01") == written(plan, "gpu02")
    table = json.loads(written(plan, "gpu01"))
    assert (table["version"], table["server_count"], table["status"]) == ("1.0", "2", "completed")
    ranks = [d["rank_id"] for server in table["server_list"] for d in server["device"]]
    assert ranks == ["0", "1", "2", "3"]
    assert [s["server_id"] for s in table["server_list"]] == ["10.0.0.1", "10.0.0.2"]
    assert table["server_list"][1]["device"][0] == {
        "device_id": "0",
        "device_ip": "192.168.0.2",
        "rank_id": "2",
    }


def test_a_table_that_is_there_is_kept_right() -> None:
    plan = planned(fleet_of(host(1, hccn(1), table=b"{}"), host(2, hccn(2))))
    assert plan.hosts == ("gpu01",)
    table = json.loads(written(plan, "gpu01"))
    assert [server["server_id"] for server in table["server_list"]] == ["10.0.0.1", "10.0.0.2"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"address_0=127.0.0.1\n", "no other host can reach"),
        (b"address_0=192.168.0.300\n", "not an address"),
        (b"address_0=192.168.9.1\naddress_1=192.168.9.1\n", "of another device too"),
        (b"address_0=192.168.9.1\naddress_0=192.168.9.2\n", "listed twice"),
        (b"# nothing\n", "lists no device address"),
        (b"address_0=192.168.0.2\n", "192.168.0.2 is also on gpu02"),
    ],
)
def test_a_wrong_address_is_named_and_no_table_is_made(content: bytes, words: str) -> None:
    made = fleet_of(host(1, content), host(2, hccn(2)), host(3, hccn(3)))
    (finding,) = planned(made).blocked("gpu01")
    assert any(words in line for line in finding.evidence)
    asked = planned(
        Fleet(made.inventory, made.states, fleet_of(ascend=AscendSpec(rank_table=True)).spec)
    )
    assert asked.changes == ()
    (other,) = asked.blocked("gpu03")
    assert other.evidence[0].startswith("gpu01: ")


def test_a_host_that_is_down_or_has_no_devices_stands_in_the_way() -> None:
    spec = AscendSpec(rank_table=True)
    plan = planned(fleet_of(host(1, hccn(1)), absent=("gpu09",), ascend=spec))
    assert (plan.changes, plan.blocked("gpu01")[0].evidence) == (
        (),
        ("gpu09: it was not read: down",),
    )
    assert planned(fleet_of(host(1, hccn(1)), host(2), ascend=spec)).blocked("gpu02")


def test_different_counts_and_open_ports_are_reported() -> None:
    plan = planned(fleet_of(host(1, hccn(1)), host(2, hccn(2, 1), reserved="60000-60031,29500")))
    assert [f.kind for f in plan.findings] == [FindingKind.REPORT] * 2
    assert plan.findings[1].evidence == ("not in net.ipv4.ip_local_reserved_ports: gpu01",)


@pytest.mark.parametrize(("devices", "timeout"), [(8, None), (129, "900"), (1025, "1800")])
def test_variables_go_by_the_number_of_devices(devices: int, timeout: str | None) -> None:
    lines = b"".join(f"address_{d}=192.{d // 250}.{d % 250}.1\n".encode() for d in range(devices))
    made = fleet_of(host(1, lines), ascend=AscendSpec(rank_table=True, connect_timeout=600))
    found = ascend.variables(made, made.states["gpu01"], AscendSpec(rank_table=True))
    assert found.get("MS_NODE_TIMEOUT") == timeout
    assert found["HCCL_IF_IP"] == "10.0.0.1"
    plan = planned(made, "environment")
    text = b"".join(plan.contents.values())
    assert b"RANK_TABLE_FILE=/etc/hccl_rank_table.json\n" in text
    assert b"HCCL_CONNECT_TIMEOUT=600\n" in text


def test_ports_for_others_to_reserve() -> None:
    assert ascend.reserved_ports(fleet_of(host(1))) == range(0)
    assert ascend.reserved_ports(fleet_of(host(1, hccn(1)))) == range(60000, 60032)


# --- what findings say ---


def asked(*states: HostState, **settings: object) -> Plan:
    spec = AscendSpec.model_validate({"rank_table": True, **settings})
    return planned(fleet_of(*states, ascend=spec))


def test_a_host_without_devices_is_blocked_only_where_a_table_is_asked_for() -> None:
    (finding,) = asked(host(1), host(2, hccn(2))).blocked("gpu01")
    assert HCCN in finding.title
    assert "hccn_tool" in finding.fix
    assert planned(fleet_of(host(1))).findings == ()


def test_what_is_wrong_with_one_host_is_said_there_and_keeps_the_others_waiting() -> None:
    bad = host(1, b"address_0=192.168.0.300\naddress_1=127.0.0.1\n")
    plan = asked(bad, host(2, hccn(2)))
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
    plan = planned(fleet_of(host(1, hccn(1)), absent=("gpu09",), ascend=spec))
    (finding,) = plan.blocked("gpu01")
    assert finding.evidence[0].startswith("gpu09: ")
    assert "down" in finding.evidence[0]


def test_an_address_on_two_hosts_is_said_on_both() -> None:
    plan = asked(host(1, hccn(1)), host(2, hccn(1)), host(3, hccn(3)))
    (first,) = plan.blocked("gpu01")
    (second,) = plan.blocked("gpu02")
    assert "192.168.0.1" in first.evidence[0]
    assert "gpu02" in first.evidence[0]
    assert "gpu01" in second.evidence[0]
    assert "gpu03" not in "".join((*first.evidence, *second.evidence))


def test_the_table_is_named_with_the_number_of_devices_and_hosts() -> None:
    plan = asked(*(host(n, hccn(n), reserved="60000-60031") for n in (1, 2)))
    for name in ("gpu01", "gpu02"):
        (change,) = plan.for_host(name)
        assert "4 devices on 2 hosts" in change.title
        assert TABLE in change.title
        assert change.disrupts
    assert all(TABLE in f.title for f in plan.findings)
    there = asked(host(1, hccn(1), table=b"{}", reserved="60000-60031"))
    assert json.loads(written(there, "gpu01"))["server_count"] == "1"
    assert "not the table" in there.findings[0].title


@pytest.mark.parametrize(
    ("devices", "timeout"), [(8, None), (128, None), (129, "900"), (1024, "900"), (1025, "1800")]
)
def test_larger_clusters_wait_longer(devices: int, timeout: str | None) -> None:
    content = b"".join(f"address_{d}=10.{d // 250}.{d % 250}.9\n".encode() for d in range(devices))
    found = fleet_of(host(1, content), ascend=AscendSpec(rank_table=True))
    spec = AscendSpec(rank_table=True)
    values = ascend_module.variables(found, found.states["gpu01"], spec)
    assert values.get("MS_NODE_TIMEOUT") == timeout
    assert (values["HCCL_IF_IP"], values["RANK_TABLE_FILE"]) == ("10.0.0.1", TABLE)


def test_variables_of_the_spec_are_set_and_others_are_not() -> None:
    found = fleet_of(host(1, hccn(1)))
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
    bad = fleet_of(host(1, b"address_0=127.0.0.1\n"))
    plain = AscendSpec(rank_table=True)
    assert ascend_module.variables(bad, bad.states["gpu01"], plain) == {"HCCL_IF_IP": "10.0.0.1"}
    none = fleet_of(host(1))
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
    state = host(1, hccn(1))
    values = {RANGE_KEY: live, RESERVED_KEY: reserved}
    state = state.model_copy(update={"sysctls": Sysctls(live=values, persisted=(), unread=())})
    plan = planned(
        fleet_of(
            state,
            host(2, hccn(2), reserved=f"{base}-{base + 31}"),
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
    assert planned(fleet_of(blind)).findings == ()


def test_hosts_with_other_numbers_of_devices_are_reported() -> None:
    kept = "60000-60031"
    states = [host(n, hccn(n, devices), reserved=kept) for n, devices in ((1, 2), (2, 2), (3, 1))]
    (finding,) = planned(fleet_of(*states)).findings
    assert finding.host is None
    assert finding.evidence == ("2 devices: gpu01, gpu02", "1 device: gpu03")


def test_the_buffers_of_communicators_are_set_where_there_are_devices() -> None:
    made = fleet_of(host(1, hccn(1)), host(2), ascend=AscendSpec(buffer=100))
    plan = planned(made, "environment")
    assert b"HCCL_BUFFSIZE=100\n" in plan.contents[plan.for_host("gpu01")[0].action.after or ""]
    assert not plan.for_host("gpu02")
    assert {f.label for f in plan.findings if f.host == "gpu01"} >= {"hccl-memory"}


@pytest.mark.parametrize(("size", "told"), [("1024", True), ("200", False), ("100", False)])
def test_buffers_that_are_larger_than_usual_are_reported(size: str, told: bool) -> None:
    text = f"HCCL_BUFFSIZE={size}\n".encode()
    state = host(1, hccn(1))
    file = File(path=ENV, real_path=ENV, exists=True, content=text)
    state = state.model_copy(update={"files": {**state.files, ENV: file}})
    found = [
        f for f in planned(fleet_of(state), "environment").findings if f.label == "hccl-memory"
    ]
    assert bool(found) is told
    assert all(f.evidence == (f"{ENV}:1: HCCL_BUFFSIZE={size}",) for f in found)


# --- any fleet ---


@given(st.binary(max_size=60))
def test_any_bytes_can_be_read(content: bytes) -> None:
    devices, wrong = parse_hccn(content)
    assert devices or wrong


@given(st.lists(st.integers(0, 8), min_size=1, max_size=6))
def test_ranks_are_contiguous(counts: list[int]) -> None:
    servers = [
        Server(f"h{n}", f"10.0.0.{n}", tuple((d, f"192.168.{n}.{d}") for d in range(count)))
        for n, count in enumerate(counts)
    ]
    table = json.loads(rank_table(servers))
    ranks = [int(d["rank_id"]) for server in table["server_list"] for d in server["device"]]
    assert ranks == list(range(sum(counts)))
