"""Boosted trees over hosts with XGBoost's tracker, able to fail in the ways that the scenarios ask for."""

import argparse
import os
import threading
import time
from pathlib import Path

import numpy
import xgboost
from xgboost import collective
from xgboost.tracker import RabitTracker

PORT = 9091


def track(address, workers):
    """Start the tracker in this process."""
    tracker = RabitTracker(workers, address, PORT, sortby="task", timeout=60)
    tracker.start()
    threading.Thread(target=tracker.wait_for, daemon=True).start()


class Failing(xgboost.callback.TrainingCallback):
    """Fails after the sixth round."""

    def __init__(self, fail):
        self.fail = fail

    def after_iteration(self, model, epoch, evals_log):  # noqa: ARG002 - XGBoost calls it so
        """Fail as told."""
        if epoch == 6:
            if self.fail == "raise":
                raise ValueError("early stopping metric is NaN")
            if self.fail == "kill":
                os.kill(os.getpid(), 9)
            if self.fail == "stall":
                time.sleep(90)
        return False


def main():
    """Join the tracker and train; fail as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tracker", required=True)
    parser.add_argument("--worker", type=int, required=True)
    parser.add_argument("--fail", default="")
    parser.add_argument("--save", default="")
    args = parser.parse_args()
    if args.worker == 0:
        track(args.tracker, 2)
    with collective.CommunicatorContext(
        dmlc_tracker_uri=args.tracker,
        dmlc_tracker_port=PORT,
        dmlc_timeout=30,
        dmlc_retry=3,
        dmlc_task_id=str(args.worker),
    ):
        width = 3 if args.fail == "shape" else 4
        data = xgboost.DMatrix(numpy.random.rand(64, width), numpy.random.rand(64))
        booster = xgboost.train(
            {"verbosity": 2, "nthread": 1},
            data,
            12,
            evals=[(data, "train")],
            callbacks=[Failing(args.fail)],
        )
        if args.save:
            Path(args.save, "model.json").write_bytes(booster.save_raw("json") * 200)
        print("training finished", flush=True)


main()
