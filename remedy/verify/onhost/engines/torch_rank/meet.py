"""How the ranks meet: who is there, what all of them can use, and how they part."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from typing import Any

from remedy.verify.onhost.engines.torch_rank.rank import Rank, first_line, is_raised, raise_flag

# How long a rank that is done waits for the others, so that nobody's last message is cut off.
FAREWELL = 5.0


def usable_gpu(torch: Any, local_rank: int, local_world: int) -> tuple[bool, str]:
    """Whether this rank can use NCCL on a GPU of its own, and if not, why.

    A small allocation is part of the test: a GPU that is listed may still be lost or full.
    """
    if not torch.cuda.is_available():
        built = torch.version.cuda or "no CUDA"
        return False, f"torch.cuda is not available (torch {torch.__version__}, built for {built})"
    count = torch.cuda.device_count()
    if count < local_world:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        seen = "" if visible is None else f" (CUDA_VISIBLE_DEVICES={visible})"
        return False, f"{local_world} ranks but {count} visible GPUs{seen}"
    if not torch.distributed.is_nccl_available():
        return False, "torch was built without NCCL"
    try:
        torch.cuda.set_device(local_rank)
        torch.zeros(1, device="cuda").add_(1).item()
    except Exception as error:
        return False, f"GPU {local_rank}: {first_line(error)}"
    return True, ""


def agree(rank: Rank, store: Any, usable: bool, why: str) -> dict[str, Any]:
    """Agree over the store on who is there and on one backend.

    Rank 0 alone reads every key, so that the store's work grows with the world and not its square.

    Returns:
        ``backend`` ("nccl" or "gloo"), ``missing`` ranks, and ``unusable``: why by rank.
    """
    store.set(f"here/{rank.rank}", json.dumps({"usable": usable, "why": why}))
    raise_flag(store, f"came/{rank.rank}")
    limit = rank.within(rank.config["join_seconds"])
    if rank.rank:
        store.wait(["go"], limit + timedelta(seconds=2))
        answer: dict[str, Any] = json.loads(store.get("go"))
        return answer
    keys = [f"here/{number}" for number in range(rank.world)]
    missing: list[int] = []
    try:
        store.wait(keys, limit)
    except Exception:  # the type differs between torch versions; what counts is who is there
        missing = [one for one in range(rank.world) if not is_raised(store, f"came/{one}")]
    present = [number for number in range(rank.world) if number not in set(missing)]
    told = {number: json.loads(store.get(keys[number])) for number in present}
    unusable = {str(number): value["why"] for number, value in told.items() if not value["usable"]}
    wanted = rank.config["backend"]
    backend = "gloo" if unusable or wanted == "gloo" else "nccl"
    if wanted == "gloo":
        unusable = {}
    decided = {"backend": backend, "missing": missing, "unusable": unusable}
    store.set("go", json.dumps(decided))
    return decided


def together(torch: Any, rank: Rank, device: Any) -> None:
    """Wait for all ranks: gloo's monitored barrier is the only one that names who did not come."""
    dist = torch.distributed
    if device.type == "cuda":
        dist.barrier(device_ids=[rank.local_rank])
        torch.cuda.synchronize()
    else:
        limit = rank.within(rank.config["group_seconds"])
        dist.monitored_barrier(timeout=limit, wait_all_ranks=True)


def slowest(torch: Any, seconds: float, device: Any) -> float:
    """The longest of all ranks' times, by which all of them decide alike."""
    value = torch.tensor([seconds], dtype=torch.float64, device=device)
    torch.distributed.all_reduce(value, op=torch.distributed.ReduceOp.MAX)
    return float(value.item())


def farewell(store: Any, world: int) -> None:
    """Wait shortly until all ranks are done, so that leaving cuts nobody's last message off."""
    end = time.monotonic() + FAREWELL
    gone = store.add("done", 1)
    while gone < world and time.monotonic() < end:
        time.sleep(0.02)
        gone = store.add("done", 0)
