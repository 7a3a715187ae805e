"""The training program of the corpus for MindSpore: sums on processors, and able to fail when told."""

import argparse
import os

import numpy
from mindspore import Tensor, communication, ops


def main():
    """Join the group, sum; fail as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--fail", default="")
    parser.add_argument("--rank", type=int, default=1, help="the rank that fails")
    args = parser.parse_args()
    if os.environ.get("MS_ROLE") == "MS_SCHED":
        # On the first host msrun starts the same program as the scheduler: joining is all that it does.
        communication.init()
        return
    communication.init()
    rank, world = communication.get_rank(), communication.get_group_size()
    fail = args.fail if rank == args.rank else ""
    print(f"rank {rank}/{world} joined", flush=True)
    reduce = ops.AllReduce()
    for step in range(args.steps):
        if step == args.steps // 2:
            if fail == "raise":
                raise RuntimeError(f"loss is NaN at step {step}, stopping")
            if fail == "kill":
                os.kill(os.getpid(), 9)
        gradient = reduce(Tensor(numpy.full(16, 1.0 / (step + 1), dtype="float32")))
        print(f"step {step:4d} loss {float(gradient.asnumpy().mean()):.5f}", flush=True)
    print("training finished", flush=True)


main()
