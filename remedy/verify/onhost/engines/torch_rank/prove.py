"""The proof: a sum that shows exactly who took part, and who the members of the group say they are."""

from __future__ import annotations

import hashlib
import json
import socket
from pathlib import Path
from typing import Any

from remedy.verify.onhost.engines.torch_rank.rank import Rank


def identity(torch: Any, backend: str, device: Any) -> dict[str, str]:
    """Who this rank is: what must be distinct, or equal, over the hosts."""
    nccl = ""
    if backend == "nccl":
        version = torch.cuda.nccl.version()
        nccl = ".".join(map(str, version)) if isinstance(version, tuple) else str(version)
    return {
        "hostname": socket.gethostname(),
        "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip(),
        "torch": torch.__version__,
        "nccl": nccl,
        "device": torch.cuda.get_device_name(device) if backend == "nccl" else "cpu",
    }


def gather(torch: Any, value: dict[str, Any], world: int, device: Any) -> list[dict[str, Any]]:
    """Every rank's value, carried by the group itself, in rank order.

    JSON in padded byte tensors: torch's own object gather needs numpy, which torch does not bring along,
    and pickle, which would run what a peer sends.
    """
    data = json.dumps(value, sort_keys=True).encode("ascii")
    length = torch.tensor([len(data)], dtype=torch.int64, device=device)
    torch.distributed.all_reduce(length, op=torch.distributed.ReduceOp.MAX)
    padded = data.ljust(int(length.item()))
    mine = torch.tensor(list(padded), dtype=torch.uint8, device=device)
    parts = [torch.empty_like(mine) for _ in range(world)]
    torch.distributed.all_gather(parts, mine)
    return [json.loads(bytes(part.cpu().tolist()).decode("ascii")) for part in parts]


def prove_sum(torch: Any, rank: Rank, device: Any) -> dict[str, Any]:
    """Sum a vector in which each rank fills its own place, so that the sum shows exactly who took part.

    The values depend on the run's nonce: the sum of an earlier run is another one. int64 is exact.

    Returns:
        ``digest`` (SHA-256, hex, of the decimal numbers joined by commas) and ``missing`` ranks.
    """
    base = int(rank.config["nonce"], 16) % 2**40
    vector = torch.zeros(rank.world + 1, dtype=torch.int64, device=device)
    vector[rank.rank] = base + rank.rank
    vector[-1] = rank.rank + 1
    torch.distributed.all_reduce(vector)
    numbers = vector.cpu().tolist()
    missing = [number for number in range(rank.world) if numbers[number] != base + number]
    text = ",".join(map(str, numbers))
    return {"digest": hashlib.sha256(text.encode("ascii")).hexdigest(), "missing": missing}
