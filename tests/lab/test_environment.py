"""The environment of jobs on real hosts: what cannot work is replaced, what beats it is named."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

ERROR = "Unable to find address for: eth9"
SPEC = """\
environment:
  interface: auto
  variables: {NCCL_IB_TIMEOUT: 22, UCX_TLS: tcp, LD_LIBRARY_PATH: /opt/lib}
  debug: remove
  user_files: true
"""


@pytest.fixture
def site(cluster: Cluster) -> Site:
    """Hosts that are right but for what a test breaks."""
    made = Site(cluster)
    assert made.remedy("apply", "--yes", "--no-verify").code == 0
    return made


def session(site: Site, host: str, word: str = "env") -> str:
    """Return what a command over ssh prints there."""
    command = site.cluster.host(host).ssh([word])
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def spec(site: Site, text: str) -> None:
    Path(site.folder, "remedy.yaml").write_text(text, encoding="utf-8")


@pytest.mark.full
def test_a_name_that_is_not_there_stops_gloo_until_it_is_replaced(site: Site) -> None:
    if not site.cluster.lab.record().python:
        pytest.skip("no torch for the hosts")
    one, two = site.cluster.hosts[:2]
    before = {host: site.cluster.host(host).read("/etc/environment") for host in (one, two)}
    site.cluster.fault(one, "wrong-socket-ifname")
    site.cluster.fault(two, "wrong-socket-ifname")
    broken = site.remedy("verify", "--limit", f"{one},{two}")
    assert broken.code == 3
    assert ERROR in broken.text
    seen = site.remedy("check", "--exit-code", "--json")
    assert seen.code == 10
    assert "there is no interface 'eth9' here" in seen.stdout
    fixed = site.remedy("apply", "--yes", "--json", "--limit", f"{one},{two}")
    assert fixed.code == 0, fixed.text
    assert ERROR not in fixed.text
    for record in site.cluster.lab.record().hosts[:2]:
        got = session(site, record.name)
        assert f"GLOO_SOCKET_IFNAME={record.cluster_interface}\n" in got
        assert "NCCL_SOCKET_IFNAME" not in got
        conf = site.cluster.host(record.name).read("/etc/nccl.conf").decode()
        assert f"NCCL_SOCKET_IFNAME=={record.cluster_interface}\n" in conf
        lines = site.cluster.host(record.name).read("/etc/environment")
        assert b"# from the old cluster\n#remedy disabled# GLOO_SOCKET_IFNAME=eth9\n" in lines
    again = site.remedy("apply", "--yes", "--json", "--no-verify")
    assert (again.code, again.document["plan"]["changes"]) == (0, [])
    back = site.remedy("rollback", fixed.document["run"], "--yes")
    assert back.code == 0, back.text
    for host in (one, two):
        assert "GLOO_SOCKET_IFNAME=eth9\n" in session(site, host)
        assert site.cluster.host(host).read("/etc/environment").startswith(before[host])
        assert site.cluster.run(host, "ls /etc/nccl.conf").returncode != 0


def test_what_beats_the_files_is_named_and_changed_only_when_asked(site: Site) -> None:
    host = site.cluster.hosts[2]
    site.cluster.fault(host, "debug-variables-left", "user-nccl-conf")
    left = site.remedy("apply", "--yes", "--json", "--no-verify")
    assert left.code == 1
    assert left.document["plan"]["changes"] == []
    assert "/root/.nccl.conf:1: NCCL_SOCKET_IFNAME=eth9" in left.stdout
    for place in ("/etc/environment:", "/etc/nccl.conf:2:", "/root/.bashrc:"):
        assert place in left.stdout
    spec(site, SPEC)
    fixed = site.remedy("apply", "--yes", "--json", "--no-verify")
    assert fixed.code == 0, fixed.text
    for record in site.cluster.lab.record().hosts:
        name = record.cluster_interface
        got = session(site, record.name)
        login = session(site, record.name, "env -i bash -lc env")
        for line in (f"GLOO_SOCKET_IFNAME={name}", f"TP_SOCKET_IFNAME={name}", "UCX_TLS=tcp"):
            assert f"{line}\n" in got
            assert f"{line}\n" in login
        assert "LD_LIBRARY_PATH=/opt/lib\n" in got
        conf = site.cluster.host(record.name).read("/etc/nccl.conf").decode()
        assert f"NCCL_SOCKET_IFNAME=={name}\n" in conf
        assert "NCCL_IB_TIMEOUT=22\n" in conf
    assert "NCCL_P2P_DISABLE" not in session(site, host)
    assert site.cluster.host(host).read("/root/.nccl.conf").startswith(b"#remedy disabled# ")
    again = site.remedy("apply", "--yes", "--json", "--no-verify")
    assert (again.code, again.document["plan"]["changes"]) == (0, [])
    spec(site, "environment: {debug: remove, user_files: true}\n")
    withdrawn = site.remedy("apply", "--yes", "--json", "--no-verify")
    assert withdrawn.code == 0, withdrawn.text
    assert site.cluster.run(host, "ls /etc/profile.d/remedy.sh").returncode != 0
    assert "UCX_TLS" not in session(site, host)


def test_a_users_file_is_changed_as_that_user_or_not_at_all(site: Site) -> None:
    own, foreign = site.cluster.hosts[:2]
    text = "# mine\nNCCL_SOCKET_IFNAME=eth9\n"
    site.cluster.host(own).must(
        "install -d -o trainer -g trainer /home/trainer/dot && "
        f"printf '%b' '{text}' >/home/trainer/dot/nccl.conf && "
        "chown trainer: /home/trainer/dot/nccl.conf && chmod 640 /home/trainer/dot/nccl.conf && "
        "ln -s dot/nccl.conf /home/trainer/.nccl.conf && "
        "rm -f /var/log/remedy.jsonl && chgrp adm /var/log && chmod 775 /var/log"
    )
    site.cluster.host(foreign).must(
        f"printf '%b' '{text}' >/etc/site.conf && ln -s /etc/site.conf /home/trainer/.nccl.conf"
    )
    spec(site, "cluster: {user: trainer}\nenvironment: {user_files: true}\n")
    rehearsed = site.remedy("apply", "--rehearse", "--limit", f"{own},{foreign}")
    applied = site.remedy("apply", "--yes", "--no-verify", "--json", "--limit", f"{own},{foreign}")
    for ended in (rehearsed, applied):
        assert ended.code == 1
        assert "acting as uid" in ended.text
    look = "stat -c '%U %a' /home/trainer/dot/nccl.conf; cat /home/trainer/.nccl.conf"
    assert (
        site.cluster.host(own).must(look)
        == f"trainer 640\n{text.replace('NCCL', '#remedy disabled# NCCL')}"
    )
    assert site.cluster.host(foreign).must("cat /etc/site.conf") == text
    log = site.cluster.host(own).must("readlink /var/log/remedy.jsonl; cat /var/log/remedy.jsonl")
    assert log.startswith("/var/lib/remedy/log.jsonl\n")
    assert applied.document["run"] in log
    back = site.remedy("rollback", applied.document["run"], "--yes")
    assert back.code == 0, back.text
    assert site.cluster.host(own).must(look) == f"trainer 640\n{text}"
