"""Failures to start (ports, ssh, the environment, the number of ranks), and what mpirun prints."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.corpus.scenario import NAMED, RUN, B, Scenario, one, two


def launch() -> Iterator[Scenario]:
    """Ports that are taken, ssh, the environment, the number of ranks, the clock."""
    hold = (
        '(setsid python -c \'import socket,time; s=socket.socket(); s.bind(("",29500)); s.listen(); '
        "time.sleep(25)' >/dev/null 2>&1 &); sleep 1; "
    )
    yield one(
        "port-static",
        "master-port-in-use",
        hold + "torchrun --nproc-per-node 2 --master-port 29500 train.py",
    )
    yield one(
        "port-env",
        "master-port-in-use",
        hold + "MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 RANK=0 WORLD_SIZE=2 python train.py",
    )
    yield one(
        "port-c10d",
        "master-port-in-use",
        hold
        + "torchrun --nnodes 1 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint localhost:29500 "
        "--rdzv-conf timeout=10,join_timeout=10 train.py",
        secondary="peer-died-timeout",
    )
    ssh = "ssh -o BatchMode=yes -o ConnectTimeout=5 "
    yield Scenario(
        "ssh-host-key", "ssh-launch-failure", ssh + "10.214.{net}.12 torchrun --nnodes 2 train.py"
    )
    yield Scenario(
        "ssh-no-key",
        "ssh-launch-failure",
        ssh + "-o StrictHostKeyChecking=no 10.214.{net}.12 torchrun --nnodes 2 train.py",
    )
    yield Scenario(
        "ssh-no-name",
        "hostname-unresolvable",
        ssh + "gpu77 torchrun --nnodes 2 train.py",
        secondary="ssh-launch-failure",
    )
    yield Scenario(
        "ssh-closed",
        "ssh-launch-failure",
        ssh + "-p 2222 10.214.{net}.12 torchrun --nnodes 2 train.py",
        secondary="firewall-ports",
    )
    yield Scenario(
        "no-torchrun",
        "env-not-propagated",
        "env -i bash -c 'torchrun --nproc-per-node 2 train.py'",
        secondary="application-error",
    )
    yield two(
        "module-on-one-host",
        "env-not-propagated",
        "PYTHONPATH=/srv/lib " + RUN + " -m job",
        setup={"*": NAMED + "; mkdir -p /srv/lib; cp train.py /srv/lib/job.py"},
        only={B: RUN + " -m job"},
        secondary="application-error;multi-python",
        seconds=90,
    )
    yield one(
        "ranks-too-many",
        "unknown",  # it only waits: nothing is told
        "torchrun --nnodes 2 --node-rank 2 --master-addr 127.0.0.1 train.py",
        secondary="rank-mismatch",
    )
    yield Scenario(
        "ranks-one-of-two",
        "rank-mismatch",
        "MASTER_ADDR=127.0.0.1 MASTER_PORT=29511 RANK=0 WORLD_SIZE=2 python train.py --timeout 6",
        secondary="firewall-ports;peer-died-timeout;unknown",
    )
    yield Scenario(
        "clock-make",
        "clock-skew",
        "mkdir -p k; cd k; printf 'a: b\\n\\tcp b a\\n' > Makefile; touch -d '+2 hours' b; make",
    )


MPI = "mpirun --allow-run-as-root "


def mpi() -> Iterator[Scenario]:
    """Debian's Open MPI (``remedy lab up --mpi``): what mpirun itself prints."""
    raised = "python -c 'import os; raise ValueError(os.environ[\"OMPI_COMM_WORLD_RANK\"])'"
    yield Scenario("mpi-slots", "rank-mismatch", MPI + "-n 99 hostname")
    yield Scenario(
        "mpi-no-name",
        "hostname-unresolvable",
        MPI + "--host gpu77 -n 1 hostname",
        secondary="ssh-launch-failure",
    )
    yield Scenario(
        "mpi-host-key",
        "ssh-launch-failure",
        MPI + "--host 10.214.{net}.12 -n 1 hostname",
    )
    yield Scenario(
        "mpi-interface",
        "wrong-interface",
        MPI + "--mca oob_tcp_if_include eth9 --host 10.214.{net}.12 -n 1 hostname",
        secondary="mpi-nic-mismatch",
    )
    yield Scenario("mpi-raise", "application-error", MPI + "--tag-output -n 2 " + raised)
    yield Scenario(
        "mpi-killed",
        "unknown",
        MPI + "-n 2 sh -c 'kill -9 $$'",
        secondary="host-oom;peer-died-timeout",
    )
    yield Scenario(
        "mpi-no-program",
        "application-error",
        MPI + "-n 1 trainer --steps 40",
        secondary="env-not-propagated",
    )
    yield Scenario(
        "mpi-good", "healthy", MPI + "--tag-output -n 2 python -c 'print(\"step 1 loss 0.5\")'"
    )
