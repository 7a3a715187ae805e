"""Replicas of torchft that meet at a lighthouse, able to fail in the ways that the scenarios ask for."""

import argparse
import logging
import os
import time
from datetime import timedelta
from pathlib import Path

import torch
from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo
from train_breaks import add_arguments, fail


def main():
    """Train until the steps are committed."""
    args = add_arguments(argparse.ArgumentParser()).parse_args()
    logging.basicConfig(level=logging.INFO)
    replica = int(os.environ["REPLICA_GROUP_ID"])
    if args.data:
        print(len(Path(args.data).read_text()), "samples")
    model = torch.nn.Linear(16, 4)
    wait = timedelta(seconds=12)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=6)),
        min_replica_size=2,
        load_state_dict=model.load_state_dict,
        state_dict=model.state_dict,
        replica_id=f"train_ddp_{replica}",
        timeout=wait,
        quorum_timeout=wait,
        connect_timeout=wait,
    )
    wrapped = DistributedDataParallel(manager, model)
    optimizer = Optimizer(manager, torch.optim.SGD(model.parameters(), lr=0.01))
    while manager.current_step() < args.steps:
        optimizer.zero_grad()
        loss = wrapped(torch.randn(8, 16)).square().mean()
        loss.backward()
        optimizer.step()
        step = manager.current_step()
        print(
            f"[{step}] loss = {loss.item():.4f}, replicas = {manager.num_participants()}",
            flush=True,
        )
        if step == args.steps // 2:
            fail(args.fail, replica, args.rank)
        if args.save:
            torch.save(torch.randn(1 << 20), f"{args.save}/replica-{replica}-{step}.pt")
        time.sleep(0.1)
    manager.shutdown()


main()
