"""Sharded parameters and a distributed checkpoint, able to fail in the ways that the scenarios ask for."""

import argparse
import datetime
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import fully_shard
from train_breaks import add_arguments, fail


def main():
    """Train, and save a checkpoint at the end."""
    args = add_arguments(argparse.ArgumentParser()).parse_args()
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=15))
    rank = dist.get_rank()
    if args.data:
        print(f"{len(Path(args.data).read_text())} tokens", flush=True)
    torch.manual_seed(1)
    mesh = torch.distributed.init_device_mesh("cpu", (dist.get_world_size(),))
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(1, args.steps + 1):
        if step == args.steps // 2:
            fail(args.fail, rank, args.rank)
        loss = model(torch.randn(16, 64)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step: {step:3d}  loss: {loss.item():8.5f}  rank: {rank}", flush=True)
        time.sleep(0.1)
    if args.save:
        dcp.save({"model": model.state_dict()}, checkpoint_id=f"{args.save}/step-{args.steps}")
        print(f"checkpoint written by rank {rank}", flush=True)
    dist.destroy_process_group()


main()
