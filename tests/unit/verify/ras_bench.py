"""Answers of NCCL's RAS service, as the format strings of its source make them."""

from __future__ import annotations

import json
from typing import Any


def document(missing: list[dict[str, Any]], counts: dict[int, int]) -> str:
    """As jsonWriteHeader and its like write it at v2.28.7-1 and later."""
    return json.dumps(
        {
            "nccl_version": "2.30.7",
            "communicators_count": 1,
            "communicators": [
                {
                    "hash": "0xae94423cfbb2ef4a",
                    "size": len(counts) + len(missing),
                    "ranks_count": len(counts),
                    "missing_ranks_count": len(missing),
                    "ranks": [
                        {
                            "rank": rank,
                            "host": "10.0.0.1",
                            "pid": 10,
                            "cuda_dev": 0,
                            "nvml_dev": 0,
                            "status": {"init_state": 0, "async_error": 0},
                            "collective_counts": {"Broadcast": 0, "AllReduce": count},
                        }
                        for rank, count in counts.items()
                    ],
                    "missing_ranks": missing,
                }
            ],
            "ras": {"collection_time_sec": 0.0, "timeouts_count": 0},
        }
    )


def lost(rank: int, unresponsive: bool, dead: bool) -> dict[str, Any]:
    status = {"unresponsive": unresponsive, "considered_dead": dead}
    return {"rank": rank, "host": "10.0.0.2", "pid": 11, "status": status}
