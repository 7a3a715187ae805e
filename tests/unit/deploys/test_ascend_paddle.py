"""Rank tables and Paddle's endpoints: made from the whole fleet, refused when any host's part is wrong."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys import ascend
from remedy.deploys.ascend import HCCN, TABLE, AscendSpec
from remedy.deploys.hosts_file import HostsFileSpec
from remedy.deploys.paddle import PATH, PaddleSpec
from remedy.edit.rank_table import Server, parse_hccn, rank_table
from remedy.errors import SpecError
from remedy.plan import (
    FileAction,
    FindingKind,
    Fleet,
    Plan,
    inverse,
    make_plan,
    promised,
    section_models,
)
from remedy.probe import File, Gpus, HostState, LoginSession, Names, PciDevice, Sysctls
from remedy.spec import SpecSection, load_spec
from tests.unit.build import fleet, host_state, record, with_section
from tests.unit.plans import WHEN

GPU = PciDevice("0000:01:00.0", "10de", "2330", "0302")
ENV = "/etc/environment"


def hccn(number: int, devices: int = 2) -> bytes:
    return b"".join(f"address_{d}=192.168.{d}.{number}\n".encode() for d in range(devices))


def host(
    number: int, content: bytes | None = None, *, table: bytes | None = None, gpus: int = 0,
    reserved: str = "", own: str | None = None,
) -> HostState:  # fmt: skip
    given = {HCCN: content, TABLE: table, PATH: None, ENV: None, "/etc/nccl.conf": None}
    files = {
        path: File(path=path, real_path=path, exists=text is not None, content=text or b"")
        for path, text in given.items()
    }
    live = {
        "net.ipv4.ip_local_port_range": "32768 60999",
        "net.ipv4.ip_local_reserved_ports": reserved,
    }
    address = f"10.0.0.{number}"
    return host_state(f"gpu{number:02d}", address, files=files).model_copy(
        update={
            "sysctls": Sysctls(live=live, persisted=(), unread=()),
            "gpus": record(Gpus, pci=(GPU,) * gpus),
            "session": record(LoginSession, homes=(), programs={}, present=frozenset()),
            "names": record(Names, local=(own or address,)),
        }
    )


def of(*states: HostState, absent: tuple[str, ...] = (), **sections: SpecSection) -> Fleet:
    spec = with_section("ascend", AscendSpec())
    spec.sections.update(sections)
    return fleet(*states, spec=spec, absent=absent)


def planned(made: Fleet, only: str = "ascend") -> Plan:
    return make_plan(made, WHEN, only=only)


def written(plan: Plan, name: str) -> bytes:
    (change,) = plan.for_host(name)
    assert isinstance(change.action, FileAction)
    return plan.contents[change.action.after or ""]


def test_hosts_without_devices_are_left_alone() -> None:
    for only in ("ascend", "paddle"):
        plan = planned(of(host(1), host(2)), only)
        assert (plan.changes, plan.findings) == ((), ())


def test_right_addresses_are_only_looked_at_until_a_table_is_asked_for() -> None:
    states = [host(n, hccn(n), reserved="60000-60031") for n in (1, 2)]
    assert planned(of(*states)).findings == ()
    plan = planned(of(*states, ascend=AscendSpec(rank_table=True)))
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
    plan = planned(of(host(1, hccn(1), table=b"{}"), host(2, hccn(2))))
    assert plan.hosts == ("gpu01",)


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
    made = of(host(1, content), host(2, hccn(2)), host(3, hccn(3)))
    (finding,) = planned(made).blocked("gpu01")
    assert any(words in line for line in finding.evidence)
    asked = planned(Fleet(made.inventory, made.states, of(ascend=AscendSpec(rank_table=True)).spec))
    assert asked.changes == ()
    (other,) = asked.blocked("gpu03")
    assert other.evidence[0].startswith("gpu01: ")


def test_a_host_that_is_down_or_has_no_devices_stands_in_the_way() -> None:
    spec = AscendSpec(rank_table=True)
    plan = planned(of(host(1, hccn(1)), absent=("gpu09",), ascend=spec))
    assert (plan.changes, plan.blocked("gpu01")[0].evidence) == (
        (),
        ("gpu09: it was not read: down",),
    )
    assert planned(of(host(1, hccn(1)), host(2), ascend=spec)).blocked("gpu02")


def test_different_counts_and_open_ports_are_reported() -> None:
    plan = planned(of(host(1, hccn(1)), host(2, hccn(2, 1), reserved="60000-60031,29500")))
    assert [f.kind for f in plan.findings] == [FindingKind.REPORT] * 2
    assert plan.findings[1].evidence == ("not in net.ipv4.ip_local_reserved_ports: gpu01",)


@pytest.mark.parametrize(("devices", "timeout"), [(8, None), (129, "900"), (1025, "1800")])
def test_variables_go_by_the_number_of_devices(devices: int, timeout: str | None) -> None:
    lines = b"".join(f"address_{d}=192.{d // 250}.{d % 250}.1\n".encode() for d in range(devices))
    made = of(host(1, lines), ascend=AscendSpec(rank_table=True, connect_timeout=600))
    found = ascend.variables(made, made.states["gpu01"], AscendSpec(rank_table=True))
    assert found.get("MS_NODE_TIMEOUT") == timeout
    assert found["HCCL_IF_IP"] == "10.0.0.1"
    plan = planned(made, "environment")
    text = b"".join(plan.contents.values())
    assert b"RANK_TABLE_FILE=/etc/hccl_rank_table.json\n" in text
    assert b"HCCL_CONNECT_TIMEOUT=600\n" in text


def test_ports_for_others_to_reserve() -> None:
    assert ascend.reserved_ports(of(host(1))) == range(0)
    assert ascend.reserved_ports(of(host(1, hccn(1)))) == range(60000, 60032)


def test_endpoints_are_counted_through_all_hosts(tmp_path: Path) -> None:
    made = of(host(1, gpus=2), host(2, gpus=2), paddle=PaddleSpec(ports="8000-8999"))
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
    plan = planned(of(host(1, gpus=4), host(2), paddle=spec), "paddle")
    evidence = plan.blocked("gpu02")[0].evidence
    assert evidence == ("gpu01: 4 trainers, and 8000-8001 has 2 ports",)
    plan = planned(of(host(1), absent=("gpu09",), paddle=spec), "paddle")
    assert plan.blocked("gpu01")[0].evidence == ("gpu09: it was not read",)


def test_paddle_needs_the_own_name_to_be_right() -> None:
    spec: dict[str, Any] = {"paddle": PaddleSpec(ports="8000-8999")}
    assert planned(of(host(1, own="127.0.1.1"), **spec), "paddle").blocked("gpu01") == ()
    off = of(host(1, own="127.0.1.1"), hosts_file=HostsFileSpec(manage=False), **spec)
    (finding,) = planned(off, "paddle").blocked("gpu01")
    assert finding.label == "loopback-hostname"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("paddle: {ports: 9000-8000}", "paddle.ports.*first port"),
        ("paddle: {ports: many}", "paddle.ports"),
        ("ascend: {base_port: 80}", "ascend.base_port"),
        ("ascend: {connect_timeout: 5}", "ascend.connect_timeout"),
        ("ascend: {node_timeout: soon}", "ascend.node_timeout"),
    ],
)
def test_bad_values_are_refused_with_their_path(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "remedy.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match=words):
        load_spec(path, section_models())


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


CONTENTS = st.sampled_from([None, b"", b"address_0=127.0.0.1\n", b"address_0=192.168.7.7\n"])


@given(
    st.lists(st.tuples(st.booleans(), CONTENTS, st.sampled_from([None, b"{}"])), min_size=1, max_size=4),
    st.sampled_from([None, True, False]),
)  # fmt: skip
def test_any_fleet_converges_in_one_plan_and_undoes(
    hosts: list[tuple[bool, bytes | None, bytes | None]], asked: bool | None
) -> None:
    states = [
        host(n, hccn(n) if good else content, table=table)
        for n, (good, content, table) in enumerate(hosts, 1)
    ]
    before = of(*states, ascend=AscendSpec(rank_table=asked), paddle=PaddleSpec(ports="8000-8001"))
    for only in ("ascend", "paddle"):
        plan = planned(before, only)
        after = promised(before, plan)
        again = planned(after, only)
        assert again.changes == ()
        drifting = {f.host for f in plan.findings if f.kind is FindingKind.DRIFT}
        assert set(plan.hosts) == drifting
        changes = tuple(c for s in states for c in inverse(plan.for_host(s.host)))
        back = promised(after, plan.model_copy(update={"changes": changes}))
        for state in states:
            for path, file in state.files.items():
                old = back.states[state.host].files[path]
                assert isinstance(old, File)
                assert isinstance(file, File)
                assert (old.exists, old.content) == (file.exists, file.content)
