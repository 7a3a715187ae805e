"""Engines other than torch, over real hosts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from remedy.lab import venv
from remedy.verify.allreduce.engines import ENGINES
from remedy.verify.packing import sources
from tests.lab import forks
from tests.lab.conftest import clusters
from tests.lab.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("_no_leftovers")]

HOSTS = 3
DATA = Path(__file__).parent / "data"
PROGRAM = "/usr/local/bin/all_reduce_perf"
# An environment with Paddle and MindSpore, which scripts/test --full makes.
FRAMEWORKS = os.environ.get("REMEDY_ENGINES_VENV", "")
# What a run may leave behind: its folder, Open MPI's session folder and shared memory, its processes.
LOOK = (
    "ls -d /tmp/remedy-verify-* /tmp/ompi.* /dev/shm/vader* 2>/dev/null;"
    " pgrep -af '[o]rted|[m]pirun|[w]orker.py|[_]openmpi|[d]istributed.launch|[c]luster.run|[t]ail -f'; true"
)


@pytest.fixture(scope="module")
def mpi(_no_leftovers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Right hosts with Open MPI; their cluster interfaces are called differently."""
    with clusters(tmp_path_factory.mktemp("mpi")) as make:
        site = Site(make(count=HOSTS, mpi=True))
        if not site.cluster.lab.record().python:
            pytest.skip("no Python for the hosts: install the extra `torch`")
        if forks.WHOLE not in os.environ:
            # The sum of larger ones takes half of all the time; with --full they are measured.
            spec = "verify: {sizes: [8, 65536]}\n"
            (site.folder / "remedy.yaml").write_text(spec, encoding="utf-8")
        applied = site.remedy("apply", "--yes", "--engine", "mpi", "--json")
        assert applied.code == 0, applied.text
        verdict = applied.document["verdict"]
        assert (verdict["engine"], verdict["passed"]) == ("mpi", True)
        yield site


def leftovers(site: Site) -> dict[str, str]:
    found = {host: site.cluster.run(host, LOOK).stdout.strip() for host in site.cluster.hosts}
    return {host: text for host, text in found.items() if text}


@contextmanager
def cut_off(site: Site, victim: str) -> Iterator[None]:
    """Drop all that comes to one host from its peers."""
    host = site.cluster.host(victim)
    interface = site.cluster.lab.record().host(victim).cluster_interface
    host.must(
        ["nft", "-f", "-"],
        stdin="table inet test { chain input { type filter hook input priority 0; policy accept;\n"
        f'iifname "{interface}" drop\n}}\n}}\n',
    )
    try:
        yield
    finally:
        host.must("nft delete table inet test")


def test_mpirun_proves_all_hosts_without_ssh_between_them(mpi: Site) -> None:
    records = mpi.cluster.lab.record().hosts
    assert len({one.cluster_interface for one in records}) > 1
    answer = mpi.remedy("verify", "--engine", "mpi", "--json")
    verdict = answer.document["verdict"]
    assert answer.code == 0, answer.text
    assert (verdict["engine"], verdict["backend"]) == ("mpi", "mpi")
    assert verdict["world_size"] == verdict["hosts"] == HOSTS
    assert verdict["sum_exact"]
    assert verdict["bandwidth"]
    assert all(row["out_of_place_busbw"] > 0 for row in verdict["bandwidth"])
    assert all(version.startswith("Open MPI 4.") for version in verdict["software"])
    for one in records:
        (line,) = (text for text in verdict["evidence"] if text.startswith(f"{one.name}:"))
        assert f"via {one.cluster_address} " in line, "the traffic took another interface"
    assert not leftovers(mpi)


def test_a_host_without_open_mpi_is_named_before_anything_runs(mpi: Site) -> None:
    bare = mpi.cluster.hosts[1]
    mpi.cluster.host(bare).must("mv /usr/bin/orted /usr/bin/orted.away")
    try:
        answer = mpi.remedy("verify", "--engine", "mpi", "--json")
    finally:
        mpi.cluster.host(bare).must("mv /usr/bin/orted.away /usr/bin/orted")
    verdict = answer.document["verdict"]
    assert answer.code == 3
    assert f"{bare}: mpirun and orted are not in its PATH" in verdict["reason"]
    assert "apt-get install openmpi-bin" in verdict["culprits"][0]["next_step"]
    assert {rung["name"] for rung in verdict["rungs"]} == {"facts", "engine"}


@pytest.mark.full
def test_a_host_that_hangs_ends_in_time_and_is_named(mpi: Site) -> None:
    victim = mpi.cluster.hosts[2]
    spec = mpi.folder / "short.yaml"
    spec.write_text("verify: {engine: mpi, deadline: 15, reach: false, isolate: false}\n")
    with cut_off(mpi, victim):
        answer = mpi.remedy("verify", "--spec", str(spec), "--json")
    verdict = answer.document["verdict"]
    assert answer.code == 3
    assert victim in verdict["reason"], verdict["reason"]
    assert not leftovers(mpi)


# A rank that never comes as far as its framework: to every network test its host is as good as any.
STUCK = """
import os
import time

if {"OMPI_COMM_WORLD_RANK", "PADDLE_TRAINER_ID", "RANK_ID"} & os.environ.keys():
    time.sleep(600)
"""


def assert_the_stuck_one_is_named(site: Site, engine: str, deadline: int) -> None:
    victim = site.cluster.hosts[1]
    spec = site.folder / "search.yaml"
    spec.write_text(f"verify: {{engine: {engine}, deadline: {deadline}}}\n")
    host = site.cluster.host(victim)
    host.must("mkdir /opt/stuck && cat > /opt/stuck/sitecustomize.py", stdin=STUCK)
    host.must("echo PYTHONPATH=/opt/stuck >> /etc/environment")
    try:
        answer = site.remedy("verify", "--spec", str(spec), "--json", seconds=600)
    finally:
        host.must("sed -i /stuck/d /etc/environment && rm -r /opt/stuck")
    verdict = answer.document["verdict"]
    assert answer.code == 3
    assert [cause["name"] for cause in verdict["culprits"]] == [victim], answer.text
    assert verdict["tests"], "no smaller group was tried"
    assert not leftovers(site)


@pytest.mark.full
def test_the_culprit_is_looked_for_with_the_engine_that_failed(mpi: Site) -> None:
    assert_the_stuck_one_is_named(mpi, "mpi", 20)


@pytest.fixture
def stand_in(mpi: Site) -> Iterator[Site]:
    """Hosts with a program that prints as nccl-tests do, and a device node for one GPU."""
    text = (DATA / "all_reduce_perf.py").read_text(encoding="utf-8")
    modules = sources(ENGINES["mpi"].cargo)
    for name in mpi.cluster.hosts:
        host = mpi.cluster.host(name)
        host.must("mknod /dev/nvidia0 c 1 3")
        for module, source in modules.items():
            path = f"/usr/local/lib/stand-in/{module.replace('.', '/')}"
            path += ".py" if source else "/__init__.py"
            host.must(f"mkdir -p {Path(path).parent} && cat > {path}", stdin=source)
        host.must(f"cat > {PROGRAM} && chmod 755 {PROGRAM}", stdin=f"#!/usr/bin/python3\n{text}")
    yield mpi
    for name in mpi.cluster.hosts:
        mpi.cluster.host(name).must(f"rm -rf /usr/local/lib/stand-in /dev/nvidia0 {PROGRAM}")


@pytest.mark.full
def test_a_printed_table_is_held_against_the_ranks_that_were_started(stand_in: Site) -> None:
    """Of NCCL this shows nothing: there is no GPU."""
    spec = stand_in.folder / "nccl.yaml"
    spec.write_text("verify: {engine: nccl-tests, sizes: [8, 65536], deadline: 60}\n")
    answer = stand_in.remedy("verify", "--spec", str(spec), "--json")
    verdict = answer.document["verdict"]
    assert answer.code == 0, answer.text
    assert verdict["world_size"] == verdict["hosts"] == HOSTS
    assert [row["bytes"] for row in verdict["bandwidth"]] == [8 * 2**n for n in range(14)]
    assert not leftovers(stand_in)

    liar = stand_in.cluster.host(stand_in.cluster.hosts[0])
    liar.must(f"sed -i 's/os.getpid()/os.getpid() + 1/' {PROGRAM}")
    denied = stand_in.remedy("verify", "--spec", str(spec), "--json")
    assert denied.code == 3
    assert "not those of this run" in denied.document["verdict"]["reason"]


def test_a_host_without_all_reduce_perf_is_named_before_anything_runs(mpi: Site) -> None:
    answer = mpi.remedy("verify", "--engine", "nccl-tests", "--json")
    verdict = answer.document["verdict"]
    assert answer.code == 3
    assert "all_reduce_perf is not in its PATH" in verdict["reason"]
    assert "MPI=1" in verdict["culprits"][0]["next_step"]
    assert {rung["name"] for rung in verdict["rungs"]} == {"facts", "engine"}


@pytest.mark.full
def test_a_share_of_a_speed_that_is_not_known_fails_and_says_so(mpi: Site) -> None:
    """The lab's links are pairs of virtual cards: what they can carry nobody knows."""
    answer = mpi.remedy("verify", "--engine", "mpi", "--min-busbw", "60%", "--json")
    verdict = answer.document["verdict"]
    assert answer.code == 3
    assert verdict["sum_exact"]
    assert "give it in GB/s" in verdict["reason"]
    assert mpi.remedy("verify", "--engine", "mpi", "--min-busbw", "0.000001").code == 0
    assert mpi.remedy("verify", "--min-busbw", "fast").code == 2


@pytest.fixture(scope="module")
def frameworks(_no_leftovers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Right hosts whose Python has Paddle and MindSpore, and no torch."""
    if not FRAMEWORKS:
        pytest.skip("Paddle and MindSpore weigh 3.5 GB: scripts/test --full installs them")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(venv.VARIABLE, FRAMEWORKS)
        with clusters(tmp_path_factory.mktemp("frameworks")) as make:
            site = Site(make(count=HOSTS, mpi=True))
            applied = site.remedy("apply", "--yes", "--no-verify")
            assert applied.code == 0, applied.text
            yield site


@pytest.mark.parametrize(
    ("engine", "backend", "software"),
    [("paddle", "gloo", "paddle 3."), ("mindspore", "mccl", "mindspore 2.")],
)
def test_a_framework_proves_all_hosts_by_its_own_launcher(
    frameworks: Site, engine: str, backend: str, software: str
) -> None:
    answer = frameworks.remedy("verify", "--engine", engine, "--json", seconds=400)
    verdict = answer.document["verdict"]
    assert answer.code == 0, answer.text
    assert (verdict["engine"], verdict["backend"]) == (engine, backend)
    assert verdict["world_size"] == verdict["hosts"] == HOSTS
    assert verdict["sum_exact"]
    assert verdict["bandwidth"]
    assert [text[: len(software)] for text in verdict["software"]] == [software]
    assert not leftovers(frameworks)


def test_a_python_without_the_framework_is_told_before_anything_runs(frameworks: Site) -> None:
    spec = frameworks.folder / "bare.yaml"
    spec.write_text("verify: {engine: paddle}\n")
    inventory = frameworks.inventory.read_text(encoding="utf-8")
    changed = inventory.replace('= lab["python"]', '= "/usr/bin/python3"')
    assert changed != inventory
    frameworks.inventory.write_text(changed, encoding="utf-8")
    try:
        answer = frameworks.remedy("verify", "--spec", str(spec), "--json")
    finally:
        frameworks.inventory.write_text(inventory, encoding="utf-8")
    verdict = answer.document["verdict"]
    assert answer.code == 3
    assert "/usr/bin/python3 has no Paddle" in verdict["reason"]
    assert "Install paddlepaddle there" in verdict["culprits"][0]["next_step"]


@pytest.mark.parametrize("engine", ["paddle", "mindspore"])
def test_the_culprit_is_looked_for_with_a_frameworks_own_launcher(
    frameworks: Site, engine: str
) -> None:
    assert_the_stuck_one_is_named(frameworks, engine, 60)


def test_a_framework_that_cannot_join_ends_in_time(frameworks: Site) -> None:
    victim = frameworks.cluster.hosts[1]
    spec = frameworks.folder / "short.yaml"
    spec.write_text("verify: {engine: paddle, deadline: 15, reach: false, isolate: false}\n")
    with cut_off(frameworks, victim):
        answer = frameworks.remedy("verify", "--spec", str(spec), "--json")
    assert answer.code == 3
    assert not answer.document["verdict"]["passed"]
    assert not leftovers(frameworks)
