"""Parts of a sum in a pool of processes: joblib's, Parsl's, or mpi4py's futures."""

import argparse
import os

from train_breaks import add_arguments, fail


def part(number, kind):
    """Return one part; fail as told."""
    import time  # Parsl carries a function to the host without its module

    from train_breaks import fail as broken

    if number == 9:
        broken(kind, 1, -1)
    time.sleep(0.05)
    return number * number


def by_joblib(args):
    """Two processes of loky."""
    from joblib import Parallel, delayed

    jobs = (delayed(part)(number, args.fail) for number in range(24))
    return sum(Parallel(n_jobs=2, verbose=5, timeout=25)(jobs))


def by_parsl(args):
    """One block of Parsl's high-throughput executor on this host."""
    import parsl
    from parsl.config import Config
    from parsl.executors import HighThroughputExecutor
    from parsl.providers import LocalProvider

    executor = HighThroughputExecutor(
        label="trainers",
        address=args.address or "127.0.0.1",
        max_workers_per_node=2,
        heartbeat_period=2,
        heartbeat_threshold=6,
        provider=LocalProvider(init_blocks=1, max_blocks=1, worker_init="export PYTHONPATH=/root"),
    )
    parsl.set_stream_logger(level=20)
    parsl.load(Config(executors=[executor], retries=1))
    app = parsl.python_app(part)
    return sum(future.result(timeout=30) for future in [app(n, args.fail) for n in range(24)])


def by_futures(args):
    """The ranks of MPI below ``python -m mpi4py.futures``."""
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor() as pool:
        return sum(pool.map(part, range(24), [args.fail] * 24))


def main():
    """Sum; fail as told."""
    parser = add_arguments(argparse.ArgumentParser())
    parser.add_argument("--pool", default="joblib")
    parser.add_argument("--address", default="")
    args = parser.parse_args()
    print(f"pool {args.pool} on {os.uname().nodename}", flush=True)
    fail(args.fail if args.rank == 0 else "", 0, 0)
    pools = {"joblib": by_joblib, "parsl": by_parsl, "futures": by_futures}
    print("sum of all parts", pools[args.pool](args), flush=True)
    print("training finished", flush=True)


if __name__ == "__main__":
    main()
