"""Orphaned launchers on real hosts: one that lost its ssh client is ended, living jobs are never touched."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator

import pytest

from remedy.lab.faults.leftovers import torchrun, wait_for_port
from tests import stub
from tests.lab import forks
from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

APPLY = ("--yes", "--no-verify", "--json")


def holder(cluster: Cluster, host: str) -> str:
    """Return the pid and start time of who listens on port 29500 of the host, "" for nobody."""
    look = (
        "pid=$(ss -H -ltnp 'sport = :29500' | sed -n 's/.*pid=\\([0-9]*\\).*/\\1/p');"
        ' [ -z "$pid" ] || echo $pid $(sed "s/.*) //" /proc/$pid/stat | cut -d" " -f20)'
    )
    return cluster.run(host, look).stdout.strip()


def one_host_run(cluster: Cluster, host: str) -> str:
    """Return what a launcher says that wants port 29500 for itself alone."""
    words = torchrun(cluster.host(host))
    words[words.index("2")] = "1"
    words[-1:] = ["--no-python", "true"]
    done = cluster.run(host, words)
    return f"{done.returncode} {done.stdout}{done.stderr}"


def launcher(cluster: Cluster, host: str) -> list[str]:
    """Return a living launcher's command line: the stub's, which holds the port as torch's does, or that."""
    words = torchrun(cluster.host(host))
    if forks.WHOLE in os.environ:
        return words
    words[0] = stub.install(cluster.host(host))
    cluster.host(host).write("/root/train.py", b"import time\ntime.sleep(600)\n")
    where = ["--rdzv-conf=timeout=600", "--rdzv-id=job", "--log-dir=/root/logs"]
    return [*words[:-1], *where, "--monitor-interval=1", "/root/train.py"]


@pytest.fixture
def site(cluster: Cluster) -> Site:
    if cluster.lab.record().python is None:
        pytest.skip("no torch on this machine")
    return Site(cluster)


@pytest.fixture
def living(site: Site) -> Iterator[dict[str, str]]:
    """Run a launcher on each of three hosts, in the ways in which people do, and tell who holds its port."""
    cluster = site.cluster
    ssh, log, service = cluster.hosts[1:4]
    client = subprocess.Popen(
        cluster.host(ssh).ssh(launcher(cluster, ssh)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    words = shlex.join(launcher(cluster, log))
    detached = f"nohup {words} >/root/train.log 2>&1 </dev/null & sleep 0.2"
    subprocess.run(cluster.host(log).ssh([detached]), check=True, timeout=30)
    cluster.host(service).must(
        ["systemd-run", "--quiet", "--unit=train", *launcher(cluster, service)]
    )
    for host in (ssh, log, service):
        wait_for_port(cluster.host(host))
    try:
        yield {host: holder(cluster, host) for host in (ssh, log, service)}
    finally:
        client.kill()
        client.communicate()


def test_an_orphan_is_ended_and_living_jobs_stay(site: Site, living: dict[str, str]) -> None:
    cluster = site.cluster
    cluster.fault("gpu01", "orphan-torchrun")
    assert "EADDRINUSE" in one_host_run(cluster, "gpu01")
    orphan = holder(cluster, "gpu01")

    # Without being asked to, it is only found.
    told = site.remedy("apply", *APPLY, "--limit", "gpu01")
    assert told.code == 1, told.text
    (finding,) = _findings(told.document, "gpu01")
    assert (finding["kind"], finding["label"]) == ("blocked", "master-port-in-use")
    assert finding["title"] == "an orphaned process holds port 29500"
    assert "orphans.end: true" in finding["fix"]
    assert holder(cluster, "gpu01") == orphan

    (site.folder / "remedy.yaml").write_text("orphans: {end: true}\n")
    applied = site.remedy("apply", *APPLY)
    assert applied.code == 0, applied.text
    (change,) = (c for c in applied.document["plan"]["changes"] if c["remedy"] == "orphans")
    assert (change["host"], change["reversible"]) == ("gpu01", False)
    assert holder(cluster, "gpu01") == ""
    assert one_host_run(cluster, "gpu01").startswith("0 ")

    assert {host: holder(cluster, host) for host in living} == living
    reasons = {
        host: _findings(applied.document, host)[0]["evidence"][0].partition("because ")[2]
        for host in living
    }
    assert list(reasons.values()) == [
        "a daemon started it",  # sshd, whose client lives
        "it writes to /root/train.log, so it was detached on purpose",
        "it belongs to /system.slice/train.service",
    ]
    again = site.remedy("apply", *APPLY)
    assert (again.code, again.document["plan"]["changes"]) == (0, [])


def _findings(document: dict, host: str) -> list[dict]:  # type: ignore[type-arg]
    return [f for f in document["hosts"][host]["findings"] if f["remedy"] == "orphans"]
