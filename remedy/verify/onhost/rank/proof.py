"""What a rank proves: who took part in the sum, and who the members of the group report to be.

It travels to the hosts: standard library only, Python >= 3.8.
"""

from __future__ import annotations

import hashlib
import json
import socket
from pathlib import Path
from typing import Any

from remedy.verify.onhost.procs import slurm_step
from remedy.verify.onhost.rank.group import Group
from remedy.verify.onhost.rank.rank import Rank
from remedy.verify.onhost.rank.sweep import sweep


def prove(rank: Rank, group: Group) -> dict[str, Any]:
    """Sum, learn who took part, and measure; the JSON object that ``allreduce.answers.RankResult`` reads."""
    total = prove_sum(rank.config["nonce"], group)
    me = {"hostname": socket.gethostname(), "boot_id": boot_id(), **group.identity()}
    members = exchange(group, {"rank": group.rank, **me})
    names = [[member["rank"], member["hostname"], member["boot_id"]] for member in members]
    rank.reach("reduced")
    pairs = group.pairs(members)
    if pairs is not None:
        rank.reach("paired")
    return {
        "nonce": rank.config["nonce"],
        "rank": group.rank,
        "local_rank": rank.local_rank,
        "world": group.world,
        "backend": group.backend,
        "unusable": group.unusable,
        "identity": {**me, "step": slurm_step()},
        "sum": total,
        "members": names if group.rank == 0 else None,
        "members_digest": hashlib.sha256(json.dumps(names).encode("ascii")).hexdigest(),
        "inside": group.inside,
        "pairs": pairs or [],
        "sweep": sweep(rank.config, group),
    }


def boot_id() -> str:
    """Read what is different on each machine, and the same for all ranks of one: random(4)."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def exchange(group: Group, value: dict[str, Any]) -> list[dict[str, Any]]:
    """Gather every rank's value, carried by the group itself, in rank order.

    As JSON: pickle would run what a peer sends.
    """
    data = json.dumps(value, sort_keys=True).encode("ascii")
    length = int(group.largest(len(data)))
    return [json.loads(text.decode("ascii")) for text in group.gather(data.ljust(length))]


def prove_sum(nonce: str, group: Group) -> dict[str, Any]:
    """Sum a vector in which each rank fills its own place, so that the sum shows exactly who took part.

    The values depend on the run's nonce: the sum of an earlier run is a different one.

    Returns:
        ``digest`` (SHA-256, hex, of the decimal numbers joined by commas) and ``missing`` ranks.
    """
    base = int(nonce, 16) % 2**40
    vector = [0] * (group.world + 1)
    vector[group.rank] = base + group.rank
    vector[-1] = group.rank + 1
    numbers = group.sum_ints(vector)
    missing = [number for number in range(group.world) if numbers[number] != base + number]
    text = ",".join(map(str, numbers))
    return {"digest": hashlib.sha256(text.encode("ascii")).hexdigest(), "missing": missing}
