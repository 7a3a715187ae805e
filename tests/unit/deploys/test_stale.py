"""What a launcher sets for its processes and somebody left in a file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from remedy.deploys._launched import of_job, of_launcher, of_process
from remedy.deploys.environment import EnvironmentSpec
from remedy.plan import Finding, FindingKind, Plan, make_plan
from remedy.probe import HostState, Mention
from tests.unit.build import WHEN
from tests.unit.deploys.environment_bench import ENV, content, host, planned, whole

PADDLE = (
    b"LANG=C.UTF-8\n"
    b"PADDLE_TRAINER_ID=1\n"
    b"PADDLE_TRAINERS_NUM=2\n"
    b"PADDLE_TRAINER_ENDPOINTS=10.0.0.8:6170,10.0.0.9:6170\n"
)


def found(
    *states: HostState, name: str = "gpu01", kind: FindingKind = FindingKind.DRIFT
) -> list[Finding]:
    return [f for f in planned(*states).findings if f.kind is kind and f.host == name]


def test_endpoints_of_an_old_job_on_one_host_are_commented_out_with_file_and_line() -> None:
    states = (host(1, {ENV: PADDLE}), host(2), host(3))
    drift = found(*states)
    assert [f.evidence for f in drift] == [("line 2",), ("line 3",), ("line 4",)]
    assert all(f.title.startswith(f"{ENV} says PADDLE_TRAINER") for f in drift)
    assert {f.label for f in drift} == {"rank-mismatch"}
    assert content(planned(*states), ENV) == (
        b"LANG=C.UTF-8\n"
        b"#remedy disabled# PADDLE_TRAINER_ID=1\n"
        b"#remedy disabled# PADDLE_TRAINERS_NUM=2\n"
        b"#remedy disabled# PADDLE_TRAINER_ENDPOINTS=10.0.0.8:6170,10.0.0.9:6170\n"
    )
    assert not planned(*states).for_host("gpu02")


@pytest.mark.parametrize(
    "name",
    [
        *("RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "RANK_ID"),
        *(
            "RANK_TABLE_FILE",
            "MS_ROLE",
            "MS_SCHED_HOST",
            "MS_WORKER_NUM",
            "SLURM_PROCID",
            "SLURM_NTASKS",
        ),
        *("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "PADDLE_MASTER", "TORCHELASTIC_RUN_ID"),
        *(
            "PET_NNODES",
            "PET_NODE_RANK",
            "PADDLE_RUN_MODE",
            "PADDLE_TRAINER_NUM",
            "PADDLE_GLOO_HTTP_ENDPOINT",
        ),
        *(
            "PADDLE_SERVERS_ENDPOINTS",
            "TRAINING_ROLE",
            "FLAGS_selected_gpus",
            "OMPI_MCA_orte_ess_vpid",
        ),
        *(
            "HOROVOD_RANK",
            "HOROVOD_GLOO_RENDEZVOUS_ADDR",
            "JAX_COORDINATOR_ADDRESS",
            "JAX_PROCESS_ID",
        ),
    ],
)
def test_left_on_one_host_it_is_found_for_each_launcher(name: str) -> None:
    (drift,) = found(host(1, {ENV: f"{name}=7\n".encode()}), host(2))
    assert drift.title.startswith(f"{ENV} says {name}=7: only a launcher sets it")


@pytest.mark.parametrize(
    "name", ["NCCL_DEBUG", "OMPI_MCA_btl", "MS_NODE_TIMEOUT", "SLURM_CONF", "PMIX_MCA_x", "RANKING"]
)
def test_settings_of_the_same_families_stay(name: str) -> None:
    assert not of_launcher(name)
    assert not found(host(1, {ENV: f"{name}=7\n".encode()}), host(2))


def test_what_every_host_says_alike_is_reported_and_left() -> None:
    text = b"MASTER_ADDR=10.0.0.1\nMASTER_PORT=29500\n"
    plan = planned(host(1, {ENV: text}), host(2, {ENV: text}))
    assert not plan.changes
    reports = [f.title for f in plan.findings if f.kind is FindingKind.REPORT]
    assert [title.split()[0] for title in reports] == ["MASTER_ADDR", "MASTER_PORT"]
    other = planned(host(1, {ENV: text}), host(2, {ENV: text.replace(b".1", b".2")}))
    assert {change.host for change in other.changes} == {"gpu01", "gpu02"}


def test_what_most_hosts_say_stays_and_what_one_says_besides_goes() -> None:
    table = b"RANK_TABLE_FILE=/etc/site.json\n"
    most = [host(number, {ENV: table}) for number in (1, 2, 3)]
    plan = planned(*most, host(4))
    assert not plan.changes
    (report,) = (f for f in plan.findings if f.kind is FindingKind.REPORT)
    assert report.title.startswith("RANK_TABLE_FILE is set in files of 3 of 4 hosts")
    assert report.evidence == ("gpu[01-03]: RANK_TABLE_FILE=/etc/site.json", "gpu04: not so")
    odd = planned(*most, host(4, {ENV: b"RANK_TABLE_FILE=/tmp/old.json\n"}))
    assert {change.host for change in odd.changes} == {"gpu04"}


def test_a_rank_is_wrong_on_every_host_also_where_all_say_the_same() -> None:
    text = b"RANK=0\n"
    assert {c.host for c in planned(host(1, {ENV: text}), host(2, {ENV: text})).changes} == {
        "gpu01",
        "gpu02",
    }


def test_what_the_spec_asks_for_is_no_left_over() -> None:
    spec = EnvironmentSpec(variables={"MASTER_ADDR": "10.0.0.1"})
    plan = planned(host(1, {ENV: b"MASTER_ADDR=10.0.0.1\n"}), host(2), spec=spec)
    assert not any("only a launcher" in f.title for f in plan.findings)


def test_an_own_address_is_no_left_over() -> None:
    assert not found(host(1, {ENV: b"POD_IP=10.0.0.1\n"}), host(2))
    assert found(host(1, {ENV: b"POD_IP=10.0.0.2\n"}), host(2))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/root/.bashrc", "export PADDLE_TRAINER_ID=1 PADDLE_TRAINERS_NUM=2"),
        (
            "/etc/profile.d/job.sh",
            "PADDLE_TRAINER_ID=1; PADDLE_TRAINERS_NUM=2; export PADDLE_TRAINER_ID",
        ),
        ("/etc/ssh/sshd_config", "SetEnv PADDLE_TRAINER_ID=1 PADDLE_TRAINERS_NUM=2"),
    ],
)
def test_lines_that_remedy_does_not_change_are_named(path: str, text: str) -> None:
    state = host(1, mentions=(Mention(path=path, line=12, text=text),))
    blocked = found(state, host(2), kind=FindingKind.BLOCKED)
    assert [f.fix for f in blocked] == [f"Remove line 12 of {path}."] * 2
    assert blocked[0].evidence == (f"{path}:12: PADDLE_TRAINER_ID=1",)


def test_what_a_session_has_and_no_line_explains_is_named() -> None:
    state = host(1, environment={"RANK": "3", "HOME": "/root"})
    (blocked,) = found(state, host(2), kind=FindingKind.BLOCKED)
    assert blocked.title.startswith("sessions over ssh have RANK=3")
    explained = host(1, {ENV: b"#remedy disabled# RANK=3\n"}, environment={"RANK": "3"})
    assert not found(explained, host(2), kind=FindingKind.BLOCKED)


def test_what_one_session_has_of_a_job_is_named_and_what_most_have_is_not() -> None:
    endpoints = {"PADDLE_TRAINERS_ENDPOINTS": "10.0.0.8:6170"}
    (blocked,) = found(host(1, environment=endpoints), host(2), kind=FindingKind.BLOCKED)
    assert blocked.title.startswith(
        "sessions over ssh have PADDLE_TRAINERS_ENDPOINTS=10.0.0.8:6170"
    )
    alike = [host(number, environment={"MASTER_ADDR": "10.0.0.1"}) for number in (1, 2)]
    assert not found(*alike, host(3), kind=FindingKind.BLOCKED)
    other = host(3, environment={"MASTER_ADDR": "10.0.0.2"})
    assert found(*alike, other, name="gpu03", kind=FindingKind.BLOCKED)


def test_a_second_run_finds_nothing() -> None:
    written = content(planned(host(1, {ENV: PADDLE}), host(2)), ENV)
    assert written is not None
    plan = planned(host(1, {ENV: written}), host(2))
    assert not plan.changes
    assert not plan.findings


def test_a_variable_belongs_to_a_process_or_to_a_job() -> None:
    for name in ("RANK", "WORLD_SIZE", "PADDLE_TRAINER_ID", "MASTER_ADDR", "SLURM_NTASKS", "PATH"):
        assert of_launcher(name) == (of_process(name) or of_job(name))
        assert not (of_process(name) and of_job(name))
    assert not of_launcher("PATH")


def read_alone(state: HostState) -> Plan:
    """Return the plan of one host of two, as ``--limit`` gives it."""
    both = whole(state, host(2))
    return make_plan(replace(both, states={state.host: state}), WHEN, only="environment")


@pytest.mark.parametrize(
    ("state", "title"),
    [
        (
            host(1, {ENV: b"PADDLE_TRAINER_ENDPOINTS=10.0.0.8:6170\n"}),
            "PADDLE_TRAINER_ENDPOINTS is set in files of gpu01; what the others say was not read",
        ),
        (
            host(1, environment={"MASTER_ADDR": "10.0.0.8"}),
            "sessions over ssh have MASTER_ADDR=10.0.0.8; what the others have was not read",
        ),
    ],
)
def test_one_host_alone_agrees_with_nobody(state: HostState, title: str) -> None:
    plan = read_alone(state)
    assert not plan.changes, "whether most hosts say the same is not known"
    (report,) = (f for f in plan.findings if f.kind is FindingKind.REPORT)
    assert report.title.startswith(title)
    assert report.label == "rank-mismatch"
