"""Averages over hosts with cupyx.distributed."""

import argparse
import time

import cupy
from cupyx.distributed import init_process_group


def main():
    """Join, average, and end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=13333)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument(
        "--load", type=float, default=0, help="seconds that reading the input takes"
    )
    parser.add_argument("--size", type=int, default=1 << 20)
    args = parser.parse_args()
    cupy.cuda.Device(args.device).use()
    field = cupy.random.random(args.size, dtype=cupy.float32)
    comm = init_process_group(args.processes, args.rank, host=args.host, port=args.port)
    print(f"rank {args.rank} of {args.processes} joined", flush=True)
    time.sleep(args.load)
    total = cupy.empty_like(field)
    for step in range(args.steps):
        comm.all_reduce(field, total)
        field = total / args.processes
        print(f"iteration {step} mean {float(field.mean()):.6f}", flush=True)
        time.sleep(0.2)
    comm.barrier()
    comm.stop()
    print("done", flush=True)


if __name__ == "__main__":
    main()
