"""The ninth part: what loggers, stampers, pools and callers make of a failure.

REMEDY_LAB_VENV names an environment with loguru, structlog, rich, hydra-core, joblib, parsl, rpyc, Pyro5,
fabric and mpi4py by ``pip install``. Below it stand environments of their own, ``jax04`` with jax 0.4.30 and
``paddle26`` with paddlepaddle 2.6.2; ``debs`` holds what ``apt-get download runit daemontools`` brings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.corpus.frameworks import HOLD, PADDLE_JOB
from benchmarks.corpus.newcomers import FEW, GROUP, KILLED, LIMIT, PEERS, STALLED
from benchmarks.corpus.others import JAX, SMALL, makes, of_network, of_program
from benchmarks.corpus.remote import OPEN
from benchmarks.corpus.scenario import NAMED, A, B, Scenario
from benchmarks.corpus.servers import CUT, PREFIX

RUN = (
    "torchrun --nnodes 2 --nproc-per-node 1 --node-rank {i} --master-addr {m} --master-port 29571 "
    "--rdzv-conf timeout=20 "
)
END = "; sleep 1; kill $(jobs -p) 2>/dev/null"
STAMPERS = {
    "svlogd": (
        "runit",
        "mkdir -p log; {{ JOB; }} 2>&1 | svlogd -tt log 2>/dev/null; cat log/current",
    ),
    "tai64n": ("daemontools", "{{ JOB; }} 2>&1 | tai64n"),
}


def loggers() -> Iterator[Scenario]:
    """Every program; each is ended after less than a minute."""
    for log in ("loguru", "structlog", "rich"):
        yield from logged(log)
    yield from hydra()
    for stamper in STAMPERS:
        yield from stamped(stamper)
    yield from calls("rpyc", 18861)
    yield from calls("Pyro5", 18862)
    yield from pools()
    yield from fabric()
    yield from older()


def logged(log: str) -> Iterator[Scenario]:
    """Torch's loop, with a logger that shows exceptions its own way."""
    make = makes(log, log, 45)
    job = f"{RUN}train_logged.py --logger {log}"
    yield from (s for s in of_program(make, job) if not s.name.endswith("other-python"))
    yield make(
        "firewall", "firewall-ports", job, fault={A: ("firewall-nftables",)}, secondary=PEERS
    )
    yield make("interface", "wrong-interface", job, only={B: "GLOO_SOCKET_IFNAME=ens9 " + job})
    yield make(
        "disk", "disk-full", job, setup={"*": f"{NAMED}; {SMALL}"}, only={B: job + " --fail disk"}
    )
    yield make("data", "storage-fault", job + " --fail data", secondary="application-error")


def hydra() -> Iterator[Scenario]:
    """Hydra's application, which keeps tracebacks short."""
    make = makes("hydra", "hydra", 45)
    job = RUN + "train_hydra.py"

    def run(name: str, label: str, words: str = "", **more: Any) -> Scenario:
        return make(name, label, f"{job} {words}".strip(), **more)

    yield run("good", "healthy")
    yield run("raise", "application-error", "+fail=raise")
    yield run("kill", "unknown", "+fail=kill", secondary=KILLED)
    yield run("override", "application-error", "model.lr=0.1")
    yield run("interface", "wrong-interface", only={B: "GLOO_SOCKET_IFNAME=ens9 " + job})
    yield run("no-name", "hostname-unresolvable", only={B: job.replace("{m}", "gpu77")}, hosts=(B,))
    yield run("port-taken", "master-port-in-use", only={A: HOLD.replace("PORT", "29571") + job},
              secondary="peer-died-timeout")  # fmt: skip
    yield run("stall", "peer-died-timeout", "+fail=stall", secondary=STALLED)


def stamped(stamper: str) -> Iterator[Scenario]:
    """Torch's job behind a program that stamps each line."""
    package, pipe = STAMPERS[stamper]
    make = makes(stamper, "torch", 50)
    lead = f"dpkg --unpack {PREFIX}/debs/{package}_*.deb >/dev/null 2>&1; "

    def run(name: str, label: str, words: str = "", before: str = "", **more: Any) -> Scenario:
        job = f"{before}{RUN}train.py {words}".strip()
        return make(name, label, lead + pipe.replace("JOB", job), **more)

    yield run("good", "healthy")
    yield run("raise", "application-error", "--fail raise --rank 1")
    yield run("kill", "unknown", "--fail kill --rank 1", secondary=KILLED)
    yield run("firewall", "firewall-ports", fault={A: ("firewall-nftables",)}, secondary=PEERS)
    yield run("interface", "wrong-interface", before="GLOO_SOCKET_IFNAME=ens9 ")
    yield run(
        "library", "missing-library", "--fail library --rank -1", secondary="env-not-propagated"
    )


def calls(library: str, port: int) -> Iterator[Scenario]:
    """A parameter server on the first host, with a worker on each."""
    make = makes(library.lower(), library.lower() if library == "rpyc" else library, 50)
    words = f"python train_calls.py --library {library.lower()} --port {port}"
    head = f"OWN={{a}} {words} & sleep 3; "

    def run(name: str, label: str, more_words: str = "", **more: Any) -> Scenario:
        server = more.pop("server", "{m}")
        worker = f"sleep 3; {words} --server {server} --number {{i}} {more_words}".strip()
        first = more.pop("first", head) + worker + END
        return make(name, label, first, only={B: worker, **more.pop("only", {})}, **more)

    yield run("good", "healthy")
    yield run("raise", "application-error", "--fail raise", alone={B: "application-error"})
    yield run("kill", "unknown", "--fail kill", secondary=KILLED)
    yield run("stall", "peer-died-timeout", "--fail stall", secondary=STALLED)
    yield run("one-of-two", "rank-mismatch", hosts=(A,), secondary=FEW)
    yield run("no-server", "peer-died-timeout", first="", secondary="rank-mismatch;firewall-ports")
    yield run("no-name", "hostname-unresolvable", server="gpu77", hosts=(B,))
    yield run("firewall", "firewall-ports", fault={A: ("firewall-nftables",)}, secondary=PEERS)
    yield run(
        "port-taken",
        "master-port-in-use",
        first=HOLD.replace("PORT", str(port)) + head,
        secondary="peer-died-timeout",
    )
    yield run(
        "disk",
        "disk-full",
        "--fail disk",
        setup={"*": f"{NAMED}; mkdir -p /ckpt", B: SMALL},
        alone={B: "disk-full"},
    )
    yield run(
        "link-down",
        "network-unreachable",
        "--steps 200",
        only={
            B: CUT.replace("SECONDS", "8") + f"{words} --server {{m}} --number {{i}} --steps 200"
        },
        secondary="peer-died-timeout;unknown",
    )


def pools() -> Iterator[Scenario]:
    """Pools of processes on one host."""

    def one(pool: str, name: str, label: str, words: str = "", **more: Any) -> Scenario:
        lead = more.pop("lead", "")
        needs = {"futures": "mpi4py"}.get(pool, pool)
        runner = "mpirun --allow-run-as-root --oversubscribe -n 3 python -m mpi4py.futures"
        program = f"train_pools.py --pool {pool} {words}".strip()
        command = f"{runner if pool == 'futures' else 'python'} {program}"
        if pool == "parsl":  # what it starts outlives it, with its output open
            command = (
                f"timeout 35 {command} > parsl.log 2>&1; pkill -f parsl/executor[s]; cat parsl.log"
            )
        settings = {"setup": {"*": NAMED}, "seconds": 45, **more}
        return Scenario(f"{pool}-{name}", label, lead + command, needs=needs, **settings)

    for pool in ("joblib", "parsl", "futures"):
        yield one(pool, "good", "healthy")
        yield one(pool, "raise", "application-error", "--fail raise")
        yield one(pool, "kill", "unknown", "--fail kill", secondary=KILLED + ";application-error")
        yield one(
            pool,
            "stall",
            "unknown",
            "--fail stall",
            secondary="peer-died-timeout;application-error",
        )
        yield one(pool, "disk", "disk-full", "--fail disk", setup={"*": f"{NAMED}; {SMALL}"})
        yield one(pool, "data", "storage-fault", "--fail data", secondary="application-error")
    yield one(
        "joblib",
        "memory",
        "host-oom",
        "--fail memory",
        setup={"*": f"{NAMED}; {LIMIT.replace('2G', '400M')}"},
        lead=f"echo $$ > {GROUP}/cgroup.procs; ",
        secondary="unknown;application-error",
    )
    yield one("parsl", "address", "wrong-interface", "--address 198.51.100.7",
              secondary="network-unreachable;unknown;peer-died-timeout")  # fmt: skip


def fabric() -> Iterator[Scenario]:
    """Fabric over ssh to both hosts, run on the first."""
    make = makes("fabric-ssh", "fabric", 60)

    def run(name: str, label: str, words: str = "", change: str = "true", **more: Any) -> Scenario:
        hosts = more.pop("where", "gpu01,gpu02")
        path = more.pop("path", "$PATH")
        command = (
            f"python train_by_fabric.py --hosts {hosts} --master {{m}} --path {path} -- {words}"
        )
        setup = {"*": f"{NAMED}; {OPEN}", B: change, **more.pop("setup", {})}
        return make(name, label, command.strip(), setup=setup, only={B: "sleep 2"}, **more)

    yield run("good", "healthy")
    yield run("raise", "application-error", "--fail raise --rank 1")
    yield run("kill", "unknown", "--fail kill --rank 1", secondary=KILLED)
    yield run(
        "no-name", "hostname-unresolvable", where="gpu01,gpu77", secondary="ssh-launch-failure"
    )
    yield run(
        "refused",
        "ssh-launch-failure",
        change="systemctl stop ssh.socket ssh 2>/dev/null; true",
        secondary="firewall-ports;peer-died-timeout",
    )
    yield run(
        "password",
        "ssh-launch-failure",
        change="passwd -l root >/dev/null; rm /etc/ssh/sshd_config.d/10-lab.conf; systemctl reload ssh",
    )
    yield run("firewall", "firewall-ports", fault={A: ("firewall-nftables",)}, secondary=PEERS)
    yield run(
        "environment", "env-not-propagated", path="/usr/bin:/bin", secondary="application-error"
    )


def older() -> Iterator[Scenario]:
    """Releases of some years ago: JAX 0.4.30 and Paddle 2.6.2."""
    lead = f"PATH={PREFIX}/jax04/bin:$PATH; "
    make = makes("jax04", "jax04", 45)
    job = lead + JAX
    skipped = ("other-python", "usage", "unreachable", "firewall-ephemeral", "one-of-two")
    for scenario in (*of_program(make, job), *of_network(make, job, 29500)):
        if not scenario.name.endswith(skipped):
            yield scenario
    two = makes("paddle26", "paddle26", 60)
    paddle = f"PATH={PREFIX}/paddle26/bin:$PATH; {PADDLE_JOB}"
    for name, label, words, second in (
        ("good", "healthy", "", ""),
        ("raise", "application-error", " --fail raise", ""),
        ("killed", "unknown", " --fail kill", KILLED),
    ):
        yield two(name, label, paddle + words, secondary=second, folder="log")
    yield two("one-of-two", "rank-mismatch", paddle, hosts=(A,), secondary=FEW, folder="log")
    yield two("port-taken", "master-port-in-use", paddle, folder="log",
              only={A: HOLD.replace("PORT", "49178") + paddle}, secondary=FEW)  # fmt: skip
