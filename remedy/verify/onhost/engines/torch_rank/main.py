"""The program that torchrun starts once a rank."""

from __future__ import annotations

import sys
import threading
from typing import Any

from remedy.verify.onhost.engines.torch_rank.group import TorchGroup
from remedy.verify.onhost.engines.torch_rank.inside import inside
from remedy.verify.onhost.engines.torch_rank.meet import agree, usable_gpu
from remedy.verify.onhost.engines.torch_rank.rank import TorchRank
from remedy.verify.onhost.rank.rank import die_with_parent, first_line, read_config
from remedy.verify.onhost.rank.run import run


def join(rank: TorchRank) -> TorchGroup:
    """Try the ranks of this host among themselves, meet the others at the store, and make the group."""
    import torch
    from torch.distributed.rendezvous import rendezvous

    dist: Any = torch.distributed
    on_cpu = rank.config["backend"] == "gloo"
    usable, why = (False, "") if on_cpu else usable_gpu(torch, rank.local_rank, rank.local_world)
    alone: float | None = None
    trouble = ""
    try:
        alone = inside(torch, rank) if usable or on_cpu else None
        rank.reach("inside")
    except Exception as error:
        trouble = f"inside this host: {first_line(error)}"
    limit = rank.within(rank.config["join_seconds"])
    shared, _, _ = next(iter(rendezvous("env://", rank.rank, rank.world, timeout=limit)))
    rank.store = dist.PrefixStore(f"remedy/{rank.config['nonce']}", shared)
    if trouble:
        # Raised only now: through the store the others learn that there is nothing to wait for.
        raise RuntimeError(trouble)
    rank.reach("rendezvous")
    threading.Thread(target=rank.heed, args=(torch,), daemon=True).start()

    decided = agree(rank, rank.store, usable, why)
    if decided["missing"]:
        rank.leave("missing", {"ranks": decided["missing"]})
        raise RuntimeError(f"ranks {decided['missing']} did not join the rendezvous")
    dist.init_process_group(
        decided["backend"],
        store=rank.store,
        rank=rank.rank,
        world_size=rank.world,
        timeout=rank.within(rank.config["group_seconds"]),
    )
    group = TorchGroup(torch, rank, decided["backend"])
    group.inside = alone
    group.unusable = decided["unusable"] if rank.rank == 0 else {}
    return group


def main() -> None:
    """Be a rank."""
    config = read_config(sys.argv[1])
    die_with_parent()
    rank = TorchRank(config)
    run(rank, lambda: join(rank))
