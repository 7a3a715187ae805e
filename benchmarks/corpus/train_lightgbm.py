"""Boosted trees over hosts with LightGBM's sockets, able to fail in the ways that the scenarios ask for."""

import argparse
import os
import time

import lightgbm
import numpy


def main():
    """Join the machines and train; fail as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--machines", required=True)
    parser.add_argument("--port", type=int, default=12400)
    parser.add_argument("--fail", default="")
    args = parser.parse_args()

    def failing(env):
        if env.iteration == 6:
            if args.fail == "raise":
                raise RuntimeError("validation set is empty")
            if args.fail == "kill":
                os.kill(os.getpid(), 9)
            if args.fail == "stall":
                time.sleep(90)
        print(f"iteration {env.iteration} l2 {env.iteration / 10:.2f}", flush=True)

    lightgbm.train(
        {
            "objective": "regression",
            "machines": args.machines,
            "num_machines": 2,
            "local_listen_port": args.port,
            "time_out": 1,
            "tree_learner": "data",
            "num_threads": 1,
            "verbosity": 1,
        },
        lightgbm.Dataset(numpy.random.rand(512, 4), numpy.random.rand(512)),
        12,
        callbacks=[failing],
    )
    print("training finished", flush=True)


main()
