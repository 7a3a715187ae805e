"""A sum over ranks with pytorch-ignite's idist, able to fail in the ways that the scenarios ask for."""

import argparse
import os
import time
from pathlib import Path

import ignite.distributed as idist
import torch
from ignite.engine import Engine, Events


def fail(kind):
    """Break this process in the way asked for."""
    if kind == "raise":
        raise ZeroDivisionError("no samples in this shard")
    if kind == "kill":
        os.kill(os.getpid(), 9)
    if kind == "segv":
        os.kill(os.getpid(), 11)
    if kind == "exit":
        os._exit(6)
    if kind == "stall":
        time.sleep(90)
    if kind == "disk":
        Path("/ckpt/part.bin").write_bytes(bytes(16 << 20))


def train(_local, args):
    """Run an engine of ten iterations."""

    def step(engine, batch):
        if engine.state.iteration == 6 and idist.get_rank() == args.rank:
            fail(args.fail)
        return float(idist.all_reduce(torch.tensor(float(batch))))

    trainer = Engine(step)

    @trainer.on(Events.ITERATION_COMPLETED)
    def report(engine):
        print(
            f"rank {idist.get_rank()} iteration {engine.state.iteration} loss {engine.state.output}",
            flush=True,
        )

    trainer.run(range(10), max_epochs=1)


def main():
    """Start by idist.Parallel."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fail", default="")
    parser.add_argument("--rank", type=int, default=1)
    parser.add_argument("--master", default="127.0.0.1")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--node", type=int, default=0)
    parser.add_argument("--local", type=int, default=1)
    args = parser.parse_args()
    with idist.Parallel(
        backend="gloo",
        nproc_per_node=args.local,
        nnodes=args.nodes,
        node_rank=args.node,
        master_addr=args.master,
        master_port=29507,
        start_method="spawn",
    ) as parallel:
        parallel.run(train, args)


if __name__ == "__main__":
    main()
