"""A sum with TensorFlow's MultiWorkerMirroredStrategy, able to fail in the ways that the scenarios ask for."""

import argparse
import json
import os
import time

import tensorflow as tf


def main():
    """Join the cluster and train; fail as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", required=True, help="addresses with ports, by commas")
    parser.add_argument("--index", type=int, required=True)
    parser.add_argument("--fail", default="")
    args = parser.parse_args()
    task = {"type": "worker", "index": args.index}
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": {"worker": args.workers.split(",")}, "task": task}
    )
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=20)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)

    @tf.function
    def total(value):
        def replica():
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.constant([value]))

        return strategy.run(replica)

    for step in range(12):
        if step == 6:
            if args.fail == "raise":
                raise ValueError("label 11 is outside the range of 10 classes")
            if args.fail == "kill":
                os.kill(os.getpid(), 9)
            if args.fail == "stall":
                time.sleep(90)
        print(
            f"step {step} loss {float(strategy.experimental_local_results(total(1.0))[0][0]):.3f}",
            flush=True,
        )
        time.sleep(0.05)
    print("training finished", flush=True)


main()
