"""Workers that torch.multiprocessing starts, sharded by FSDP; the ranks count from the node's number."""

import argparse
import datetime
import os
import time

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel

DEVICE = os.environ.get("TRAIN_DEVICE", "cuda")


def worker(local, args):
    """Train on one device."""
    rank, world = args.node * args.per_node + local, args.nodes * args.per_node
    if DEVICE == "cuda":
        torch.cuda.set_device(local % args.devices)
    dist.init_process_group(
        "nccl" if DEVICE == "cuda" else "gloo",
        init_method=f"tcp://{args.head}:{args.port}",
        rank=rank,
        world_size=world,
        timeout=datetime.timedelta(seconds=args.timeout),
    )
    layers = [torch.nn.Linear(512, 512) for _ in range(4)]
    model = FullyShardedDataParallel(torch.nn.Sequential(*layers).to(DEVICE))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(args.steps):
        loss = model(torch.randn(32, 512, device=DEVICE)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"rank {rank}: step {step}: {loss.item():.5f}", flush=True)
        time.sleep(0.2)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--head", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=23456)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--node", type=int, default=0)
    parser.add_argument("--per-node", type=int, default=1)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--timeout", type=float, default=15)
    options = parser.parse_args()
    torch.multiprocessing.spawn(worker, args=(options,), nprocs=options.per_node)
