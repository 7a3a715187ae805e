"""Gradients of parts of the data by Celery's workers, summed by whom asks for them."""

import argparse
import os
import sys

from celery import Celery, group
from train_breaks import add_arguments, fail

BROKER = os.environ.get("BROKER", "redis://127.0.0.1:6379/0")
app = Celery("trainer", broker=BROKER, backend=BROKER)
app.conf.update(
    task_acks_late=True,
    broker_connection_retry_on_startup=True,
    redis_socket_connect_timeout=4,
    worker_prefetch_multiplier=1,
    result_expires=600,
)


@app.task(name="trainer.gradient")
def gradient(part, kind):
    """Return the gradient of one part."""
    if part == 3:
        fail(kind, 1, -1)
    return sum(x * x for x in range(part * 1000)) % 97


def main():
    """Ask for eight gradients, some times."""
    args = add_arguments(argparse.ArgumentParser()).parse_args()
    for step in range(1, args.steps + 1):
        parts = group(gradient.s(part, args.fail if step == 4 else "") for part in range(8))
        values = parts.apply_async().get(timeout=15)
        print(f"step {step} gradient {sum(values)}", flush=True)


if __name__ == "__main__" and "worker" not in sys.argv:
    main()
