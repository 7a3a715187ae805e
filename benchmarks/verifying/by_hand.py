"""Launching the worker of the verification as one would by hand: ssh to each host, torchrun, wait."""

from __future__ import annotations

import json
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.harness.cluster import Cluster, each
from benchmarks.harness.run import BenchmarkError
from remedy.lab.host import Host
from remedy.verify.allreduce.engines import ENGINES
from remedy.verify.allreduce.plan import RankPlan, plan_ranks
from remedy.verify.allreduce.script import config
from remedy.verify.hosts import Participant
from remedy.verify.onhost.agent import unload
from remedy.verify.onhost.engines import torch
from remedy.verify.packing import sources

FOLDER = "/root/by-hand"
SECONDS = 300


def plan(cluster: Cluster) -> RankPlan:
    """Plan one rank a host, as remedy does it."""
    lab = cluster.lab.record()
    return plan_ranks(
        [
            Participant(name=host.name, address=host.cluster_address, python=lab.python)
            for host in lab.hosts
        ]
    )


def place(cluster: Cluster) -> None:
    """Put the worker onto every host."""
    with tempfile.TemporaryDirectory() as folder:
        unload(sources(ENGINES["torch"].cargo), {"directory": folder}, torch.WORKER)
        files = {path: path.relative_to(folder) for path in Path(folder).rglob("*.py")}
        contents = {
            # The rank's file names the folder that it lies in.
            f"{FOLDER}/{name}": path.read_bytes().replace(folder.encode(), FOLDER.encode())
            for path, name in files.items()
        }

    def write(host: Host) -> None:
        folders = sorted({str(Path(path).parent) for path in contents})
        host.must(["mkdir", "-p", *folders])
        for path, data in contents.items():
            host.write(path, data)

    each(cluster.lab.hosts(), write)


def launch(cluster: Cluster) -> float:
    """Start torchrun on all hosts, and wait; returns the seconds from the first ssh to the last one's end.

    Raises:
        BenchmarkError: a rank left no result.
    """
    ranks = plan(cluster)
    hosts = cluster.lab.hosts()
    for node, host in enumerate(hosts):
        configuration = {**config(ranks, node), "directory": FOLDER, "began": time.monotonic()}
        host.must(f"rm -rf {FOLDER}/*.json {FOLDER}/logs {FOLDER}/inside")
        host.write(f"{FOLDER}/config.json", json.dumps(configuration).encode())
    began = time.monotonic()
    clients = [
        subprocess.Popen(
            ["ssh", "-F", str(cluster.ssh_config), host.name, _command(ranks, node)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for node, host in enumerate(hosts)
    ]
    for client in clients:
        client.wait(SECONDS)
    seconds = time.monotonic() - began
    without = [
        h.name for h in hosts if h.run(["test", "-s", f"{FOLDER}/result.0.json"]).returncode != 0
    ]
    if without:
        raise BenchmarkError(f"by hand: no result on {', '.join(without)}")
    return seconds


def _command(ranks: RankPlan, node: int) -> str:
    host = ranks.hosts[node]
    words = [host.python or "python3", "-m", "torch.distributed.run"]
    words += ["--nnodes", str(len(ranks.hosts)), "--node-rank", str(node), "--nproc-per-node", "1"]
    words += ["--master-addr", ranks.hosts[0].address, "--master-port", str(ranks.port)]
    words += ["--local-addr", host.address, "--max-restarts", "0", "--monitor-interval", "0.1"]
    words += ["--redirects", "3", "--log-dir", f"{FOLDER}/logs"]
    words += [f"{FOLDER}/worker.py", FOLDER]
    environment = [
        "OMP_NUM_THREADS=1",
        "PYTHONDONTWRITEBYTECODE=1",
        "TORCH_ELASTIC_WORKER_IDENTICAL=1",
    ]
    return shlex.join(["env", *environment, *words])
