"""Jobs by the launchers that people use, on hosts that `remedy apply` has put right and nothing else has.

Firewalls of two makes drop all that comes in. What is typed is what the launchers' own documents say
(benchmarks/clients/jobs.py); no option names an interface or a port that the documents do not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.clients import jobs
from benchmarks.clients.jobs import JOBS, Job
from remedy.lab import venv
from tests.lab.conftest import clusters
from tests.lab.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("_no_leftovers")]

# An environment with Paddle and MindSpore, which scripts/test --full makes.
FRAMEWORKS = os.environ.get("REMEDY_ENGINES_VENV", "")
WALLS = (
    ("firewall-nftables", "firewall-iptables-outgoing"),
    ("firewall-ufw",),
    ("firewall-iptables",),
)
# That wall as it is where ssh is for the management network alone.
ONLY_MANAGED = "ufw delete allow 22/tcp && ufw allow in on eth0 to any port 22 proto tcp"
LEFT = ("stale-launch-variables", "wrong-mpi-interface")
BY = {True: "by name", False: "by address"}


@contextmanager
def closed(folder: pytest.TempPathFactory, name: str, count: int) -> Iterator[Site]:
    """Give hosts that were closed, and one with left-overs of old jobs, as ``apply`` leaves them."""
    with clusters(folder.mktemp(name)) as make:
        site = Site(make(count=count, mpi=True))
        for host, wall in zip(site.cluster.hosts, WALLS, strict=False):
            site.cluster.fault(host, *wall)
        site.cluster.host(site.cluster.hosts[1]).must(ONLY_MANAGED)
        site.cluster.fault(site.cluster.hosts[-1], *LEFT)
        seen = site.remedy("check", "--json").stdout
        for line in (
            "PADDLE_TRAINER_ENDPOINTS=10.9.9.8:6170",
            "RANK=1",
            "if_include=eth9",
            "PET_RDZV_BACKEND",
        ):
            assert line in seen, line
        applied = site.remedy("apply", "--yes", "--no-verify", "--json")
        assert applied.code == 0, applied.text
        (site.folder / "run").write_text(applied.document["run"], encoding="utf-8")
        again = site.remedy("apply", "--yes", "--no-verify", "--json")
        assert (again.code, again.document["plan"]["changes"]) == (0, [])
        jobs.prepare([site.cluster.host(name) for name in site.cluster.hosts])
        yield site


@pytest.fixture(scope="module")
def site(_no_leftovers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two closed hosts with torch and Open MPI."""
    with closed(tmp_path_factory, "clients", 2) as made:
        if not made.cluster.lab.record().python:
            pytest.skip("no torch for the hosts: install the extra `torch`")
        yield made


@pytest.fixture(scope="module")
def frameworks(_no_leftovers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Three closed hosts with Paddle and MindSpore."""
    if not FRAMEWORKS:
        pytest.skip("Paddle and MindSpore weigh 3.5 GB: scripts/test --full installs them")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(venv.VARIABLE, FRAMEWORKS)
        with closed(tmp_path_factory, "frameworks", 3) as made:
            yield made


def cases(*names: str) -> list[object]:
    chosen = [job for job in JOBS if job.framework in names]
    assert chosen
    return [
        # By name is what apply makes work; by address is left to --full where a name will do, and so is the
        # second way to meet of torchrun.
        pytest.param(
            job,
            by_name,
            id=f"{job.name}, {BY[by_name]}",
            marks=pytest.mark.full if (job.names and not by_name) or "c10d" in job.name else (),
        )
        for job in chosen
        for by_name in ((True, False) if job.names else (False,))
    ]


def assert_it_runs(site: Site, job: Job, *, by_name: bool, seconds: float) -> None:
    hosts = [site.cluster.host(name) for name in site.cluster.hosts]
    outcome = jobs.run(job, hosts, by_name=by_name, seconds=seconds)
    assert outcome.good, outcome.output


@pytest.mark.parametrize(("job", "by_name"), cases("torch", "mpi"))
def test_a_job_runs_as_its_document_says(site: Site, job: Job, by_name: bool) -> None:
    assert_it_runs(site, job, by_name=by_name, seconds=120)


def test_ports_that_no_framework_needs_stay_closed(site: Site) -> None:
    head, *others = (site.cluster.host(name) for name in site.cluster.hosts)
    head.must("setsid python3 -m http.server 20000 >/dev/null 2>&1 </dev/null & sleep 2")
    local = "timeout 5 python3 -c 'import socket; socket.create_connection((\"{}\", 20000), 3)'"
    address = head.record.cluster_address
    assert head.run(local.format(address)).returncode == 0
    assert others
    for other in others:
        assert other.run(local.format(address)).returncode != 0


def test_taking_it_back_gives_every_line_back(site: Site) -> None:
    """Last in this file: the hosts are closed again afterwards."""
    victim = site.cluster.hosts[-1]
    environment = site.cluster.host(victim).read("/etc/environment").decode()
    assert "#remedy disabled# PADDLE_TRAINER_ID=1" in environment
    assert "#remedy disabled# OMPI_MCA_btl_tcp_if_include=eth9" in environment
    run = (site.folder / "run").read_text(encoding="utf-8")
    back = site.remedy("rollback", run, "--yes")
    assert back.code == 0, back.text
    environment = site.cluster.host(victim).read("/etc/environment").decode()
    assert "remedy disabled" not in environment
    assert "\nPADDLE_TRAINER_ID=1\n" in environment


@pytest.mark.full
@pytest.mark.parametrize(("job", "by_name"), cases("paddle", "mindspore"))
def test_a_job_of_paddle_or_mindspore_runs_as_its_document_says(
    frameworks: Site, job: Job, by_name: bool
) -> None:
    assert_it_runs(frameworks, job, by_name=by_name, seconds=400)


@pytest.mark.full
@pytest.mark.parametrize("engine", ["paddle", "mindspore"])
def test_the_proof_by_the_framework_itself_passes_behind_firewalls(
    frameworks: Site, engine: str
) -> None:
    answer = frameworks.remedy("verify", "--engine", engine, "--json", seconds=500)
    assert answer.code == 0, answer.text
    assert answer.document["verdict"]["engine"] == engine
