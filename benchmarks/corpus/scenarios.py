"""The scenarios: what is broken on which host, what is run there, and the cause that the log tells of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from remedy.lab.faults import catalogue

A, B, C = "gpu01", "gpu02", "gpu03"
RUN = "torchrun --nnodes {n} --node-rank {i} --nproc-per-node {p} --master-addr {m} --master-port 29500"
C10D = "torchrun --nnodes {n} --nproc-per-node {p} --rdzv-backend c10d --rdzv-endpoint {m}:29400 --rdzv-id j"
NAMED = "hostname {h}; sed -i /127.0.1.1/d /etc/hosts; printf '{table}' >> /etc/hosts"


@dataclass(frozen=True)
class Scenario:
    """One run.

    Args:
        name: of the folder that its logs are kept in.
        label: the cause; ``secondary`` those that would be right too.
        hosts: that take part; the first is the master.
        command: what is run on each; ``{i}`` is the host's number, ``{m}`` the master's address.
        setup: by host, what is run there before; "*" is on all.
        fault: by host, faults of ``remedy lab break``.
        only: for hosts that run another command.
        alone: by host, the label that its log alone tells; kept as a row of its own.
        seconds: when it is ended.
    """

    name: str
    label: str
    command: str
    hosts: tuple[str, ...] = (C,)
    secondary: str = ""
    setup: dict[str, str] = field(default_factory=dict)
    fault: dict[str, tuple[str, ...]] = field(default_factory=dict)
    only: dict[str, str] = field(default_factory=dict)
    alone: dict[str, str] = field(default_factory=dict)
    seconds: int = 75
    local_procs: int = 1


def one(name: str, label: str, command: str, **more: object) -> Scenario:
    """A scenario on one host with two processes."""
    return Scenario(name, label, command, local_procs=2, **more)  # type: ignore[arg-type]


def two(name: str, label: str, command: str, **more: object) -> Scenario:
    """A scenario on two hosts."""
    return Scenario(name, label, command, hosts=(A, B), **more)  # type: ignore[arg-type]


LOCAL = "torchrun --standalone --nproc-per-node 2 "
TEE = "torchrun --standalone --nproc-per-node 2 --tee 3 "
GOOD = {"*": NAMED}
OPEN_MASTER = (
    "nft 'add table inet site; add chain inet site in {{ type filter hook input priority 0; policy accept; }}; "
    "add rule inet site in iifname lo accept; add rule inet site in ct state established accept; "
    "add rule inet site in tcp dport {{ 22, 29500, 29400 }} accept; add rule inet site in meta l4proto tcp "
)


def scenarios() -> Iterator[Scenario]:
    """Every scenario, the quick ones first."""
    yield from _healthy()
    yield from _application()
    yield from _limits()
    yield from _launch()
    yield from _names()
    yield from _network()
    yield from _peers()
    yield from _lab_faults()
    yield from _mpi()


def _healthy() -> Iterator[Scenario]:
    yield one("healthy-plain", "healthy", LOCAL + "train.py")
    yield one("healthy-tee", "healthy", TEE + "train.py --steps 60")
    yield one(
        "healthy-verbose",
        "healthy",
        "TORCH_CPP_LOG_LEVEL=INFO TORCH_DISTRIBUTED_DEBUG=INFO " + LOCAL + "train.py",
    )
    yield one("healthy-loader", "healthy", LOCAL + "train.py --workers 2 --save /tmp")
    yield two("healthy-two-hosts", "healthy", RUN + " train.py", setup=GOOD)
    yield two("healthy-elastic", "healthy", C10D + " --local-addr {a} train.py", setup=GOOD)


def _application() -> Iterator[Scenario]:
    for fail in ("raise", "assert", "exit", "shape", "shapes", "config", "module", "segv"):
        yield one(f"application-{fail}", "application-error", LOCAL + f"train.py --fail {fail}")
    yield one(
        "application-sample",
        "application-error",
        TEE + "train.py --workers 2 --fail sample --rank -1",
    )
    yield one("application-unused", "application-error", LOCAL + "train.py --fail unused --rank -1")
    # This torch crashes by itself with so much told.
    yield one(
        "application-debug-crash",
        "application-error",
        "TORCH_CPP_LOG_LEVEL=INFO TORCH_DISTRIBUTED_DEBUG=DETAIL " + LOCAL + "train.py",
    )
    yield one("application-usage", "application-error", LOCAL + "train.py --learning-rate 0.1")
    yield one("application-no-file", "application-error", LOCAL + "trainer.py")
    yield one(
        "application-mismatch",
        "application-error",
        "TORCH_DISTRIBUTED_DEBUG=DETAIL " + LOCAL + "train.py --fail extra",
        secondary="peer-died-timeout",
    )
    yield Scenario(
        "application-no-launcher", "application-error", "python train.py", secondary="rank-mismatch"
    )


def _limits() -> Iterator[Scenario]:
    small = {"*": "mount -o remount,size=3m /dev/shm"}
    yield one("shm-loader", "shm-too-small", LOCAL + "train.py --workers 2", setup=small)
    yield one("shm-loader-tee", "shm-too-small", TEE + "train.py --workers 1", setup=small)
    yield Scenario(
        "shm-tensor",
        "shm-too-small",
        "python -c 'import torch; torch.ones(8<<20).share_memory_().fill_(2)'",
        setup=small,
    )
    yield Scenario(
        "nofile-sharing",
        "nofile-limit",
        "ulimit -n 64; python -c 'import torch; x=[torch.ones(1).share_memory_() for _ in range(200)]'",
    )
    yield one("nofile-loader", "nofile-limit", "ulimit -n 48; " + LOCAL + "train.py --workers 9")
    full = {"*": "mkdir -p /ckpt; mount -t tmpfs -o size=4m none /ckpt"}
    yield one("disk-full-save", "disk-full", LOCAL + "train.py --save /ckpt", setup=full)
    yield one("disk-full-tee", "disk-full", TEE + "train.py --save /ckpt", setup=full)
    yield one(
        "disk-full-log",
        "disk-full",
        "torchrun --standalone --nproc-per-node 2 --log-dir /ckpt/logs --redirects 3 train.py",
        setup={"*": "mkdir -p /ckpt; mount -t tmpfs -o size=4m,nr_inodes=3 none /ckpt"},
    )
    yield one(
        "storage-read-only",
        "storage-fault",
        LOCAL + "train.py --save /ckpt",
        setup={"*": "mkdir -p /ckpt; mount -t tmpfs -o ro none /ckpt"},
    )
    yield one(
        "memory-tensor", "host-oom", LOCAL + "train.py --fail memory", secondary="application-error"
    )
    yield Scenario(
        "memory-fork",
        "host-oom",
        "ulimit -v 6000000; python -c 'import torch; x = [torch.ones(1 << 28) for _ in range(9)]'",
        secondary="application-error",
    )
    yield one("library-cudart", "missing-library", LOCAL + "train.py --fail library --rank -1")
    yield one("library-hccl", "missing-library", TEE + "train.py --fail npu-library")
    yield Scenario(
        "library-numa",
        "missing-library",
        "LD_PRELOAD= python -c 'import ctypes; ctypes.CDLL(\"libnuma.so.99\")'",
    )


def _launch() -> Iterator[Scenario]:
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


def _names() -> Iterator[Scenario]:
    yield one(
        "name-env",
        "hostname-unresolvable",
        "MASTER_ADDR=gpu77 MASTER_PORT=29500 RANK=1 WORLD_SIZE=2 python train.py --timeout 6",
    )
    yield one(
        "name-torchrun",
        "hostname-unresolvable",
        "torchrun --nnodes 2 --node-rank 1 --master-addr node-7.cluster.local train.py --timeout 6",
        seconds=60,
    )
    yield one(
        "name-c10d",
        "hostname-unresolvable",
        "torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint gpu77:29400 "
        "--rdzv-conf timeout=8,read_timeout=8 train.py",
        seconds=60,
    )
    table = "{table}"
    yield two(
        "loopback-gloo",
        "loopback-hostname",
        RUN + " train.py",
        setup={
            "*": "hostname {h}; sed -i s/127.0.1.1.*/127.0.1.1\\ {h}/ /etc/hosts; "
            f"printf '{table}' >> /etc/hosts"
        },
        alone={A: "loopback-hostname"},
    )
    yield two(
        "healthy-loopback",  # only rank 0 has to be reached, so rank 1's wrong name does not matter with two
        "healthy",
        RUN + " train.py",
        setup={"*": NAMED, B: "hostname {h}; sed -i '1i 127.0.1.1 {h}' /etc/hosts"},
    )
    yield two(
        "duplicate-c10d",
        "unknown",
        C10D + " --rdzv-conf timeout=20,join_timeout=20 train.py --timeout 10",
        setup={"*": "sed -i /127.0.1.1/d /etc/hosts; echo {a} node >> /etc/hosts"},
        secondary="duplicate-hostname",
        seconds=60,
    )
    yield two(
        "name-peer-c10d",
        "hostname-unresolvable",
        C10D + " --rdzv-conf timeout=20,join_timeout=20 train.py --timeout 10",
        setup={"*": "hostname {h}; sed -i /127.0.1.1/d /etc/hosts; echo {a} {h} >> /etc/hosts"},
        seconds=60,
        alone={B: "hostname-unresolvable"},
    )
    yield two(
        "name-own",
        "hostname-unresolvable",
        RUN + " train.py",
        setup={"*": "hostname {h}; sed -i /127.0.1.1/d /etc/hosts"},
        secondary="loopback-hostname",
    )


def _network() -> Iterator[Scenario]:
    yield two(
        "interface-missing",
        "wrong-interface",
        RUN + " train.py",
        setup=GOOD,
        only={B: "GLOO_SOCKET_IFNAME=eno7 " + RUN + " train.py"},
        alone={B: "wrong-interface"},
        seconds=60,
    )
    yield one("interface-caret", "wrong-interface", "GLOO_SOCKET_IFNAME=^lo " + LOCAL + "train.py")
    yield one("interface-tee", "wrong-interface", "GLOO_SOCKET_IFNAME=bond0 " + TEE + "train.py")
    yield two(
        "interface-docker",
        "wrong-interface",
        "GLOO_SOCKET_IFNAME=docker0 " + RUN + " train.py",
        setup=GOOD,
        secondary="network-unreachable;peer-died-timeout;firewall-ports;duplicate-hostname",
    )
    yield one(
        "unreachable-master",
        "network-unreachable",
        "torchrun --nnodes 2 --node-rank 1 --master-addr 198.51.100.9 --master-port 29500 train.py",
        setup={"*": "ip route del default 2>/dev/null; true"},
        seconds=60,
    )
    yield one(
        "unreachable-env",
        "network-unreachable",
        "MASTER_ADDR=203.0.113.4 MASTER_PORT=29500 RANK=1 WORLD_SIZE=2 python train.py --timeout 6",
        setup={"*": "ip route del default 2>/dev/null; true"},
    )
    yield one(
        "ipv6-off",
        "ipv6-issue",
        "MASTER_ADDR=fd00:7::1 MASTER_PORT=29500 RANK=1 WORLD_SIZE=2 python train.py --timeout 6",
        setup={"*": "sysctl -qw net.ipv6.conf.all.disable_ipv6=1"},
        secondary="network-unreachable",
    )
    fast = " train.py --timeout 12"
    for wall in ("nftables", "ufw", "firewalld", "iptables", "iptables-legacy"):
        yield two(
            f"firewall-{wall}",
            "firewall-ports",
            RUN + " --rdzv-conf timeout=20" + fast,
            setup=GOOD,
            fault={A: (f"firewall-{wall}",)},
            secondary="rank-mismatch;network-unreachable",
            seconds=90,
        )
    for kind, verb in (
        ("drop", "drop"),
        ("reject", "reject with icmpx admin-prohibited"),
        ("reset", "reject with tcp reset"),
    ):
        yield two(
            f"firewall-ephemeral-{kind}",
            "firewall-ports",
            RUN + fast,
            setup={"*": NAMED, A: OPEN_MASTER + verb + "'"},
            secondary="peer-died-timeout;network-unreachable;unknown;rank-mismatch",
            alone={B: "firewall-ports"} if kind == "reject" else {},
            seconds=90,
        )
    yield two(
        "firewall-ephemeral-both",
        "firewall-ports",
        RUN + " --tee 3" + fast,
        setup={"*": NAMED + "; " + OPEN_MASTER + "reject with icmpx admin-prohibited'"},
        secondary="peer-died-timeout;network-unreachable",
        seconds=90,
    )


def _peers() -> Iterator[Scenario]:
    yield two(
        "peer-raise",
        "application-error",
        RUN + " --tee 3 train.py --steps 40 --fail raise --rank 1",
        setup=GOOD,
        alone={A: "peer-died-timeout", B: "application-error"},
    )
    yield two(
        "peer-assert",
        "application-error",
        RUN + " train.py --steps 40 --fail assert --rank 0",
        setup=GOOD,
        alone={B: "peer-died-timeout"},
    )
    yield two(
        "peer-kill",
        "unknown",
        RUN + " train.py --steps 40 --fail kill --rank 1",
        setup=GOOD,
        secondary="host-oom;peer-died-timeout",
        alone={A: "peer-died-timeout"},
    )
    yield two(
        "peer-stall",
        "peer-died-timeout",
        RUN + " train.py --steps 40 --fail stall --rank 1",
        setup=GOOD,
        secondary="application-error;unknown",
        alone={A: "peer-died-timeout"},
        seconds=60,
    )
    yield two(
        "peer-disk",
        "disk-full",
        RUN + " train.py --save /ckpt",
        setup={"*": NAMED + "; mkdir -p /ckpt", B: "mount -t tmpfs -o size=2m none /ckpt"},
    )
    yield two(
        "peer-shm",
        "shm-too-small",
        RUN + " --tee 3 train.py --workers 2",
        setup={"*": NAMED, B: "mount -o remount,size=3m /dev/shm"},
    )


# What a fault does to a run; all others leave it as it is, and their logs have to be told as healthy. So do
# firewalls on the second of two hosts: with gloo it calls, and is not called.
OF_FAULT = {
    "wrong-socket-ifname": ("wrong-interface", ""),
    "node-lost": ("unknown", "peer-died-timeout;rank-mismatch;firewall-ports"),
}
# These need what a lab does not have here, or take the host away before anything runs.
NOT_RUN = ("docker-small-shm", "node-replaced", "node-lost")
SESSION = "set -a; . /etc/environment; set +a; "  # as a login by ssh has it


def _lab_faults() -> Iterator[Scenario]:
    """Two hosts that work, and each fault of ``remedy lab break`` on the second."""
    for one_fault in catalogue():
        if one_fault.name in NOT_RUN:
            continue
        label, secondary = next(
            (told for name, told in OF_FAULT.items() if one_fault.name.startswith(name)),
            ("healthy", ""),
        )
        yield two(
            f"lab-{one_fault.name}",
            label,
            SESSION + RUN + " --rdzv-conf timeout=20 train.py --timeout 12",
            setup=GOOD,
            fault={B: (one_fault.name,)},
            secondary=secondary,
            seconds=60,
        )


MPI = "mpirun --allow-run-as-root "


def _mpi() -> Iterator[Scenario]:
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
