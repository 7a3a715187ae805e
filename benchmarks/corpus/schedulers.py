"""The last part, schedulers and containers: steps of Slurm on two hosts, and jobs in Docker by its log files.

``remedy lab up -n 2 --slurm --docker`` makes the hosts. The image is empty: the host's programs are bound in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.corpus.frameworks import HOLD
from benchmarks.corpus.scenario import A, Scenario

SMALL = "mkdir -p /ckpt; mount -t tmpfs -o size=4k none /ckpt"
_NAMES = (
    'bash -c "RANK=\\$SLURM_PROCID WORLD_SIZE=\\$SLURM_NTASKS MASTER_ADDR=10.214.{net}.11 MASTER_PORT=29511 '
    'python /root/train.py {words}"'
)
# A host that was just reset is not yet known to be back.
_READY = (
    "for i in $(seq 40); do [ $(sinfo -h -o %T | sort -u) = idle ] && break; sleep 1; "
    "scontrol update nodename=gpu01,gpu02 state=resume 2>/dev/null; done; "
    'srun -N2 bash -c "sed -i /127.0.1.1/d /etc/hosts; echo 10.214.{net}.11 gpu01 >> /etc/hosts; '
    'echo 10.214.{net}.12 gpu02 >> /etc/hosts"'
)
_START = (
    "systemctl start docker.service; docker image inspect empty >/dev/null 2>&1 "
    "|| tar -c -T /dev/null | docker import - empty >/dev/null"
)
# The parts of the host that an interpreter needs, at their places.
_BINDS = (
    "$(for part in /usr /lib /lib64 /bin /root /etc/passwd $(python -c "
    '"import sys; print(sys.prefix, sys.base_prefix)"); do echo -v $part:$part; done)'
)
_DOCKER = (
    "timeout -k 3 55 docker run --name job --network host {settings} "
    + _BINDS
    + " -w /root -e PATH=$PATH empty $(which torchrun) --standalone --nproc-per-node 2 train.py {words} "
    ">/dev/null 2>&1; cat $(docker inspect -f '{{.LogPath}}' job); docker rm -f job >/dev/null"
)


def schedulers() -> Iterator[Scenario]:
    """Slurm first."""
    yield from slurm()
    yield from docker()


def slurm() -> Iterator[Scenario]:
    """srun, with the number of the task before each line."""

    def one(
        name: str,
        label: str,
        *,
        words: str = "",
        step: str = "-N2 -l",
        job: str = _NAMES,
        **more: Any,
    ) -> Scenario:
        before = more.pop("before", "")
        setup = f"{_READY}; {more.pop('setup', 'true')}"
        command = f"{before}srun {step} {job.replace('{words}', words)}"
        settings = {"hosts": (A,), "seconds": 75, "setup": {"*": setup}, **more}
        return Scenario(f"slurm-{name}", label, command, **settings)

    yield one("good", "healthy")
    yield one("raise", "application-error", words="--fail raise --rank 1")
    yield one(
        "exit", "application-error", words="--fail exit --rank 1", secondary="peer-died-timeout"
    )
    yield one(
        "kill", "unknown", words="--fail kill --rank 1", secondary="host-oom;peer-died-timeout"
    )
    yield one(
        "segv", "application-error", words="--fail segv --rank 1", secondary="peer-died-timeout"
    )
    yield one(
        "stall", "peer-died-timeout", words="--fail stall --rank 1", secondary="application-error"
    )
    yield one("config", "application-error", words="--fail config --rank -1")
    yield one(
        "limit",
        "application-error",
        words="--steps 4000 --pause 0.1",
        step="-N2 -l -t 1",
        secondary="peer-died-timeout;unknown",
        seconds=110,
    )
    yield one("disk", "disk-full", words="--save /ckpt", setup=SMALL)
    yield one("interface", "wrong-interface", job="env GLOO_SOCKET_IFNAME=hsn0 " + _NAMES, words="")
    yield one("no-program", "env-not-propagated", job="trainer", secondary="application-error")
    yield one("directory", "storage-fault", step="-N2 -l -D /scratch/u", secondary="healthy")
    yield one("three-nodes", "rank-mismatch", step="-N3 -l", secondary="application-error;unknown")
    yield one(
        "port-taken",
        "master-port-in-use",
        before=HOLD.replace("PORT", "29511"),
        secondary="peer-died-timeout;stale-process",
    )
    yield one(
        "ranks-three",
        "rank-mismatch",
        job=_NAMES.replace("\\$SLURM_NTASKS", "3"),
        words="--timeout 8",
        secondary="peer-died-timeout;firewall-ports;unknown",
    )
    yield one(
        "no-name",
        "hostname-unresolvable",
        job=_NAMES.replace("10.214.{net}.11", "gpu77"),
        words="--timeout 8",
    )


def docker() -> Iterator[Scenario]:
    """Jobs in containers; the log is Docker's file of JSON."""

    def one(name: str, label: str, *, words: str = "", settings: str = "", **more: Any) -> Scenario:
        command = _DOCKER.replace("{settings}", settings).replace("{words}", words)
        # Docker gives the hosts file of the host to containers in its network.
        names = more.pop("names", "echo 127.0.0.1 $(hostname) >> /etc/hosts")
        setup = f"{more.pop('before', 'true')}; {names}; {_START}"
        return Scenario(
            f"docker-{name}",
            label,
            command,
            hosts=(A,),
            setup={"*": setup},
            seconds=75,
            **more,
        )

    yield one("good", "healthy")
    yield one("no-name", "hostname-unresolvable", names="true", secondary="unknown")
    yield one("raise", "application-error", words="--fail raise")
    yield one("shm", "shm-too-small", words="--workers 2", settings="--shm-size 64k")
    yield one("interface", "wrong-interface", settings="-e GLOO_SOCKET_IFNAME=eth9")
    yield one("files", "nofile-limit", settings="--ulimit nofile=20", secondary="application-error")
    yield one("disk", "disk-full", words="--save /ckpt", settings="-v /ckpt:/ckpt", before=SMALL)
    yield one(
        "read-only",
        "storage-fault",
        words="--save /ckpt",
        settings="-v /ckpt:/ckpt:ro",
        before="mkdir -p /ckpt",
    )
    yield one("library", "missing-library", words="--fail library")
    yield one(
        "module",
        "application-error",
        words="--fail module",
        secondary="missing-library;multi-python",
    )
