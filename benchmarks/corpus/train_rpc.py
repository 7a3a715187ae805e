"""Remote calls between two workers with torch.distributed.rpc, able to fail as the scenarios ask for."""

import argparse
import os
import time
from pathlib import Path

import torch
from torch.distributed import rpc


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


def work(step, kind):
    """What the other worker does."""
    if step == 6:
        fail(kind)
    return torch.ones(4) * step


def main():
    """Worker 0 calls worker 1."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fail", default="")
    parser.add_argument("--master", required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--timeout", type=int, default=15)
    args = parser.parse_args()
    options = rpc.TensorPipeRpcBackendOptions(
        init_method=f"tcp://{args.master}:29533", rpc_timeout=args.timeout
    )
    rpc.init_rpc(f"worker{args.rank}", rank=args.rank, world_size=2, rpc_backend_options=options)
    if args.rank == 0:
        for step in range(10):
            total = rpc.rpc_sync("worker1", work, args=(step, args.fail)).sum()
            print(f"step {step} loss {float(total)}", flush=True)
    rpc.shutdown()
    print("training finished", flush=True)


main()
