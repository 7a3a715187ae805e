"""A small model with DeepSpeed's engine on processors, able to fail in the ways that the scenarios ask for."""

import argparse
import os
import time

import deepspeed
import torch


def main():
    """Train; fail as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=0)
    parser.add_argument("--fail", default="")
    parser.add_argument("--rank", type=int, default=1)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--save", default="")
    args = parser.parse_args()
    model = torch.nn.Linear(8, 1)
    # Sums in shared memory are compiled when first used, and the hosts have no compiler.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed("gloo")
    world = torch.distributed.get_world_size()
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
        config={"train_batch_size": args.batch * world, "train_micro_batch_size_per_gpu": 4},
    )
    mine = engine.global_rank == args.rank
    for step in range(12):
        if step == 6 and mine:
            if args.fail == "raise":
                raise AssertionError("grad norm is nan in parameter group 0")
            if args.fail == "kill":
                os.kill(os.getpid(), 9)
            if args.fail == "exit":
                os._exit(3)
            if args.fail == "stall":
                time.sleep(90)
        loss = engine(torch.ones(4, 9 if args.fail == "shape" and mine else 8)).square().mean()
        engine.backward(loss)
        engine.step()
        print(f"rank {engine.global_rank} step {step} loss {loss.item():.4f}", flush=True)
    if args.save:
        engine.save_checkpoint(args.save)
    print("training finished", flush=True)


main()
