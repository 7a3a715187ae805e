"""A tiny GPT-2 from a config under the Trainer of transformers."""

import argparse
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments


class Sentences(torch.utils.data.Dataset):
    """Random token ids."""

    def __init__(self, tokens):
        self.ids = torch.randint(0, tokens, (512, 64), generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index]}


class Slowly(TrainerCallback):
    """A pause after each step."""

    def on_step_end(self, args, state, control, **rest):  # noqa: ARG002
        time.sleep(0.2)


def main():
    """Train, with checkpoints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", default="checkpoints")
    parser.add_argument("--vocab", type=int, default=2000)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--width", type=int, default=256)
    args = parser.parse_args()
    config = GPT2Config(
        vocab_size=args.vocab, n_positions=64, n_embd=args.width, n_layer=2, n_head=4
    )
    settings = TrainingArguments(
        output_dir=args.output,
        max_steps=args.steps,
        per_device_train_batch_size=8,
        logging_steps=5,
        save_steps=10,
        report_to="none",
        disable_tqdm=True,
        ddp_timeout=20,
        save_on_each_node=True,
    )
    model = GPT2LMHeadModel(config)
    trainer = Trainer(
        model=model, args=settings, train_dataset=Sentences(args.tokens), callbacks=[Slowly()]
    )
    trainer.train()
    print("training finished", flush=True)


if __name__ == "__main__":
    main()
