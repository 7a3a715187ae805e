"""A sum over processes of MLX's ring, able to fail in the ways that the scenarios ask for."""

import argparse
import json
import os
import time
from pathlib import Path

import mlx.core as mx


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


def main():
    """Sum ten times; MLX reads its rank and its hosts from the environment."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fail", default="")
    parser.add_argument("--hosts", required=True, help="address:port of each rank, by commas")
    parser.add_argument("--rank", type=int, required=True)
    args = parser.parse_args()
    table = Path("ring.json")
    table.write_text(json.dumps([[host] for host in args.hosts.split(",")]))
    os.environ.update(MLX_HOSTFILE=str(table), MLX_RANK=str(args.rank), MLX_RING_VERBOSE="1")
    group = mx.distributed.init(strict=True, backend="ring")
    for step in range(10):
        if step == 6 and args.rank == 1:
            fail(args.fail)
        total = mx.distributed.all_sum(mx.ones(4), group=group)
        mx.eval(total)
        print(f"step {step} loss {total[0].item()} of {group.size()}", flush=True)


main()
