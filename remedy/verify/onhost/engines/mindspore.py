"""The engine ``mindspore``: msrun on every host, ranks that sum through ``mindspore.communication``.

It travels to the hosts: standard library only, Python >= 3.8, and MindSpore (with the numpy that it needs) in
the ranks. What MindSpore sums on a CPU is float32 alone (2.10, MCCL), so whole numbers travel in pieces that
float32 holds exactly.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import sys
from typing import Any

from remedy.verify.onhost.rank.group import WAVE, Buffer, Group
from remedy.verify.onhost.rank.rank import Rank, die_with_parent, read_config, redirect
from remedy.verify.onhost.rank.run import run

WORKER = "remedy.verify.onhost.engines.mindspore"
LOGS = "logs/{rank}.log"
DISTRIBUTIONS = ("mindspore", "mindspore-gpu", "mindspore-ascend")
# Bits of a piece, and how many make 56: a sum over 4,096 ranks stays below 2**24, where float32 is exact.
BITS, PIECES = 12, 5


def unfit(config: dict[str, Any]) -> tuple[str, str] | None:
    """Find out why this host cannot take part, as (how, detail)."""
    if config["world"] > 2 ** (24 - BITS):
        return "no-engine", f"{config['world']} ranks are more than float32 sums exactly"
    if not config["alike"]:
        return "no-engine", "msrun numbers ranks as if every host had as many"
    for name in DISTRIBUTIONS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            importlib.metadata.version(name)
            return None
    return "no-engine", f"{sys.executable} has no MindSpore"


def command(config: dict[str, Any], directory: str) -> tuple[list[str], dict[str, str]]:
    """Run msrun with the address of the first host; that of this host's interface it finds by itself.

    msrun calls Python by its name: the one that runs this has to come first.
    """
    words = [sys.executable, "-m", "mindspore.parallel.cluster.run"]
    words += [f"--worker_num={config['world']}", f"--local_worker_num={config['ranks']}"]
    words += [f"--master_addr={config['master']}", f"--master_port={config['port']}"]
    words += [f"--node_rank={config['node']}", f"--log_dir={directory}/logs", "--join=True"]
    words += [f"--cluster_time_out={config['join_seconds']:.0f}"]
    path = f"{os.path.dirname(sys.executable)}:{os.environ.get('PATH', os.defpath)}"  # noqa: PTH120
    return [*words, "python3", f"{directory}/worker.py", directory], {"PATH": path}


class MindSporeGroup(Group):
    """All workers, through MindSpore's world group."""

    def __init__(self) -> None:
        import mindspore
        import numpy
        from mindspore import communication, ops

        self.numpy = numpy
        self.tensor: Any = mindspore.Tensor
        communication.init()
        self.rank, self.world = communication.get_rank(), communication.get_group_size()
        self.backend = str(communication.GlobalComm.BACKEND)
        self.software = f"mindspore {mindspore.__version__}"
        self.device = str(mindspore.get_context("device_target")).lower()
        self.reduce: Any = ops.AllReduce()
        self.collect: Any = ops.AllGather()

    def sum_ints(self, values: list[int]) -> list[int]:
        """Sum the pieces of all values at once, and put them together again."""
        mask = (1 << BITS) - 1
        pieces = [value >> BITS * place & mask for place in range(PIECES) for value in values]
        summed = self.reduce(self.tensor(self.numpy.array(pieces, dtype="float32"))).asnumpy()
        rows = [int(number) for number in summed.tolist()]
        count = len(values)
        return [
            sum(rows[place * count + at] << BITS * place for place in range(PIECES))
            for at in range(count)
        ]

    def gather(self, data: bytes) -> list[bytes]:
        """Gather bytes as numbers."""
        numbers = self.tensor(self.numpy.array(list(data), dtype="int32"))
        values = self.collect(numbers).asnumpy().tolist()
        size = len(data)
        return [bytes(values[at : at + size]) for at in range(0, size * self.world, size)]

    def buffer(self, count: int) -> Buffer:
        """Make a tensor of float32."""
        return MindSporeFloats(self, count)

    def leave(self) -> None:
        """Wait for the others: the scheduler ends all when one has gone."""
        self.gather(b"done")


class MindSporeFloats(Buffer):
    """A tensor, which MindSpore sums into a new one; in place is: that one takes the old one's place."""

    def __init__(self, group: MindSporeGroup, count: int) -> None:
        self.group = group
        self.count = count
        self.values: Any = None
        self.fill(0, 0)

    def _wave(self, base: int, step: int) -> Any:
        numpy = self.group.numpy
        places = numpy.arange(self.count, dtype="int32") % WAVE
        return (places * step + base).astype("float32")

    def fill(self, base: int, step: int) -> None:
        """Make a new tensor."""
        self.values = self.group.tensor(self._wave(base, step))

    def all_reduce(self) -> None:
        """Wait by reading the last element."""
        self.values = self.group.reduce(self.values)
        self.values[-1].asnumpy()

    def all_reduce_copy(self) -> None:
        """Sum into a new tensor; the old one stays."""
        self.group.reduce(self.values)[-1].asnumpy()

    def wrong(self, base: int, step: int) -> int:
        """Count on the CPU."""
        return int((self.values.asnumpy() != self._wave(base, step)).sum())


def main() -> None:
    """Be a rank."""
    config = read_config(sys.argv[1])
    die_with_parent()
    if os.environ.get("MS_ROLE") == "MS_SCHED":
        # On the first host msrun starts the same program as the scheduler: joining is all that it does.
        from mindspore import communication

        communication.init()
        return
    # msrun's name for a worker's number on its host.
    rank = Rank(config, int(os.environ["DEVICE_ID"]))
    redirect(config, rank.local_rank)
    run(rank, MindSporeGroup)
