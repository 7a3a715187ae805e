"""A training program over NCCL, each rank on the first GPU of its host; able to fail as told."""

import argparse
import datetime
import os
import time

import torch
import torch.distributed as dist


def fail(what, rank, step):
    """Do at this step what the scenario asks for."""
    if what == "raise":
        raise RuntimeError(f"loss is NaN at step {step}, stopping")
    if what == "kill":
        os.kill(os.getpid(), 9)
    if what == "stall":
        time.sleep(3600)
    if what == "exit":
        raise SystemExit(0)
    if what == "memory":
        torch.empty(2**44, dtype=torch.uint8, device="cuda")
    if what == "assert":
        torch.nn.Embedding(10, 4).cuda()(torch.tensor([10], device="cuda"))
        torch.cuda.synchronize()
    if what == "disk":
        torch.save(torch.zeros(1000, 1000), "/dev/full")
    if what == "shm":
        for _ in torch.utils.data.DataLoader([torch.zeros(2**25)] * 4, num_workers=2):
            pass
    if what == "sizes":
        dist.all_reduce(torch.ones(1024 * (rank + 1), device="cuda"))
    if what == "order":
        tensor = torch.ones(1024, device="cuda")
        dist.broadcast(tensor, 0) if rank else dist.all_gather(
            [tensor.clone(), tensor.clone()], tensor
        )
        torch.cuda.synchronize()


def main():
    """Join, train, and end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--timeout", type=float, default=20)
    parser.add_argument("--fail", default="")
    parser.add_argument("--rank", type=int, default=1, help="the rank that fails; -1: all")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--width", type=int, default=256)
    args = parser.parse_args()
    torch.cuda.set_device(args.device)
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=args.timeout))
    rank, world = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank}/{world} joined", flush=True)
    width = args.width
    layers = [
        torch.nn.Linear(16, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, width),
        torch.nn.Linear(width, 1),
    ]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(args.steps):
        loss = model(torch.randn(8, 16, device="cuda")).square().mean()
        if step == args.steps // 2 and args.fail and args.rank in (-1, rank):
            fail(args.fail, rank, step)
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}", flush=True)
        time.sleep(0.2)
    dist.destroy_process_group()
    print(f"rank {rank} done", flush=True)


main()
