"""Wrong variables on real hosts, wherever a job can get them: each is named where it stands."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from remedy.lab.faults.environment import NOWHERE, TOKEN
from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

FAULTS = {
    "gpu01": "wrong-ifname-of-services",
    "gpu02": "wrong-ifname-of-sessions",
    "gpu03": "wrong-ifname-of-containers",
    "gpu04": "old-environment-of-slurmd",
}
PLACES = {
    "gpu01": (
        "/etc/systemd/system.conf.d/10-site.conf:2: NCCL_SOCKET_IFNAME",
        "/etc/site/jobs.env:3: TP_SOCKET_IFNAME",
        "/etc/environment.d/50-site.conf:1: GLOO_SOCKET_IFNAME",
    ),
    "gpu02": (
        "/etc/ssh/sshd_config.d/10-site.conf:1: TP_SOCKET_IFNAME",
        "/etc/zsh/zshenv:1: NCCL_SOCKET_IFNAME",
        "/etc/csh.cshrc:1: NCCL_SOCKET_IFNAME",
    ),
    "gpu03": (
        "/etc/containers/containers.conf.d/10-site.conf:4: NCCL_SOCKET_IFNAME",
        "/opt/site/task.sh:2: GLOO_SOCKET_IFNAME",
        "/etc/modulefiles/nccl/2.27:1: NCCL_SOCKET_IFNAME",
    ),
    "gpu04": (
        "systemctl show-environment: GLOO_SOCKET_IFNAME",
        "/environ: NCCL_SOCKET_IFNAME",
    ),
}


@pytest.fixture
def site(cluster: Cluster) -> Site:
    """Hosts that are right but for what a test breaks."""
    made = Site(cluster)
    assert made.remedy("apply", "--yes", "--no-verify").code == 0
    return made


def session(site: Site, host: str) -> str:
    """Return the environment of a command over ssh."""
    command = site.cluster.host(host).ssh(["env"])
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_each_place_is_named_and_no_secret_leaves_a_host(site: Site) -> None:
    for host, name in FAULTS.items():
        site.cluster.fault(host, name)
    assert f"GLOO_SOCKET_IFNAME={NOWHERE}\n" in session(site, "gpu02")  # by pam_env.conf
    seen = site.remedy("check", "--json")
    for host, places in PLACES.items():
        findings = seen.document["hosts"][host]["findings"]
        blocked = [f for f in findings if f["kind"] == "blocked" and f["remedy"] == "environment"]
        evidence = [line for finding in blocked for line in finding["evidence"]]
        for place in places:
            assert [line for line in evidence if place in line and NOWHERE in line], evidence
    pam = [f for f in seen.document["hosts"]["gpu02"]["findings"] if "pam_env.conf" in f["title"]]
    assert len(pam) == 1
    assert site.remedy("plan").code in (0, 1)
    kept = [
        p for p in Path(site.folder).rglob("*") if p.is_file() and TOKEN.encode() in p.read_bytes()
    ]
    assert (TOKEN in seen.text, kept) == (False, [])


def test_what_sudo_and_generators_set_is_named_until_it_is_gone(site: Site) -> None:
    host = site.cluster.host("gpu01")
    site.cluster.fault("gpu01", "wrong-ifname-of-sudo")
    environment = host.must("su trainer -c 'sudo -n env'")
    assert f"GLOO_SOCKET_IFNAME={NOWHERE}\n" in environment
    seen = site.remedy("check", "--json", "--limit", "gpu01")
    (of_sudo, of_generator) = (
        next(f for f in seen.document["hosts"]["gpu01"]["findings"] if path in f["title"])
        for path in ("/etc/site/sudo.env", "/etc/systemd/system-environment-generators/50-site")
    )
    assert of_sudo["evidence"] == [
        f"/etc/site/sudo.env:2: GLOO_SOCKET_IFNAME={NOWHERE}",
        "who gets it: what sudo starts (by /etc/sudoers.d/90-site)",
    ]
    assert of_generator["evidence"][0].endswith(f"50-site:2: TP_SOCKET_IFNAME={NOWHERE}")
    assert TOKEN not in seen.text
    host.must(
        "sed -i /IFNAME/d /etc/site/sudo.env /etc/systemd/system-environment-generators/50-site"
    )
    again = site.remedy("check", "--json", "--limit", "gpu01").document["hosts"]["gpu01"]
    assert again["status"] == "ok", again


def test_the_files_of_the_user_who_runs_the_jobs_are_named_and_no_link_of_theirs_is_followed(
    site: Site,
) -> None:
    host = site.cluster.host("gpu01")
    site.cluster.fault("gpu01", "wrong-ifname-of-job-user")
    # What the user may not read, by a link; what would be waited for, and what would be run.
    host.must(f"echo NCCL_SOCKET_IFNAME={TOKEN} >/root/secret.sh; chmod 600 /root/secret.sh")
    host.must(
        "cd /home/trainer && ln -s /root/secret.sh .zshenv && mkfifo .cshrc && "
        "printf '#!/bin/sh\ntouch /run/was-run\n' >.zprofile && chmod 755 .zprofile && "
        "chown -h trainer: .z* .cshrc"
    )
    Path(site.folder, "remedy.yaml").write_text("cluster: {user: trainer}\n", encoding="utf-8")
    seen = site.remedy("check", "--json", "--limit", "gpu01")
    findings = seen.document["hosts"]["gpu01"]["findings"]
    for name, variable in (
        (".bashrc", f"NCCL_SOCKET_IFNAME={NOWHERE}"),
        (".bash_profile", f"GLOO_SOCKET_IFNAME={NOWHERE}"),
        (".profile", "RANK=1"),
        (".pam_environment", f"TP_SOCKET_IFNAME={NOWHERE}"),
    ):
        (finding,) = (f for f in findings if f["title"].startswith(f"/home/trainer/{name} sets"))
        assert variable in finding["title"]
        assert finding["kind"] in ("blocked", "report")
    assert any("/home/trainer/.cshrc" in f["title"] for f in findings if f["kind"] == "unknown")
    assert TOKEN not in seen.text
    assert host.run("ls /run/was-run").returncode != 0


@pytest.mark.full
def test_the_device_of_ucx_and_hccl_is_corrected_and_taken_back(site: Site) -> None:
    host = site.cluster.hosts[0]
    site.cluster.fault(host, "wrong-device-of-ucx-and-hccl")
    before = site.cluster.host(host).read("/etc/environment")
    assert f"UCX_NET_DEVICES={NOWHERE}\n" in session(site, host)
    fixed = site.remedy("apply", "--yes", "--no-verify", "--json")
    assert fixed.code == 0, fixed.text
    interface = site.cluster.lab.record().hosts[0].cluster_interface
    environment = session(site, host)
    assert f"UCX_NET_DEVICES={interface}\n" in environment
    assert f"HCCL_SOCKET_IFNAME=={interface}\n" in environment
    assert site.remedy("apply", "--yes", "--no-verify", "--json").document["plan"]["changes"] == []
    back = site.remedy("rollback", fixed.document["run"], "--yes")
    assert back.code == 0, back.text
    assert site.cluster.host(host).read("/etc/environment") == before
