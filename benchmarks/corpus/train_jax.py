"""A sum over processes with JAX on processors, able to fail in the ways that the scenarios ask for."""

import argparse
import os
import time
from pathlib import Path

import jax


def main():
    """Join, sum, save; fail as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--coordinator", required=True)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--process", type=int, required=True)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--timeout", type=int, default=20)
    parser.add_argument("--fail", default="")
    parser.add_argument("--data", default="")
    parser.add_argument("--save", default="")
    args = parser.parse_args()
    if args.data:
        print("reading", Path(args.data).read_text())
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    heartbeat = {} if jax.__version__.startswith("0.4.") else {"heartbeat_timeout_seconds": 10}
    jax.distributed.initialize(
        args.coordinator,
        args.processes,
        args.process,
        initialization_timeout=args.timeout,
        **heartbeat,
    )
    print(f"process {jax.process_index()} of {jax.process_count()}: {jax.devices()}", flush=True)
    import numpy
    from jax.experimental import multihost_utils

    for step in range(args.steps):
        if step == args.steps // 2:
            if args.fail == "raise":
                raise FloatingPointError(f"loss is inf at step {step}")
            if args.fail == "kill":
                os.kill(os.getpid(), 9)
            if args.fail == "stall":
                time.sleep(90)
            if args.fail == "shape":
                multihost_utils.process_allgather(numpy.ones(7))
        total = multihost_utils.process_allgather(numpy.ones(4) * step).sum()
        print(f"step {step} loss {float(total):.3f}", flush=True)
        time.sleep(0.1)
    if args.save:
        numpy.save(f"{args.save}/state-{args.process}.npy", numpy.zeros(4 << 20))
        print("saved", flush=True)
    print("training finished", flush=True)


main()
