"""The environment of jobs: what is corrected unasked, what the spec asks for, and what is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from remedy.deploys._environment import DEBUG
from remedy.deploys.environment import EnvironmentSpec
from remedy.edit.assignments import DISABLED
from remedy.errors import SpecError
from remedy.plan import FindingKind, inverse, make_plan, promised, section_models
from remedy.probe import File, HostState, Interface, Mention, RdmaPort
from remedy.spec import ClusterSpec, load_spec
from remedy.values import Unknown
from tests.unit.build import WHEN, fleet, with_section
from tests.unit.deploys.environment_bench import (
    ENV,
    HOME,
    MCA,
    NCCL,
    PROFILE,
    UCX,
    block,
    content,
    findings,
    host,
    interface,
    kinds,
    planned,
    port,
    whole,
)


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
    wrong = {ENV: b"GLOO_SOCKET_IFNAME=eth1\n", NCCL: b"NCCL_SOCKET_IFNAME==eth1\n"}
    spec = with_section("cluster", ClusterSpec(subnet="10.0.0.0/24"))
    state = host(files=wrong, extra=(interface("eth1", "10.9.0.1"),))
    plan = make_plan(fleet(state, spec=spec), WHEN, only="environment")
    assert len(plan.findings) == 2
    assert all(f.title.endswith("the cluster address is on eno2") for f in plan.findings)
    assert b"GLOO_SOCKET_IFNAME=eno2\n" in (content(plan, ENV) or b"")
    assert b"\nNCCL_SOCKET_IFNAME==eno2\n" in (content(plan, NCCL) or b"")


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
    lone = planned(host(gpu=True, extra=extra, rdma=ports))
    assert content(lone, NCCL) is None, "a host without peers reaches all that it has to"
    assert planned(host(extra=extra), host(2)).changes == (), "no GPU, no NCCL"


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
    assert content(plan, MCA) == mca + block(
        "btl_tcp_if_include = 10.0.0.0/24", "oob_tcp_if_include = 10.0.0.0/24"
    )


def test_what_is_set_right_already_is_not_set_twice() -> None:
    files = {ENV: b"GLOO_SOCKET_IFNAME=eno2\nTP_SOCKET_IFNAME=eno2\n"}
    plan = planned(host(files=files), spec=EnvironmentSpec(interface="auto"))
    assert content(plan, ENV) is None
    assert content(plan, NCCL) == block("NCCL_SOCKET_IFNAME==eno2")


def test_a_users_file_is_changed_when_asked() -> None:
    plan = planned(
        host(files={HOME: b"NCCL_SOCKET_IFNAME=eth9\n"}), spec=EnvironmentSpec(user_files=True)
    )
    assert content(plan, HOME) == b"#remedy disabled# NCCL_SOCKET_IFNAME=eth9\n"
    assert content(plan, NCCL) == block("NCCL_SOCKET_IFNAME==eno2")
    assert plan.blocked("gpu01") == ()


def test_what_nothing_asks_for_any_more_goes() -> None:
    files = {ENV: b"A=1\n" + block("FOO=1"), NCCL: block("NCCL_X=1"), PROFILE: b"export FOO='1'\n"}
    plan = planned(host(files=files))
    assert content(plan, ENV) == b"A=1\n"
    assert content(plan, NCCL) == b""
    assert content(plan, PROFILE) == b""
    assert all(kind is FindingKind.DRIFT for kind in kinds(plan))


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


# --- what is written ---


def test_each_variable_is_written_into_its_file_and_login_shells_get_the_rest() -> None:
    spec = EnvironmentSpec(
        variables={"NCCL_DEBUG": "INFO", "OMPI_MCA_btl": "tcp", "UCX_TLS": "rc", "MY": "1"}
    )
    plan = planned(host(files={MCA: b"", UCX: b""}), spec=spec)
    assert content(plan, NCCL) == block("NCCL_DEBUG=INFO")
    assert content(plan, MCA) == block("btl = tcp")
    assert content(plan, UCX) == block("UCX_TLS=rc")
    assert content(plan, ENV) == block("MY=1")
    profile = (content(plan, PROFILE) or b"").decode()
    assert "MY=" in profile
    assert "NCCL_DEBUG" not in profile
    drift = {f.title.split()[0]: f for f in plan.findings if f.kind is FindingKind.DRIFT}
    assert set(drift) == {NCCL, MCA, UCX, ENV, PROFILE}
    assert "NCCL_DEBUG" in drift[NCCL].title
    assert "OMPI" not in drift[MCA].title
    assert drift[NCCL].evidence == ("NCCL_DEBUG=INFO: environment.variables of the spec",)
    assert (drift[MCA].label, drift[ENV].label) == ("mpi-nic-mismatch", "env-not-propagated")
    guarded = {c.action.path: c.guarded for c in plan.changes if c.action.kind == "file"}
    assert guarded == {ENV: True, NCCL: False, MCA: False, UCX: False, PROFILE: True}
    assert all(change.disrupts for change in plan.changes)


def test_a_contradicting_line_is_named_with_what_is_wanted() -> None:
    spec = EnvironmentSpec(variables={"NCCL_DEBUG": "INFO"})
    plan = planned(host(files={NCCL: b"A=1\nNCCL_DEBUG=WARN\n"}), spec=spec)
    (found,) = (f for f in plan.findings if f.kind is FindingKind.DRIFT)
    assert f"{NCCL} says NCCL_DEBUG=WARN" in found.title
    assert "environment.variables" in found.title
    assert found.evidence == ("line 2",)
    gone = planned(host(files={NCCL: b"NCCL_ALGO=Ring\n"}), spec=EnvironmentSpec(debug="remove"))
    (switch,) = (f for f in gone.findings if f.kind is FindingKind.DRIFT)
    assert "NCCL_ALGO=Ring" in switch.title
    assert DEBUG["NCCL_ALGO"][1] in switch.title
    assert content(gone, NCCL) == DISABLED + b"NCCL_ALGO=Ring\n"


def test_a_block_that_nothing_asks_for_is_taken_out_and_an_empty_file_removed() -> None:
    plan = planned(host(files={NCCL: block("NCCL_DEBUG=INFO"), ENV: b"A=1\n" + block("B=1")}))
    assert content(plan, NCCL) == b""
    assert content(plan, ENV) == b"A=1\n"
    titles = {c.action.path: c.title for c in plan.changes if c.action.kind == "file"}
    assert titles[NCCL].startswith(f"remove {NCCL}")
    assert titles[ENV].startswith(f"write {ENV}")
    assert {f.label for f in plan.findings} == {"env-not-propagated"}


@pytest.mark.parametrize(("path", "variable"), [(NCCL, "NCCL_DEBUG"), (ENV, "MY")])
def test_a_file_that_cannot_be_read_is_unknown_where_the_spec_needs_it(
    path: str, variable: str
) -> None:
    state = host()
    state = state.model_copy(update={"files": {**state.files, path: Unknown(reason="I/O error")}})
    spec = EnvironmentSpec(variables={variable: "1"})
    (found,) = findings(state, FindingKind.UNKNOWN, spec)
    assert path in found.title
    assert found.evidence == ("I/O error",)
    assert findings(state, FindingKind.UNKNOWN) == []


def test_an_interface_of_the_spec_is_set_for_every_library_in_its_own_form() -> None:
    plan = planned(host(files={MCA: b""}), spec=EnvironmentSpec(interface="eno2"))
    assert content(plan, NCCL) == block("NCCL_SOCKET_IFNAME==eno2")
    assert content(plan, MCA) == block(
        "btl_tcp_if_include = 10.0.0.0/24", "oob_tcp_if_include = 10.0.0.0/24"
    )
    assert content(plan, ENV) == block("GLOO_SOCKET_IFNAME=eno2", "TP_SOCKET_IFNAME=eno2")
    (found,) = findings(host(), FindingKind.BLOCKED, EnvironmentSpec(interface="eth7"))
    assert "eth7" in found.title
    assert "eno2, docker0" in found.evidence[0]
    assert found.label == "wrong-interface"
    blind = host().model_copy(update={"network": Unknown(reason="no ip")})
    (unknown,) = findings(blind, FindingKind.UNKNOWN, EnvironmentSpec(interface="auto"))
    assert unknown.label == "wrong-interface"
    assert unknown.evidence


def test_active_ports_of_one_layer_are_named_exactly() -> None:
    def port(device: str, layer: str = "InfiniBand") -> RdmaPort:
        return RdmaPort(device, 1, "ACTIVE", "LinkUp", 400.0, layer, "", (), {})

    state = host(rdma=(port("mlx5_0"), port("mlx5_1", "Ethernet"), port("mlx5_2")))
    plan = planned(state, spec=EnvironmentSpec(hcas="auto"))
    assert content(plan, NCCL) == block("NCCL_IB_HCA==mlx5_0:1,mlx5_2:1")
    (found,) = (f for f in plan.findings if f.kind is FindingKind.DRIFT)
    assert found.label == "ib-roce-mixed"
    assert "InfiniBand" in found.evidence[0]
    assert planned(host(), spec=EnvironmentSpec(hcas="auto")).changes == ()


# --- any fleet ---

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


def test_a_file_of_variables_that_is_none_is_unknown_though_nothing_is_asked_of_it() -> None:
    reason = f"{ENV} is a named pipe (FIFO), and not a regular file"
    state = host()
    state = state.model_copy(update={"files": {**state.files, ENV: Unknown(reason=reason)}})
    (finding,) = findings(state, FindingKind.UNKNOWN)
    assert (finding.kind, finding.evidence) == (FindingKind.UNKNOWN, (reason,))
