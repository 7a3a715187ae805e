"""A model with PySpark's TorchDistributor, able to fail in the ways that the scenarios ask for."""

import argparse

from pyspark.ml.torch.distributor import TorchDistributor
from pyspark.sql import SparkSession
from train_breaks import add_arguments


def train(kind, failing, steps, save):
    """Train in a process that an executor starts; its program is not the driver's."""
    import datetime
    import os
    import sys
    import time

    import torch
    import torch.distributed as dist

    sys.path.insert(0, "/root")
    from train_breaks import fail

    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=12))
    rank = dist.get_rank()
    print(f"rank {rank} of {dist.get_world_size()} pid {os.getpid()}", flush=True)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 1))
    for step in range(steps):
        if step == steps // 2:
            fail(kind, rank, failing)
        loss = model(torch.randn(8, 16)).square().mean()
        loss.backward()
        print(f"rank {rank} step {step} loss {loss.item():.4f}", flush=True)
        time.sleep(0.1)
    if save:
        torch.save(torch.randn(4 << 20), f"{save}/model-{rank}.pt")
    dist.destroy_process_group()
    return float(loss)


def main():
    """Drive."""
    parser = add_arguments(argparse.ArgumentParser())
    parser.add_argument("--master", default="local[2]")
    args = parser.parse_args()
    spark = (
        SparkSession.builder.master(args.master)
        .appName("trainer")
        .config("spark.executor.memory", "1g")
        .config("spark.executor.cores", "1")
        .config("spark.cores.max", "2")
        .config("spark.network.timeout", "30s")
        .config("spark.executor.heartbeatInterval", "5s")
        .getOrCreate()
    )
    job = TorchDistributor(num_processes=2, local_mode=False, use_gpu=False)
    loss = job.run(train, args.fail, args.rank, args.steps, args.save)
    print(f"training finished with loss {loss:.4f}", flush=True)
    spark.stop()


main()
