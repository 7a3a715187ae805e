"""The second half: JAX, Lightning, Dask, Ray and mpi4py, each by its own launcher.

The catalogue was tagged before these logs were recorded (docs/catalogue.md). The hosts have to have the
programs: REMEDY_LAB_VENV names an environment with them, and ``remedy lab up --mpi`` brings Open MPI.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.corpus.frameworks import HOLD
from benchmarks.corpus.network import OPEN_MASTER
from benchmarks.corpus.scenario import GOOD, NAMED, A, B, Scenario

JAX = "python train_jax.py --coordinator {m}:29500 --process {i}"
LIGHTNING = "MASTER_ADDR={m} MASTER_PORT=29500 NODE_RANK={i} python train_lightning.py"
DASK_WORKER = "timeout 75 dask worker tcp://{m}:8786 --nworkers 1 --nthreads 1 --death-timeout 30"
DASK_HEAD = (
    "dask scheduler --port 8786 & sleep 5; dask worker tcp://{m}:8786 --nworkers 1 --nthreads 1 & "
    "python train_dask.py tcp://{m}:8786"
)
DASK_END = "; kill $(jobs -p); sleep 2; kill -9 $(jobs -p) 2>/dev/null"
RAY_END = "; timeout 20 ray stop --force >/dev/null 2>&1"
RAY_HEAD = (
    "ray start --head --port 6379 --num-cpus 1 --node-ip-address {a} --include-dashboard false "
    "--disable-usage-stats; sleep 12; python train_ray.py"
)
RAY_WORKER = (
    "sleep 9; timeout 80 ray start --address {m}:6379 --num-cpus 1 --node-ip-address {a} --block"
)
MPI = "mpirun --allow-run-as-root --oversubscribe --tag-output -n 2 "
SMALL = "mkdir -p /ckpt; mount -t tmpfs -o size=2m none /ckpt"
LOST = "ip route del default 2>/dev/null; true"
ELSEWHERE = "{h}; sed -i /127.0.1.1/d /etc/hosts; echo 127.0.0.1 gpu01 >> /etc/hosts"


def others() -> Iterator[Scenario]:
    """Every program, the lightest first."""
    yield from jax()
    yield from dask()
    yield from mpi4py()
    yield from lightning()
    yield from ray()


def makes(program: str, needs: str, seconds: int = 60) -> Callable[..., Scenario]:
    def scenario(name: str, label: str, command: str, **more: Any) -> Scenario:
        settings = {"hosts": (A, B), "setup": GOOD, "seconds": seconds, "needs": needs, **more}
        return Scenario(f"{program}-{name}", label, command, **settings)

    return scenario


def of_network(make: Callable[..., Scenario], job: str, port: int) -> Iterator[Scenario]:
    """What hosts and networks do to any program that meets at one port of the first host."""
    peers = "rank-mismatch;peer-died-timeout;unknown"
    yield make("one-of-two", "rank-mismatch", job, hosts=(A,), secondary=f"firewall-ports;{peers}")
    yield make(
        "other-alone",
        "rank-mismatch",
        job.replace("{i}", "1").replace("{m}", "10.214.{net}.11").replace("{n}", "2"),
        hosts=(B,),
        secondary=f"firewall-ports;{peers}",
    )
    yield make(
        "no-name",
        "hostname-unresolvable",
        job.replace("{i}", "1").replace("{m}", "gpu77").replace("{n}", "2"),
        hosts=(B,),
        secondary="unknown",
    )
    yield make(
        "unreachable",
        "network-unreachable",
        job.replace("{i}", "1").replace("{m}", "198.51.100.9").replace("{n}", "2"),
        hosts=(B,),
        setup={"*": LOST},
        secondary="firewall-ports;rank-mismatch;peer-died-timeout",
    )
    yield make(
        "firewall-all",
        "firewall-ports",
        job,
        fault={A: ("firewall-nftables",)},
        secondary="rank-mismatch;peer-died-timeout",
    )
    yield make(
        "firewall-ephemeral",
        "firewall-ports",
        job,
        setup={
            "*": NAMED,
            A: OPEN_MASTER.replace("29500", str(port)) + "reject with tcp reset'",
        },
        secondary="rank-mismatch;peer-died-timeout",
    )
    yield make(
        "port-taken",
        "master-port-in-use",
        job,
        only={A: HOLD.replace("PORT", str(port)) + job},
        secondary="peer-died-timeout",
    )


def of_program(make: Callable[..., Scenario], job: str) -> Iterator[Scenario]:
    """What a program does to itself, on the second of two hosts."""

    def second(words: str) -> dict[str, str]:
        return {B: f"{job} {words}"}

    yield make("good", "healthy", job)
    yield make(
        "raise",
        "application-error",
        job,
        only=second("--fail raise"),
        alone={A: "peer-died-timeout", B: "application-error"},
    )
    yield make(
        "kill",
        "unknown",
        job,
        only=second("--fail kill"),
        secondary="host-oom;peer-died-timeout",
        alone={A: "peer-died-timeout"},
    )
    yield make(
        "stall",
        "peer-died-timeout",
        job,
        only=second("--fail stall"),
        secondary="application-error;unknown",
    )
    yield make(
        "usage",
        "application-error",
        job,
        only={A: job + " --learning-rate 1", B: job + " --learning-rate 1"},
    )
    yield make(
        "other-python",
        "env-not-propagated",
        job,
        only={B: job.replace("python ", "/usr/bin/python3 ")},
        secondary="multi-python;missing-library;application-error",
    )


def jax() -> Iterator[Scenario]:
    """JAX's coordination service, and gloo below it."""
    make = makes("jax", "jax")
    yield from of_program(make, JAX)
    yield from of_network(make, JAX, 29500)
    yield make(
        "same-number",
        "rank-mismatch",
        JAX,
        only={B: JAX.replace("{i}", "0")},
        secondary="master-port-in-use",
    )
    yield make(
        "three-wanted",
        "rank-mismatch",
        JAX,
        only={B: JAX + " --processes 3"},
        secondary="peer-died-timeout;application-error",
    )
    yield make(
        "data",
        "storage-fault",
        JAX + " --data /fsx/shards.txt",
        setup={"*": NAMED, A: "mkdir /fsx; echo shard > /fsx/shards.txt"},
        secondary="application-error;env-not-propagated",
    )
    yield make(
        "disk",
        "disk-full",
        JAX + " --save /ckpt",
        setup={"*": NAMED + "; mkdir -p /ckpt", B: SMALL},
    )
    yield make(
        "shape",
        "application-error",
        JAX,
        only={B: JAX + " --fail shape"},
        secondary="peer-died-timeout;unknown",
    )
    yield make(
        "loopback",
        "loopback-hostname",
        JAX,
        setup={"*": NAMED, B: "hostname " + ELSEWHERE},
        only={B: JAX.replace("{m}", "gpu01")},
        secondary="firewall-ports;rank-mismatch",
    )


def lightning() -> Iterator[Scenario]:
    """Lightning's Trainer on two hosts."""
    make = makes("lightning", "lightning", 75)
    yield from of_program(make, LIGHTNING)
    yield from of_network(make, LIGHTNING, 29500)
    yield make(
        "batch",
        "application-error",
        LIGHTNING,
        only={B: LIGHTNING + " --fail batch"},
        alone={B: "application-error"},
    )
    yield make(
        "interface", "wrong-interface", LIGHTNING, only={B: "GLOO_SOCKET_IFNAME=bond7 " + LIGHTNING}
    )
    yield make(
        "disk",
        "disk-full",
        LIGHTNING + " --save /ckpt",
        setup={"*": NAMED + "; mkdir -p /ckpt; mount -t tmpfs -o size=8k none /ckpt"},
    )
    yield make(
        "shm",
        "shm-too-small",
        LIGHTNING + " --workers 2",
        setup={"*": NAMED + "; mount -o remount,size=4k /dev/shm"},
    )


def dask() -> Iterator[Scenario]:
    """Dask's scheduler and client on the first host, a worker on each."""
    make = makes("dask", "distributed", 90)

    def run(name: str, label: str, words: str = "", **more: Any) -> Scenario:
        head = DASK_HEAD + words + DASK_END
        return make(name, label, head, only={B: DASK_WORKER, **more.pop("only", {})}, **more)

    yield run("good", "healthy")
    yield run("raise", "application-error", " --fail raise")
    yield run("kill", "unknown", " --fail kill", secondary="host-oom;peer-died-timeout")
    yield run("disk", "disk-full", " --fail disk", setup={"*": NAMED + "; " + SMALL})
    yield run("data", "application-error", " --fail data", secondary="storage-fault")
    yield run(
        "one-of-two", "rank-mismatch", hosts=(A,), secondary="firewall-ports;peer-died-timeout"
    )
    yield run(
        "firewall-all",
        "firewall-ports",
        fault={A: ("firewall-nftables",)},
        secondary="rank-mismatch",
    )
    yield run(
        "port-taken",
        "master-port-in-use",
        only={A: HOLD.replace("PORT", "8786") + DASK_HEAD + DASK_END},
        secondary="firewall-ports;rank-mismatch",
    )
    worker = DASK_WORKER.replace("75", "20")
    for name, label, address, second in (
        ("no-name", "hostname-unresolvable", "gpu77", "unknown"),
        (
            "other-alone",
            "rank-mismatch",
            "10.214.{net}.11",
            "firewall-ports;peer-died-timeout;unknown",
        ),
        ("unreachable", "network-unreachable", "198.51.100.9", "firewall-ports;rank-mismatch"),
    ):
        yield make(
            name,
            label,
            worker.replace("{m}", address),
            hosts=(B,),
            setup={"*": LOST},
            secondary=second,
        )
    yield make(
        "client-alone",
        "firewall-ports",
        "python train_dask.py tcp://10.214.{net}.12:8786",
        hosts=(A,),
        secondary="rank-mismatch;peer-died-timeout;unknown",
    )


def mpi4py() -> Iterator[Scenario]:
    """mpi4py with Debian's Open MPI, two ranks on one host."""

    def one(name: str, label: str, words: str = "", launcher: str = MPI, **more: Any) -> Scenario:
        return Scenario(
            f"mpi4py-{name}",
            label,
            f"{launcher}python train_mpi4py.py {words}",
            needs="mpi4py",
            seconds=40,
            **more,
        )

    yield one("good", "healthy")
    yield one("good-times", "healthy", launcher=MPI + "--timestamp-output ")
    for fail, label, second in (
        ("raise", "application-error", ""),
        ("abort", "application-error", "peer-died-timeout;unknown"),
        ("kill", "unknown", "host-oom;peer-died-timeout"),
        ("segv", "application-error", ""),
        ("exit", "application-error", ""),
        ("truncate", "application-error", ""),
        ("stall", "unknown", "peer-died-timeout;application-error"),
    ):
        yield one(fail, label, f"--fail {fail}", secondary=second)
    yield one("disk", "disk-full", "--fail disk", setup={"*": SMALL})
    yield one(
        "interface",
        "wrong-interface",
        launcher=MPI + "--mca btl tcp,self --mca btl_tcp_if_include eth9 ",
        secondary="mpi-nic-mismatch",
    )
    yield one("transport", "mpi-nic-mismatch", launcher=MPI + "--mca pml yalla ")
    yield one(
        "session",
        "disk-full",
        launcher="TMPDIR=/ckpt " + MPI,
        setup={"*": "mkdir /ckpt; mount -t tmpfs -o size=4k,nr_inodes=2 none /ckpt"},
        secondary="storage-fault",
    )
    yield one(
        "read-only",
        "storage-fault",
        launcher="TMPDIR=/ckpt " + MPI,
        setup={"*": "mkdir /ckpt; mount -t tmpfs -o ro none /ckpt"},
        secondary="disk-full",
    )
    yield one("root", "application-error", launcher=MPI.replace("--allow-run-as-root ", ""))
    yield Scenario(
        "mpi4py-other-python",
        "env-not-propagated",
        MPI + "/usr/bin/python3 train_mpi4py.py",
        needs="mpi4py",
        secondary="multi-python;application-error;missing-library",
    )


def ray() -> Iterator[Scenario]:
    """A Ray cluster of two hosts, and a job on the first."""
    make = makes("ray", "ray", 110)

    def run(name: str, label: str, words: str = "", **more: Any) -> Scenario:
        return make(
            name,
            label,
            RAY_HEAD + words + RAY_END,
            only={B: RAY_WORKER, **more.pop("only", {})},
            **more,
        )

    yield run("good", "healthy")
    yield run("raise", "application-error", " --fail raise")
    yield run("kill", "unknown", " --fail kill", secondary="host-oom;peer-died-timeout")
    yield run("exit", "application-error", " --fail exit", secondary="peer-died-timeout;unknown")
    yield run("data", "application-error", " --fail data", secondary="storage-fault")
    yield run("disk", "disk-full", " --fail disk", setup={"*": NAMED + "; " + SMALL})
    yield run("one-of-two", "rank-mismatch", hosts=(A,), secondary="firewall-ports;unknown")
    yield run(
        "firewall-all",
        "firewall-ports",
        fault={A: ("firewall-nftables",)},
        secondary="rank-mismatch",
    )
    yield run(
        "port-taken",
        "master-port-in-use",
        only={A: HOLD.replace("PORT", "6379") + RAY_HEAD + RAY_END},
        secondary="stale-process",
    )
    worker = "timeout 40 ray start --address {m}:6379 --num-cpus 1 --block"
    yield make("no-name", "hostname-unresolvable", worker.replace("{m}", "gpu77"), hosts=(B,))
    yield make(
        "other-alone",
        "firewall-ports",
        worker.replace("{m}", "10.214.{net}.11"),
        hosts=(B,),
        secondary="rank-mismatch;peer-died-timeout",
    )
