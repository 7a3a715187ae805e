"""The environment of jobs: which interface a library takes, which line decides, and what findings say."""

from __future__ import annotations

import pytest

from remedy.deploys import _interfaces as nic
from remedy.deploys._environment import DEBUG, IFNAMES, label_of
from remedy.deploys._settings import Target, settings, switched_off, target_for, targets
from remedy.deploys.environment import EnvironmentSpec
from remedy.edit.assignments import DISABLED, Dialect
from remedy.plan import Finding, FindingKind
from remedy.probe import File, HostState, Interface, Mention, Network, RdmaPort, Route
from remedy.values import Unknown
from tests.unit.build import record
from tests.unit.deploys.test_environment import (
    ENV,
    HOME,
    MCA,
    NCCL,
    PROFILE,
    block,
    content,
    host,
    interface,
    planned,
    whole,
)

UCX = "/etc/ucx/ucx.conf"
ETH, IB, DOCKER, LO, VIRBR = (
    interface(name, f"10.{n}.0.1", kind)
    for n, (name, kind) in enumerate(
        [("eth0", "physical"), ("ib0", "physical"), ("docker0", "bridge"), ("lo", "loopback"),
         ("virbr0", "bridge")]
    )
)  # fmt: skip


def names(interfaces: tuple[Interface, ...]) -> list[str]:
    return [one.name for one in interfaces]


# --- which interface a library takes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "taken"),
    [
        ((LO, DOCKER, ETH, IB), ["ib0"]),
        ((LO, DOCKER, ETH, VIRBR), ["eth0"]),
        ((VIRBR, LO, DOCKER), ["docker0"]),
        ((VIRBR, LO), ["lo"]),
        ((VIRBR,), ["virbr0"]),
        ((), []),
    ],
)
def test_nccl_takes_the_first_class_of_names_that_is_there(
    there: tuple[Interface, ...], taken: list[str]
) -> None:
    assert names(nic.nccl_by_itself(there)) == taken


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        ("eth", ["eth0", "eth01"]), ("=eth0", ["eth0"]), ("^eth", ["ib0"]), ("^=eth0", ["eth01", "ib0"]),
        ("ib0:1,eth01", ["eth01", "ib0"]), ("=ib0:1", ["ib0"]), ("", []), ("^", ["eth0", "eth01", "ib0"]),
        ("eth0,", ["eth0", "eth01"]),
    ],
)  # fmt: skip
def test_a_value_of_nccl_selects_by_prefix_by_name_or_by_exception(
    value: str, taken: list[str]
) -> None:
    there = (ETH, interface("eth01", "10.8.0.1"), IB)
    assert names(nic.nccl_selects(value, there)) == taken


def test_an_interface_is_usable_when_it_is_up_runs_and_has_an_address() -> None:
    down = interface("d", "10.0.0.1", up=False)
    idle = ETH.model_copy(update={"name": "i", "running": False})
    bare = interface("b", None)
    network = record(Network, interfaces=(down, ETH, idle, bare, LO))
    assert names(nic.usable(network)) == ["eth0", "lo"]


@pytest.mark.parametrize("kind", sorted(nic.INTERNAL_KINDS))
def test_links_of_these_kinds_lead_nowhere_unless_a_card_or_a_route_says_otherwise(
    kind: str,
) -> None:
    link = interface("x", "10.0.0.1", kind)
    member = interface("m", None).model_copy(update={"master": "x"})
    inside = member.model_copy(update={"kind": "veth"})
    route = record(Route, destination="default", interface="x")
    other = record(Route, destination="10.0.0.0/24", interface="x")

    def leads_nowhere(*interfaces: Interface, routes: tuple[Route, ...] = ()) -> bool:
        return nic.internal(link, record(Network, interfaces=(link, *interfaces), routes=routes))

    assert leads_nowhere()
    assert leads_nowhere(inside, routes=(other,))
    assert not leads_nowhere(member)
    assert not leads_nowhere(routes=(route,))
    assert not nic.internal(ETH, record(Network, interfaces=(ETH,)))


NETWORK = record(
    Network,
    interfaces=(
        ETH,
        IB,
        DOCKER,
        interface("down0", "10.9.0.1", up=False),
        interface("bare0", None),
    ),
)


@pytest.mark.parametrize(
    ("value", "exact", "strict", "words"),
    [
        ("eth0", True, True, None),
        ("eth0,ib0", True, True, None),
        (" eth0 ", True, True, None),
        ("=eth0", True, False, "'='"),
        ("^docker0", True, False, "'^'"),
        ("eth9", True, False, "'eth9'"),
        ("eth0,eth9", True, False, "'eth9'"),
        ("down0", True, False, "down0 is down"),
        ("eth0,bare0", True, False, "bare0 is down"),
        ("docker0", True, False, "docker0 does not leave"),
        ("ib0", True, False, None),
        ("ib0", True, True, "eth0"),
        ("eth", False, True, None),
        ("^docker", False, True, None),
        ("eth9", False, False, "no interface"),
        ("down0", False, False, "no interface"),
        ("docker", False, False, "docker0 does not leave"),
        ("ib", False, False, None),
        ("ib", False, True, "eth0"),
        ("ib,docker", False, False, None),
    ],
)
def test_why_a_setting_of_an_interface_cannot_work(
    value: str, exact: bool, strict: bool, words: str | None
) -> None:
    reason = nic.wrong_interfaces(value, NETWORK, ETH, exact=exact, strict=strict)
    assert (reason is None) is (words is None)
    assert words is None or words in str(reason)


def test_the_cluster_interface_is_the_one_with_the_cluster_address() -> None:
    found = whole(host(1), host(2))
    carrier = nic.cluster_interface(found, found.states["gpu01"])
    assert isinstance(carrier, Interface)
    assert carrier.name == "eno2"
    assert nic.cluster_subnet(found, found.states["gpu01"]) == "10.0.0.0/24"
    blind = found.states["gpu01"].model_copy(update={"network": Unknown(reason="no ip")})
    assert nic.cluster_subnet(found, blind) is None


def test_rdma_ports_count_when_they_are_active_and_of_one_layer() -> None:
    def port(device: str, state: str = "ACTIVE", layer: str = "InfiniBand") -> RdmaPort:
        return RdmaPort(device, 1, state, "LinkUp", 400.0, layer, "", (), {})

    ib, roce, down = port("a"), port("b", layer="Ethernet"), port("c", "DOWN")
    assert nic.active_ports(host(rdma=(ib, down, roce))) == (ib, roce)
    assert nic.active_ports(host().model_copy(update={"rdma": Unknown(reason="x")})) == ()
    assert nic.one_layer((roce, ib)) == (ib,)
    assert nic.one_layer((roce,)) == (roce,)
    assert nic.has_gpu(host(gpu=True))
    assert not nic.has_gpu(host())
    assert not nic.has_gpu(host().model_copy(update={"gpus": Unknown(reason="x")}))


# --- which line decides --------------------------------------------------------------------------------------

ETC = (Target(ENV, Dialect.PAM), Target(NCCL, Dialect.NCCL))


def test_files_that_can_be_changed_are_those_that_somebody_reads_here() -> None:
    assert targets(host(), user_files=True) == ETC
    full = host(files={MCA: b"", UCX: b"", HOME: b""})
    assert [t.path for t in targets(full, user_files=False)] == [ENV, NCCL, MCA, UCX]
    assert [(t.path, t.dialect) for t in targets(full, user_files=True)][-1] == (HOME, Dialect.NCCL)
    assert [t.prefix for t in targets(full, user_files=False)] == ["", "", "OMPI_MCA_", ""]
    assert [t.equals for t in targets(full, user_files=False)] == ["=", "=", " = ", "="]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("NCCL_DEBUG", NCCL), ("OMPI_MCA_btl", MCA), ("UCX_TLS", UCX), ("GLOO_SOCKET_IFNAME", ENV),
        ("TORCH_NCCL_X", ENV),
    ],
)  # fmt: skip
def test_a_variable_goes_where_most_ways_of_starting_a_job_see_it(name: str, path: str) -> None:
    full = targets(host(files={MCA: b"", UCX: b"", HOME: b""}), user_files=True)
    assert target_for(name, full).path == path
    assert target_for(name, ETC).path == (NCCL if name.startswith("NCCL_") else ENV)


def test_every_place_that_sets_a_variable_is_listed_with_its_line() -> None:
    mentions = (
        Mention(path="/root/.bashrc", line=3, text="export NCCL_ALGO=Ring GLOO_X=1"),
        Mention(path=PROFILE, line=1, text="export NCCL_ALGO=Tree"),
    )
    files = {ENV: b"A=1\nA=2\n", NCCL: b"B=1\nB=2\n", MCA: b"btl = tcp\n", HOME: b"C=1\n"}
    state = host(files=files, mentions=mentions)
    found = settings(state, targets(state, user_files=False))
    assert [(s.path, s.line, s.name, s.value, s.target is not None) for s in found] == [
        (ENV, 2, "A", "2", True),
        (NCCL, 1, "B", "1", True),
        (MCA, 1, "OMPI_MCA_btl", "tcp", True),
        (HOME, 1, "C", "1", False),
        ("/root/.bashrc", 3, "NCCL_ALGO", "Ring", False),
        ("/root/.bashrc", 3, "GLOO_X", "1", False),
    ]
    assert found[0].shown == f"{ENV}:2: A=2"
    mine = settings(state, targets(state, user_files=True))
    assert [(s.path, s.target is not None) for s in mine if s.name == "C"] == [(HOME, True)]
    blind = state.model_copy(
        update={"mentions": Unknown(reason="x"), "session": Unknown(reason="x")}
    )
    assert [s.name for s in settings(blind, ETC)] == ["A", "B"]


def test_what_was_switched_off_is_known_by_its_whole_name() -> None:
    state = host(files={MCA: DISABLED + b"btl = tcp\n", ENV: DISABLED + b"A=1\nB=2\n"})
    assert list(switched_off(state, targets(state, user_files=False))) == [
        ("A", "1"),
        ("OMPI_MCA_btl", "tcp"),
    ]


# --- what findings say ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "label"),
    [
        *((name, "wrong-interface") for name in IFNAMES),
        ("NCCL_IB_HCA", "ib-roce-mixed"),
        ("OMPI_MCA_btl_tcp_if_include", "mpi-nic-mismatch"),
        ("UCX_NET_DEVICES", "mpi-nic-mismatch"),
        ("NCCL_DEBUG", "env-not-propagated"),
    ],
)
def test_the_cause_of_a_wrong_value(name: str, label: str) -> None:
    assert label_of(name) == label


def findings(
    state: HostState, kind: FindingKind, spec: EnvironmentSpec | None = None
) -> list[Finding]:
    return [f for f in planned(state, spec=spec).findings if f.kind is kind]


@pytest.mark.parametrize("name", sorted(DEBUG))
@pytest.mark.parametrize(("value", "counts"), [("1", True), ("0", False), ("", False)])
def test_a_switch_for_finding_faults_is_reported_with_what_it_hides(
    name: str, value: str, counts: bool
) -> None:
    found = findings(host(files={NCCL: f"# x\n{name}={value}\n".encode()}), FindingKind.REPORT)
    assert bool(found) is counts
    if counts:
        label, effect = DEBUG[name]
        assert found[0].label == label
        assert effect in found[0].title
        assert f"{name}={value}" in found[0].title
        assert found[0].evidence == (f"{NCCL}:2: {name}={value}",)
        assert "line 2" in found[0].fix
        assert "environment.debug: remove" in found[0].fix


def test_a_switch_in_a_file_that_remedy_does_not_change_is_left_to_the_user() -> None:
    mention = Mention(path="/root/.bashrc", line=1, text="export NCCL_ALGO=Ring")
    (found,) = findings(host(mentions=(mention,)), FindingKind.REPORT)
    assert "environment.debug" not in found.fix
    assert "/root/.bashrc" in found.fix


def test_lines_that_do_not_mean_what_they_seem_to_are_reported() -> None:
    state = host(files={NCCL: b"NCCL_X = 1\n", ENV: b"A=$HOME/x\n"})
    nccl, session = findings(state, FindingKind.REPORT)
    assert f"{NCCL} line 1" in nccl.title
    assert f"{ENV} line 1" in session.title
    assert (nccl.evidence, session.evidence) == (("NCCL_X = 1",), ("A=$HOME/x",))
    assert (nccl.label, session.label) == ("env-not-propagated", "env-not-propagated")
    assert "NAME=VALUE" in nccl.fix


@pytest.mark.parametrize("path", ["/root/.bashrc", HOME])
def test_a_line_that_overrules_is_blocked_with_its_place_and_the_value_wanted(path: str) -> None:
    text = "NCCL_DEBUG=WARN"
    mentions = (Mention(path=path, line=4, text=f"export {text}"),) if path != HOME else ()
    files = {HOME: f"#\n#\n#\n{text}\n".encode()} if path == HOME else {}
    spec = EnvironmentSpec(variables={"NCCL_DEBUG": "INFO"})
    (found,) = findings(host(files=files, mentions=mentions), FindingKind.BLOCKED, spec)
    assert f"{path} sets {text}" in found.title
    assert "INFO" in found.title
    assert found.evidence == (f"{path}:4: {text}",)
    assert f"line 4 of {path}" in found.fix
    assert ("environment.user_files" in found.fix) is (path == HOME)
    assert found.label == "env-not-propagated"


def test_a_line_that_names_a_dead_interface_is_blocked_by_itself() -> None:
    mention = Mention(path="/root/.bashrc", line=1, text="export GLOO_SOCKET_IFNAME=eth9")
    (found,) = findings(host(mentions=(mention,)), FindingKind.BLOCKED)
    assert found.label == "wrong-interface"
    assert "'eth9'" in found.title


def test_a_session_that_has_another_value_is_blocked_with_what_is_wanted() -> None:
    spec = EnvironmentSpec(variables={"NCCL_DEBUG": "INFO", "A": "1"})
    state = host(
        environment={"NCCL_DEBUG": "WARN", "A": "1", "GLOO_SOCKET_IFNAME": "eth9", "Z": "x"}
    )
    gloo, debug = sorted(findings(state, FindingKind.BLOCKED, spec), key=lambda f: f.title)
    assert "GLOO_SOCKET_IFNAME=eth9" in gloo.title
    assert gloo.label == "wrong-interface"
    assert "NCCL_DEBUG=WARN" in debug.title
    assert "INFO" in debug.title
    assert debug.fix
    assert debug.evidence
    blind = state.model_copy(update={"environment": Unknown(reason="x")})
    assert findings(blind, FindingKind.BLOCKED, spec) == []


def test_variables_that_differ_between_hosts_are_reported_with_who_has_what() -> None:
    states = [host(n, environment={"NCCL_X": "1"} if n > 1 else {}) for n in range(1, 12)]
    (found,) = planned(*states).findings
    assert (found.host, found.label) == (None, "env-not-propagated")
    assert "NCCL_X" in found.title
    assert found.evidence[0] == "not set: gpu01"
    assert found.evidence[1].startswith("1: gpu02, gpu03")
    assert found.evidence[1].endswith("and 2 more")
    assert "environment.variables" in found.fix


@pytest.mark.parametrize(
    ("name", "compared"),
    [
        ("NCCL_X", True), ("TORCH_NCCL_X", True), ("TORCH_X", True), ("GLOO_X", True), ("UCX_X", True),
        ("OMPI_MCA_x", True), ("HCCL_X", True), ("LD_LIBRARY_PATH", True), ("PYTHONPATH", True),
        ("NCCL_SOCKET_IFNAME", False), ("HCCL_IF_IP", False), ("TORCHELASTIC_X", False), ("UCX_RANK", False),
        ("HOME", False), ("PYTHONPATH2", False), ("NCCL_P2P_DISABLE", False), ("MY_NCCL_X", False),
    ],
)  # fmt: skip
def test_only_variables_that_jobs_share_are_compared(name: str, compared: bool) -> None:
    plan = planned(host(1, environment={name: "1"}), host(2, environment={}))
    assert bool([f for f in plan.findings if f.host is None]) is compared
    same = planned(host(1, environment={name: "1"}), host(2, environment={name: "1"}))
    assert [f for f in same.findings if f.host is None] == []


# --- what is written ------------------------------------------------------------------------------------------


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
    assert guarded == {ENV: True, NCCL: False, MCA: False, UCX: False, PROFILE: False}
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
    assert content(plan, MCA) == block("btl_tcp_if_include = 10.0.0.0/24")
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


def test_a_file_that_does_not_exist_sets_nothing() -> None:
    gone = File(path=ENV, real_path=ENV, exists=False, content=b"A=1\n")
    state = host()
    state = state.model_copy(update={"files": {**state.files, ENV: gone}})
    assert settings(state, ETC) == ()
