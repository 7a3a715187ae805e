"""How the ranks meet at torch's store: who is there, and what all of them can use."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import Any

from remedy.verify.onhost.engines.torch_rank.rank import TorchRank, is_raised, raise_flag
from remedy.verify.onhost.rank.rank import first_line


def usable_gpu(torch: Any, local_rank: int, local_world: int) -> tuple[bool, str]:
    """Try whether this rank can use NCCL on a GPU of its own, and if not, why.

    A small allocation is part of the test: a GPU that is listed may still be lost or full.
    """
    if not torch.cuda.is_available():
        built = torch.version.cuda or "no CUDA"
        return False, f"torch.cuda is not available (torch {torch.__version__}, built for {built})"
    count = torch.cuda.device_count()
    if count < local_world:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        setting = "" if visible is None else f" (CUDA_VISIBLE_DEVICES={visible})"
        ranks, gpus = "rank" + "s" * (local_world != 1), "GPU" + "s" * (count != 1)
        return False, f"{local_world} {ranks} but {count} visible {gpus}{setting}"
    if not torch.distributed.is_nccl_available():
        return False, "torch was built without NCCL"
    try:
        torch.cuda.set_device(local_rank)
        torch.zeros(1, device="cuda").add_(1).item()
    except Exception as error:
        return False, f"GPU {local_rank}: {first_line(error)}"
    return True, ""


def agree(rank: TorchRank, store: Any, usable: bool, why: str) -> dict[str, Any]:
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
        missing = [number for number in range(rank.world) if not is_raised(store, f"came/{number}")]
    present = [number for number in range(rank.world) if number not in set(missing)]
    answers = {number: json.loads(store.get(keys[number])) for number in present}
    unusable = {
        str(number): value["why"] for number, value in answers.items() if not value["usable"]
    }
    planned = rank.config["backend"]
    backend = "gloo" if unusable or planned == "gloo" else "nccl"
    if planned == "gloo":
        unusable = {}
    decided = {"backend": backend, "missing": missing, "unusable": unusable}
    store.set("go", json.dumps(decided))
    return decided
