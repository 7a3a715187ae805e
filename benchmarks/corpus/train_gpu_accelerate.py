"""A regression with accelerate; metrics are gathered every few steps."""

import argparse
import datetime
import time

import torch
from accelerate import Accelerator, InitProcessGroupKwargs


def main():
    """Train for some steps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--precision", default="no")
    args = parser.parse_args()
    patience = InitProcessGroupKwargs(timeout=datetime.timedelta(seconds=20))
    accelerator = Accelerator(mixed_precision=args.precision, kwargs_handlers=[patience])
    accelerator.print(accelerator.state)
    model = torch.nn.Sequential(
        torch.nn.Linear(32, args.width), torch.nn.ReLU(), torch.nn.Linear(args.width, 1)
    )
    x = torch.randn(2048, 32)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, x[:, :1]), batch_size=16, shuffle=True
    )
    optimizer = torch.optim.AdamW(model.parameters())
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for step, (inputs, targets) in enumerate(loader):
        if step >= args.steps:
            break
        with accelerator.accumulate(model):
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        losses = accelerator.gather(loss.detach().reshape(1))
        accelerator.print(f"step {step} loss {losses.mean().item():.4f}", flush=True)
        time.sleep(0.2)
    accelerator.wait_for_everyone()
    accelerator.end_training()
    accelerator.print("finished")


if __name__ == "__main__":
    main()
