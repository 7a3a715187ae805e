"""One rank of runs that hang, each in a process of its own that leaves a dump of torch's flight recorder.

gloo's recorder dumps only when it is asked, so a timer asks it. Torch is imported once, and each run is a fork.
"""

import argparse
import contextlib
import datetime
import os
import signal
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace


def hang(kind, rank, world):
    """Do what the kind says, instead of the collective that the others wait in."""
    if kind == "asleep":
        time.sleep(60)
    if kind == "ended":
        os._exit(0)
    if kind == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if kind == "other":
        dist.broadcast(torch.ones(4), src=rank)
    if kind == "receive":
        dist.recv(torch.ones(4), src=(rank + 1) % world)
    if kind == "barrier":
        dist.barrier()
    if kind == "busy":
        while True:
            pass
    if kind == "lock":
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    if kind == "exception":
        try:
            raise ValueError("a bad sample")
        except ValueError:
            time.sleep(60)


def run(args, number, kind, bad):
    """Join, sum five times, then hang; the timer ends it."""
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://{args.master}:{args.port + number}",
        rank=args.rank,
        world_size=args.world,
        timeout=datetime.timedelta(seconds=90),
    )
    for _ in range(5):
        dist.all_reduce(torch.ones(4))

    def dump():
        time.sleep(args.seconds)
        folder = Path(args.folder) / f"{number:03d}-{kind}-{bad}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"trace_rank_{args.rank}").write_bytes(_dump_fr_trace(includeStackTraces=False))
        os._exit(0)

    threading.Thread(target=dump, daemon=True).start()
    if args.rank == bad:
        hang(kind, args.rank, args.world)
    with contextlib.suppress(
        RuntimeError
    ):  # a peer that ended: a rank's log says so, and the dump has to come
        dist.all_reduce(torch.ones(4))
    time.sleep(60)


def main():
    """Fork each run, and wait for it; what the kernel stopped is killed."""
    parser = argparse.ArgumentParser()
    for name in ("rank", "world", "port", "runs"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--master", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--kinds", nargs="+", required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for number in range(args.runs * len(args.kinds)):
        turn, place = divmod(number, len(args.kinds))
        kind, bad = args.kinds[place], turn % args.world
        child = os.fork()
        if child == 0:
            try:
                run(args, number, kind, bad)
            finally:
                os._exit(1)
        until = time.monotonic() + 90
        stopped = 0.0
        while time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
            if ended and not os.WIFSTOPPED(status):
                break
            if ended:
                stopped = time.monotonic()
            if stopped and time.monotonic() - stopped > args.seconds:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.05)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        print(f"run {number} {kind} rank {bad}", flush=True)


if __name__ == "__main__":
    main()
