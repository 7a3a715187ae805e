"""A sum over ranks with mpi4py, able to fail in the ways that the scenarios ask for."""

import argparse
import os
import time
from pathlib import Path

from mpi4py import MPI


def main():
    """Sum; fail as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fail", default="")
    parser.add_argument("--rank", type=int, default=1)
    args = parser.parse_args()
    world = MPI.COMM_WORLD
    mine = world.Get_rank() == args.rank
    for step in range(12):
        if step == 6 and mine:
            if args.fail == "raise":
                raise ZeroDivisionError("no samples in this shard")
            if args.fail == "abort":
                world.Abort(5)
            if args.fail == "kill":
                os.kill(os.getpid(), 9)
            if args.fail == "segv":
                os.kill(os.getpid(), 11)
            if args.fail == "exit":
                os._exit(6)
            if args.fail == "stall":
                time.sleep(90)
            if args.fail == "truncate":
                world.allreduce([1, 2, 3])
                world.send(b"x" * 4096, dest=0)
            if args.fail == "disk":
                Path("/ckpt/part.bin").write_bytes(bytes(16 << 20))
        if args.fail == "truncate" and step == 6 and world.Get_rank() == 0:
            small = bytearray(4)
            world.Recv([small, MPI.BYTE], source=args.rank)
        total = world.allreduce(step)
        if world.Get_rank() == 0:
            print(f"step {step} loss {total:.1f}", flush=True)
        time.sleep(0.05)
    print("training finished", flush=True)


main()
