"""The environment of jobs: what is corrected unasked, what the spec asks for, and what is only named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from remedy.deploys import _interfaces as nic
from remedy.deploys.environment import EnvironmentSpec
from remedy.edit.assignments import Dialect, assignments, effective
from remedy.errors import SpecError
from remedy.inventory import Inventory, Node
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
from remedy.probe import (
    Address,
    File,
    Gpus,
    HostState,
    Interface,
    LoginSession,
    Mention,
    Network,
    PciDevice,
    RdmaPort,
    Route,
)
from remedy.spec import ClusterSpec, load_spec
from remedy.values import Unknown
from tests.unit.build import fleet, host_state, record, with_section
from tests.unit.plans import WHEN

ENV, NCCL, PROFILE = "/etc/environment", "/etc/nccl.conf", "/etc/profile.d/remedy.sh"
HOME = "/root/.nccl.conf"
MCA = "/etc/openmpi/openmpi-mca-params.conf"
GPU = PciDevice("0000:01:00.0", "10de", "2330", "0302")


def interface(
    name: str, address: str | None, kind: str = "physical", *, up: bool = True
) -> Interface:
    own = (Address(address=address, prefix=24, scope="global"),) if address else ()
    made: Interface = record(
        Interface, name=name, kind=kind, up=up, running=up, addresses=own, mtu=1500
    )
    return made


def host(
    number: int = 1,
    files: Mapping[str, bytes] | None = None,
    *,
    cluster: str = "eno2",
    extra: tuple[Interface, ...] = (),
    first: tuple[Interface, ...] = (),
    mentions: tuple[Mention, ...] = (),
    gpu: bool = False,
    rdma: tuple[RdmaPort, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> HostState:
    """Return a host whose cluster address is on ``cluster``; a file that is not given is not there."""
    address = f"10.0.0.{number}"
    given = files or {}
    known = {
        path: File(path=path, real_path=path, exists=path in given, content=given.get(path, b""))
        for path in (ENV, NCCL, PROFILE, HOME, MCA, "/etc/ucx/ucx.conf")
    }
    lines = given.get(ENV, b"")
    said = effective(assignments(lines, Dialect.PAM), Dialect.PAM)
    interfaces = (*first, interface(cluster, address), interface("docker0", "172.17.0.1", "bridge"))
    return host_state(f"gpu{number:02d}", address, files=known).model_copy(
        update={
            "network": record(
                Network,
                interfaces=(*interfaces, *extra),
                routes=(record(Route, destination="default", interface="eth0"),),
            ),
            "session": record(LoginSession, homes=("/root",), programs={}, present=frozenset()),
            "mentions": mentions,
            "gpus": record(Gpus, pci=(GPU,) if gpu else ()),
            "rdma": rdma,
            "environment": {n: one.value for n, one in said.items()}
            if environment is None
            else environment,
        }
    )


def planned(*states: HostState, spec: EnvironmentSpec | None = None) -> Plan:
    return make_plan(whole(*states, spec=spec), WHEN, only="environment")


def whole(*states: HostState, spec: EnvironmentSpec | None = None) -> Fleet:
    nodes = tuple(
        Node(name=state.host, ssh_address=f"10.0.0.{int(state.host[3:])}") for state in states
    )
    return Fleet(
        Inventory(path=Path("inventory.py"), nodes=nodes),
        {state.host: state for state in states},
        with_section("environment", spec or EnvironmentSpec()),
    )


def content(plan: Plan, path: str, name: str = "gpu01") -> bytes | None:
    """Return what a plan writes into a file; None when it does not touch it."""
    for change in plan.for_host(name):
        assert isinstance(change.action, FileAction)
        if change.action.path == path:
            return b"" if change.action.after is None else plan.contents[change.action.after]
    return None


def kinds(plan: Plan) -> list[FindingKind]:
    return [finding.kind for finding in plan.findings]


def block(*lines: str) -> bytes:
    begin = "# BEGIN remedy (this block is replaced as a whole)"
    return "\n".join([begin, *lines, "# END remedy", ""]).encode()


@pytest.mark.parametrize(
    "state",
    [
        host(),
        host(files={ENV: b'PATH="/usr/bin"\nLANG=C.UTF-8\n', NCCL: b"NCCL_IB_TIMEOUT=22\n"}),
        host(files={ENV: b"GLOO_SOCKET_IFNAME=eno2\nNCCL_SOCKET_IFNAME=en\n"}),
        host(files={ENV: b"NCCL_SOCKET_IFNAME=^docker0,lo\nNCCL_P2P_DISABLE=0\n"}),
        # Another network that peers may well share: nobody said which one is meant.
        host(files={ENV: b"GLOO_SOCKET_IFNAME=eth1\n"}, extra=(interface("eth1", "10.9.0.1"),)),
        host(mentions=(Mention(path="/root/.bashrc", line=1, text="# export NCCL_ALGO=Ring"),)),
        host(gpu=True),
        host(gpu=True, first=(interface("eth0", "192.168.0.1"),)),
    ],
)
def test_what_works_is_left_alone(state: HostState) -> None:
    plan = planned(state, host(2))
    assert (plan.changes, plan.findings) == ((), ())


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("eth9", "there is no interface 'eth9' here"),
        ("^lo", "NCCL's syntax"),
        ("docker0", "docker0 does not leave this host"),
        ("eth5", "eth5 is down or has no IPv4 address"),
        ("eno2,eth9", "there is no interface 'eth9' here"),
    ],
)
def test_gloo_gets_the_cluster_interface_for_one_that_cannot_work(value: str, words: str) -> None:
    line = f"GLOO_SOCKET_IFNAME={value}\n".encode()
    plan = planned(host(files={ENV: b"A=1\n" + line}, extra=(interface("eth5", None, up=False),)))
    assert words in plan.findings[0].title
    assert plan.findings[0].evidence == ("line 2",)
    assert content(plan, ENV) == b"A=1\n#remedy disabled# " + line + block(
        "GLOO_SOCKET_IFNAME=eno2"
    )
    assert [change.guarded for change in plan.changes] == [True]


def test_nccl_moves_to_its_own_file_in_exact_form() -> None:
    plan = planned(host(files={ENV: b"NCCL_SOCKET_IFNAME=eth9\n", NCCL: b"NCCL_DEBUG=WARN\n"}))
    assert content(plan, ENV) == b"#remedy disabled# NCCL_SOCKET_IFNAME=eth9\n"
    assert content(plan, NCCL) == block("NCCL_SOCKET_IFNAME==eno2") + b"NCCL_DEBUG=WARN\n"


def test_names_differ_from_host_to_host() -> None:
    wrong = {ENV: b"GLOO_SOCKET_IFNAME=eno2\n"}
    spec = with_section("cluster", ClusterSpec(subnet="10.0.0.0/24"))
    states = [host(1, wrong), host(2, wrong, cluster="enp194s0f1")]
    plan = make_plan(fleet(*states, spec=spec), WHEN, only="environment")
    assert content(plan, ENV, "gpu01") is None
    assert b"GLOO_SOCKET_IFNAME=enp194s0f1\n" in (content(plan, ENV, "gpu02") or b"")


def test_another_network_is_wrong_where_the_user_named_one() -> None:
    wrong = {ENV: b"GLOO_SOCKET_IFNAME=eth1\n"}
    spec = with_section("cluster", ClusterSpec(subnet="10.0.0.0/24"))
    state = host(files=wrong, extra=(interface("eth1", "10.9.0.1"),))
    (finding,) = make_plan(fleet(state, spec=spec), WHEN, only="environment").findings
    assert finding.title.endswith("the cluster address is on eno2")


@pytest.mark.parametrize(
    ("extra", "rdma", "astray"),
    [
        ((interface("br-1234", "172.18.0.1", "bridge"),), False, True),
        ((interface("br-1234", "172.18.0.1", "bridge"),), True, False),
        ((interface("tailscale0", "100.64.0.1", "tun"),), False, True),
        ((interface("virbr0", "192.168.122.1", "bridge"),), False, False),
        ((interface("br-1234", "172.18.0.1", "bridge", up=False),), False, False),
    ],
)
def test_what_nccl_would_choose_by_itself(
    extra: tuple[Interface, ...], rdma: bool, astray: bool
) -> None:
    ports = (port("mlx5_0", "InfiniBand"),) if rdma else ()
    plan = planned(host(gpu=True, extra=extra, rdma=ports), host(2))
    assert content(plan, NCCL) == (block("NCCL_SOCKET_IFNAME==eno2") if astray else None)
    assert planned(host(extra=extra), host(2)).changes == (), "no GPU, no NCCL"


def port(device: str, layer: str, state: str = "ACTIVE") -> RdmaPort:
    return RdmaPort(device, 1, state, "LinkUp", 400.0, layer, "", (), {})


def test_the_spec_sets_what_it_asks_for_where_it_takes_effect() -> None:
    spec = EnvironmentSpec(
        interface="auto", hcas="auto", variables={"NCCL_IB_TIMEOUT": 22, "PYTHONPATH": "/opt/x"}
    )
    ports = (port("mlx5_0", "InfiniBand"), port("mlx5_1", "Ethernet"), port("mlx5_2", "InfiniBand"))
    plan = planned(host(files={MCA: b"btl_tcp_if_include = eth7\n"}, rdma=ports), spec=spec)
    assert content(plan, NCCL) == block(
        "NCCL_IB_HCA==mlx5_0:1,mlx5_2:1", "NCCL_IB_TIMEOUT=22", "NCCL_SOCKET_IFNAME==eno2"
    )
    names = ("GLOO_SOCKET_IFNAME=eno2", "PYTHONPATH=/opt/x", "TP_SOCKET_IFNAME=eno2")
    assert content(plan, ENV) == block(*names)
    assert b"export PYTHONPATH='/opt/x'\n" in (content(plan, PROFILE) or b"")
    mca = b"#remedy disabled# btl_tcp_if_include = eth7\n"
    assert content(plan, MCA) == mca + block("btl_tcp_if_include = 10.0.0.0/24")


def test_what_is_set_right_already_is_not_set_twice() -> None:
    files = {ENV: b"GLOO_SOCKET_IFNAME=eno2\nTP_SOCKET_IFNAME=eno2\n"}
    plan = planned(host(files=files), spec=EnvironmentSpec(interface="auto"))
    assert content(plan, ENV) is None
    assert content(plan, NCCL) == block("NCCL_SOCKET_IFNAME==eno2")


@pytest.mark.parametrize(
    ("kwargs", "path", "line"),
    [
        ({"files": {HOME: b"\nNCCL_SOCKET_IFNAME=eth9\n"}}, HOME, 2),
        (
            {"mentions": (Mention(path="/etc/profile.d/x.sh", line=7, text="export GLOO_SOCKET_IFNAME=eth9"),)},
            "/etc/profile.d/x.sh",
            7,
        ),
        (
            {"mentions": (Mention(path="/etc/ssh/sshd_config", line=3, text="SetEnv GLOO_SOCKET_IFNAME=lo"),)},
            "/etc/ssh/sshd_config",
            3,
        ),
    ],
)  # fmt: skip
def test_a_line_that_would_beat_remedy_is_named(
    kwargs: dict[str, Any], path: str, line: int
) -> None:
    plan = planned(host(**kwargs, extra=(interface("lo", "127.0.0.1", "loopback"),)))
    (finding,) = plan.findings
    assert (finding.kind, plan.changes) == (FindingKind.BLOCKED, ())
    assert finding.evidence[0].startswith(f"{path}:{line}: ")


def test_a_users_file_is_changed_when_asked() -> None:
    plan = planned(
        host(files={HOME: b"NCCL_SOCKET_IFNAME=eth9\n"}), spec=EnvironmentSpec(user_files=True)
    )
    assert content(plan, HOME) == b"#remedy disabled# NCCL_SOCKET_IFNAME=eth9\n"
    assert content(plan, NCCL) == block("NCCL_SOCKET_IFNAME==eno2")
    assert plan.blocked("gpu01") == ()


def test_a_session_that_has_what_no_file_explains() -> None:
    plan = planned(host(environment={"GLOO_SOCKET_IFNAME": "eth9"}))
    assert kinds(plan) == [FindingKind.BLOCKED]
    disabled = {ENV: b"#remedy disabled# GLOO_SOCKET_IFNAME=eth9\n"}
    assert planned(host(files=disabled, environment={"GLOO_SOCKET_IFNAME": "eth9"})).findings == ()


def test_debug_switches_are_reported_and_removed_only_when_asked() -> None:
    files = {ENV: b"NCCL_P2P_DISABLE=1\n", NCCL: b"NCCL_ALGO=Ring\n", HOME: b"NCCL_PROTO=LL\n"}
    state = host(files=files, environment={})
    assert kinds(planned(state)) == [FindingKind.REPORT] * 3
    plan = planned(state, spec=EnvironmentSpec(debug="remove"))
    assert sorted(kinds(plan)) == [FindingKind.DRIFT, FindingKind.DRIFT, FindingKind.REPORT]
    assert content(plan, ENV) == b"#remedy disabled# NCCL_P2P_DISABLE=1\n"
    assert content(plan, NCCL) == b"#remedy disabled# NCCL_ALGO=Ring\n"


def test_lines_that_do_not_do_what_they_seem_to() -> None:
    files = {ENV: b"LD_LIBRARY_PATH=/x:$LD_LIBRARY_PATH\n", NCCL: b"NCCL_IB_TIMEOUT = 22\n"}
    plan = planned(host(files=files))
    assert kinds(plan) == [FindingKind.REPORT] * 2
    assert plan.changes == ()


def test_differences_between_hosts_are_reported_once() -> None:
    states = [host(n, environment={"NCCL_IB_TC": str(n // 3)}) for n in (1, 2, 3)]
    (finding,) = planned(*states).findings
    assert finding.host is None
    assert finding.evidence == ("0: gpu01, gpu02", "1: gpu03")


def test_what_nothing_asks_for_any_more_goes() -> None:
    files = {ENV: b"A=1\n" + block("FOO=1"), NCCL: block("NCCL_X=1"), PROFILE: b"export FOO='1'\n"}
    plan = planned(host(files=files))
    assert content(plan, ENV) == b"A=1\n"
    assert content(plan, NCCL) == b""
    assert content(plan, PROFILE) == b""
    assert all(kind is FindingKind.DRIFT for kind in kinds(plan))


def test_an_unknown_interface_of_the_spec_blocks_and_auto_without_one_is_unknown() -> None:
    plan = planned(host(), spec=EnvironmentSpec(interface="eth7"))
    assert kinds(plan) == [FindingKind.BLOCKED]
    blind = host().model_copy(update={"network": Unknown(reason="no ip")})
    assert kinds(planned(blind, spec=EnvironmentSpec(interface="auto"))) == [FindingKind.UNKNOWN]
    assert planned(blind).findings == ()


@pytest.mark.parametrize(
    ("value", "selected"),
    [
        ("eth1", ["eth1", "eth10"]),
        ("=eth1", ["eth1"]),
        ("^eth1", ["eno2"]),
        ("^=eth1", ["eth10", "eno2"]),
        ("eno,ib", ["eno2"]),
        ("ib", []),
    ],
)
def test_how_nccl_reads_names(value: str, selected: list[str]) -> None:
    there = [interface(name, "10.0.0.1") for name in ("eth1", "eth10", "eno2")]
    assert [i.name for i in nic.nccl_selects(value, there)] == selected


def test_a_bridge_over_a_real_card_is_not_internal() -> None:
    member = interface("eno1", None).model_copy(update={"master": "br0"})
    network = record(Network, interfaces=(interface("br0", "10.0.0.1", "bridge"), member))
    assert not nic.internal(network.interfaces[0], network)
    bare = record(Network, interfaces=network.interfaces[:1])
    assert nic.internal(bare.interfaces[0], bare)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("environment: {interface: '^lo'}", "environment.interface"),
        ("environment: {variables: {A-B: x}}", "not the name of a variable"),
        ("environment: {variables: {PATH: /x}}", "decides who can log in"),
        ("environment: {variables: {A: 'x\"y'}}", "not every place can hold"),
        ("environment: {variables: {A: true}}", "environment.variables.A"),
        ("environment: {debug: delete}", "environment.debug"),
    ],
)
def test_bad_values_are_refused_with_their_path(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "remedy.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match=words):
        load_spec(path, section_models())


def test_a_spec_does_not_change() -> None:
    with pytest.raises(ValidationError):
        EnvironmentSpec().interface = "auto"  # type: ignore[misc]


LINES = st.lists(
    st.sampled_from(
        [
            b"GLOO_SOCKET_IFNAME=eth9\n",
            b"GLOO_SOCKET_IFNAME=eno2\n",
            b"NCCL_SOCKET_IFNAME=eth9\r\n",
            b"NCCL_SOCKET_IFNAME==eno2\n",
            b"NCCL_P2P_DISABLE=1\n",
            b"PYTHONPATH=/a\n",
            b"# c\n",
            b"\xff\xfe=\n",
            block("GLOO_SOCKET_IFNAME=eth9"),
            block("NCCL_SOCKET_IFNAME==eth0", "FOO=1"),
            b"TP_SOCKET_IFNAME=docker0",
        ]
    ),
    max_size=5,
).map(b"".join)
SPECS = st.builds(
    EnvironmentSpec,
    interface=st.sampled_from([None, "auto", "docker0"]),
    variables=st.sampled_from([{}, {"PYTHONPATH": "/b", "NCCL_P2P_DISABLE": "1"}]),
    debug=st.sampled_from(["report", "remove"]),
    user_files=st.booleans(),
)


@given(
    st.lists(st.tuples(LINES, LINES, LINES, LINES), min_size=1, max_size=3), SPECS, st.booleans()
)
def test_any_fleet_converges_in_one_plan_and_undoes(
    hosts: list[tuple[bytes, bytes, bytes, bytes]], spec: EnvironmentSpec, gpu: bool
) -> None:
    states = [
        host(n, {p: c for p, c in zip((ENV, NCCL, HOME, MCA), contents, strict=True) if c}, gpu=gpu)
        for n, contents in enumerate(hosts, 1)
    ]
    before = whole(*states, spec=spec)
    plan = make_plan(before, WHEN, only="environment")
    after = promised(before, plan)
    again = make_plan(after, WHEN, only="environment")
    assert again.changes == ()
    assert not [f for f in again.findings if f.kind is FindingKind.DRIFT]
    drifting = {f.host for f in plan.findings if f.kind is FindingKind.DRIFT}
    assert {change.host for change in plan.changes} == drifting
    undo = plan.model_copy(
        update={"changes": tuple(c for s in states for c in inverse(plan.for_host(s.host)))}
    )
    back = promised(after, undo)
    for state in states:
        for path, file in state.files.items():
            old = back.states[state.host].files[path]
            assert isinstance(old, File)
            assert isinstance(file, File)
            assert (old.exists, old.content) == (file.exists, file.content)


@pytest.mark.parametrize(
    "name", ["WANDB_API_KEY", "HF_TOKEN", "aws_secret_access_key", "DB_PASSWORD"]
)
def test_a_secret_is_refused_without_printing_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / "remedy.yaml"
    path.write_text(f"environment: {{variables: {{{name}: canary-in-the-spec}}}}\n")
    with pytest.raises(SpecError) as caught:
        load_spec(path, section_models())
    assert "looks like a secret" in str(caught.value)
    assert name in str(caught.value)
    assert "canary" not in str(caught.value)
