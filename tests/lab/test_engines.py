"""Engines other than torch, over real hosts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.conftest import clusters
from tests.lab.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("_no_leftovers")]

HOSTS = 3
# What a run may leave behind: its folder, Open MPI's session folder and shared memory, its processes.
LOOK = (
    "ls -d /tmp/remedy-verify-* /tmp/ompi.* /dev/shm/vader* 2>/dev/null;"
    " pgrep -af '[o]rted|[m]pirun|[w]orker.py|[_]openmpi'; true"
)


@pytest.fixture(scope="module")
def mpi(_no_leftovers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Right hosts with Open MPI; their cluster interfaces are called differently."""
    with clusters(tmp_path_factory.mktemp("mpi")) as make:
        site = Site(make(count=HOSTS, mpi=True))
        if not site.cluster.lab.record().python:
            pytest.skip("no Python for the hosts: install the extra `torch`")
        applied = site.remedy("apply", "--yes", "--no-verify")
        assert applied.code == 0, applied.text
        yield site


def leftovers(site: Site) -> dict[str, str]:
    found = {host: site.cluster.run(host, LOOK).stdout.strip() for host in site.cluster.hosts}
    return {host: text for host, text in found.items() if text}


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
    assert "apt-get install openmpi-bin" in verdict["causes"][0]["next_step"]
    assert {rung["name"] for rung in verdict["rungs"]} == {"facts", "engine"}


def test_a_host_that_hangs_ends_in_time_and_is_named(mpi: Site) -> None:
    victim = mpi.cluster.hosts[2]
    spec = mpi.folder / "short.yaml"
    spec.write_text("verify: {engine: mpi, deadline: 15, reach: false, isolate: false}\n")
    interface = mpi.cluster.lab.record().host(victim).cluster_interface
    mpi.cluster.host(victim).must(
        ["nft", "-f", "-"],
        stdin="table inet test { chain input { type filter hook input priority 0; policy accept;\n"
        f'iifname "{interface}" drop\n}}\n}}\n',
    )
    try:
        answer = mpi.remedy("verify", "--spec", str(spec), "--json")
    finally:
        mpi.cluster.host(victim).must("nft delete table inet test")
    verdict = answer.document["verdict"]
    assert answer.code == 3
    assert victim in verdict["reason"], verdict["reason"]
    assert not leftovers(mpi)
