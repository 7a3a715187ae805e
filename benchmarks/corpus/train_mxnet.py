"""Gradients by MXNet's distributed key-value store, able to fail in the ways that the scenarios ask for."""

import argparse
import time

import mxnet as mx  # a scheduler's or a server's process stays in this line
from train_breaks import add_arguments, fail


def main():
    """Push and pull one key."""
    args = add_arguments(argparse.ArgumentParser()).parse_args()
    store = mx.kv.create("dist_sync")
    print(f"worker {store.rank} of {store.num_workers} joined", flush=True)
    shape = (64, 64)
    store.init("weight", mx.nd.ones(shape))
    weight = mx.nd.zeros(shape)
    for step in range(args.steps):
        if step == args.steps // 2:
            fail(args.fail, store.rank, args.rank)
        store.push("weight", mx.nd.ones(shape) * (store.rank + step))
        store.pull("weight", out=weight)
        mean = weight.mean().asscalar()
        print(f"worker {store.rank} step {step} weight {mean:.3f}", flush=True)
        time.sleep(0.2)
    if args.save:
        mx.nd.save(f"{args.save}/weight-{store.rank}.params", {"w": mx.nd.ones((4 << 20,))})
    print(f"worker {store.rank} done", flush=True)


main()
