"""A training loop that says everything by a logger: loguru, structlog, rich or Hydra's, under torchrun."""

import argparse
import datetime
import logging
import os
import sys

import torch
import torch.distributed as dist
from train_breaks import add_arguments, fail


def logger_of(kind, rank):
    """Return what logs lines and exceptions in the form of a library."""
    if kind == "loguru":
        from loguru import logger

        return logger.bind(rank=rank)
    if kind == "structlog":
        import structlog

        steps = [
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ]
        structlog.configure(processors=steps)
        return structlog.get_logger(rank=rank)
    from rich.logging import RichHandler

    handler = RichHandler(rich_tracebacks=True, tracebacks_show_locals=True)
    logging.basicConfig(level="INFO", format="%(message)s", datefmt="[%X]", handlers=[handler])
    return logging.getLogger(f"rank{rank}")


def train(args, log):
    """Join, step, save; fail as told."""
    rank = int(os.environ.get("RANK", 0))
    log.info(f"joining {os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}")
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=15))
    log.info(f"joined as {dist.get_rank()} of {dist.get_world_size()}")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(args.steps):
        if step == args.steps // 2:
            fail(args.fail, rank, args.rank)
        loss = model(torch.randn(8, 16)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        log.info(f"step={step} loss={loss.item():.4f}")
    dist.destroy_process_group()
    log.info("done")


def main():
    """Train, and log what goes wrong."""
    parser = add_arguments(argparse.ArgumentParser())
    parser.add_argument("--logger", default="loguru")
    args = parser.parse_args()
    log = logger_of(args.logger, int(os.environ.get("RANK", 0)))
    try:
        train(args, log)
    except Exception:
        log.exception("training failed")
        sys.exit(1)


main()
