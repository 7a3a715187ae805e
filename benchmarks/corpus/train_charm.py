"""Reductions over the processes of charm4py, able to fail in the ways that the scenarios ask for."""

import argparse
import sys

from charm4py import Chare, Future, Group, Reducer, charm
from train_breaks import add_arguments, fail


class Worker(Chare):
    """One part of the data."""

    def step(self, number, args, done):
        if number == args.steps // 2:
            fail(args.fail, self.thisIndex, args.rank)
        self.reduce(done, float(number), Reducer.sum)


def main(argv):
    """Sum over the processes."""
    args = add_arguments(argparse.ArgumentParser()).parse_args(argv[1:])
    workers = Group(Worker)
    for number in range(args.steps):
        done = Future()
        workers.step(number, args, done)
        print(f"iteration {number} sum {done.get()}", flush=True)
    sys.stdout.flush()
    charm.exit()


charm.start(main)
