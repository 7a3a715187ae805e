"""The engine ``paddle``: Paddle's own launcher on every host, ranks that sum through ``paddle.distributed``.

It travels to the hosts: standard library only, Python >= 3.8, and Paddle in the ranks. After the proof each
rank also runs what ``python -m paddle.distributed.launch run_check`` runs, Paddle's own test of a training step
over all ranks, and it has to say that it came to its end. The address that a host is known by is left to Paddle
(that of its full name), as in a job of the user's (distributed/launch/context/node.py, paddle 3.3).
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import os
import runpy
import sys
from typing import Any

from remedy.verify.onhost.rank.group import WAVE, Buffer, Group
from remedy.verify.onhost.rank.rank import Rank, die_with_parent, read_config
from remedy.verify.onhost.rank.run import run

WORKER = "remedy.verify.onhost.engines.paddle"
LOGS = "logs/workerlog.{rank}"
DISTRIBUTIONS = ("paddlepaddle", "paddlepaddle-gpu")
CHECK = "paddle.distributed.launch.plugins.test"
COMPLETED = "Distributed training completed"


def unfit(config: dict[str, Any]) -> tuple[str, str] | None:  # noqa: ARG001  (as every engine's)
    """Find out why this host cannot take part, as (how, detail)."""
    for name in DISTRIBUTIONS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            importlib.metadata.version(name)
            return None
    return "no-engine", f"{sys.executable} has no Paddle"


def command(config: dict[str, Any], directory: str) -> tuple[list[str], dict[str, str]]:
    """Run the launcher with the first host's address, because names may be what is broken."""
    words = [sys.executable, "-m", "paddle.distributed.launch"]
    words += ["--master", f"{config['master']}:{config['port']}", "--nnodes", str(config["nodes"])]
    words += ["--rank", str(config["node"]), "--nproc_per_node", str(config["ranks"])]
    words += ["--job_id", config["nonce"], "--log_dir", f"{directory}/logs", "--max_restart", "0"]
    return [*words, f"{directory}/worker.py", directory], {}


class PaddleGroup(Group):
    """All trainers, through Paddle's default group."""

    def __init__(self) -> None:
        import paddle

        self.paddle = paddle
        self.dist: Any = paddle.distributed
        self.dist.init_parallel_env()
        self.rank, self.world = self.dist.get_rank(), self.dist.get_world_size()
        self.backend = str(self.dist.get_backend()).lower()
        self.software = f"paddle {paddle.__version__}"
        self.device = str(paddle.get_device())

    def sum_ints(self, values: list[int]) -> list[int]:
        """Sum int64 values."""
        tensor = self.paddle.to_tensor(values, dtype="int64")
        self.dist.all_reduce(tensor)
        return [int(value) for value in tensor.tolist()]

    def gather(self, data: bytes) -> list[bytes]:
        """Gather bytes as numbers."""
        parts: list[Any] = []
        self.dist.all_gather(parts, self.paddle.to_tensor(list(data), dtype="int32"))
        return [bytes(part.tolist()) for part in parts]

    def buffer(self, count: int) -> Buffer:
        """Make a tensor of float32."""
        return PaddleFloats(self, count)

    def leave(self) -> None:
        """Wait for the others: Paddle's launcher ends all when one has gone."""
        self.gather(b"done")


class PaddleFloats(Buffer):
    """A tensor, and how Paddle sums it; in place alone, so a copy keeps the input where that is asked."""

    def __init__(self, group: PaddleGroup, count: int) -> None:
        self.group = group
        self.count = count
        self.values: Any = group.paddle.zeros([count], dtype="float32")

    def _wave(self, base: int, step: int) -> Any:
        paddle = self.group.paddle
        places = paddle.arange(self.count, dtype="int32") % WAVE
        return (places * step + base).astype("float32")

    def fill(self, base: int, step: int) -> None:
        """Make a new tensor."""
        self.values = self._wave(base, step)

    def all_reduce(self) -> None:
        """Sum in place."""
        self.group.dist.all_reduce(self.values)
        self._settle()

    def all_reduce_copy(self) -> None:
        """Copy first."""
        copy = self.values.clone()
        self.group.dist.all_reduce(copy)
        self._settle()

    def _settle(self) -> None:
        if self.group.device != "cpu":
            self.group.paddle.device.synchronize()

    def wrong(self, base: int, step: int) -> int:
        """Count on the device."""
        return int((self.values != self._wave(base, step)).sum())


def engine_check() -> None:
    """Run Paddle's own check of a distributed training step.

    Raises:
        RuntimeError: it did not say that it completed.
    """
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_module(CHECK, run_name="__main__")
    print(printed.getvalue(), flush=True)
    if COMPLETED not in printed.getvalue():
        raise RuntimeError("Paddle's run_check ended without saying that it completed")


def main() -> None:
    """Be a rank."""
    config = read_config(sys.argv[1])
    die_with_parent()
    rank = Rank(config, int(os.environ["PADDLE_LOCAL_RANK"]))
    run(rank, PaddleGroup, engine_check)
