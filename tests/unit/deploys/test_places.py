"""Where a wrong variable stands: each place with file, line and who gets it; what nobody gets is no fault."""

from __future__ import annotations

import pytest

from remedy.deploys._places import INTERACTIVE
from remedy.plan import FindingKind, make_plan
from remedy.probe import (
    File,
    RdmaPort,
    ServiceVariable,
)
from tests.unit.build import WHEN, fleet
from tests.unit.deploys.places_bench import HOME, findings, host

BAD = "eth9"


PLACES = [
    ("/etc/profile.d/site.sh", "export GLOO_SOCKET_IFNAME=eth9", "login shells"),
    ("/etc/profile.d/site.csh", "setenv GLOO_SOCKET_IFNAME eth9", "login shells"),
    ("/etc/zsh/zshenv", "export GLOO_SOCKET_IFNAME=eth9", "every shell of this kind"),
    (f"{HOME}/.zshenv", "export GLOO_SOCKET_IFNAME=eth9", "every shell of this kind"),
    (f"{HOME}/.tcshrc", "setenv GLOO_SOCKET_IFNAME eth9", "every shell of this kind"),
    (f"{HOME}/.config/fish/config.fish", "set -gx GLOO_SOCKET_IFNAME eth9", "every shell of this"),
    ("/etc/security/pam_env.conf", "GLOO_SOCKET_IFNAME DEFAULT=eth9", "commands over ssh"),
    ("/etc/ssh/sshd_config.d/x.conf", "SetEnv GLOO_SOCKET_IFNAME=eth9", "commands over ssh"),
    ("/etc/cron.d/train", "GLOO_SOCKET_IFNAME=eth9", "jobs of cron"),
    ("/etc/environment.d/x.conf", "GLOO_SOCKET_IFNAME=eth9", "services of the user"),
    (f"{HOME}/.config/environment.d/x.conf", "GLOO_SOCKET_IFNAME=eth9", "services of the user"),
    ("/etc/systemd/system.conf", "DefaultEnvironment=GLOO_SOCKET_IFNAME=eth9", "every service of"),
    ("/etc/systemd/user.conf.d/x.conf", "DefaultEnvironment=GLOO_SOCKET_IFNAME=eth9", "the user's"),
    ("/etc/systemd/system/slurmd.service.d/x.conf", "Environment=GLOO_SOCKET_IFNAME=eth9", "slurmd"),
    ("/etc/systemd/system/service.d/x.conf", "Environment=GLOO_SOCKET_IFNAME=eth9", "every service of"),
    ("/etc/systemd/user/service.d/x.conf", "Environment=GLOO_SOCKET_IFNAME=eth9", "the user's"),
    ("/etc/systemd/system-environment-generators/x", "echo GLOO_SOCKET_IFNAME=eth9", "every service of"),
    ("/etc/systemd/user-environment-generators/x", "printf 'GLOO_SOCKET_IFNAME=eth9\\n'", "the user's"),
    ("/etc/systemd/system-environment-generators/y", "GLOO_SOCKET_IFNAME=eth9", "every service of"),
    ("/etc/systemd/system-environment-generators/z", 'print("GLOO_SOCKET_IFNAME=eth9")', "every service of"),
    ("/etc/systemd/system/ray.service", 'Environment="GLOO_SOCKET_IFNAME=eth9"', "ray and what"),
    (f"{HOME}/.config/systemd/user/ray.service", "Environment=GLOO_SOCKET_IFNAME=eth9", "user service ray"),
    ("/etc/default/slurmd", "GLOO_SOCKET_IFNAME=eth9", "slurmd and what it starts"),
    ("/etc/containers/containers.conf", 'env = ["GLOO_SOCKET_IFNAME=eth9"]', "container of podman"),
    ("/etc/cdi/nvidia.yaml", "  - GLOO_SOCKET_IFNAME=eth9", "containers with GPUs"),
    ("/opt/conda/envs/t/etc/conda/activate.d/e.sh", "export GLOO_SOCKET_IFNAME=eth9", "conda"),
    ("/opt/conda/envs/t/conda-meta/state", '{"env_vars": {"GLOO_SOCKET_IFNAME": "eth9"}}', "conda"),
    ("/etc/modulefiles/nccl/2.27.lua", 'setenv("GLOO_SOCKET_IFNAME", "eth9")', "load the module"),
    ("/etc/slurm/task_prolog.sh", 'echo "export GLOO_SOCKET_IFNAME=eth9"', "tasks of Slurm"),
    ("/etc/enroot/environ.d/10-x.env", "GLOO_SOCKET_IFNAME=eth9", "containers of enroot"),
    ("/var/spool/pbs/pbs_environment", "GLOO_SOCKET_IFNAME=eth9", "jobs of PBS"),
    ("/etc/doas.conf", "permit setenv { GLOO_SOCKET_IFNAME=eth9 } :wheel", "what doas starts"),
    ("/etc/crio/crio.conf.d/x.conf", 'default_env = ["GLOO_SOCKET_IFNAME=eth9"]', "container of CRI-O"),
    ("/etc/supervisor/conf.d/x.conf", 'environment=GLOO_SOCKET_IFNAME="eth9"', "supervisord"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "who"), PLACES, ids=[p[0] for p in PLACES])
def test_each_place_is_named_with_line_and_who_gets_it(path: str, text: str, who: str) -> None:
    (finding,) = findings(host((path, text)), FindingKind.BLOCKED)
    assert finding.label == "wrong-interface"
    assert path in finding.title
    assert finding.evidence[0] == f"{path}:1: GLOO_SOCKET_IFNAME=eth9"
    assert who in finding.evidence[1]
    assert f"line 1 of {path}" in finding.fix


@pytest.mark.parametrize(("path", "text", "who"), PLACES, ids=[p[0] for p in PLACES])
def test_what_can_work_is_no_finding(path: str, text: str, who: str) -> None:
    assert who
    right = text.replace("eth9", "eno2")
    assert findings(host((path, right)), *FindingKind) == []


@pytest.mark.parametrize(
    ("lines", "who"),
    [
        (
            [
                ("/etc/systemd/system/slurmd.service", "EnvironmentFile=-/opt/site/jobs.env"),
                ("/opt/site/jobs.env", "GLOO_SOCKET_IFNAME=eth9"),
            ],
            "slurmd and what it starts",
        ),
        (
            [
                ("/etc/slurm/slurm.conf", "TaskProlog=/opt/site/task"),
                ("/opt/site/task", "echo export GLOO_SOCKET_IFNAME=eth9"),
            ],
            "tasks of Slurm",
        ),
        (
            [
                ("/etc/pam.d/sshd", "session required pam_env.so envfile=/etc/site/env"),
                ("/etc/site/env", "GLOO_SOCKET_IFNAME=eth9"),
            ],
            "sessions by /etc/pam.d/sshd",
        ),
        (
            [
                (
                    "/etc/sudoers.d/site",
                    "Defaults:%gpu env_reset, env_file = /etc/site/env,!lecture",
                ),
                ("/etc/site/env", "export GLOO_SOCKET_IFNAME='eth9'"),
            ],
            "what sudo starts (by /etc/sudoers.d/site)",
        ),
        (
            [
                ("/etc/sudoers", 'Defaults restricted_env_file="/etc/site/env"'),
                ("/etc/sudoers.d/site", 'Defaults env_keep += "LANG GLOO_*"'),
                ("/etc/site/env", "GLOO_SOCKET_IFNAME=eth9"),
            ],
            "what sudo starts, as far as env_keep names it (by /etc/sudoers)",
        ),
        (
            [
                ("/etc/sudoers", "Defaults env_keep+=GLOO_SOCKET_IFNAME"),
                (f"{HOME}/.bashrc", "export GLOO_SOCKET_IFNAME=eth9"),
            ],
            f"{INTERACTIVE}; what sudo starts too (env_keep, /etc/sudoers:1)",
        ),
        (
            [
                ("/etc/profile", "[ -r /opt/site.sh ] && . /opt/site.sh"),
                ("/opt/site.sh", "export GLOO_SOCKET_IFNAME=eth9"),
            ],
            "login shells, and batch scripts that start one (by /etc/profile)",
        ),
    ],
)
def test_files_that_others_name_are_read_as_these_read_them(
    lines: list[tuple[str, str]], who: str
) -> None:
    (finding,) = findings(host(*lines), FindingKind.BLOCKED)
    assert finding.evidence[1] == f"who gets it: {who}"


@pytest.mark.parametrize(
    ("lines", "live"),
    [
        ([(f"{HOME}/.ssh/environment", "GLOO_SOCKET_IFNAME=eth9")], False),
        (
            [
                ("/etc/ssh/sshd_config", "PermitUserEnvironment yes"),
                (f"{HOME}/.ssh/environment", "GLOO_SOCKET_IFNAME=eth9"),
            ],
            True,
        ),
        (
            [
                ("/etc/ssh/sshd_config", "PermitUserEnvironment no"),
                (f"{HOME}/.ssh/authorized_keys", 'environment="GLOO_SOCKET_IFNAME=eth9" ssh-rsa A'),
            ],
            False,
        ),
        ([(f"{HOME}/.pam_environment", "GLOO_SOCKET_IFNAME DEFAULT=eth9")], False),
        (
            [
                ("/etc/pam.d/sshd", "session required pam_env.so user_readenv=1"),
                (f"{HOME}/.pam_environment", "GLOO_SOCKET_IFNAME=eth9"),
            ],
            True,
        ),
        (
            [
                ("/etc/sudoers", 'Defaults restricted_env_file="/etc/site/env"'),
                ("/etc/sudoers.d/old.bak", 'Defaults env_keep += "GLOO_*"'),
                ("/etc/site/env", "GLOO_SOCKET_IFNAME=eth9"),
            ],
            False,
        ),
        ([("/etc/systemd/system/docker.service.d/x.conf", "Environment=GLOO_SOCKET_IFNAME=eth9")], False),
    ],
)  # fmt: skip
def test_what_no_job_gets_is_only_reported(lines: list[tuple[str, str]], *, live: bool) -> None:
    blocked = findings(host(*lines), FindingKind.BLOCKED)
    reports = findings(host(*lines), FindingKind.REPORT)
    assert (len(blocked), len(reports)) == ((1, 0) if live else (0, 1))
    if not live:
        assert reports[0].evidence[1].startswith("no job gets it: ")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/etc/sudoers.d/site.dpkg-old", "Defaults env_file=/etc/site/env"),
        ("/etc/sudoers", "# Defaults env_file=/etc/site/env"),
        ("/etc/security/notes", "Defaults env_file=/etc/site/env"),
    ],
)
def test_a_line_that_sudo_does_not_read_names_no_file(path: str, line: str) -> None:
    state = host((path, line), ("/etc/site/env", "GLOO_SOCKET_IFNAME=eth9"))
    assert findings(state, *FindingKind) == []


def test_the_users_own_settings_of_open_mpi_are_named() -> None:
    path = f"{HOME}/.openmpi/mca-params.conf"
    file = File(path=path, real_path=path, exists=True, content=b"btl_tcp_if_include = eth9\n")
    state = host()
    state = state.model_copy(update={"files": {**state.files, path: file}})
    (finding,) = findings(state, FindingKind.BLOCKED)
    assert finding.evidence[0] == f"{path}:1: OMPI_MCA_btl_tcp_if_include=eth9"
    assert finding.label == "mpi-nic-mismatch"


def test_systemds_link_to_the_session_file_is_not_named_twice() -> None:
    path = "/usr/lib/environment.d/99-environment.conf"
    assert findings(host((path, "GLOO_SOCKET_IFNAME=eth9")), *FindingKind) == []


# --- what is running --------------------------------------------------------------------------------------


def test_a_daemon_that_hands_on_what_no_file_sets_is_named() -> None:
    slurmd = ServiceVariable("slurmd", 812, "NCCL_SOCKET_IFNAME", BAD)
    manager = ServiceVariable("systemd", 1, "GLOO_SOCKET_IFNAME", BAD)
    first, second = findings(host(services=(slurmd, manager)), FindingKind.BLOCKED)
    assert "slurmd (pid 812) hands NCCL_SOCKET_IFNAME=eth9 on" in first.title
    assert first.evidence == ("/proc/812/environ: NCCL_SOCKET_IFNAME=eth9",)
    assert "systemctl unset-environment GLOO_SOCKET_IFNAME" in second.fix


def test_a_daemon_of_containers_hands_nothing_to_jobs_and_a_file_explains_the_rest() -> None:
    dockerd = ServiceVariable("dockerd", 7, "NCCL_SOCKET_IFNAME", BAD)
    state = host(services=(dockerd,))
    assert findings(state, FindingKind.BLOCKED) == []
    assert len(findings(state, FindingKind.REPORT)) == 1
    slurmd = ServiceVariable("slurmd", 812, "GLOO_SOCKET_IFNAME", BAD)
    line = ("/etc/systemd/system.conf", "DefaultEnvironment=GLOO_SOCKET_IFNAME=eth9")
    (finding,) = findings(host(line, services=(slurmd,)), FindingKind.BLOCKED)
    assert "/etc/systemd/system.conf" in finding.title


# --- UCX and HCCL -----------------------------------------------------------------------------------------

PORT = RdmaPort("mlx5_0", 1, "ACTIVE", "LinkUp", 400.0, "InfiniBand", "", (), {})


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("UCX_NET_DEVICES=eth9", "UCX_NET_DEVICES=eno2"),
        ("UCX_NET_DEVICES=mlx5_9:1", "UCX_NET_DEVICES=eno2"),
        ("HCCL_SOCKET_IFNAME=eth9", "HCCL_SOCKET_IFNAME==eno2"),
        ("UCX_NET_DEVICES=all", None),
        ("UCX_NET_DEVICES=eno2", None),
        ("UCX_NET_DEVICES=eth9,eno2", None),
        ("UCX_NET_DEVICES=^eth9", None),
        ("HCCL_SOCKET_IFNAME=eno", None),
    ],
)
def test_a_device_that_is_not_there_is_replaced(line: str, after: str | None) -> None:
    found = fleet(host(session=f"{line}\n"))
    plan = make_plan(found, WHEN, only="environment")
    if after is None:
        assert plan.changes == ()
        return
    (change,) = plan.changes
    assert change.action.kind == "file"
    assert change.action.after is not None
    assert f"{after}\n".encode() in plan.contents[change.action.after]
    assert f"#remedy disabled# {line}\n".encode() in plan.contents[change.action.after]


def test_where_rdma_is_in_use_ucx_is_not_kept_from_it() -> None:
    state = host(session="UCX_NET_DEVICES=mlx5_9:1\n", rdma=(PORT,))
    assert make_plan(fleet(state), WHEN, only="environment").changes == ()
    (finding,) = findings(state, FindingKind.BLOCKED)
    assert "mlx5_9:1" in finding.title
    right = host(session="UCX_NET_DEVICES=mlx5_0:1\n", rdma=(PORT,))
    assert findings(right, *FindingKind) == []
