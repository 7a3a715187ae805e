"""A few linear layers with Lightning Fabric, able to fail in the ways that the scenarios ask for."""

import argparse
import time

import torch
from lightning_fabric import Fabric
from torch.utils.data import DataLoader, TensorDataset
from train_breaks import add_arguments, fail


def main():
    """Train; what the launcher asks for is what Fabric takes."""
    args = add_arguments(argparse.ArgumentParser()).parse_args()
    fabric = Fabric()
    fabric.seed_everything(7)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    model, optimizer = fabric.setup(model, torch.optim.AdamW(model.parameters()))
    data = TensorDataset(torch.randn(512, 64))
    loader = fabric.setup_dataloaders(DataLoader(data, batch_size=8, num_workers=args.workers))
    fabric.print(f"world size {fabric.world_size}")
    step = 0
    while step < args.steps:
        for (batch,) in loader:
            if step == args.steps // 2:
                fail(args.fail, fabric.global_rank, args.rank)
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            fabric.backward(loss)
            optimizer.step()
            step += 1
            if step % 4 == 0:
                mean = fabric.all_reduce(loss)
                fabric.print(f"iter {step} train/loss {mean.item():.4f}")
            time.sleep(0.1)
            if step >= args.steps:
                break
    if args.save:
        fabric.save(f"{args.save}/fabric.ckpt", {"model": model, "tokens": torch.randn(4 << 20)})
    fabric.print("finished")


main()
