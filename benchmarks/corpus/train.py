"""The training program of the corpus: small, real, and able to fail in the ways that the scenarios ask for."""

import argparse
import ctypes
import datetime
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    """Random images; each worker opens a file where it is told to."""

    def __init__(self, fail):
        self.fail = fail

    def __len__(self):
        return 64

    def __getitem__(self, index):
        if self.fail == "sample":
            raise ValueError(f"corrupt sample {index}: expected 3 channels, got 1")
        return torch.randn(3, 256, 256), index % 10


def before(what):
    """Fail before the group is made."""
    if what == "library":
        ctypes.CDLL("libcudart.so.12")
    if what == "npu-library":
        ctypes.CDLL("libhccl.so")
    if what == "module":
        import flash_attention_kernels  # noqa: F401
    if what == "data":
        Path("/mnt/datasets/imagenet/index.json").read_text()
    if what == "config":
        print({"lr": 1e-3}["learning_rate"])
    if what == "memory":
        torch.empty(2**44, dtype=torch.float32)


def main():
    """Join the group, train, save; fail as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--timeout", type=float, default=15)
    parser.add_argument("--fail", default="")
    parser.add_argument("--rank", type=int, default=0, help="the rank that fails; -1: all")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--save", default="")
    parser.add_argument("--pause", type=float, default=0.05)
    args = parser.parse_args()
    mine = args.rank in (-1, int(os.environ.get("RANK", 0)))
    fail = args.fail if mine else ""
    before(fail)
    torch.manual_seed(0)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=args.timeout))
    rank, world = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank}/{world} joined", flush=True)
    out = 9 if fail == "shapes" else 8
    model = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(16, out), torch.nn.Linear(out, 1)
    )
    if fail == "unused":
        model.register_module("extra", torch.nn.Linear(4, 4))
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if args.workers:
        for images, _ in DataLoader(Images(fail), batch_size=16, num_workers=args.workers):
            print(f"loaded {tuple(images.shape)}", flush=True)
    for step in range(args.steps):
        loss = model(torch.randn(8, 4, 4)).square().mean()
        if step == args.steps // 2:
            if fail == "raise":
                raise RuntimeError(f"loss is NaN at step {step}, stopping")
            if fail == "assert":
                assert loss < 0, f"unexpected loss {loss.item():.3f}"
            if fail == "kill":
                os.kill(os.getpid(), 9)
            if fail == "segv":
                ctypes.string_at(0)
            if fail == "exit":
                sys.exit(3)
            if fail == "stall":
                time.sleep(60)
            if fail == "shape":
                model(torch.randn(8, 4, 5))
            if fail == "extra":
                dist.all_reduce(torch.ones(4))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"step {step:4d} loss {loss.item():.5f} lr 1.0e-02", flush=True)
        time.sleep(args.pause)
    if args.save:
        torch.save({"w": torch.randn(4 << 20)}, f"{args.save}/checkpoint-{rank}.pt")
        print("saved", flush=True)
    dist.destroy_process_group()
    if rank == 0:
        print("training finished", flush=True)


main()
