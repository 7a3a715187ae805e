"""A small language model under DistributedDataParallel, as a user's own script has it."""

import argparse
import datetime
import os
import time

import numpy
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

DEVICE = os.environ.get("TRAIN_DEVICE", "cuda")


class Tokens(Dataset):
    """Sequences of token ids, from a shard on disk where one is named."""

    def __init__(self, args, rank):
        generator = numpy.random.default_rng(rank)
        self.count = args.samples // (rank + 1) if args.uneven else args.samples
        self.length = args.length
        if args.shards:
            self.ids = numpy.load(f"{args.shards}/tokens-{rank:05d}.npy")
        else:
            self.ids = generator.integers(0, args.tokens, size=65536)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        start = index * 7 % (len(self.ids) - self.length)
        return torch.from_numpy(self.ids[start : start + self.length]).long()


class Model(torch.nn.Module):
    """Embedding, two layers and a head; a second head that a loss may not use."""

    def __init__(self, args):
        super().__init__()
        self.embed = torch.nn.Embedding(args.vocab, args.dim)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(args.dim, args.dim),
            torch.nn.GELU(),
            torch.nn.Linear(args.dim, args.dim),
        )
        self.head = torch.nn.Linear(args.dim, args.vocab)
        self.value_head = torch.nn.Linear(args.dim, 1) if args.value_head else None

    def forward(self, ids):
        return self.head(self.layers(self.embed(ids)))


def evaluate(rank):
    """Average a validation loss over the ranks."""
    loss = torch.rand(1, device=DEVICE)
    if rank == 0:
        dist.all_reduce(loss)
        dist.all_reduce(torch.rand(256, device=DEVICE))
    else:
        dist.broadcast(loss, src=0)
    return loss.item()


def train(args, rank):
    """Train for some steps."""
    model = DistributedDataParallel(Model(args).to(DEVICE))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(Tokens(args, rank), batch_size=args.batch, num_workers=args.workers)
    seen = []
    for step, ids in enumerate(loader):
        if step >= args.steps:
            break
        if args.keep:
            seen.extend(ids)
        if args.cache:
            seen.append(numpy.ones(args.cache << 17))
        ids = ids.to(DEVICE, non_blocking=True)
        logits = model(ids[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"[rank {rank}] step {step} loss {loss.item():.4f}", flush=True)
        if args.save and step % 5 == 4 and rank == dist.get_world_size() - 1:
            torch.save(
                {"model": model.state_dict(), "step": step},
                f"{args.save}/step{step}.pt",
            )
        if args.evaluate and step == 5:
            print(f"[rank {rank}] validation {evaluate(rank):.4f}", flush=True)
        time.sleep(args.pause)


def main():
    """Join, train, and end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument(
        "--uneven", action="store_true", help="each rank has its own number of samples"
    )
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=33)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--vocab", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=1000)
    parser.add_argument("--timeout", type=float, default=15)
    parser.add_argument("--backend", default="nccl" if DEVICE == "cuda" else "gloo")
    parser.add_argument("--shards", default="")
    parser.add_argument("--save", default="")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="hold all batches on the host")
    parser.add_argument(
        "--cache", type=int, default=0, help="MiB of features to hold for each step"
    )
    parser.add_argument("--pause", type=float, default=0.2)
    parser.add_argument(
        "--prepare", type=float, default=0, help="seconds that the first rank tokenizes"
    )
    parser.add_argument("--fraction", type=float, default=0, help="most of the GPU's memory to use")
    parser.add_argument("--value-head", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--leave", action="store_true", help="end without destroying the group")
    args = parser.parse_args()
    if DEVICE == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        if args.fraction:
            torch.cuda.set_per_process_memory_fraction(args.fraction)
    timeout = datetime.timedelta(seconds=args.timeout)
    dist.init_process_group(args.backend or None, timeout=timeout)
    rank = dist.get_rank()
    print(f"[rank {rank}] joined a world of {dist.get_world_size()}", flush=True)
    if args.backend != "nccl":
        counts = torch.tensor([args.samples])
        dist.all_reduce(counts)
        print(f"[rank {rank}] {counts.item()} samples in all", flush=True)
    if args.prepare and rank == 0:
        print("tokenizing the corpus on rank 0 ...", flush=True)
        time.sleep(args.prepare)
    train(args, rank)
    if not args.leave:
        dist.destroy_process_group()
    print(f"[rank {rank}] training finished", flush=True)


if __name__ == "__main__":
    main()
