"""One rank of runs that hang, each in a process of its own that leaves a dump of torch's flight recorder.

gloo's recorder dumps only when it is asked, so a timer asks it. NCCL's dumps when a collective times out, and
NCCL's RAS service is asked before that. Torch is imported once, and each run is a fork.
"""

import argparse
import contextlib
import datetime
import os
import signal
import socket
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace

TIMEOUT = 12  # seconds, of a collective over NCCL


def four(backend):
    """Four numbers where the backend has them."""
    return torch.ones(4, device="cuda" if backend == "nccl" else "cpu")


def hang(kind, rank, world, backend):
    """Do what the kind says, instead of the collective that the others wait in."""
    if kind == "asleep":
        time.sleep(60)
    if kind == "ended":
        os._exit(0)
    if kind == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if kind == "other":
        dist.broadcast(four(backend), src=rank)
    if kind == "receive":
        dist.recv(four(backend), src=(rank + 1) % world)
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
    """Join, sum five times, then hang until a timer, or NCCL's watchdog, ends it."""
    folder = Path(args.folder) / f"{number:03d}-{kind}-{bad}"
    folder.mkdir(parents=True, exist_ok=True)
    if args.backend == "nccl":
        output = os.open(folder / f"rank-{args.rank}.log", os.O_CREAT | os.O_WRONLY)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ["TORCH_FR_DUMP_TEMP_FILE"] = str(folder / "trace_rank_")
        torch.cuda.set_device(0)
    dist.init_process_group(
        args.backend,
        init_method=f"tcp://{args.master}:{args.port + number}",
        rank=args.rank,
        world_size=args.world,
        timeout=datetime.timedelta(seconds=TIMEOUT if args.backend == "nccl" else 90),
    )
    for _ in range(5):
        dist.all_reduce(four(args.backend))

    def dump():
        time.sleep(args.seconds)
        (folder / f"trace_rank_{args.rank}").write_bytes(_dump_fr_trace(includeStackTraces=False))
        os._exit(0)

    if args.backend == "nccl":
        torch.cuda.synchronize()
        (folder / f"waits-{args.rank}").touch()
    else:
        threading.Thread(target=dump, daemon=True).start()
    if args.rank == bad:
        hang(kind, args.rank, args.world, args.backend)
    # A peer that ended: a rank's log says so, and the dump has to come.
    with contextlib.suppress(RuntimeError):
        dist.all_reduce(four(args.backend))
        if args.backend == "nccl":
            torch.cuda.synchronize()
    time.sleep(60)


def ask_ras(folder, rank):
    """Keep what NCCL answers of the job on this host, as JSON and for people."""
    from remedy.verify.onhost import nccl_ras

    (folder / f"ras-{rank}.json").write_text(nccl_ras.ask(nccl_ras.address(), 8))
    answer = b""
    with contextlib.suppress(OSError), socket.create_connection(nccl_ras.address(), 8) as line:
        for command in ("CLIENT PROTOCOL 2", "TIMEOUT 3", "VERBOSE STATUS"):
            line.sendall(f"{command}\n".encode())
            answer = line.recv(4096)
        while more := line.recv(65536):
            answer += more
    (folder / f"ras-{rank}.txt").write_bytes(answer)


def wait_for(folder, name, world, seconds=90.0):
    """Wait until every host has left a file of this name."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if all((folder / f"{name}-{rank}").exists() for rank in range(world)):
            return
        time.sleep(0.1)


def main():
    """Fork each run, and wait for it; what the kernel stopped is killed."""
    parser = argparse.ArgumentParser()
    for name in ("rank", "world", "port", "runs"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--master", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--kinds", nargs="+", required=True)
    parser.add_argument("--backend", default="gloo", choices=("gloo", "nccl"))
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
        over_nccl = args.backend == "nccl"
        folder = Path(args.folder) / f"{number:03d}-{kind}-{bad}"
        until = time.monotonic() + (3 * TIMEOUT + 20 if over_nccl else 90)
        stopped, asked = 0.0, not over_nccl
        while time.monotonic() < until:
            if not asked and (folder / f"waits-{args.rank}").exists():
                wait_for(folder, "waits", args.world, TIMEOUT)
                time.sleep(3)
                asked = True
                ask_ras(folder, args.rank)
            ended, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
            if ended and not os.WIFSTOPPED(status):
                break
            if ended:
                stopped = time.monotonic()
            limit = 2 * TIMEOUT if over_nccl else args.seconds
            if stopped and time.monotonic() - stopped > limit:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.05)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        if over_nccl:
            # Not before all are done: a rank that ended at once would begin the next run alone.
            (folder / f"done-{args.rank}").touch()
            wait_for(folder, "done", args.world)
        print(f"run {number} {kind} rank {bad}", flush=True)


if __name__ == "__main__":
    main()
