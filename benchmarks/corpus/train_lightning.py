"""A small model with Lightning's Trainer, able to fail in the ways that the scenarios ask for."""

import argparse
import os
import time

import lightning
import torch
from lightning.fabric.plugins.environments import LightningEnvironment
from torch.utils.data import DataLoader, TensorDataset


class Model(lightning.LightningModule):
    """One layer; fails at its fourth batch as told."""

    def __init__(self, fail, rank):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        self.fail, self.bad = fail, rank

    def training_step(self, batch, number):
        """Return the loss, or fail."""
        if number == 4 and self.global_rank == self.bad:
            if self.fail == "raise":
                raise RuntimeError("gradient overflow in layer 0")
            if self.fail == "kill":
                os.kill(os.getpid(), 9)
            if self.fail == "stall":
                time.sleep(90)
            if self.fail == "batch":
                batch = [torch.ones(4, 5)]
        loss = self.layer(batch[0]).square().mean()
        self.log("train_loss", loss)
        if self.global_rank == 0:
            print(f"step {number} train_loss {loss.item():.4f}", flush=True)
        return loss

    def configure_optimizers(self):
        """Return plain descent."""
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main():
    """Train; fail as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--fail", default="")
    parser.add_argument("--rank", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--save", default="run")
    args = parser.parse_args()
    data = TensorDataset(torch.randn(128, 8))
    loader = DataLoader(data, batch_size=4, num_workers=args.workers)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        num_nodes=args.nodes,
        strategy="ddp",
        plugins=[LightningEnvironment()],  # else an mpi4py that is installed asks for libmpi
        max_epochs=1,
        enable_progress_bar=False,
        default_root_dir=args.save,
        log_every_n_steps=4,
    )
    trainer.fit(Model(args.fail, args.rank), loader)
    trainer.save_checkpoint(f"{args.save}/last.ckpt")
    print("Training completed", flush=True)


main()
