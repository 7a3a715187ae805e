"""The eighth part: torch 2.0, Lightning Fabric, MXNet, and gRPC below supervisord.

REMEDY_LAB_VENV names an environment with lightning-fabric, grpcio and supervisor, all by ``pip install``.
Below it stand environments of their own: ``old`` with torch 2.0.1, ``mxnet`` with mxnet 1.9.1 and numpy 1.23;
``debs`` holds Debian's libgomp1 and libquadmath0, by ``apt-get download``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.corpus.frameworks import HOLD, LOOPBACK
from benchmarks.corpus.network import OPEN_MASTER
from benchmarks.corpus.newcomers import (
    END,
    FEW,
    GROUP,
    KILLED,
    LIMIT,
    LOST,
    PEERS,
    READ_ONLY,
    STALLED,
)
from benchmarks.corpus.others import SMALL, makes, of_network, of_program
from benchmarks.corpus.scenario import NAMED, A, B, Scenario

PREFIX = "$(python -c 'import sys; print(sys.prefix)')"
OLD = (
    f"PATH={PREFIX}/old/bin:$PATH; torchrun --nnodes 2 --nproc_per_node 1 --node_rank {{i}} "
    "--master_addr {m} --master_port 29581 --rdzv_conf timeout=20 train.py"
)
OLD_ELASTIC = (
    f"PATH={PREFIX}/old/bin:$PATH; torchrun --nnodes 2 --nproc_per_node 1 --max_restarts 1 "
    "--rdzv_backend c10d --rdzv_endpoint {m}:29581 --rdzv_id 7 --rdzv_conf timeout=20,join_timeout=20 "
    "train.py"
)
FABRIC = (
    "fabric run --accelerator cpu --strategy ddp --devices 1 --num-nodes 2 --node-rank {i} "
    "--main-address {m} --main-port 29591 train_fabric.py"
)
LIBRARY = f"dpkg --unpack {PREFIX}/debs/lib[gq]*.deb >/dev/null 2>&1; ldconfig; "
MXNET_ROLE = (
    f"{LIBRARY}export PATH={PREFIX}/mxnet/bin:$PATH DMLC_PS_ROOT_URI={{m}} DMLC_PS_ROOT_PORT=9191 "
    "DMLC_NUM_SERVER=1 DMLC_NUM_WORKER=2 DMLC_NODE_HOST={a}; "
)
MXNET_HEAD = "DMLC_ROLE=scheduler python train_mxnet.py & DMLC_ROLE=server python train_mxnet.py & "
MXNET_WORKER = "DMLC_ROLE=worker timeout 25 python train_mxnet.py"
SUPERVISOR = "[supervisord]\\nnodaemon=true\\nuser=root\\n"
PART = (
    "[program:NAME]\\ncommand=COMMAND\\nautorestart=false\\nstartsecs=1\\nstopwaitsecs=5\\n"
    "redirect_stderr=true\\nstdout_logfile=/dev/fd/1\\nstdout_logfile_maxbytes=0\\n"
)
SERVE = "python train_grpc.py --serve --server 0.0.0.0:50051"
WORK = "python train_grpc.py --server {m}:50051 --number {i}"
CUT = "(sleep SECONDS; ip link set $(ip -o -4 addr show to 10.214.0.0/16 | cut -d' ' -f2 | head -1) down) & "


def servers() -> Iterator[Scenario]:
    """Every program."""
    yield from old()
    yield from fabric()
    yield from grpc()
    yield from mxnet()


def old() -> Iterator[Scenario]:
    """torchrun of torch 2.0, which words much in another way."""
    make = makes("old", "old", 60)
    yield make("good", "healthy", OLD)
    # The program's own default is the rank that fails elsewhere: the first.
    yield from (
        s
        for s in of_program(make, OLD + " --rank -1")
        if s.name.endswith(("raise", "kill", "stall"))
    )
    # A host alone prints nothing before it is ended.
    yield from (
        s
        for s in of_network(make, OLD, 29581)
        if s.name.endswith(("no-name", "firewall-all", "ephemeral", "port-taken"))
    )
    for form in ("drop", "reject with icmpx admin-prohibited"):
        yield make(
            f"ephemeral-{form.split()[0]}",
            "firewall-ports",
            OLD,
            setup={"*": NAMED, A: OPEN_MASTER.replace("29500", "29581") + form + "'"},
            secondary=PEERS,
        )
    yield make(
        "interface", "wrong-interface", OLD, only={B: "export GLOO_SOCKET_IFNAME=ib0; " + OLD}
    )
    yield make(
        "loopback",
        "loopback-hostname",
        OLD,
        setup={"*": LOOPBACK},
        secondary="firewall-ports;unknown",
    )
    yield make("disk", "disk-full", OLD + " --save /ckpt", setup=_on_second(_small("4k")))
    yield make(
        "shm",
        "shm-too-small",
        OLD + " --workers 2",
        setup={"*": NAMED + "; mount -o remount,size=2m /dev/shm"},
    )
    yield make(
        "memory",
        "unknown",
        OLD,
        setup={"*": NAMED, B: LIMIT.replace("2G", "150M")},
        only={B: f"echo $$ > {GROUP}/cgroup.procs; {OLD}"},
        secondary=KILLED,
    )
    yield make(
        "link-down",
        "network-unreachable",
        OLD + " --steps 200 --pause 0.1",
        only={B: CUT.replace("SECONDS", "13") + OLD + " --steps 200 --pause 0.1"},
        secondary="peer-died-timeout;unknown",
        alone={A: "peer-died-timeout"},
    )
    yield make("elastic-good", "healthy", OLD_ELASTIC)
    yield make(
        "elastic-kill",
        "unknown",
        OLD_ELASTIC,
        only={B: OLD_ELASTIC + " --fail kill --rank -1"},
        secondary=KILLED,
    )


def fabric() -> Iterator[Scenario]:
    """``fabric run`` on two hosts."""
    make = makes("fabric", "lightning_fabric", 60)
    yield from (s for s in of_program(make, FABRIC) if not s.name.endswith("python"))
    yield from (
        s
        for s in of_network(make, FABRIC, 29591)
        if s.name.endswith(("no-name", "firewall-all", "ephemeral", "port-taken"))
    )
    yield make("disk", "disk-full", FABRIC + " --save /ckpt", setup=_both(_small("8k")))
    yield make("read-only", "storage-fault", FABRIC + " --save /ckpt", setup=_both(READ_ONLY))
    yield make(
        "module",
        "application-error",
        FABRIC,
        only={B: FABRIC + " --fail module"},
        secondary="missing-library;multi-python;env-not-propagated",
    )
    yield make(
        "no-launcher",
        "env-not-propagated",
        FABRIC,
        only={B: "export PATH=/usr/local/bin:/usr/bin:/bin; " + FABRIC},
        secondary="application-error;multi-python",
    )
    yield make(
        "link-down",
        "network-unreachable",
        FABRIC + " --steps 200",
        only={B: CUT.replace("SECONDS", "16") + FABRIC + " --steps 200"},
        secondary="peer-died-timeout;unknown",
        seconds=50,
    )


def grpc() -> Iterator[Scenario]:
    """A parameter server and a worker on the first host, a worker on the second, all below supervisord."""
    make = makes("grpc", "grpc", 45)

    def run(name: str, label: str, words: str = "", lead: str = "", **more: Any) -> Scenario:
        first = lead + _supervised(server=SERVE, worker=WORK + " --patient" + more.pop("first", ""))
        second = {B: "sleep 5; " + _supervised(worker=WORK + words)}
        return make(name, label, first, only={**second, **more.pop("only", {})}, **more)

    yield run("good", "healthy")
    yield run("raise", "application-error", " --fail raise", alone={A: "peer-died-timeout"})
    yield run("kill", "unknown", " --fail kill", secondary=KILLED, alone={A: "peer-died-timeout"})
    yield run("stall", "peer-died-timeout", " --fail stall", secondary=STALLED)
    yield run("one-of-two", "rank-mismatch", hosts=(A,), secondary=FEW)
    yield run(
        "same-number",
        "rank-mismatch",
        only={B: "sleep 5; " + _supervised(worker=WORK.replace("{i}", "0"))},
        secondary="application-error;peer-died-timeout",
    )
    yield run("firewall-all", "firewall-ports", fault={A: ("firewall-nftables",)}, secondary=PEERS)
    yield run(
        "firewall-reject", "firewall-ports", fault={A: ("firewall-iptables",)}, secondary=PEERS
    )
    yield run(
        "port-taken",
        "master-port-in-use",
        lead=HOLD.replace("PORT", "50051"),
        secondary="peer-died-timeout;stale-process",
    )
    yield run("disk", "disk-full", " --fail disk", setup=_on_second(_small("2m")))
    yield run("data", "storage-fault", " --fail data", secondary="application-error")
    yield run(
        "files",
        "nofile-limit",
        only={B: "sleep 5; ulimit -n 60; " + _supervised(worker=WORK + " --fail files")},
        secondary="application-error",
    )
    yield run(
        "module",
        "application-error",
        " --fail module",
        secondary="missing-library;multi-python;env-not-propagated",
    )
    yield run(
        "other-python",
        "env-not-propagated",
        only={B: "sleep 5; " + _supervised(worker=WORK.replace("python ", "/usr/bin/python3 "))},
        secondary="multi-python;missing-library;application-error",
    )
    yield run(
        "memory",
        "unknown",
        setup={"*": NAMED, B: LIMIT.replace("2G", "300M")},
        only={
            B: f"sleep 5; echo $$ > {GROUP}/cgroup.procs; "
            + _supervised(worker=WORK + " --fail memory")
        },
        secondary=KILLED,
    )
    yield run(
        "link-down",
        "network-unreachable",
        " --steps 100",
        first=" --steps 100",
        only={
            B: CUT.replace("SECONDS", "12")
            + "sleep 5; "
            + _supervised(worker=WORK + " --steps 100")
        },
        secondary="peer-died-timeout;unknown",
    )
    yield from _second_alone(make, _supervised(worker=WORK))


def mxnet() -> Iterator[Scenario]:
    """MXNet's scheduler, server and a worker on the first host, a worker on the second."""
    make = makes("mxnet", "mxnet", 45)

    def run(name: str, label: str, words: str = "", lead: str = "", **more: Any) -> Scenario:
        first = lead + MXNET_ROLE + MXNET_HEAD + MXNET_WORKER + more.pop("first", "") + END
        second = {B: MXNET_ROLE + MXNET_WORKER + words}
        return make(name, label, first, only={**second, **more.pop("only", {})}, **more)

    yield run("good", "healthy")
    yield run(
        "raise", "application-error", " --fail raise --rank -1", alone={B: "application-error"}
    )
    yield run("kill", "unknown", " --fail kill --rank -1", secondary=KILLED)
    yield run("one-of-two", "rank-mismatch", hosts=(A,), secondary=FEW)
    yield run(
        "firewall-all",
        "firewall-ports",
        fault={A: ("firewall-nftables",)},
        secondary=PEERS + ";unknown",
    )
    yield run(
        "port-taken",
        "master-port-in-use",
        lead=HOLD.replace("PORT", "9191"),
        secondary="peer-died-timeout;stale-process",
    )
    yield run(
        "interface",
        "wrong-interface",
        only={B: MXNET_ROLE.replace("DMLC_NODE_HOST={a}", "DMLC_INTERFACE=ens9f0") + MXNET_WORKER},
        secondary="peer-died-timeout",
    )
    yield run("disk", "disk-full", " --save /ckpt", setup=_on_second(_small("2m")))
    yield run(
        "library",
        "missing-library",
        only={B: MXNET_ROLE.removeprefix(LIBRARY) + MXNET_WORKER},
        secondary="peer-died-timeout;env-not-propagated",
    )
    yield make(
        "no-name",
        "hostname-unresolvable",
        MXNET_ROLE.replace("{m}", "gpu77") + MXNET_WORKER,
        hosts=(B,),
        secondary="unknown",
    )
    yield make(
        "other-alone",
        "rank-mismatch",
        MXNET_ROLE.replace("{m}", "10.214.{net}.11") + MXNET_WORKER,
        hosts=(B,),
        secondary=FEW,
    )


def _supervised(**commands: str) -> str:
    """Run commands below supervisord in the foreground, their output in its own."""
    parts = "".join(
        PART.replace("NAME", name).replace("COMMAND", command) for name, command in commands.items()
    )
    return f"printf '{SUPERVISOR}{parts}' > sup.conf; timeout 24 supervisord -c sup.conf"


def _second_alone(make: Any, job: str) -> Iterator[Scenario]:
    """Yield the second host alone, which finds nobody, no name, or no way."""
    for name, label, address, second in (
        ("other-alone", "rank-mismatch", "10.214.{net}.11", FEW),
        ("no-name", "hostname-unresolvable", "gpu77", "unknown"),
        ("unreachable", "network-unreachable", "198.51.100.9", f"firewall-ports;{PEERS}"),
    ):
        yield make(
            name,
            label,
            job.replace("{m}", address).replace("{i}", "1"),
            hosts=(B,),
            setup={"*": NAMED + "; " + LOST},
            secondary=second,
        )


def _small(size: str) -> str:
    return SMALL.replace("2m", size)


def _both(step: str) -> dict[str, str]:
    return {"*": NAMED + "; " + step}


def _on_second(step: str) -> dict[str, str]:
    return {"*": NAMED + "; mkdir -p /ckpt", B: step}
