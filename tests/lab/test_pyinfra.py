"""The deploys under plain pyinfra: they change what is broken, and then nothing."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from collections import Counter
from pathlib import Path

import pytest

from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

PYINFRA = Path(sysconfig.get_path("scripts")) / "pyinfra"


def pyinfra(site: Site, deploy: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PYINFRA), "-y", *options, site.inventory.name, f"remedy.deploys.{deploy}.{deploy}"],
        cwd=site.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )


def totals(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """Return the columns of pyinfra's last line: hosts, success, error, no change."""
    text = done.stdout + done.stderr
    match = re.search(r"Grand total +(\S+) +(\S+) +(\S+) +(\S+)", text)
    values = match.groups() if match else ("-",) * 4
    keys = ("hosts", "success", "error", "no change")
    return {key: 0 if v == "-" else int(v) for key, v in zip(keys, values, strict=True)}


def test_deploys_change_a_broken_host_and_then_nothing(cluster: Cluster) -> None:
    site = Site(cluster)
    cluster.fault("gpu02", "loopback-name")
    cluster.fault("gpu03", "conflicting-line", "hosts-crlf")
    cluster.fault("gpu04", "hostname-reset-by-cloud-init")
    broken = site.all_names()
    dry = pyinfra(site, "hosts_file", "--dry")
    assert dry.returncode == 0, dry.stdout + dry.stderr
    assert site.all_names() == broken
    for deploy in ("hosts_file", "hostname"):
        done = pyinfra(site, deploy)
        assert done.returncode == 0, done.stdout + done.stderr
        assert totals(done)["error"] == 0
    site.assert_right()
    before = site.all_names()
    marks = site.log_sessions()
    for deploy in ("hosts_file", "hostname"):
        done = pyinfra(site, deploy)
        assert done.returncode == 0, done.stdout + done.stderr
        assert totals(done)["success"] == 0, done.stdout + done.stderr
    assert site.all_names() == before
    # Each host is read once a run, however many hosts there are.
    assert site.sessions(marks) == {host: Counter(accepted=2, session=2) for host in cluster.hosts}
    # remedy itself has nothing left to do, and what was done can be undone on the host.
    assert site.remedy("check", "--exit-code").code == 0
    assert cluster.run("gpu02", "ls /var/lib/remedy/runs/*/undo | wc -l").stdout.strip() == "2"
    assert cluster.run("gpu02", "ls /var/lib/remedy/*/*/receipt.jsonl").returncode == 0


@pytest.mark.full
def test_a_deploy_with_sudo_and_a_host_that_cannot_be_changed(cluster: Cluster) -> None:
    site = Site(cluster)
    cluster.fault("gpu02", "hosts-immutable")
    site.edit_inventory({host: {"ssh_user": "trainer"} for host in cluster.hosts})
    before = site.names("gpu02")
    done = pyinfra(site, "hosts_file", "--sudo")
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    assert "Traceback" not in text
    assert "/etc/hosts is immutable (chattr +i)" in text
    assert "chattr -i /etc/hosts" in text
    assert site.names("gpu02") == before
    for host in ("gpu01", "gpu03", "gpu04"):
        assert site.resolved(host) == site.addresses()
