"""A small model with Accelerate on processors, able to fail in the ways that the scenarios ask for."""

import argparse
import os
import time

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset


def main():
    """Train; fail as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fail", default="")
    parser.add_argument("--rank", type=int, default=1)
    parser.add_argument("--save", default="")
    args = parser.parse_args()
    accelerator = Accelerator(cpu=True)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(torch.ones(96, 8)), batch_size=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    mine = accelerator.process_index == args.rank
    for step, (batch,) in enumerate(loader):
        if step == 6 and mine:
            if args.fail == "raise":
                raise KeyError("labels")
            if args.fail == "kill":
                os.kill(os.getpid(), 9)
            if args.fail == "stall":
                time.sleep(90)
        loss = model(batch).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        accelerator.print(f"step {step} loss {loss.item():.4f}")
    if args.save:
        accelerator.save_state(args.save)
    accelerator.print("training finished")


main()
