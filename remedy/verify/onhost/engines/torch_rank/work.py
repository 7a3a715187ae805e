"""The way of one rank through all phases."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from remedy.verify.onhost.engines.torch_rank.inside import inside
from remedy.verify.onhost.engines.torch_rank.meet import agree, farewell, together, usable_gpu
from remedy.verify.onhost.engines.torch_rank.pairs import exchange
from remedy.verify.onhost.engines.torch_rank.prove import gather, identity, prove_sum
from remedy.verify.onhost.engines.torch_rank.rank import Rank, first_line
from remedy.verify.onhost.engines.torch_rank.sweep import sweep


def die_with_parent() -> None:
    """Have the kernel kill this process when torchrun dies: prctl(2), PR_SET_PDEATHSIG (1)."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def work(rank: Rank) -> None:
    """Go through all phases, and leave the result."""
    import torch
    from torch.distributed.rendezvous import rendezvous

    dist: Any = torch.distributed
    usable, why = False, ""
    if rank.config["backend"] != "gloo":
        usable, why = usable_gpu(torch, rank.local_rank, rank.local_world)
    alone: float | None = None
    trouble = ""
    try:
        alone = inside(torch, rank) if usable or rank.config["backend"] == "gloo" else None
        rank.reach("inside")
    except Exception as error:
        trouble = f"inside this host: {first_line(error)}"
    limit = rank.within(rank.config["join_seconds"])
    shared, _, _ = next(iter(rendezvous("env://", rank.rank, rank.world, timeout=limit)))
    store = dist.PrefixStore(f"remedy/{rank.config['nonce']}", shared)
    rank.store = store
    if trouble:
        # Told only now: through the store the others learn that there is nothing to wait for.
        raise RuntimeError(trouble)
    rank.reach("rendezvous")
    threading.Thread(target=rank.heed, args=(torch,), daemon=True).start()

    decided = agree(rank, store, usable, why)
    if decided["missing"]:
        rank.leave("missing", {"ranks": decided["missing"]})
        raise RuntimeError(f"ranks {decided['missing']} did not join the rendezvous")
    backend = decided["backend"]
    device = torch.device("cuda", rank.local_rank) if backend == "nccl" else torch.device("cpu")
    patience = rank.within(rank.config["group_seconds"])
    dist.init_process_group(
        backend, store=store, rank=rank.rank, world_size=rank.world, timeout=patience
    )
    rank.reach("group")

    together(torch, rank, device)
    rank.reach("barrier")

    total = prove_sum(torch, rank, device)
    me = identity(torch, backend, device)
    members = gather(torch, {"rank": rank.rank, **me}, dist.get_world_size(), device)
    rank.reach("reduced")

    together(torch, rank, device)
    pairs = exchange(torch, rank, members, device)
    rank.reach("paired")

    together(torch, rank, device)
    result: dict[str, Any] = {
        "nonce": rank.config["nonce"],
        "rank": rank.rank,
        "local_rank": rank.local_rank,
        "world": dist.get_world_size(),
        "backend": backend,
        "unusable": decided["unusable"] if rank.rank == 0 else {},
        "identity": me,
        "sum": total,
        "members": [[m["rank"], m["hostname"], m["boot_id"]] for m in members]
        if rank.rank == 0
        else None,
        "members_digest": hashlib.sha256(
            json.dumps([[m["rank"], m["hostname"], m["boot_id"]] for m in members]).encode("ascii")
        ).hexdigest(),
        "inside": alone,
        "pairs": pairs,
        "sweep": sweep(torch, rank, device),
    }
    rank.reach("done")
    rank.leave("result", {**result, "times": rank.times})
    farewell(store, rank.world)


def main() -> None:
    """Run, and end without destructors: those of a broken group can block for ever."""
    die_with_parent()
    rank = Rank(json.loads(Path(sys.argv[1]).read_text(encoding="ascii")))
    rank.reach("started")
    try:
        work(rank)
    except BaseException as error:
        import traceback

        traceback.print_exc()
        rank.give_up(first_line(error), str(error))
    os._exit(0)
