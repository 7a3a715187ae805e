"""Measure what each launcher listens on, and write it into the data file that the firewall remedy works from.

Needs root, a lab that `remedy apply` has put right, and the frameworks in the environment of its hosts::

    remedy lab --name clients up -n 3 --mpi && remedy apply INVENTORY --yes --no-verify
    python -m benchmarks.clients clients

Rows of launchers that the hosts lack stay as they are.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.clients import jobs
from benchmarks.clients.jobs import FOLDER, JOBS, Job
from remedy.firewall.ports import LISTENERS
from remedy.lab.cluster import Lab
from remedy.lab.host import Host
from remedy.lab.paths import LabPaths

VERSIONS = {
    "torch": 'python -c \'import importlib.metadata as m; print("torch", m.version("torch"))\'',
    "mpi": "mpirun --version | sed -n '1s/.*(Open MPI) /Open MPI /p'",
    "paddle": 'python -c \'import importlib.metadata as m; print("paddlepaddle", m.version("paddlepaddle"))\'',
    "mindspore": 'python -c \'import importlib.metadata as m; print("mindspore", m.version("mindspore"))\'',
}
STOP = f"{FOLDER}/stop"


def version(host: Host, job: Job) -> str:
    """Return the framework's name and version on a host; "" where it is not there."""
    line = f"PATH={str(host.lab.python).rpartition('/')[0]}:$PATH; {VERSIONS[job.framework]}"
    return host.run(line).stdout.strip()


def measure(job: Job, hosts: Sequence[Host], ranks: int) -> dict[str, Any]:
    """Run a job, and return what its processes listened on.

    Raises:
        RuntimeError: the job failed, so that what it listened on is not all.
    """
    watch = f"rm -rf {STOP}; timeout 1000 {hosts[0].lab.python} {FOLDER}/watch.py {STOP}"
    with ThreadPoolExecutor(len(hosts)) as pool:
        watched = [pool.submit(host.run, watch, seconds=1020) for host in hosts]
        try:
            outcome = jobs.run(job, hosts, by_name=job.names, ranks=ranks, seconds=900)
        finally:
            for host in hosts:
                host.must(f"touch {STOP}")
        seen = [json.loads(future.result().stdout) for future in watched]
    if not outcome.good:
        raise RuntimeError(f"{job.name}: {outcome.output}")
    low, high = map(int, hosts[0].must("cat /proc/sys/net/ipv4/ip_local_port_range").split())
    ports = sorted({row["port"] for rows in seen for row in rows})
    return {
        "job": job.name,
        "framework": job.framework,
        "version": version(hosts[0], job),
        "document": job.document,
        "command": job.command,
        "hosts": len(hosts),
        "ranks": ranks,
        "kernel_range": [low, high],
        "ports": ports,
        "by_host": [sorted({row["port"] for row in rows}) for rows in seen],
    }


def main() -> None:
    """Measure the jobs whose framework the hosts have, and keep the rows of the others."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clients")
    parser.add_argument("lab", help="the name of a lab")
    parser.add_argument("--ranks", type=int, default=1, help="on each host")
    parser.add_argument("--hosts", type=int, default=3, help="how many of the lab's")
    parser.add_argument("--only", default="", help="jobs whose name holds this text")
    parser.add_argument("--show", action="store_true", help="print, and write no file")
    arguments = parser.parse_args()
    hosts = Lab(LabPaths.of(arguments.lab)).hosts()[: arguments.hosts]
    jobs.prepare(hosts)
    document = json.loads(LISTENERS.read_text(encoding="utf-8")) if LISTENERS.exists() else {}
    rows = {(row["job"], row["ranks"]): row for row in document.get("measured", ())}
    for job in JOBS:
        if arguments.only not in job.name or not version(hosts[0], job):
            continue
        row = measure(job, hosts, arguments.ranks)
        print(f"{job.name}: {row['version']}: {row['by_host']}", file=sys.stderr)
        rows[job.name, arguments.ranks] = row
    document["measured"] = [rows[key] for key in sorted(rows)]
    if not arguments.show:
        LISTENERS.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
