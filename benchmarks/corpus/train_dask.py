"""Sums on the workers of a Dask cluster, able to fail in the ways that the scenarios ask for."""

import argparse
import os
import time
from pathlib import Path

from dask.distributed import Client, wait


def work(step, fail):
    """Return a number, or fail on the worker."""
    if fail == "raise":
        raise ValueError(f"shard {step} is corrupt")
    if fail == "kill":
        os.kill(os.getpid(), 9)
    if fail == "disk":
        Path("/ckpt/part.bin").write_bytes(bytes(16 << 20))
    if fail == "data":
        return len(Path("/fsx/data/part.bin").read_bytes())
    if fail == "memory":
        return len(bytes(1 << 44))
    time.sleep(0.1)
    return step


def main():
    """Wait for the workers, give them work; fail as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("scheduler")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--fail", default="")
    args = parser.parse_args()
    client = Client(args.scheduler, timeout="8s")
    client.wait_for_workers(args.workers, timeout=40)
    print(f"{args.workers} workers are there", flush=True)
    for step in range(6):
        fail = args.fail if step == 3 else ""
        futures = client.map(work, range(4 * step, 4 * step + 4), fail=fail)
        wait(futures, timeout=40)
        print(f"step {step} sum {sum(client.gather(futures))}", flush=True)
    print("training finished", flush=True)


main()
