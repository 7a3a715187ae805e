"""The rung inside each host: its own ranks sum among themselves, before they can hold up others."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any

from remedy.verify.onhost.engines.torch_rank.rank import TorchRank

# How long the ranks of one host may take among themselves, in seconds: NCCL loads its kernels first.
ON_GPU, ON_CPU = 30.0, 15.0


def inside(torch: Any, rank: TorchRank) -> float | None:
    """Let the ranks of this host sum among themselves, so that a bad host is known before it holds up others.

    A single CPU rank forks a second one, which costs no second import. The group is gone when this returns; it
    meets through a file of the run's own folder, so no network and no name is needed.

    Returns:
        seconds of one all-reduce of a megabyte; None where there is but one GPU.
    """
    on_gpu = rank.config["backend"] != "gloo" and torch.cuda.is_available()
    me, count, child = rank.local_rank, rank.local_world, -1
    if count == 1:
        if on_gpu or rank.config["backend"] != "gloo":
            return None
        count, child = 2, os.fork()
        me = 1 if child == 0 else 0
    dist: Any = torch.distributed
    device = torch.device("cuda", me) if on_gpu else torch.device("cpu")
    try:
        if on_gpu:
            torch.cuda.set_device(me)
        store = dist.FileStore(str(rank.directory / "inside"), count)
        dist.init_process_group(
            "nccl" if on_gpu else "gloo",
            store=store,
            rank=me,
            world_size=count,
            timeout=rank.within(ON_GPU if on_gpu else ON_CPU),
        )
        value = torch.full((262_144,), float(me + 1), device=device)
        dist.all_reduce(value)
        wrong = bool((value != count * (count + 1) / 2).any().item())
        start = time.perf_counter()
        dist.all_reduce(value)
        if on_gpu:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        if child != 0:
            dist.destroy_process_group()
    finally:
        if child == 0:
            os._exit(0)
        if child > 0:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
    if wrong:
        raise RuntimeError("the sum of this host's own ranks is wrong")
    return seconds
