"""What a scenario is, and the words that most of them are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

A, B, C = "gpu01", "gpu02", "gpu03"
RUN = "torchrun --nnodes {n} --node-rank {i} --nproc-per-node {p} --master-addr {m} --master-port 29500"
C10D = "torchrun --nnodes {n} --nproc-per-node {p} --rdzv-backend c10d --rdzv-endpoint {m}:29400 --rdzv-id j"
NAMED = "hostname {h}; sed -i /127.0.1.1/d /etc/hosts; printf '{table}' >> /etc/hosts"

LOCAL = "torchrun --standalone --nproc-per-node 2 "
TEE = "torchrun --standalone --nproc-per-node 2 --tee 3 "
GOOD = {"*": NAMED}


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
        needs: the framework that the hosts have to have.
        folder: where the launcher writes the logs of the ranks; kept beside what it prints itself.
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
    needs: str = "torch"
    folder: str = ""


def one(name: str, label: str, command: str, **more: Any) -> Scenario:
    """A scenario on one host with two processes."""
    return Scenario(name, label, command, **more)


def two(name: str, label: str, command: str, **more: Any) -> Scenario:
    """A scenario on two hosts."""
    return Scenario(name, label, command, hosts=(A, B), **more)
