"""The last part, prefixes: a job as a unit of systemd, and its log by journalctl in several forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.corpus.others import SMALL
from benchmarks.corpus.scenario import Scenario

_UNIT = (
    "systemd-run -q --wait -u job {settings} -p WorkingDirectory=/root -E PATH=$PATH "
    "-E PYTHONUNBUFFERED=1 "
)
_JOB = (
    "$(which torchrun) --standalone --nproc-per-node 2 train.py {words}; "
    "journalctl -u job --no-pager -o {form}"
)


def journals() -> Iterator[Scenario]:
    """Jobs below systemd."""

    def one(
        name: str, label: str, form: str, *, words: str = "", settings: str = "", **more: Any
    ) -> Scenario:
        unit = _UNIT.replace("{settings}", settings)
        job = _JOB.replace("{words}", words).replace("{form}", form)
        return Scenario(f"journal-{name}", label, unit + job, seconds=90, **more)

    yield one("good", "healthy", "json")
    yield one("good-iso", "healthy", "short-iso-precise")
    yield one("raise", "application-error", "json", words="--fail raise")
    yield one("raise-iso", "application-error", "short-iso", words="--fail raise --rank 1")
    yield one("data", "storage-fault", "json", words="--fail data", secondary="application-error")
    yield one("interface", "wrong-interface", "json", settings="-E GLOO_SOCKET_IFNAME=ib7")
    yield one(
        "files",
        "nofile-limit",
        "short-iso",
        settings="-p LimitNOFILE=20",
        secondary="application-error",
    )
    yield one(
        "memory",
        "host-oom",
        "short-precise",
        words="--fail memory",
        settings="-p LimitAS=6G",
        secondary="application-error",
    )
    yield one("library", "missing-library", "json", words="--fail library")
    yield one(
        "disk",
        "disk-full",
        "short-full",
        words="--save /ckpt",
        setup={"*": SMALL.replace("2m", "4k")},
    )
    yield one(
        "time",
        "application-error",
        "json",
        words="--steps 4000 --pause 0.1",
        settings="-p RuntimeMaxSec=25",
        secondary="unknown;peer-died-timeout",
    )
    yield one("usage", "application-error", "short-unix", words="--learning-rate 1")
