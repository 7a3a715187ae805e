"""Stages of a pipeline of torch, each a task of submitit or a role of a launcher."""

import argparse
import datetime
import os
import time

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from train_breaks import add_arguments, fail


def train(args):
    """Run one stage."""
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=15))
    rank, world = dist.get_rank(), dist.get_world_size()
    module = torch.nn.Linear(32, 32)
    stage = PipelineStage(module, rank, world, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=torch.nn.functional.mse_loss)
    for step in range(args.steps):
        if step == args.steps // 2:
            fail(args.fail, rank, args.rank)
        losses = []
        if rank == 0:
            schedule.step(torch.randn(8, 32))
        else:
            schedule.step(target=torch.randn(8, 32), losses=losses)
            print(f"step={step} loss={torch.stack(losses).mean():.4f}", flush=True)
        time.sleep(0.1)
    if args.save:
        torch.save({"stage": torch.randn(4 << 20)}, f"{args.save}/stage{rank}.pt")
    dist.destroy_process_group()


def main():
    """Take part, or submit a job of two tasks."""
    parser = add_arguments(argparse.ArgumentParser())
    parser.add_argument("--submit", action="store_true")
    parser.add_argument("--minutes", type=int, default=2)
    args = parser.parse_args()
    if not args.submit:
        train(args)
        return
    import submitit

    executor = submitit.LocalExecutor(folder="log")
    executor.update_parameters(tasks_per_node=2, timeout_min=args.minutes, nodes=1, gpus_per_node=0)
    job = executor.submit(Task(args))
    print(f"submitted {job.job_id}", flush=True)
    job.results()
    print("done", flush=True)


class Task:
    """One stage as a task of submitit."""

    def __init__(self, args):
        self.args = args

    def __call__(self):
        import submitit

        environment = submitit.JobEnvironment()
        os.environ.update(
            RANK=str(environment.global_rank),
            WORLD_SIZE=str(environment.num_tasks),
            MASTER_ADDR=os.environ.get("MASTER_ADDR", "127.0.0.1"),
            MASTER_PORT="29519",
        )
        train(self.args)


if __name__ == "__main__":
    main()
