"""Paddle's endpoints: counted through all hosts, refused when any host's part is wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from remedy.deploys.hosts_file import HostsFileSpec
from remedy.deploys.paddle import PATH as PADDLE
from remedy.deploys.paddle import PaddleSpec
from remedy.plan import FindingKind, Plan, make_plan
from remedy.probe import File, HostState, Names
from remedy.values import Unknown
from tests.unit.build import WHEN, fleet, record, with_section
from tests.unit.deploys.ascend_bench import fleet_of, host, planned, written


def test_endpoints_are_counted_through_all_hosts(tmp_path: Path) -> None:
    made = fleet_of(host(1, gpus=2), host(2, gpus=2), paddle=PaddleSpec(ports="8000-8999"))
    script = tmp_path / "paddle-fixed-ports"
    script.write_bytes(written(planned(made, "paddle"), "gpu02"))
    look = "echo $PADDLE_TRAINER_ENDPOINTS $PADDLE_TRAINERS_NUM $PADDLE_CURRENT_ENDPOINT"
    look += " $PADDLE_TRAINER_ID $PADDLE_RANK_IN_NODE $FLAGS_selected_gpus"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["sh", script, *words], capture_output=True, text=True, check=False)

    said = run("1", "sh", "-c", look).stdout.split()
    # What the guide of Paddle writes by hand for two hosts of two devices.
    assert said[0] == "10.0.0.1:8000,10.0.0.1:8001,10.0.0.2:8000,10.0.0.2:8001"
    assert said[1:] == ["4", "10.0.0.2:8001", "3", "1", "1"]
    for words in (["2", "true"], ["x", "true"], ["0"], []):
        assert run(*words).returncode == 2


def test_what_stands_in_the_way_of_endpoints() -> None:
    spec = PaddleSpec(ports="8000-8001")
    plan = planned(fleet_of(host(1, gpus=4), host(2), paddle=spec), "paddle")
    evidence = plan.blocked("gpu02")[0].evidence
    assert evidence == ("gpu01: 4 trainers, and 8000-8001 has 2 ports",)
    plan = planned(fleet_of(host(1), absent=("gpu09",), paddle=spec), "paddle")
    assert plan.blocked("gpu01")[0].evidence == ("gpu09: it was not read",)


def test_paddle_needs_the_own_name_to_be_right() -> None:
    spec: dict[str, Any] = {"paddle": PaddleSpec(ports="8000-8999")}
    assert planned(fleet_of(host(1, own="127.0.1.1"), **spec), "paddle").blocked("gpu01") == ()
    off = fleet_of(host(1, own="127.0.1.1"), hosts_file=HostsFileSpec(manage=False), **spec)
    (finding,) = planned(off, "paddle").blocked("gpu01")
    assert finding.label == "loopback-hostname"


def paddle(*states: HostState, absent: tuple[str, ...] = (), **settings: object) -> Plan:
    spec = PaddleSpec.model_validate({"ports": "8000-8003", **settings})
    return planned(fleet_of(*states, absent=absent, paddle=spec), "paddle")


def test_each_device_has_the_next_port_and_each_host_its_first_trainer() -> None:
    plan = paddle(host(1, gpus=2), host(2, gpus=1), host(3))
    text = written(plan, "gpu02").decode()
    assert "10.0.0.1:8000,10.0.0.1:8001,10.0.0.2:8000,10.0.0.3:8000" in text
    for name in ("gpu01", "gpu02", "gpu03"):
        (change,) = plan.for_host(name)
        assert change.action.kind == "file"
        assert (change.action.path, change.action.mode) == (PADDLE, 0o755)
        assert PADDLE in change.title
    assert [f.title for f in plan.findings] == [f"there is no {PADDLE}"] * 3


def test_a_list_that_needs_a_host_is_refused_with_every_reason() -> None:
    plan = paddle(host(1, gpus=5), host(2), absent=("gpu09",))
    assert plan.changes == ()
    (finding,) = plan.blocked("gpu01")
    crowded, unread = finding.evidence
    for fact in ("gpu01", "5", "8000-8003", "4 ports"):
        assert fact in crowded
    assert unread.startswith("gpu09: ")
    assert finding.label == "firewall-ports"
    assert paddle(host(1, gpus=4)).changes


def test_a_name_that_leads_elsewhere_blocks_where_nobody_cures_it() -> None:
    unmanaged = with_section("hosts_file", HostsFileSpec(manage=False))
    unmanaged.sections["paddle"] = PaddleSpec(ports="8000-8003")

    def plan(own: tuple[str, ...]) -> Plan:
        state = host(1).model_copy(update={"names": record(Names, local=own)})
        return make_plan(fleet(state, spec=unmanaged), WHEN, only="paddle")

    (finding,) = plan(("127.0.1.1", "10.0.0.1")).blocked("gpu01")
    assert finding.label == "loopback-hostname"
    assert "127.0.1.1" in finding.evidence[0]
    assert "10.0.0.1" in finding.evidence[0]
    assert "hosts_file.manage" in finding.fix
    assert "no address" in plan(()).blocked("gpu01")[0].evidence[0]
    assert plan(("10.0.0.1",)).blocked("gpu01") == ()
    unknown = host(1).model_copy(update={"names": record(Names, local=Unknown(reason="late"))})
    (late,) = make_plan(fleet(unknown, spec=unmanaged), WHEN, only="paddle").blocked("gpu01")
    assert (late.kind, late.label) == (FindingKind.UNKNOWN, "loopback-hostname")


def test_another_list_is_replaced_and_said_as_that() -> None:
    old = File(path=PADDLE, real_path=PADDLE, exists=True, content=b"#!/bin/sh\n")
    state = host(1)
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
