"""Ports that an operator chose for Open MPI: apply opens these and no more, and mpirun runs over them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from benchmarks.clients import jobs
from remedy.lab.host import Host
from tests.lab.conftest import Cluster
from tests.lab.site import Site, wait_for

pytestmark = pytest.mark.lab

CHOSEN = range(20000, 20050)
WALLS = ("firewall-nftables", "firewall-iptables")
LINES = {
    "/etc/openmpi/openmpi-mca-params.conf": "btl_tcp_port_min_v4 = 20000\nbtl_tcp_port_range_v4 = 50\n",
    "/etc/environment": "OMPI_MCA_btl_tcp_port_min_v4=20000\nOMPI_MCA_btl_tcp_port_range_v4=50\n",
    "/root/.openmpi/mca-params.conf": "btl_tcp_port_min_v4 = 20000\nbtl_tcp_port_range_v4 = 50\n",
}
(MPIRUN,) = (job for job in jobs.JOBS if job.launcher == "mpirun")
FULL = pytest.mark.full
CONNECT = "timeout 5 python3 -c 'import socket; socket.create_connection((\"{}\", {}), 3)'"


def choose(hosts: list[Host], path: str) -> None:
    for host in hosts:
        host.must(f"mkdir -p {path.rpartition('/')[0]}; touch {path}")
        # The first line ends what is there: Debian's file has no line break at its end.
        host.must(f"cat >>{path}", stdin=f"\n{LINES[path]}")


def listeners(hosts: list[Host], run: Callable[[], jobs.Outcome]) -> Mapping[str, list[int]]:
    """Run a job and return the ports on which its ranks listened, by host."""
    watch = "rm -f stop; setsid python3 watch.py stop >watched 2>&1 </dev/null &"
    for host in hosts:
        host.must(f"cd {jobs.FOLDER}; {watch}")
    outcome = run()
    assert outcome.good, outcome.output
    ports = {}
    for host in hosts:
        host.must(f"touch {jobs.FOLDER}/stop")
        wait_for(lambda h=host: h.run(f"test -s {jobs.FOLDER}/watched").returncode == 0, 30)  # type: ignore[misc]
        seen: list[dict[str, Any]] = json.loads(host.must(f"cat {jobs.FOLDER}/watched"))
        ports[host.name] = [
            listener["port"] for listener in seen if "sum_mpi.py" in " ".join(listener["program"])
        ]
    return ports


def serve(hosts: list[Host], ports: Iterable[int]) -> None:
    """Have a server listen on each host's ports; it answers the host itself."""
    for host in hosts:
        for port in ports:
            host.must(f"setsid python3 -m http.server {port} >/dev/null 2>&1 </dev/null &")
            own = CONNECT.format(host.record.cluster_address, port)
            wait_for(lambda h=host, c=own: h.run(c).returncode == 0, 20)  # type: ignore[misc]


def reached(hosts: list[Host], port: int) -> int:
    """Return how many of two hosts reach the other's port."""
    pairs = ((hosts[0], hosts[1]), (hosts[1], hosts[0]))
    calls = [
        source.run(CONNECT.format(target.record.cluster_address, port)) for source, target in pairs
    ]
    return sum(call.returncode == 0 for call in calls)


@pytest.mark.parametrize(
    "path",
    [path if path.startswith("/etc/openmpi") else pytest.param(path, marks=FULL) for path in LINES],
)
def test_mpirun_runs_over_the_ports_that_were_chosen(
    new_cluster: Callable[..., Cluster], path: str
) -> None:
    cluster = new_cluster(count=2, mpi=True)
    site, hosts = Site(cluster), [cluster.host(name) for name in cluster.hosts]
    choose(hosts, path)
    jobs.prepare(hosts)
    for host, wall in zip(hosts, WALLS, strict=True):
        cluster.fault(host.name, wall)
    edges = (CHOSEN[0] - 1, CHOSEN[-1], CHOSEN[-1] + 1)
    serve(hosts, edges)
    assert not any(reached(hosts, port) for port in edges), "the walls let it through"

    applied = site.remedy("apply", "--yes", "--no-verify", "--json")
    assert applied.code == 0, applied.text
    for host in hosts:
        assert f"\n{LINES[path]}" in host.must(f"cat {path}"), "what was chosen stays as it is"

    def run() -> jobs.Outcome:
        return jobs.run(MPIRUN, hosts, by_name=False, seconds=90)

    ports = listeners(hosts, run)
    assert set(ports) == set(cluster.hosts)
    for name, numbers in ports.items():
        assert any(port in CHOSEN for port in numbers), (name, numbers)

    # The last of the chosen ports is open, and those beside them are closed still.
    assert [reached(hosts, port) for port in edges] == [0, 2, 0]
