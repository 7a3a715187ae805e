"""The interface of engines: one way of running an all-reduce over all hosts, as a value.

An engine is one file in ``remedy/verify/onhost/engines/``. It travels to the hosts, so it needs the standard
library alone (Python >= 3.8), and it has

- ``unfit(config)``: why this host cannot take part, as (how, detail), or None; asked before anything runs;
- ``command(config, directory)``: what the agent starts, and what it adds to the environment;
- ``WORKER``: the module whose ``main`` is a rank; it MUST leave what ``rank/run.py`` leaves, from which
  the controller works the verdict out by itself; where ``printed`` is set, a "process" and an ``OUTPUT``;
- ``LOGS``: where a rank's output lies, below the folder of the run.

Deadlines, process groups, cleaning up and reading what came back are the agent's and ``judge``'s, and are the
same for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from remedy.spec import EngineName
from remedy.verify.verdict import Backend

# Files that travel for every engine, below ``remedy.verify.onhost``: the agent's own, and a rank's.
AGENT = ("procs", "ras_answer", "nccl_ras", "watch", "agent")
RANK = tuple(f"rank.{part}" for part in ("group", "rank", "sweep", "proof", "run"))


@dataclass(frozen=True)
class Engine:
    """What the controller knows of an engine.

    Args:
        name: as the user gives it.
        module: its file, without ``.py``.
        modules: further files that travel, below ``remedy.verify.onhost``.
        needs: Python distributions of which an interpreter must have one; () is any interpreter.
        title: what a host lacks when it is not there.
        install: what to do then.
        backend: what it runs on, where that is one thing only.
        cpu: what it runs on where no host has GPUs; "auto" is what it says itself.
        engine_check: whether each rank also has to come through a test of the engine's own.
        printed: whether its proof is what it prints, and not what its ranks leave.
        inside: whether a host's own ranks are tried before the others are waited for.
        patience: seconds that it needs beyond what torch needs.
    """

    name: EngineName
    module: str
    title: str
    install: str
    modules: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    backend: Backend | None = None
    cpu: Backend | Literal["auto"] = "gloo"
    engine_check: bool = False
    printed: bool = False
    inside: bool = False
    patience: float = 0.0

    @property
    def cargo(self) -> tuple[str, ...]:
        """All modules that travel."""
        return (*AGENT, *RANK, *self.modules, f"engines.{self.module}")


ENGINES: dict[EngineName, Engine] = {
    engine.name: engine
    for engine in (
        Engine(
            name="torch",
            module="torch",
            modules=tuple(
                f"engines.torch_rank.{part}"
                for part in ("rank", "inside", "meet", "pairs", "group", "main")
            ),
            needs=("torch",),
            title="torch",
            install="Install torch there, or name the Python that has it: `python` in the inventory.",
            inside=True,
        ),
        Engine(
            name="nccl-tests",
            module="nccl_tests",
            modules=("engines.openmpi",),
            title="nccl-tests and Open MPI",
            install="Install openmpi-bin there, build nccl-tests with MPI=1, and name the program: "
            "`verify: {all_reduce_perf: PATH}`.",
            backend="nccl",
            printed=True,
            patience=60.0,
        ),
        Engine(
            name="mpi",
            module="mpi",
            modules=("engines.openmpi",),
            title="Open MPI",
            install="Install it there: apt-get install openmpi-bin.",
            backend="mpi",
        ),
        Engine(
            name="paddle",
            module="paddle",
            needs=("paddlepaddle", "paddlepaddle-gpu"),
            title="Paddle",
            install="Install paddlepaddle there, or name the Python that has it: `python` in the inventory.",
            engine_check=True,
            patience=60.0,
        ),
        Engine(
            name="mindspore",
            module="mindspore",
            needs=("mindspore", "mindspore-gpu", "mindspore-ascend"),
            title="MindSpore",
            install="Install mindspore there, or name the Python that has it: `python` in the inventory.",
            cpu="auto",
            patience=60.0,
        ),
    )
}
NAMES: tuple[str, ...] = get_args(EngineName)
