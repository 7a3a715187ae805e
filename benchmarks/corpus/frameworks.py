"""Paddle and MindSpore by their own launchers; the hosts have to have them (REMEDY_LAB_VENV names where,
and ``remedy lab up --mpi`` brings the libraries of the system that they load)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.corpus.network import OPEN_MASTER
from benchmarks.corpus.scenario import GOOD, NAMED, A, B, Scenario

LOOPBACK = (
    "hostname {h}; sed -i 's/127.0.1.1.*/127.0.1.1 {h}/' /etc/hosts; printf '{table}' >> /etc/hosts"
)
HOLD = (
    '(setsid python -c \'import socket,time; s=socket.socket(); s.bind(("",PORT)); s.listen(); '
    "time.sleep(60)' >/dev/null 2>&1 &); sleep 1; "
)
PADDLE = (
    "python -m paddle.distributed.launch --nnodes 2 --rank {i} --nproc_per_node 1 --log_dir log "
    "--max_restart 0 --master "
)
NO_GOMP = {"*": NAMED, B: "rm /usr/lib/*/libgomp.so.1"}
PADDLE_JOB = PADDLE + "{m}:49178 train_paddle.py"
MSRUN = (
    "MS_TOPO_TIMEOUT=30 MS_RECEIVE_MSG_TIMEOUT=20 msrun --worker_num=2 --local_worker_num=1 "
    "--node_rank={i} --log_dir=log --join=True --cluster_time_out=30 --master_addr="
)
MSRUN_JOB = MSRUN + "{m} --master_port=8118 train_mindspore.py"


def _two(name: str, label: str, command: str, needs: str, **more: Any) -> Scenario:
    settings = {"hosts": (A, B), "setup": GOOD, "seconds": 60, "folder": "log", **more}
    return Scenario(name, label, command, needs=needs, **settings)


def paddle() -> Iterator[Scenario]:
    """Faults of ``python -m paddle.distributed.launch`` on two hosts."""

    def two(name: str, label: str, command: str, **more: Any) -> Scenario:
        return _two(f"paddle-{name}", label, command, "paddle", **more)

    yield two("good", "healthy", PADDLE_JOB)
    yield two(
        "library",
        "env-not-propagated",  # what is missing on one host of two is taken for that first
        PADDLE_JOB,
        setup=NO_GOMP,
        secondary="missing-library",
        alone={B: "missing-library"},
    )
    yield two("raise", "application-error", PADDLE_JOB + " --fail raise")
    yield two(
        "killed",
        "unknown",
        PADDLE_JOB + " --fail kill",
        secondary="host-oom;peer-died-timeout",
    )
    yield two(
        "one-of-two",  # the launcher only waits: what it waits for is not told
        "rank-mismatch",
        PADDLE_JOB,
        hosts=(A,),
        secondary="firewall-ports;unknown",
        seconds=60,
    )
    yield two(
        "no-name",
        "hostname-unresolvable",
        PADDLE + "gpu77:49178 train_paddle.py",
        secondary="unknown;firewall-ports;rank-mismatch",
        hosts=(B,),
        seconds=60,
    )
    yield two(
        "firewall-all",
        "firewall-ports",
        PADDLE_JOB,
        fault={A: ("firewall-nftables",)},
        secondary="rank-mismatch;unknown",
    )
    yield two(
        "firewall-ephemeral",
        "firewall-ports",
        PADDLE_JOB,
        setup={"*": NAMED, A: OPEN_MASTER.replace("29500", "49178") + "reject with tcp reset'"},
        secondary="rank-mismatch;peer-died-timeout",
    )
    yield two(
        "interface",
        "wrong-interface",
        PADDLE_JOB,
        only={B: "GLOO_SOCKET_IFNAME=eth9 " + PADDLE_JOB},
    )
    yield two(
        "loopback",
        "loopback-hostname",
        PADDLE_JOB,
        setup={"*": LOOPBACK},
        secondary="firewall-ports;unknown",
    )
    yield two(
        "port-taken",
        "master-port-in-use",
        PADDLE_JOB,
        only={A: HOLD.replace("PORT", "49178") + PADDLE_JOB},
        secondary="rank-mismatch;firewall-ports;unknown",
    )
    yield two(
        "not-there",
        "env-not-propagated",
        PADDLE_JOB,
        only={B: "/usr/bin/python3" + PADDLE_JOB.removeprefix("python")},
        secondary="multi-python;missing-library;application-error",
    )


def mindspore() -> Iterator[Scenario]:
    """Faults of ``msrun`` on two hosts."""

    def two(name: str, label: str, command: str, **more: Any) -> Scenario:
        return _two(f"msrun-{name}", label, command, "mindspore", **more)

    yield two("good", "healthy", MSRUN_JOB)
    yield two(
        "library",
        "env-not-propagated",  # what is missing on one host of two is taken for that first
        MSRUN_JOB,
        setup=NO_GOMP,
        secondary="missing-library",
        alone={B: "missing-library"},
    )
    yield two("raise", "application-error", MSRUN_JOB + " --fail raise")
    yield two(
        "killed",
        "unknown",
        MSRUN_JOB + " --fail kill",
        secondary="host-oom;peer-died-timeout",
    )
    yield two(
        "one-of-two",
        "rank-mismatch",
        MSRUN_JOB,
        hosts=(A,),
        secondary="firewall-ports;peer-died-timeout",
    )
    yield two(
        "no-name",
        "hostname-unresolvable",
        MSRUN + "gpu77 --master_port=8118 train_mindspore.py",
        hosts=(B,),
        seconds=60,
    )
    yield two(
        "firewall-all",
        "firewall-ports",
        MSRUN_JOB,
        fault={A: ("firewall-nftables",)},
        secondary="rank-mismatch;peer-died-timeout",
    )
    yield two(
        "firewall-ephemeral",
        "firewall-ports",
        MSRUN_JOB,
        setup={"*": NAMED, A: OPEN_MASTER.replace("29500", "8118") + "reject with tcp reset'"},
        secondary="rank-mismatch;peer-died-timeout",
    )
    yield two(
        "interface",
        "healthy",  # on processors nobody connects to the address that a worker tells of itself
        MSRUN_JOB,
        only={B: "MS_WORKER_IP=172.17.0.1 " + MSRUN_JOB},
    )
    yield two(
        "port-taken",
        "master-port-in-use",
        MSRUN_JOB,
        only={A: HOLD.replace("PORT", "8118") + MSRUN_JOB},
    )
