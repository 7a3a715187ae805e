"""A small classifier with Lightning on several nodes."""

import argparse
import datetime
import os
import time

import torch

try:
    import lightning
    from lightning.pytorch.callbacks import ModelCheckpoint
    from lightning.pytorch.strategies import DDPStrategy
except ImportError:
    import pytorch_lightning as lightning
    from pytorch_lightning.callbacks import ModelCheckpoint
    from pytorch_lightning.strategies import DDPStrategy


class Classifier(lightning.LightningModule):
    """Two layers."""

    def __init__(self, width):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 10)
        )

    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.layers(x), y)
        self.log("train_loss", loss, sync_dist=True)
        if index % 5 == 0:
            print(f"step {index} loss {loss.item():.4f}", flush=True)
        time.sleep(0.1)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    """Train for two epochs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--samples", type=int, default=1280)
    parser.add_argument("--root", default="lightning")
    parser.add_argument("--save-every", type=int, default=10)
    args = parser.parse_args()
    data = torch.utils.data.TensorDataset(
        torch.randn(args.samples, 64), torch.randint(0, 10, (args.samples,))
    )
    trainer = lightning.Trainer(
        accelerator=os.environ.get("TRAIN_DEVICE", "gpu"),
        devices=args.devices,
        num_nodes=args.nodes,
        strategy=DDPStrategy(timeout=datetime.timedelta(seconds=15)),
        max_epochs=2,
        default_root_dir=args.root,
        logger=False,
        enable_progress_bar=False,
        callbacks=[ModelCheckpoint(args.root, every_n_train_steps=args.save_every, save_top_k=-1)],
    )
    trainer.fit(Classifier(args.width), torch.utils.data.DataLoader(data, batch_size=32))


if __name__ == "__main__":
    main()
