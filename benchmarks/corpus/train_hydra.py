"""The loop of ``train_logged`` as an application of Hydra, whose logging and whose error it is."""

import datetime
import logging
import os

import hydra
import torch
import torch.distributed as dist
from omegaconf import DictConfig
from train_breaks import fail

log = logging.getLogger(__name__)


@hydra.main(version_base=None, config_path=None)
def main(config: DictConfig) -> None:
    """Join, step; fail as told."""
    rank = int(os.environ.get("RANK", 0))
    log.info("starting rank %d with %s", rank, dict(config))
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=15))
    values = torch.ones(8)
    for step in range(12):
        if step == 6:
            fail(config.get("fail", ""), rank, config.get("rank", 1))
        dist.all_reduce(values)
        log.info("step %d sum %.1f", step, values[0].item())
        values.fill_(1)
    log.info("lr was %s", config.get("lr", 0.1))
    dist.destroy_process_group()
    log.info("finished")


main()
