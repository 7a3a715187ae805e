"""A tiny GPT-2 with the Trainer of transformers, able to fail in the ways that the scenarios ask for."""

import argparse
import os
from pathlib import Path

import torch
from torch.utils.data import Dataset
from train_breaks import add_arguments, fail
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments


class Tokens(Dataset):
    """Random tokens."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return 512

    def __getitem__(self, _index):
        tokens = torch.randint(0, 100, (self.length,))
        return {"input_ids": tokens, "labels": tokens}


class Middle(TrainerCallback):
    """The failure in the middle."""

    def __init__(self, args):
        self.args = args

    def on_step_end(self, args, state, _control, **_):
        if state.global_step == self.args.steps // 2:
            fail(self.args.fail, args.process_index, self.args.rank)


def main():
    """Train."""
    parser = add_arguments(argparse.ArgumentParser())
    parser.add_argument("--length", type=int, default=32)
    args = parser.parse_args()
    if args.data:
        print(len(Path(args.data).read_text()), "documents")
    settings = TrainingArguments(
        output_dir=args.save or "/tmp/out",  # noqa: S108
        max_steps=args.steps,
        per_device_train_batch_size=4,
        logging_steps=2,
        save_strategy="steps" if args.save else "no",
        save_steps=4,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        ddp_timeout=15,
        ddp_backend="gloo",
        dataloader_num_workers=args.workers,
        log_level="info",
    )
    print(f"rank {os.environ.get('RANK')} of {os.environ.get('WORLD_SIZE')} starts", flush=True)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=100, n_positions=args.length, n_embd=32, n_layer=2, n_head=2)
    )
    trainer = Trainer(
        model=model, args=settings, train_dataset=Tokens(args.length), callbacks=[Middle(args)]
    )
    trainer.train()


main()
