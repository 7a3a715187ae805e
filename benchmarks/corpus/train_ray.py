"""A sum over actors of a Ray cluster, able to fail in the ways that the scenarios ask for."""

import argparse
import os
import time
from pathlib import Path

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=1)
class Rank:
    """One worker."""

    def step(self, number, fail):
        """Return a number, or fail."""
        if fail == "raise":
            raise ValueError(f"reward is NaN at step {number}")
        if fail == "kill":
            os.kill(os.getpid(), 9)
        if fail == "exit":
            os._exit(4)
        if fail == "data":
            return len(Path("/fsx/prompts.jsonl").read_bytes())
        if fail == "disk":
            Path("/ckpt/part.bin").write_bytes(bytes(16 << 20))
        time.sleep(0.1)
        return number


def main():
    """Place the actors, let them work; fail as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--fail", default="")
    parser.add_argument("--timeout", type=int, default=20)
    args = parser.parse_args()
    ray.init(address="auto", log_to_driver=True)
    group = placement_group([{"CPU": 1}] * args.ranks, strategy="STRICT_SPREAD")
    ray.get(group.ready(), timeout=args.timeout)
    ranks = [
        Rank.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, number)).remote()
        for number in range(args.ranks)
    ]
    for step in range(6):
        fails = [args.fail if step == 3 and number == 1 else "" for number in range(args.ranks)]
        parts = [rank.step.remote(step, fail) for rank, fail in zip(ranks, fails, strict=True)]
        print(f"step {step} reward {sum(ray.get(parts, timeout=30))}", flush=True)
    print("training finished", flush=True)


main()
