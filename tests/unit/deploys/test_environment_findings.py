"""The environment of jobs: what is only named, because a line of others decides, or hides something."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys._environment import DEBUG, IFNAMES, label_of
from remedy.deploys.environment import EnvironmentSpec
from remedy.plan import FindingKind
from remedy.probe import Mention
from remedy.values import Unknown
from tests.unit.deploys.environment_bench import (
    ENV,
    HOME,
    NCCL,
    content,
    findings,
    host,
    interface,
    kinds,
    planned,
)


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


def test_an_unknown_interface_of_the_spec_blocks_and_auto_without_one_is_unknown() -> None:
    plan = planned(host(), spec=EnvironmentSpec(interface="eth7"))
    assert kinds(plan) == [FindingKind.BLOCKED]
    blind = host().model_copy(update={"network": Unknown(reason="no ip")})
    assert kinds(planned(blind, spec=EnvironmentSpec(interface="auto"))) == [FindingKind.UNKNOWN]
    assert planned(blind).findings == ()


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


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("NCCL_DEBUG=INFO", True),
        ("NCCL_DEBUG=trace", True),
        ("NCCL_DEBUG=WARN", False),
        ("NCCL_DEBUG=version", False),
        ("TORCH_CPP_LOG_LEVEL=INFO", True),
        ("TORCH_CPP_LOG_LEVEL=error", False),
        ("TORCH_DISTRIBUTED_DEBUG=DETAIL", True),
        ("TORCH_DISTRIBUTED_DEBUG=off", False),
    ],
)
def test_what_a_job_writes_to_find_a_fault_is_left_over_and_the_usual_words_are_not(
    line: str, counts: bool
) -> None:
    found = findings(host(files={ENV: f"{line}\n".encode()}), FindingKind.REPORT)
    assert [line in f.title for f in found] == [True] * counts
    plan = planned(host(files={ENV: f"{line}\n".encode()}), spec=EnvironmentSpec(debug="remove"))
    assert content(plan, ENV) == (f"#remedy disabled# {line}\n".encode() if counts else None)


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
    assert found.evidence[0] == f"{path}:4: {text}"
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
