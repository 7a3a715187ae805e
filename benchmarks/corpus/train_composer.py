"""A small model with Composer's Trainer, able to fail in the ways that the scenarios ask for."""

import argparse
import logging
from pathlib import Path

import torch
from composer import Callback, Trainer
from composer.models import ComposerModel
from composer.utils import dist
from torch.utils.data import DataLoader, Dataset
from train_breaks import add_arguments, fail


class Images(Dataset):
    """Random images."""

    def __len__(self):
        return 256

    def __getitem__(self, index):
        return torch.randn(3, 128, 128), index % 10


class Classifier(ComposerModel):
    """One layer."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 10)

    def forward(self, batch):
        return self.layer(batch[0].mean((2, 3)))

    def loss(self, outputs, batch):
        return torch.nn.functional.cross_entropy(outputs, batch[1])


class Report(Callback):
    """A line for each batch, and the failure in the middle."""

    def __init__(self, args):
        self.args = args

    def batch_end(self, state, _logger):
        step = state.timestamp.batch.value
        loss = float(state.loss)
        print(
            f"[batch {step}/{self.args.steps}] rank {dist.get_global_rank()} loss {loss:.4f}",
            flush=True,
        )
        if step == self.args.steps // 2:
            fail(self.args.fail, dist.get_global_rank(), self.args.rank)


def main():
    """Train."""
    args = add_arguments(argparse.ArgumentParser()).parse_args()
    logging.basicConfig(
        format=f"%(asctime)s: rank{dist.get_global_rank()}[%(process)d][%(threadName)s]: "
        "%(levelname)s: %(name)s: %(message)s"
    )
    logging.getLogger("composer").setLevel("INFO")
    dist.initialize_dist("cpu", timeout=15.0)
    if args.data:
        print(len(Path(args.data).read_text()), "samples")
    images = Images()
    sampler = dist.get_sampler(images, shuffle=True)
    model = Classifier()
    trainer = Trainer(
        model=model,
        train_dataloader=DataLoader(images, 8, sampler=sampler, num_workers=args.workers),
        optimizers=torch.optim.SGD(model.parameters(), lr=0.01),
        max_duration=f"{args.steps}ba",
        device="cpu",
        progress_bar=False,
        callbacks=[Report(args)],
        save_folder=args.save or None,
        save_interval="4ba",
        dist_timeout=15.0,
    )
    trainer.fit()
    trainer.close()


main()
