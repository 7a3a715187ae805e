"""Limits and logind on real hosts: what a session has, what services get, what a logout leaves alone."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

# No more than the machine that the tests run on may have itself; a lab host cannot raise a hard limit.
NOFILE = 4096
REMOVE_IPC = (
    "busctl get-property org.freedesktop.login1 /org/freedesktop/login1"
    " org.freedesktop.login1.Manager RemoveIPC"
)


@pytest.fixture
def site(cluster: Cluster) -> Site:
    """Hosts that are right but for what a test breaks."""
    made = Site(cluster)
    assert made.remedy("apply", "--yes", "--no-verify").code == 0
    return made


def ssh(site: Site, host: str, word: str, user: str = "root") -> str:
    command = site.cluster.host(host).ssh([word], user=user)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_small_limit_is_raised_for_sessions_now_and_for_services_at_boot(site: Site) -> None:
    host = site.cluster.hosts[0]
    before = ssh(site, host, "ulimit -l")
    site.cluster.fault(host, "small-memlock")
    assert ssh(site, host, "ulimit -l; ulimit -n") == "64\n512"
    assert site.remedy("check", "--exit-code").code == 0, "no GPU, no RDMA, nobody asked"
    Path(site.folder, "remedy.yaml").write_text(
        f"limits: {{memlock: unlimited, nofile: {NOFILE}}}\n", encoding="utf-8"
    )
    seen = site.remedy("check", "--exit-code", "--json")
    assert seen.code == 10
    assert "/etc/security/limits.d/50-site.conf:1" in seen.stdout
    fixed = site.remedy("apply", "--yes", "--json", "--no-verify", "--limit", host)
    assert fixed.code == 0, fixed.text
    for user in ("root", "trainer"):
        assert ssh(site, host, "ulimit -n; ulimit -Hn", user) == f"{NOFILE}\n{NOFILE}"
        # As much as this kernel lets it have.
        assert ssh(site, host, "ulimit -l", user) in ("unlimited", before)
    again = site.remedy("apply", "--yes", "--json", "--no-verify", "--limit", host)
    assert (again.code, again.document["plan"]["changes"]) == (0, [])
    site.cluster.reboot(host)
    show = "systemctl show -p DefaultLimitNOFILE -p DefaultLimitMEMLOCK"
    assert f"DefaultLimitNOFILE={NOFILE}" in site.cluster.run(host, show).stdout
    back = site.remedy("rollback", fixed.document["run"], "--yes")
    assert back.code == 0, back.text
    assert ssh(site, host, "ulimit -l; ulimit -n") == "64\n512"


@pytest.mark.full
def test_a_logout_leaves_the_shared_memory_of_a_job_alone(site: Site) -> None:
    host = site.cluster.hosts[1]
    site.cluster.fault(host, "remove-ipc")
    # Ten seconds by default, which this test need not wait.
    site.cluster.run(
        host,
        "printf '[Login]\\nUserStopDelaySec=0\\n' >/etc/systemd/logind.conf.d/10-test.conf;"
        " systemctl kill --signal=HUP systemd-logind",
    )
    assert not survives_logout(site, host)
    assert site.remedy("check", "--exit-code").code == 0, "no GPU, no RDMA, nobody asked"
    Path(site.folder, "remedy.yaml").write_text("logind: {remove_ipc: false}\n", encoding="utf-8")
    seen = site.remedy("check", "--json")
    assert "/etc/systemd/logind.conf.d/50-site.conf:2" in seen.stdout
    fixed = site.remedy("apply", "--yes", "--json", "--no-verify")
    assert fixed.code == 0, fixed.text
    assert site.cluster.run(host, REMOVE_IPC).stdout == "b false\n"
    assert survives_logout(site, host)
    again = site.remedy("apply", "--yes", "--json", "--no-verify")
    assert (again.code, again.document["plan"]["changes"]) == (0, [])
    back = site.remedy("rollback", fixed.document["run"], "--yes")
    assert back.code == 0, back.text
    assert site.cluster.run(host, REMOVE_IPC).stdout == "b true\n"
    assert not survives_logout(site, host)


def survives_logout(site: Site, host: str) -> bool:
    """Whether the segment of a job that runs outlives a login and logout of the job's user."""
    path = "/dev/shm/nccl-test00"
    job = f"exec 3<>{path}; exec sleep 60"
    site.cluster.run(host, f"setsid runuser -u trainer -- sh -c '{job}' >/dev/null 2>&1 &")
    for _ in range(50):
        if site.cluster.run(host, f"test -e {path}").returncode == 0:
            break
        time.sleep(0.1)
    ssh(site, host, "true", "trainer")
    users = "loginctl --no-legend list-users"
    for _ in range(50):
        if "trainer" not in site.cluster.run(host, users).stdout:
            break
        time.sleep(0.2)
    time.sleep(0.3)
    return site.cluster.run(host, f"test -e {path}; r=$?; rm -f {path}; exit $r").returncode == 0
